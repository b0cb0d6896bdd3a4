"""Concurrent requests on one node: each takes effect, and none is lost, on every database."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from ironic_rules.api.app import make_app
from ironic_rules.db import conductors

from .conftest import FAKE_HARDWARE, Client

THREADS, ROUNDS = 4, 5


@pytest.fixture(params=[
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def app(request, conf, rpc, emptied):
    database = emptied(request.param)
    with database.writer() as conn:
        conductors.register(conn, "conductor-1", "", FAKE_HARDWARE, "instance-1")
    return make_app(conf, database, rpc)


def test_requests_on_one_node_wait_for_each_other(app):
    node = Client(app).post_json("/v1/nodes", {"driver": "fake-hardware"}).json["uuid"]
    answers = Counter()

    def work(thread):
        client = Client(app)
        for number in range(ROUNDS):
            mine = f"{thread}_{number}"
            for reply in (
                client.post_json("/v1/ports", {"node_uuid": node, "address": f"52:54:00:00:{thread:02x}:{number:02x}"},
                                 expect_errors=True),
                client.patch_json(f"/v1/nodes/{node}", [{"op": "add", "path": f"/extra/{mine}", "value": 1}],
                                  expect_errors=True),
                client.put(f"/v1/nodes/{node}/traits/CUSTOM_{mine}", expect_errors=True),
                client.post_json(f"/v1/nodes/{node}/vifs", {"id": mine}, expect_errors=True),
            ):
                answers[reply.status_int] += 1

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    client, each = Client(app), THREADS * ROUNDS
    assert answers == {201: each, 200: each, 204: 2 * each}
    shown = client.get(f"/v1/nodes/{node}").json
    assert (len(shown["extra"]), len(shown["traits"])) == (each, each)
    assert len({vif["id"] for vif in client.get(f"/v1/nodes/{node}/vifs").json["vifs"]}) == each
    assert len(client.get(f"/v1/nodes/{node}/ports").json["ports"]) == each
