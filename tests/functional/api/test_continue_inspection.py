"""``POST /v1/continue_inspection``."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules.context import hashed_token
from ironic_rules.db import node_sets, nodes, ports
from ironic_rules.exceptions import NodeLocked, NoFreeWorker, NotFound, RPCTimeout
from tests.functional.api.conftest import at
from tests.walking import walking

URL = "/v1/continue_inspection"
MAC = "52:54:00:00:00:01"
BMC = "192.0.2.1"
BASE = at(1)


def inventory(*macs: str, bmc: str | None = BMC) -> dict[str, Any]:
    return {"inventory": {
        "interfaces": [{"name": f"eth{n}", "mac_address": mac, "has_carrier": True} for n, mac in enumerate(macs)],
        "cpu": {"architecture": "x86_64", "count": 2}, "memory": {"physical_mb": 1024},
        "bmc_address": bmc, "hostname": "localhost"},
        "error": None, "logs": "b64", "dmi": {"serial": "x\u0000"}}


@pytest.fixture
def waiting(db, make_node) -> Any:
    """A node in INSPECT WAIT with a port and a BMC address."""
    node = make_node(name="waiting", provision_state="inspect wait", conductor_group="rack-1")
    with db.writer() as conn:
        ports.create(conn, {"address": MAC, "node_id": node.id})
        node_sets.set_bmc_addresses(conn, node.id, [BMC])
    return node


def test_the_data_go_to_a_conductor_and_the_base_version_answers_with_the_uuid(app, rpc, waiting):
    response = app.post_json(URL, inventory(MAC), headers=BASE)

    assert (response.status_int, response.json) == (200, {"uuid": waiting.uuid})
    [(method, node_id, arguments)] = rpc.calls
    assert (method, node_id, arguments["group"]) == ("continue_inspection", waiting.id, "rack-1")
    assert arguments["inventory"]["cpu"]["architecture"] == "x86_64"
    assert arguments["plugin_data"]["dmi"] == {"serial": "x\u0000"}
    assert "logs" not in arguments["plugin_data"]


def test_a_ramdisk_without_a_version_header_gets_the_base_version(app, waiting):
    assert app.post_json(URL, inventory(MAC), extra_environ={"no-version": "1"}).json == {"uuid": waiting.uuid}


def test_an_agent_of_an_earlier_release_sends_no_content_type(app, waiting, rpc):
    import json

    app.post(URL, json.dumps(inventory(MAC)), headers=BASE, content_type="")

    assert len(rpc.calls) == 1


def test_node_uuid_is_enough_at_every_version(app, waiting):
    for headers in (BASE, at(84)):
        assert app.post_json(f"{URL}?node_uuid={waiting.uuid}", inventory(bmc=None), headers=headers).status_int == 200


def test_since_1_84_the_answer_is_that_of_a_lookup_with_a_token_once(app, waiting, db):
    first = app.post_json(URL, inventory(MAC)).json
    second = app.post_json(URL, inventory(MAC)).json

    assert first["node"].keys() == {"uuid", "properties", "instance_info", "driver_internal_info", "links"}
    assert first["config"]["heartbeat_timeout"] == 300
    token = first["config"]["agent_token"]
    assert len(token) >= 32
    assert second["config"]["agent_token"] == "******"
    with db.reader() as conn:
        stored = nodes.get(conn, waiting.uuid).agent_token_hash
    assert stored == hashed_token(token) != token


@pytest.mark.parametrize("minor", [2, 50, 83])
def test_between_the_two_ways_it_is_not_there(app, waiting, rpc, minor):
    app.post_json(URL, inventory(MAC), headers=at(minor), status=404)

    assert rpc.calls == []


def test_every_failed_lookup_gets_the_same_answer(app, db, rpc, waiting, make_node):
    other = make_node(provision_state="inspect wait")
    idle = make_node(provision_state="manageable")
    with db.writer() as conn:
        ports.create(conn, {"address": "52:54:00:00:00:02", "node_id": other.id})
        ports.create(conn, {"address": "52:54:00:00:00:03", "node_id": idle.id})
        node_sets.set_bmc_addresses(conn, other.id, ["192.0.2.2"])
    request_id = {"X-OpenStack-Request-Id": "req-d99c14b4-d066-4708-b04e-e52a6ef5b2f8"}
    nobody = "00000000-0000-0000-0000-000000000007"

    answers = [
        app.post_json(URL + query, inventory(*macs, bmc=bmc), headers=request_id, status=404)
        for query, macs, bmc in (
            ("", ["52:54:00:00:00:4d"], "192.0.2.77"),  # no node
            ("", ["52:54:00:00:00:03"], None),  # in another state
            ("", [MAC, "52:54:00:00:00:02"], None),  # two nodes
            ("", [MAC], "192.0.2.2"),  # the BMC of another node
            (f"?node_uuid={other.uuid}", [MAC], None),  # the UUID of another node
            (f"?node_uuid={nobody}", [MAC], None),
            (f"?node_uuid={nobody}", [], None),
        )]
    rpc.fail_with("continue_inspection", NotFound("gone"))
    answers.append(app.post_json(URL, inventory(MAC), headers=request_id, status=404))

    assert len({answer.body for answer in answers}) == 1
    assert len({tuple(answer.headerlist) for answer in answers}) == 1
    assert answers[0].fault["faultstring"] == "The requested node could not be found."


@pytest.mark.parametrize("error", [NodeLocked(node="x", host="y"), RPCTimeout(), NoFreeWorker(node="x")])
def test_what_may_be_repeated_is_503_and_claims_no_token(app, rpc, waiting, error):
    rpc.fail_with("continue_inspection", error)

    fault = app.post_json(URL, inventory(MAC), status=503).fault

    assert waiting.uuid not in fault["faultstring"]
    assert app.post_json(URL, inventory(MAC)).json["config"]["agent_token"] != "******"


@walking("body", [
    {}, {"foo": "bar"}, [], None, {"inventory": None}, {"inventory": []}, {"inventory": {"interfaces": {}}},
    {"inventory": {"interfaces": [{"name": "eth0", "mac_address": "zz"}]}}, {"inventory": {"interfaces": []}},
])
def test_malformed_data_are_400(app, rpc, waiting, body):
    assert app.post_json(URL, body, headers=BASE, status=400).fault["faultcode"] == "Client"
    assert rpc.calls == []


def test_the_query_takes_a_node_uuid_and_nothing_else(app, waiting):
    app.post_json(f"{URL}?node_uuid=waiting", inventory(MAC), status=400)
    app.post_json(f"{URL}?node_uuid={waiting.uuid}%0A", inventory(MAC), status=400)
    app.post_json(f"{URL}?x=1", inventory(MAC), status=400)


def test_it_can_be_turned_off(app, conf, waiting):
    conf.set_override("enable_ramdisk_endpoints", False, group="api")

    app.post_json(URL, inventory(MAC), status=404)
