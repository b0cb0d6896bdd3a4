"""``GET /v1/lookup`` and ``POST /v1/heartbeat``: the first contacts of a ramdisk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ironic_rules.db import nodes, ports
from ironic_rules.exceptions import NodeLocked, NotFound
from tests.functional.api.conftest import at
from tests.walking import walking

MAC = "52:54:00:00:00:01"
NOBODY = "00000000-0000-0000-0000-000000000007"
BEAT = {"callback_url": "http://192.0.2.5:9999", "agent_version": "13.0.0"}


@pytest.fixture
def node(db, make_node) -> Any:
    made = make_node(name="n", provision_state="inspect wait", properties={"cpu_arch": "x86_64"},
                     instance_info={"configdrive": "secret", "image_source": "http://secret", "user_data": "secret",
                                    "image_url": "http://x/?sig=secret", "capabilities": {"boot_option": "local"}},
                     driver_info={"ipmi_password": "p"},
                     driver_internal_info={"agent_secret_token": "secret", "x": {"password": "secret"},
                                           "lookup_bmc_addresses": ["192.0.2.77"], "agent_url": "http://secret",
                                           "agent_erase_devices_iterations": 2})
    db.write(lambda conn: ports.create(conn, {"address": MAC, "node_id": made.id}))
    return made


def lookup(app: Any, query: str, **kwargs: Any) -> Any:
    return app.get(f"/v1/lookup?{query}", **kwargs)


def test_a_ramdisk_finds_its_node_by_address(app, node):
    reply = lookup(app, f"addresses=52-54-00-00-00-01,52:54:00:00:00:99,80:00:02:08:fe:80:{MAC}").json

    assert reply["node"]["uuid"] == node.uuid
    assert reply["node"]["properties"] == {"cpu_arch": "x86_64"}
    assert reply["node"]["links"][0]["href"] == f"http://localhost/v1/nodes/{node.uuid}"
    assert reply["config"]["heartbeat_timeout"] == 300
    assert reply["config"]["agent_token_required"] is True


def test_a_ramdisk_sends_as_many_addresses_as_a_report_has_interfaces(app, node):
    others = ",".join(f"80:00:02:08:fe:80:00:00:00:00:00:00:52:54:00:00:00:02:{number // 256:02x}:{number % 256:02x}"
                      for number in range(1023))

    assert lookup(app, f"addresses={others},{MAC}").json["node"]["uuid"] == node.uuid
    assert lookup(app, f"addresses={others},{MAC},{MAC}", expect_errors=True).status_int == 400


def test_a_ramdisk_finds_its_node_by_uuid(app, node):
    assert lookup(app, f"node_uuid={node.uuid.upper()}").json["node"]["uuid"] == node.uuid
    assert lookup(app, f"node_uuid={node.uuid}&addresses={MAC}").json["node"]["uuid"] == node.uuid


def test_no_secret_leaves_with_the_node(app, node):
    text = lookup(app, f"addresses={MAC}").text

    assert "secret" not in text.replace("agent_secret_token", "")
    assert "192.0.2.77" not in text
    shown = json.loads(text)["node"]
    assert (shown["instance_info"], shown["driver_internal_info"]) == (
        {"capabilities": {"boot_option": "local"}}, {"agent_erase_devices_iterations": 2})
    assert "driver_info" not in text.replace("driver_internal_info", "")


def test_the_token_is_handed_out_once(app, node):
    tokens = [lookup(app, f"addresses={MAC}").json["config"]["agent_token"] for _ in range(3)]

    assert len(tokens[0]) >= 32
    assert tokens[1:] == ["******", "******"]


@walking("query", ["", "addresses=", "addresses=zz", f"addresses={MAC}%0A", "node_uuid=n", "node_uuid=",
                                   f"addresses={MAC}&x=1", "addresses=" + ",".join([MAC] * 1100)])
def test_without_any_identifier_it_is_400(app, node, query):
    lookup(app, query, status=400)


def test_every_failed_lookup_gets_the_same_answer(app, db, node, make_node):
    other = make_node(provision_state="inspect wait")
    idle = make_node(provision_state="manageable")
    with db.writer() as conn:
        ports.create(conn, {"address": "52:54:00:00:00:02", "node_id": other.id})
        ports.create(conn, {"address": "52:54:00:00:00:03", "node_id": idle.id})
    headers = {"X-OpenStack-Request-Id": "req-d99c14b4-d066-4708-b04e-e52a6ef5b2f8"}

    answers = [lookup(app, query, headers=headers, status=404) for query in (
        "addresses=52:54:00:00:00:4d", f"node_uuid={NOBODY}", "addresses=52:54:00:00:00:03", f"node_uuid={idle.uuid}",
        f"addresses={MAC},52:54:00:00:00:02", f"addresses={MAC}&node_uuid={other.uuid}")]

    assert len({(answer.body, tuple(answer.headerlist)) for answer in answers}) == 1


def test_unrestricted_lookup_finds_nodes_in_any_state(app, conf, make_node):
    conf.set_override("restrict_lookup", False, group="api")
    idle = make_node(provision_state="manageable")

    assert lookup(app, f"node_uuid={idle.uuid}").json["node"]["uuid"] == idle.uuid


def test_lookup_is_there_since_1_22(app, node):
    lookup(app, f"addresses={MAC}", headers=at(21), status=404)
    lookup(app, f"addresses={MAC}", headers=at(22), status=200)


def test_a_heartbeat_with_the_token_reaches_a_conductor(app, rpc, node):
    token = lookup(app, f"addresses={MAC}").json["config"]["agent_token"]

    body = {**BEAT, "agent_token": token, "agent_verify_ca": "-----\nx"}
    response = app.post_json(f"/v1/heartbeat/{node.uuid}", body, headers=at(68))

    assert (response.status_int, response.body) == (202, b"")
    assert rpc.calls == [("heartbeat", node.uuid, {
        "callback_url": BEAT["callback_url"], "agent_version": "13.0.0", "group": "", "agent_token": token,
        "agent_verify_ca": "-----\nx"})]


def test_a_wrong_token_and_a_wrong_node_get_the_same_answer(app, rpc, node, make_node):
    lookup(app, f"addresses={MAC}")
    untold = make_node(provision_state="inspect wait")
    headers = {"X-OpenStack-Request-Id": "req-d99c14b4-d066-4708-b04e-e52a6ef5b2f8"}

    answers = [app.post_json(f"/v1/heartbeat/{ident}", {**BEAT, "agent_token": token}, headers=headers, status=404)
               for ident, token in ((node.uuid, "wrong"), (node.uuid, "******"), (NOBODY, "wrong"), ("n", "wrong"),
                                    ("x" * 300, "wrong"), (untold.uuid, ""), (untold.uuid, "0" * 64))]

    assert len({(answer.body, tuple(answer.headerlist)) for answer in answers}) == 1
    assert rpc.calls == []


def test_a_locked_node_is_409_and_a_gone_one_404(app, rpc, node):
    token = lookup(app, f"addresses={MAC}").json["config"]["agent_token"]

    for error, status in ((NodeLocked(node=node.uuid, host="h"), 409), (NotFound("gone"), 404)):
        rpc.fail_with("heartbeat", error)
        app.post_json(f"/v1/heartbeat/{node.uuid}", {**BEAT, "agent_token": token}, status=status)


@walking("change", [
    {"callback_url": "ftp://x"}, {"callback_url": "http://x y"}, {"callback_url": None}, {"agent_token": 5},
    {"agent_token": None}, {"nosuch": 1}, {"agent_version": "a\nb"}, {"agent_status": "maybe"},
])
def test_a_malformed_heartbeat_is_400(app, node, change):
    app.post_json(f"/v1/heartbeat/{node.uuid}", {**BEAT, "agent_token": "t", **change}, status=400)


def test_fields_need_their_version(app, node):
    body = {**BEAT, "agent_token": "t"}

    app.post_json(f"/v1/heartbeat/{node.uuid}", body, headers=at(21), status=404)
    app.post_json(f"/v1/heartbeat/{node.uuid}", body, headers=at(35), status=400)
    app.post_json(f"/v1/heartbeat/{node.uuid}", {**body, "agent_verify_ca": "x"}, headers=at(67), status=400)


def test_both_can_be_turned_off(app, conf, node):
    conf.set_override("enable_ramdisk_endpoints", False, group="api")

    lookup(app, f"addresses={MAC}", status=404)
    app.post_json(f"/v1/heartbeat/{node.uuid}", {**BEAT, "agent_token": "t"}, status=404)


def test_the_hash_of_the_token_is_no_field_of_the_node(app, db, node):
    lookup(app, f"addresses={MAC}")
    with db.reader() as conn:
        stored = nodes.get(conn, node.uuid).agent_token_hash

    assert stored not in app.get(f"/v1/nodes/{node.uuid}").text
