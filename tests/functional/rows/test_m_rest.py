"""The inventory, the ramdisk's report and nodes over HTTP (M-13 to M-23)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import bcrypt
import pytest

from ironic_rules.context import hashed_token
from tests.functional.installations import running
from tests.functional.rows import hooks
from tests.functional.rows.conftest import finish, inspected, waiting
from tests.functional.whole import Whole, fault

URL = "/v1/continue_inspection"
VERSION = "X-OpenStack-Ironic-API-Version"
NOBODY = "00000000-0000-4000-8000-00000000dead"
NOT_FOUND = "The requested node could not be found."


def post(whole: Whole, body: Any, minor: int = 1, query: str = "") -> Any:
    return whole.app.post_json(URL + query, body, headers={VERSION: f"1.{minor}"})


@contextlib.contextmanager
def discovery(whole: Whole) -> Iterator[None]:
    with whole.option("auto_discovery", "enabled", True), whole.option("auto_discovery", "driver", "fake-hardware"):
        yield


@pytest.mark.parametrize("ident", ["uuid", "name"])
def test_m_13_the_inventory_of_a_node_is_an_object_with_these_keys(whole, ident):
    uuid, body = waiting(whole, name="n")
    try:
        node = finish(whole, uuid, {**body, "sent": 1})

        data = whole.app.get(f"/v1/nodes/{node[ident]}/inventory").json
        assert data.keys() == {"inventory", "plugin_data"}
        assert (data["inventory"], data["plugin_data"]["sent"]) == (body["inventory"], 1)
    finally:
        whole.app.delete(f"/v1/nodes/{uuid}")


def test_m_14_the_inventory_is_200_or_404(whole):
    uuid, new = inspected(whole)["uuid"], whole.enroll()

    def status(ident: str, minor: int = 81) -> int:
        return int(whole.app.get(f"/v1/nodes/{ident}/inventory", headers={VERSION: f"1.{minor}"}).status_int)

    assert status(uuid) == 200
    assert (status(NOBODY), status(new), status(uuid, 80), status(uuid, 1)) == (404, 404, 404, 404)


def test_m_15_a_report_is_an_object_with_at_least_an_inventory(whole):
    uuid, _ = waiting(whole)
    query = f"?node_uuid={uuid}"

    for body in ({}, [], None, "inventory", {"plugin_data": {}}, {"inventory": None}):
        assert post(whole, body, query=query).status_int == 400
    # No interface is needed, nor anything else that only a hook requires.
    assert post(whole, {"inventory": {}}, query=query).status_int == 200
    assert "Inspection hook architecture failed" in whole.at_rest(uuid).last_error


def test_m_15_a_machine_without_network_interfaces_is_inspected(whole):
    uuid, body = waiting(whole, driver_info={"ipmi_address": "192.0.2.150"})
    body["inventory"] |= {"interfaces": [], "bmc_address": "192.0.2.150"}

    assert post(whole, body).json == {"uuid": uuid}
    assert whole.at_rest(uuid).provision_state == "manageable"


@pytest.mark.parametrize("minor", [1, 84, 96])
def test_m_16_the_only_query_parameter_is_node_uuid_at_every_version(whole, minor):
    uuid, body = waiting(whole)

    for query in ("?node=" + uuid, f"?node_uuid={uuid}&x=1", "?node_uuid=1", "?fields=uuid"):
        assert post(whole, body, minor, query).status_int == 400
    assert post(whole, body, minor, f"?node_uuid={uuid}").status_int == 200
    assert whole.at_rest(uuid).provision_state == "manageable"


def test_m_17_reports_need_neither_user_nor_token(tmp_path):
    users = tmp_path / "users"
    users.write_text(f"admin:{bcrypt.hashpw(b'pass', bcrypt.gensalt(4)).decode()}\n")
    with running(tmp_path, f"[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = {users}\n") as whole:
        whole.app.authorization = ("Basic", ("admin", "pass"))
        uuid, body = waiting(whole)
        whole.app.authorization = None

        assert whole.app.get("/v1/nodes").status_int == 401
        assert whole.app.get(f"/v1/nodes/{uuid}/inventory").status_int == 401
        assert whole.callback(NOBODY, body).status_int == 404
        assert whole.callback(uuid, body).status_int == 200
        assert whole.at_rest(uuid).provision_state == "manageable"


@pytest.mark.parametrize("headers", [{VERSION: "1.1"}, {}])
def test_m_18_at_the_base_version_the_answer_is_the_uuid(whole, headers):
    uuid, body = waiting(whole)
    # WebTest adds no version here, as no ramdisk does.
    request = whole.app.RequestClass.blank(f"{URL}?node_uuid={uuid}", method="POST", json_body=body, headers=headers)

    reply = super(type(whole.app), whole.app).do_request(request, expect_errors=True)

    assert (reply.status_int, reply.json) == (200, {"uuid": uuid})
    assert whole.at_rest(uuid).provision_state == "manageable"


def test_m_19_since_1_84_the_answer_is_that_of_a_lookup_with_a_fresh_token(whole):
    uuid, body = waiting(whole)
    with hooks.held(whole, lambda: post(whole, body, 84, f"?node_uuid={uuid}")) as reply:
        looked_up = whole.app.get(f"/v1/lookup?node_uuid={uuid}").json
        answer = reply.json
        token = answer["config"].pop("agent_token")
        # The token is issued once: it is that of a lookup, which is no longer needed.
        assert looked_up["config"].pop("agent_token") == "******"
        assert answer["config"] == looked_up["config"]
        assert answer["node"].keys() == looked_up["node"].keys()
        assert answer["node"]["uuid"] == uuid
        assert len(token) >= 32 and "*" not in token
    whole.at_rest(uuid)
    assert [post(whole, {"inventory": {}}, minor).status_int for minor in (2, 83)] == [404, 404]


def test_m_19_the_token_is_stored_by_the_conductor_that_accepts_the_data_unless_the_ramdisk_has_one(whole):
    for known in (None, "0" * 64):
        uuid, body = waiting(whole)
        whole.put(uuid, agent_token_hash=known)
        with hooks.held(whole, lambda uuid=uuid, body=body: post(whole, body, 84, f"?node_uuid={uuid}")) as reply:
            token = reply.json["config"]["agent_token"]
            kept = whole.row(uuid).agent_token_hash
        assert (token, kept) == ("******", known) if known else kept == hashed_token(token)
        assert whole.at_rest(uuid).agent_token_hash is None


@pytest.mark.parametrize("minor", [1, 84, 96])
def test_m_20_success_is_200(whole, minor):
    uuid, body = waiting(whole)

    assert post(whole, body, minor, f"?node_uuid={uuid}").status == "200 OK"
    whole.at_rest(uuid)


def test_m_21_not_found_several_and_a_wrong_state_are_one_404(whole):
    resting, (first, body), (second, _) = whole.enroll("manageable"), waiting(whole), waiting(whole)
    macs = {node: whole.machine()[0] for node in (resting, first, second)}
    for node, mac in macs.items():
        assert whole.app.post_json("/v1/ports", {"node_uuid": node, "address": mac}).status_int == 201

    def ask(*nodes: str, query: str = "") -> tuple[int, bytes, str]:
        interfaces = [{"name": f"eth{index}", "mac_address": macs[node]} for index, node in enumerate(nodes)]
        sent = {**body, "inventory": {**body["inventory"], "interfaces": interfaces or whole.machine()[1][
            "inventory"]["interfaces"]}}
        reply = post(whole, sent, query=query)
        return reply.status_int, reply.body, reply.content_type

    answers = {ask(), ask(first, second), ask(resting), ask(query=f"?node_uuid={NOBODY}"),
               ask(query=f"?node_uuid={resting}"), ask(second, query=f"?node_uuid={first}")}

    (status, _, _), = answers
    assert status == 404
    assert fault(post(whole, whole.machine()[1])) == NOT_FOUND
    assert [whole.row(node).provision_state for node in (first, second)] == ["inspect wait"] * 2
    for node in (first, second):
        whole.provision(node, "abort")


def test_m_22_nodes_show_whether_they_were_discovered(whole):
    by_hand = whole.enroll()
    with discovery(whole):
        uuid = post(whole, whole.machine()[1]).json["uuid"]
    whole.at_rest(uuid)

    shown = {node["uuid"]: node["auto_discovered"] for node in whole.app.get("/v1/nodes/detail").json["nodes"]}
    assert (whole.show(uuid)["auto_discovered"], whole.show(by_hand)["auto_discovered"]) == (True, False)
    assert (shown[uuid], shown[by_hand]) == (True, False)
    assert whole.app.get(f"/v1/nodes/{uuid}?fields=auto_discovered").json["auto_discovered"] is True
    summary = whole.app.get("/v1/nodes").json["nodes"][0]
    assert "auto_discovered" not in summary


def test_m_23_nodes_are_listed_by_whether_they_were_discovered(whole):
    by_hand = whole.enroll()
    with discovery(whole):
        uuids = [post(whole, whole.machine()[1]).json["uuid"] for _ in range(3)]
    for uuid in uuids:
        whole.at_rest(uuid)

    def listed(query: str) -> set[str]:
        return {node["uuid"] for node in whole.app.get("/v1/nodes" + query).json["nodes"]}

    assert set(uuids) <= listed("?auto_discovered=true") and by_hand not in listed("?auto_discovered=True")
    assert by_hand in listed("/detail?auto_discovered=false") and not set(uuids) & listed("?auto_discovered=false")
    assert set(uuids) <= listed("?auto_discovered=true&provision_state=enroll")
    assert listed("?auto_discovered=true&provision_state=active") == set()
    page = whole.app.get("/v1/nodes?auto_discovered=true&limit=1").json
    assert "auto_discovered=true" in page["next"]
    assert whole.app.get("/v1/nodes?auto_discovered=maybe").status_int == 400
