"""Conversations with the API as data: ``tests/vectors/api``.

A file is a list of conversations, each with an empty database, what is ``given`` in it, and exchanges in order::

    - name: an inspection can be aborted
      nodes: [{uuid: …, provision_state: inspect wait, ports: [MAC], bmc: [IP]}]     # stored past the API
      validation: {power: {result: true}}                                            # what the conductor says
      exchanges:
      - case: abort                    # names the exchange in failures
        request: PUT /v1/nodes/…/states/provision
        version: "1.96"                # the default; null sends no version
        headers: {}
        body: {target: abort}          # or text: raw
        status: 202
        location: /v1/nodes/…          # the path in the header
        keys: […]                      # of the reply, exactly;  item_keys: of the items of its only list
        count: {/nodes: 1}             # items at a pointer
        json: {/uuid: …}               # values at pointers
        fault: text                    # part of an error;  form: title, for requests that reach no method
        empty: true                    # no body
        differs: why this differs from the reference service

A request that is answered with 4xx must not have changed any table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from ironic_rules.db import node_sets, nodes, ports
from ironic_rules.db.session import Database
from ironic_rules.models import documents
from tests.functional.api.conftest import Client
from tests.functional.api.tables import contents
from tests.walking import walking

VECTORS = Path(__file__).parents[2] / "vectors" / "api"
_FAULT = {"faultcode", "faultstring", "debuginfo", "message_id"}
FORMS = {"fault": _FAULT, "title": _FAULT | {"code", "title", "description"}}
HEADERS = {"content-type", "content-length", "location", "allow", "etag", "x-openstack-ironic-api-version",
           "x-openstack-ironic-api-minimum-version", "x-openstack-ironic-api-maximum-version",
           "x-openstack-request-id", "openstack-request-id"}
#: of the paths by which clients of ironic-inspector find its versions
OF_INSPECTOR = {f"x-openstack-ironic-inspector-api-{bound}-version" for bound in ("minimum", "maximum")}
ROOTS = {"/", "/v1", "/v1/"}


def conversations() -> list[tuple[str, Any]]:
    """Return all conversations with the names of their files."""
    return [
        (f"{path.stem}: {conversation['name']}", conversation)
        for path in sorted(VECTORS.glob("*.yaml")) for conversation in yaml.safe_load(path.read_text(encoding="utf-8"))]


def store(db: Database, given: dict[str, Any]) -> None:
    for node in given.get("nodes", ()):
        values = {name: value for name, value in node.items() if name not in ("ports", "bmc")}
        with db.writer() as conn:
            row = nodes.create(conn, {"driver": "fake-hardware", **values})
            for address in node.get("ports", ()):
                ports.create(conn, {"address": address, "node_id": row.id})
            node_sets.set_bmc_addresses(conn, row.id, node.get("bmc", ()))


def send(app: Client, exchange: dict[str, Any]) -> Any:
    method, path = exchange["request"].split(" ", 1)
    body = json.dumps(exchange["body"]) if "body" in exchange else exchange.get("text", "")
    version = exchange.get("version", "1.96")
    headers = {"Content-Type": "application/json", **exchange.get("headers", {})}
    if version:
        headers["X-OpenStack-Ironic-API-Version"] = version
    return app.request(path, method=method, body=body.encode(), headers=headers, expect_errors=True,
                       environ={} if version else {"no-version": "1"})


def seen(reply: Any, exchange: dict[str, Any]) -> dict[str, Any]:
    """Return the actual values of the reply for the properties that the exchange specifies."""
    body = reply.json if reply.body and reply.status_int < 400 else {}
    found: dict[str, Any] = {
        "status": reply.status_int, "empty": reply.body == b"",
        "location": reply.headers.get("Location", "").removeprefix("http://localhost"),
        "fault": exchange.get("fault") if exchange.get("fault", "") in str(reply.fault) else reply.fault,
        "keys": sorted(body),
    }
    if "item_keys" in exchange:
        items = next(value for value in body.values() if isinstance(value, list))
        found["item_keys"] = sorted(set.union(*map(set, items)))
    found["json"] = {path: documents.get(body, documents.parse_pointer(path)) for path in exchange.get("json", ())}
    found["count"] = {path: len(documents.get(body, documents.parse_pointer(path)))
                      for path in exchange.get("count", ())}
    return {name: found[name] for name in found if name in exchange}


@walking("name, conversation", conversations(), between="start_empty")
def test_the_conversation_goes_as_written(app, db, rpc, name, conversation):
    store(db, conversation)
    rpc.validation = conversation.get("validation", {})

    for exchange in conversation["exchanges"]:
        before = contents(db)
        reply = send(app, exchange)

        what = exchange.get("case", exchange["request"])
        assert (what, seen(reply, exchange)) == (what, {name: exchange[name] for name in seen(reply, exchange)})
        headers = {name.lower() for name in reply.headers}
        assert headers <= (HEADERS | OF_INSPECTOR if reply.request.path in ROOTS else HEADERS), what
        if reply.status_int >= 400:
            # The places of problems are ours; the texts have them, too.
            assert reply.fault.keys() - {"problems"} == FORMS[exchange.get("form", "fault")], what
            assert contents(db) == before, what


def test_every_file_has_conversations():
    assert {path.stem for path in VECTORS.glob("*.yaml")} >= {
        "versions", "nodes", "ports", "inspection-rules", "continue-inspection", "deploy-templates"}
