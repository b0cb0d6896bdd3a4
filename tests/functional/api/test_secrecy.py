"""Secrets of the unauthenticated endpoints: whether a node exists, its state, and its secrets."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.api.v1 import ramdisk
from ironic_rules.context import hashed_token
from ironic_rules.db import conductors, inspection_rules, node_sets, nodes, ports
from ironic_rules.exceptions import LookupFailed, NodeNotFound, NotFound
from tests.functional.api.raw import Reply, send

WAITING, OTHER, IDLE = (f"{digit * 8}-{digit * 4}-4{digit * 3}-8{digit * 3}-{digit * 12}" for digit in "123")
NOBODY = "00000000-0000-4000-8000-000000000007"
MACS = {WAITING: "52:54:00:00:00:01", OTHER: "52:54:00:00:00:02", IDLE: "52:54:00:00:00:03",
        NOBODY: "52:54:00:00:00:4d"}
BMCS = {WAITING: "192.0.2.1", OTHER: "192.0.2.2", IDLE: "192.0.2.3", NOBODY: "192.0.2.77"}
STATES = {WAITING: "inspect wait", OTHER: "inspect wait", IDLE: "manageable"}


@pytest.fixture
def three(db: Any) -> Any:
    """Two nodes that wait and one that does not, each with a port, a BMC address and an agent token."""
    for uuid, state in STATES.items():
        with db.writer() as conn:
            node = nodes.create(conn, {
                "driver": "fake-hardware", "uuid": uuid, "name": f"name-{uuid[0]}", "provision_state": state,
                "driver_info": {"redfish_password": "hunter1", "redfish_address": "https://bmc"},
                "instance_info": {"configdrive": "hunter2", "image_source": "x", "rescue_password": "hunter3"},
                "driver_internal_info": {"agent_secret_token": "hunter4", "deep": [{"auth_token": "hunter5"}]},
                "properties": {"cpu_arch": "x86_64", "snmp": {"password": "hunter6"}}})
            ports.create(conn, {"address": MACS[uuid], "node_id": node.id})
            node_sets.set_bmc_addresses(conn, node.id, [BMCS[uuid]])
            nodes.claim_agent_token(conn, node.id, hashed_token(f"token-{uuid[0]}"))
    return db


def deliver(app: Any, *macs_of: str, bmc_of: str | None = None, uuid: str | None = None, minor: int = 96) -> Reply:
    body = {"inventory": {"interfaces": [{"name": "eth0", "mac_address": MACS[of]} for of in macs_of],
                          "bmc_address": BMCS[bmc_of] if bmc_of else None}}
    return send(app, "POST", "/v1/continue_inspection", f"node_uuid={uuid}" if uuid else "", json.dumps(body).encode(),
                HTTP_X_OPENSTACK_IRONIC_API_VERSION=f"1.{minor}")


def look_up(app: Any, *macs_of: str, uuid: str | None = None) -> Reply:
    query = [f"addresses={','.join(MACS[of] for of in macs_of)}"] if macs_of else []
    return send(app, "GET", "/v1/lookup", "&".join([*query, *([f"node_uuid={uuid}"] if uuid else [])]))


@pytest.mark.parametrize("minor", [1, 84, 96])
def test_continue_inspection_has_one_answer_for_every_failure(app, three, rpc, minor):
    refused = {
        "unknown MAC": deliver(app, NOBODY, minor=minor),
        "unknown BMC": deliver(app, bmc_of=NOBODY, minor=minor),
        "unknown MAC and BMC": deliver(app, NOBODY, bmc_of=NOBODY, minor=minor),
        "MAC in another state": deliver(app, IDLE, minor=minor),
        "BMC in another state": deliver(app, bmc_of=IDLE, minor=minor),
        "UUID in another state": deliver(app, IDLE, uuid=IDLE, minor=minor),
        "MACs of two nodes": deliver(app, WAITING, OTHER, minor=minor),
        "MACs of two nodes, one idle": deliver(app, WAITING, IDLE, minor=minor),
        "MAC and BMC of two nodes": deliver(app, WAITING, bmc_of=OTHER, minor=minor),
        "MAC and BMC of two nodes, one idle": deliver(app, WAITING, bmc_of=IDLE, minor=minor),
        "UUID and MAC of two nodes": deliver(app, WAITING, uuid=OTHER, minor=minor),
        "UUID and BMC of two nodes": deliver(app, bmc_of=WAITING, uuid=OTHER, minor=minor),
        "known UUID and unknown MAC": deliver(app, NOBODY, uuid=WAITING, minor=minor),
        "unknown UUID": deliver(app, uuid=NOBODY, minor=minor),
        "unknown UUID and known MAC": deliver(app, WAITING, uuid=NOBODY, minor=minor),
    }
    assert rpc.calls == []
    for error in (NotFound("gone"), NodeNotFound(node=WAITING), LookupFailed()):
        rpc.fail_with("continue_inspection", error)
        refused[f"at the conductor: {error}"] = deliver(app, WAITING, minor=minor)

    one = refused["unknown MAC"]
    assert one.status == 404
    assert {case: reply for case, reply in refused.items() if reply != one} == {}
    assert deliver(app, WAITING, bmc_of=WAITING, uuid=WAITING, minor=minor).status == 200


@pytest.mark.parametrize("sensitive", [False, True])
@pytest.mark.parametrize("action", [
    {"op": "fail", "args": ["not ours: {inventory[interfaces][0][mac_address]}"]},
    {"op": "set-plugin-data", "args": ["a", "{inventory[nosuch]}"]},
    {"op": "set-plugin-data", "args": ["a", "x"], "loop": "{inventory[nosuch]}"},
])
def test_a_refusal_by_an_early_rule_is_byte_for_byte_an_unknown_machine(app, three, rpc, action, sensitive):
    unknown = [deliver(app, NOBODY, minor=minor) for minor in (1, 84, 96)]
    with three.writer() as conn:
        inspection_rules.create(conn, rules.from_wire({"phase": "early", "sensitive": sensitive, "actions": [action]}))

    refused = [deliver(app, WAITING, bmc_of=WAITING, uuid=WAITING, minor=minor) for minor in (1, 84, 96)]
    still_unknown = [deliver(app, NOBODY, minor=minor) for minor in (1, 84, 96)]

    assert unknown[0].status == 404
    assert refused == unknown == still_unknown
    assert rpc.calls == []


def test_a_lookup_has_one_answer_for_every_failure(app, three):
    refused = {
        "unknown MAC": look_up(app, NOBODY), "unknown UUID": look_up(app, uuid=NOBODY),
        "unknown UUID and known MAC": look_up(app, WAITING, uuid=NOBODY), "MAC in another state": look_up(app, IDLE),
        "UUID in another state": look_up(app, uuid=IDLE), "MACs of two nodes": look_up(app, WAITING, OTHER),
        "MACs of two nodes, one idle": look_up(app, WAITING, IDLE),
        "UUID and MAC of two nodes": look_up(app, WAITING, uuid=OTHER),
    }

    one = refused["unknown MAC"]
    assert one.status == 404
    assert one.body == deliver(app, NOBODY).body
    assert {case: reply for case, reply in refused.items() if reply != one} == {}
    assert look_up(app, WAITING, uuid=WAITING).status == 200


def test_a_heartbeat_has_one_answer_for_a_wrong_node_and_a_wrong_token(app, three, rpc):
    with three.writer() as conn:
        tokenless = nodes.create(conn, {"driver": "fake-hardware", "provision_state": "inspect wait"}).uuid

    def beat(node: str, token: str) -> Reply:
        body = {"callback_url": "https://192.0.2.5:9999", "agent_token": token}
        return send(app, "POST", f"/v1/heartbeat/{node}", "", json.dumps(body).encode())

    refused = {
        "unknown node": beat(NOBODY, "token-1"), "wrong token": beat(WAITING, "token-2"), "no token": beat(WAITING, ""),
        "the mask": beat(WAITING, "******"), "the hash": beat(WAITING, hashed_token("token-1")),
        "the node's name": beat("name-1", "token-1"), "a node without token": beat(tokenless, ""),
        "a node without token and the dummy": beat(tokenless, "0" * 64), "an unknown name": beat("nobody", "token-1"),
        "no ident at all": beat("{}", "x"), "not ASCII": beat(WAITING, "tökén-1"),
    }
    assert rpc.calls == []
    rpc.fail_with("heartbeat", NodeNotFound(node=WAITING))
    refused["gone at the conductor"] = beat(WAITING, "token-1")

    one = refused["unknown node"]
    assert one.status == 404
    assert {case: reply for case, reply in refused.items() if reply != one} == {}
    assert beat(WAITING, "token-1").status == 202


def test_what_tells_malformed_requests_apart_is_in_the_request_itself(app, three):
    for uuid in (WAITING, NOBODY):
        assert send(app, "GET", "/v1/lookup", f"node_uuid={uuid}&nosuch=1").status == 400
        assert send(app, "POST", f"/v1/heartbeat/{uuid}", "", b'{"agent_token": "x"}').status == 400
        assert send(app, "POST", "/v1/continue_inspection", f"node_uuid={uuid}", b"{}").status == 400


def test_no_reply_to_a_ramdisk_holds_a_secret(app, three):
    for reply in (look_up(app, WAITING), deliver(app, WAITING), look_up(app, IDLE)):
        assert b"hunter" not in reply.body
        assert b"redfish" not in reply.body
        assert hashed_token("token-1").encode() not in reply.body


def test_a_second_caller_gets_no_token_whichever_way_it_asks(app, three):
    assert json.loads(look_up(app, WAITING).body)["config"]["agent_token"] == ramdisk.HIDDEN_TOKEN
    assert json.loads(deliver(app, WAITING).body)["config"]["agent_token"] == ramdisk.HIDDEN_TOKEN


@pytest.mark.parametrize("url", [
    "", "http://", "https:///x", "ftp://192.0.2.5", "//192.0.2.5", "javascript:alert(1)", "http:/192.0.2.5",
    "xhttp://a", "http://a b", "http://a\n", "http://a\r\nX: y", "http://ä", "http://user:password@192.0.2.5",
    "http://[::1", "http://:80", "http://a:0",
    "http://a/latest", "http://a/#", "http://a?", "http://a/?x=1",
    "http://a:port", "http://a:99999", "http://" + "x" * 1100, "http://?", "http://#",
    "file:///etc/passwd", None, 5, [],
])
def test_a_callback_url_is_an_http_url_of_a_host(app, three, rpc, url):
    body = json.dumps({"callback_url": url, "agent_token": "token-1"}).encode()

    reply = send(app, "POST", f"/v1/heartbeat/{WAITING}", "", body)

    assert reply.status == 400
    assert reply.fault["faultstring"].startswith("/callback_url")
    assert rpc.calls == []


@pytest.mark.parametrize("url", ["http://192.0.2.5:9999", "https://[2001:db8::1]:9999/", "https://agent.example"])
def test_the_callback_urls_of_agents_pass(app, three, url):
    body = json.dumps({"callback_url": url, "agent_token": "token-1"}).encode()

    assert send(app, "POST", f"/v1/heartbeat/{WAITING}", "", body).status == 202


SQL = "x' OR '1'='1'; DROP TABLE nodes; --"


def test_sql_in_what_a_ramdisk_sends_is_text(app, three, rpc):
    report = {"interfaces": [{"name": SQL, "mac_address": MACS[IDLE]}], "hostname": SQL, "bmc_address": SQL,
              "system_vendor": {"serial_number": SQL}}
    bodies = [{"inventory": report, SQL: SQL},
              {"inventory": {"interfaces": [{"mac_address": f"{MACS[WAITING]}{SQL}"}]}},
              {"inventory": {**report, "bmc_address": f"{BMCS[WAITING]}{SQL}"}}]
    for body in bodies:
        assert send(app, "POST", "/v1/continue_inspection", "", json.dumps(body).encode()).status in (400, 404)
    for query in ({"node_uuid": SQL}, {"node_uuid": f"{WAITING}{SQL}"}, {"addresses": f"{MACS[WAITING]}{SQL}"}):
        assert send(app, "GET", "/v1/lookup", urllib.parse.urlencode(query)).status in (400, 404)
    assert not rpc.calls
    assert json.loads(look_up(app, WAITING).body)["node"]["uuid"] == WAITING


def test_nothing_of_a_report_is_logged(app, three, rpc, caplog):
    caplog.set_level("DEBUG")
    body = {"inventory": {"interfaces": [{"mac_address": MACS[WAITING]}], "hostname": "sesame"}, "note": "sesame"}
    assert send(app, "POST", "/v1/continue_inspection", "", json.dumps(body).encode()).status == 200
    assert "sesame" not in caplog.text


def test_without_a_living_conductor_every_caller_gets_the_same_answer_at_once(app, three, rpc):
    three.write(lambda conn: conductors.unregister(conn, "conductor-1", "instance-1"))

    def beat(ident: str, token: str) -> Reply:
        body = json.dumps({"callback_url": "http://192.0.2.9:1", "agent_token": token}).encode()
        return send(app, "POST", f"/v1/heartbeat/{ident}", "", body, HTTP_X_OPENSTACK_IRONIC_API_VERSION="1.96")

    answers = [deliver(app, WAITING), deliver(app, WAITING, uuid=WAITING), deliver(app, IDLE), deliver(app, NOBODY),
               deliver(app, WAITING, OTHER), deliver(app, uuid=NOBODY), deliver(app, bmc_of=NOBODY, minor=1),
               beat(WAITING, "token-1"), beat(WAITING, "wrong"), beat(NOBODY, "wrong"), beat("name", "wrong")]

    assert {answer.status for answer in answers} == {503}
    assert len({answer.body for answer in answers}) == 1
    assert all(dict(answer.headers)["Retry-After"] == "10" for answer in answers)
    assert rpc.calls == []
