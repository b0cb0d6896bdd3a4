"""Requests for a node that is locked wait until it is free, and are then done as they were sent."""

from __future__ import annotations

import functools

import sqlalchemy as sa

from ironic_rules.api import app as app_api
from ironic_rules.api.app import make_app
from ironic_rules.api.expose import LockPatience
from ironic_rules.db.tables import nodes
from tests.functional.api.conftest import Client

FIELDS = {"provision_state": "active", "power_state": "power on", "resource_class": "bare"}


def test_a_request_that_has_waited_is_done_as_it_was_sent(conf, db, rpc, make_node, monkeypatch):
    pauses = []

    def release(pause_s: float) -> None:
        pauses.append(pause_s)
        if len(pauses) % 3 == 0:  # two attempts more fail
            with db.writer() as conn:
                conn.execute(sa.update(nodes).values(reservation=None))

    monkeypatch.setattr(app_api, "LockPatience", functools.partial(LockPatience, sleep=release))
    conf.set_override("lock_patience", 30.0, group="api")
    app = Client(make_app(conf, db, rpc))
    node = make_node(reservation="conductor-1", **FIELDS)

    patched = app.patch_json(f"/v1/nodes/{node.uuid}", [{"op": "add", "path": "/extra/a", "value": {"b": [1]}}])
    assert (patched.json["extra"], len(pauses)) == ({"a": {"b": [1]}}, 3)

    with db.writer() as conn:
        conn.execute(sa.update(nodes).values(reservation="conductor-1"))
    body = {"name": "web", "node": node.uuid, "resource_class": "bare", "extra": {"c": 1}}
    made = app.post_json("/v1/allocations", body, status=201)
    assert (made.json["node_uuid"], made.json["extra"], len(pauses)) == (node.uuid, {"c": 1}, 6)
    assert made.headers.getall("Location") == [f"http://localhost/v1/allocations/{made.json['uuid']}"]
    assert len(app.get("/v1/allocations").json["allocations"]) == 1
