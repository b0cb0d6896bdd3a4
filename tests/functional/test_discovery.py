"""Machines that are not enrolled, in the whole service."""

from __future__ import annotations

import datetime
import logging
import time
from concurrent.futures import ThreadPoolExecutor

import oslo_messaging as messaging
import pytest
import sqlalchemy as sa

from ironic_rules import context, service
from ironic_rules.conductor import acceptance, recovery
from ironic_rules.conductor.endpoint import ConductorEndpoint
from ironic_rules.db import clock, nodes
from ironic_rules.db import discovery as records
from ironic_rules.db.paging import Page
from ironic_rules.db.tables import nodes as node_table
from ironic_rules.db.tables import unclaimed_discoveries
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.hardware import resolver
from ironic_rules.hardware.agent.inspect import AgentInspect
from ironic_rules.models import states
from tests.functional.rows import hooks
from tests.functional.whole import configuration, fault, running

URL = "/v1/continue_inspection"
FORMS = ("{node.auto_discovered}", "{node[auto_discovered]}", "{plugin_data.auto_discovered}",
         "{plugin_data[auto_discovered]}")
CONFIG = ("[auto_discovery]\nenabled = true\ndriver = fake-hardware\ninspection_scope = fresh\n"
          "max_nodes_per_minute = 1000\n")
BEAT = {"callback_url": "http://192.0.2.1:1"}
FAIL = {"op": "fail", "args": {"msg": "not in this house"}}


@pytest.fixture(scope="module")
def service_of_module(tmp_path_factory):
    with running(tmp_path_factory.mktemp("discovery"), CONFIG) as made:
        yield made


@pytest.fixture
def whole(service_of_module):
    yield service_of_module
    service_of_module.app.delete("/v1/inspection_rules")


def post(whole, body, minor=1):
    return whole.app.post_json(URL, body, headers={"X-OpenStack-Ironic-API-Version": f"1.{minor}"})


def discover(whole, body):
    """Send a new machine's data; return its node when it is in a stable state."""
    reply = post(whole, body)
    assert reply.status_int == 200, reply.text
    whole.at_rest(reply.json["uuid"])
    return whole.show(reply.json["uuid"])


def rule(whole, *actions, **fields):
    reply = whole.app.post_json("/v1/inspection_rules", {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text


def addresses(whole, node):
    return [port["address"] for port in whole.app.get(f"/v1/nodes/{node['uuid']}/ports").json["ports"]]


def count(whole):
    with whole.db.reader() as conn:
        return len(nodes.list_nodes(conn, {}, Page(limit=1000), ["id"]))


@pytest.fixture
def machine(whole):
    mac, body = whole.machine()
    body["inventory"]["bmc_address"] = f"198.51.100.{whole._serial}"
    return mac, body


def test_m28_an_unknown_machine_gets_a_node_and_is_inspected(whole, machine):
    mac, body = machine

    node = discover(whole, body)

    assert (node["provision_state"], node["target_provision_state"]) == ("enroll", None)
    assert (node["auto_discovered"], node["inspection_scope"], node["driver"]) == (True, "fresh", "fake-hardware")
    assert (node["inspect_interface"], node["driver_info"], node["last_error"]) == ("agent", {}, None)
    assert (node["reservation"], node["maintenance"], node["power_state"]) == (None, False, "power off")
    assert node["properties"]["cpu_arch"] == body["inventory"]["cpu"]["architecture"]
    assert (node["inspection_started_at"], bool(node["inspection_finished_at"])) == (None, True)
    assert addresses(whole, node) == [mac]
    assert whole.bmc_addresses(node["uuid"]) == [body["inventory"]["bmc_address"]]
    assert whole.app.get(f"/v1/nodes/{node['uuid']}/inventory").json["inventory"] == body["inventory"]
    assert [severity for severity, _ in whole.events(node["uuid"])] == ["INFO"]


def test_m29_a_discovered_node_is_managed_and_inspected_like_any_other(whole, machine):
    _, body = machine
    node = discover(whole, body)
    whole.provision(node["uuid"], "manage")

    assert whole.inspect(node["uuid"], body)["provision_state"] == "manageable"
    assert whole.show(node["uuid"])["auto_discovered"] is True
    assert whole.bmc_addresses(node["uuid"]) == [body["inventory"]["bmc_address"]]


def test_the_newer_answer_has_a_token_that_opens_nothing(whole, machine):
    reply = post(whole, machine[1], minor=84)
    uuid, token = reply.json["node"]["uuid"], reply.json["config"]["agent_token"]
    whole.at_rest(uuid)

    beat = whole.app.post_json(f"/v1/heartbeat/{uuid}", {"callback_url": "http://192.0.2.1:1", "agent_token": token})

    assert (len(token) >= 32, token != "******", beat.status_int) == (True, True, 404)
    assert whole.row(uuid).agent_token_hash is None


def test_a_lookup_while_the_discovered_node_is_inspected_has_no_valid_token_either(whole, machine):
    _, body = machine
    with hooks.held(whole, lambda: post(whole, body)) as reply:
        uuid = reply.json["uuid"]
        assert (whole.row(uuid).provision_state, whole.row(uuid).target_provision_state) == ("inspecting", "enroll")
        tokens = [whole.app.get(f"/v1/lookup?node_uuid={uuid}").json["config"]["agent_token"] for _ in range(2)]
        beats = [whole.app.post_json(f"/v1/heartbeat/{uuid}", {**BEAT, "agent_token": token}) for token in tokens]
        assert whole.row(uuid).agent_token_hash is None
    whole.at_rest(uuid)

    assert [len(token) >= 32 for token in tokens] == [True, True]
    assert [beat.status_int for beat in beats] == [404, 404]
    # Once an operator manages it, its ramdisk gets a token like any other.
    whole.provision(uuid, "manage")
    whole.provision(uuid, "inspect")
    token = whole.app.get(f"/v1/lookup?node_uuid={uuid}").json["config"]["agent_token"]
    assert whole.app.post_json(f"/v1/heartbeat/{uuid}", {**BEAT, "agent_token": token}).status_int == 202


@pytest.mark.parametrize("state", ["enroll", "manageable", "available", "active", "inspect failed", "clean wait"])
def test_s33_a_machine_that_is_known_by_mac_or_bmc_in_any_state_is_not_enrolled(whole, machine, state):
    mac, body = machine
    by_mac, by_bmc = body, whole.machine()[1]
    by_bmc["inventory"]["bmc_address"] = "203.0.113.77"
    owner = whole.enroll(driver_info={"redfish_address": "https://203.0.113.77/redfish"})
    whole.app.post_json("/v1/ports", {"address": mac, "node_uuid": owner})
    whole.put(owner, provision_state=state)
    before = count(whole)

    for data in (by_mac, by_bmc):
        reply = post(whole, data)
        assert (reply.status_int, fault(reply)) == (404, "The requested node could not be found.")

    assert (count(whole), whole.row(owner).provision_state) == (before, state)
    whole.put(owner, provision_state="enroll")
    whole.app.delete(f"/v1/nodes/{owner}")


def test_a_managed_node_is_known_by_the_name_of_its_bmc_before_any_inspection(whole, machine, monkeypatch):
    _, body = machine
    known = [body["inventory"]["bmc_address"]]
    monkeypatch.setattr(resolver, "cache", resolver.Cache())
    monkeypatch.setattr(resolver, "_look_up", lambda name, answers: (
        resolver._slots.release(), answers.put((name, set(known)))))
    node = whole.enroll("enroll", driver_info={"redfish_address": "https://bmc.example"})
    assert whole.bmc_addresses(node) == []
    before = count(whole)

    whole.app.put_json(f"/v1/nodes/{node}/states/provision", {"target": "manage"})
    whole.at_rest(node)

    assert (whole.show(node)["provision_state"], whole.bmc_addresses(node)) == ("manageable", known)
    # The ramdisk of that machine has booted without a request to inspect it.
    assert whole.app.post_json(URL, body, status=404)
    assert count(whole) == before


@pytest.mark.parametrize(("action", "status", "is_told"), [
    ("warn", 200, True), ("refuse", 404, True), ("ignore", 200, False)])
def test_a_machine_with_a_known_serial_number(whole, machine, caplog, action, status, is_told):
    body = machine[1]
    body["inventory"]["system_vendor"]["serial_number"] = f" {action}-4HT81X3"
    known = discover(whole, body)["uuid"]
    other = whole.machine()[1]
    other["inventory"]["bmc_address"] = f"203.0.113.{whole._serial}"
    other["inventory"]["system_vendor"]["serial_number"] = f"{action}-4ht81x3"
    whole.conf.set_override("known_serial", action, group="auto_discovery")
    try:
        assert whole.app.post_json(URL, other, status="*").status_int == status
    finally:
        whole.conf.clear_override("known_serial", group="auto_discovery")

    told = "has the serial number or UUID of 1 known nodes, such as " + known
    assert (told in caplog.text) == is_told


def test_driver_info_is_followed_by_the_table_of_bmc_addresses(whole, machine):
    _, body = machine
    node = whole.enroll()
    patch = [{"op": "add", "path": "/driver_info/ipmi_address", "value": body["inventory"]["bmc_address"]}]
    assert whole.app.patch_json(f"/v1/nodes/{node}", patch).status_int == 200
    assert post(whole, body).status_int == 404

    whole.app.patch_json(f"/v1/nodes/{node}", [{"op": "add", "path": "/driver_info/ipmi_password", "value": "x"}])
    assert whole.bmc_addresses(node) == [body["inventory"]["bmc_address"]]
    whole.app.patch_json(f"/v1/nodes/{node}", [{"op": "remove", "path": "/driver_info/ipmi_address"}])
    assert whole.bmc_addresses(node) == []
    assert discover(whole, body)["auto_discovered"]


def test_m25_a_bmc_is_known_by_its_name_from_the_start_of_an_inspection(whole, machine, monkeypatch):
    _, body = machine
    monkeypatch.setattr(resolver, "cache", resolver.Cache())
    monkeypatch.setattr(resolver, "_look_up", lambda name, answers: (
        resolver._slots.release(), answers.put((name, {body["inventory"]["bmc_address"]}))))
    node = whole.enroll("manageable", driver_info={"redfish_address": "https://bmc.example"})
    assert whole.bmc_addresses(node) == []

    whole.provision(node, "inspect")

    known = [body["inventory"]["bmc_address"]]
    assert (whole.bmc_addresses(node), whole.row(node).driver_internal_info["lookup_bmc_addresses"]) == (known, known)
    assert post(whole, body).json["uuid"] == node
    whole.at_rest(node)
    assert whole.bmc_addresses(node) == known
    other = whole.machine()[1]
    other["inventory"]["bmc_address"] = known[0]
    assert post(whole, other).status_int == 404


def test_a_machine_stays_known_by_its_bmc_while_no_name_server_answers(whole, machine, monkeypatch):
    _, body = machine
    known = [body["inventory"]["bmc_address"]]
    monkeypatch.setattr(resolver, "cache", resolver.Cache())
    monkeypatch.setattr(resolver, "_look_up", lambda name, answers: (
        resolver._slots.release(), answers.put((name, set()))))
    node = discover(whole, body)["uuid"]
    patch = [{"op": "add", "path": "/driver_info/redfish_address", "value": "https://bmc.example"}]
    assert whole.app.patch_json(f"/v1/nodes/{node}", patch).status_int == 200
    whole.provision(node, "manage")

    whole.provision(node, "inspect")
    whole.provision(node, "abort")

    assert whole.bmc_addresses(node) == known
    other = whole.machine()[1]
    other["inventory"]["bmc_address"] = known[0]
    assert post(whole, other).status_int == 404


def test_a_callback_with_a_node_uuid_is_for_that_node_and_makes_none(whole, machine):
    before = count(whole)

    reply = whole.app.post_json(f"{URL}?node_uuid=00000000-0000-4000-8000-00000000dead", machine[1])

    assert (reply.status_int, count(whole)) == (404, before)


def test_a_discovered_machine_that_comes_again_is_known(whole, machine):
    node = discover(whole, machine[1])

    assert post(whole, machine[1]).json["uuid"] == node["uuid"]
    assert post(whole, {**machine[1], "more": 1}).status_int == 404
    assert whole.app.delete(f"/v1/nodes/{node['uuid']}").status_int == 204
    assert discover(whole, machine[1])["uuid"] != node["uuid"]


@pytest.mark.parametrize("known_by", ["mac", "bmc", "mac without port"])
def test_fifty_callbacks_of_one_machine_at_once_make_one_node(whole, machine, known_by, monkeypatch):
    monkeypatch.setattr(acceptance, "PATIENCE_S", 30.0)
    body = machine[1]
    if known_by == "bmc":
        body["inventory"]["interfaces"] = []
    elif known_by == "mac without port":
        body["inventory"].pop("bmc_address")
    before = count(whole)

    def answered(number: int):
        # On a busy machine, some wait too long for their turn: 503, and they are to come again.
        for _ in range(600):
            reply = post(whole, {**body, "number": number})
            if reply.status_int != 503:
                break
            time.sleep(0.1)
        return reply

    with whole.option("inspector", "add_ports", "disabled" if known_by == "mac without port" else "all"):
        with ThreadPoolExecutor(50) as pool:
            # Equal ones would be repetitions of one report.
            replies = list(pool.map(answered, range(50)))
        accepted = [reply for reply in replies if reply.status_int == 200]
        assert (len(accepted), {reply.status_int for reply in replies}) == (1, {200, 404})
        whole.at_rest(accepted[0].json["uuid"])
        assert post(whole, body).status_int == 404

    assert count(whole) == before + 1
    assert whole.inventories(accepted[0].json["uuid"]) == ["processed"]
    assert len({reply.body for reply in replies if reply.status_int == 404}) == 1


def test_the_example_of_the_document_initializes_discovered_nodes(whole, machine):
    rule(whole, {"op": "set-attribute", "args": ["/driver", "faulty-hardware"]},
         {"op": "set-attribute", "args": ["/driver_info/ipmi_address", "{plugin_data[bmc_address]}"]},
         {"op": "set-attribute", "args": ["/driver_info/ipmi_username", "admin"]},
         {"op": "set-attribute", "args": ["/driver_info/ipmi_password", "pa$$w0rd"]},
         description="Initialize freshly discovered nodes", sensitive=True, conditions=[
             {"op": "is-true", "args": ["{node.auto_discovered}"]},
             {"op": "!is-empty", "args": ["{plugin_data[bmc_address]}"]}])
    old = whole.enroll("manageable")

    node = discover(whole, machine[1])
    other = whole.inspect(old, whole.machine()[1])

    bmc_resolver = machine[1]["inventory"]["bmc_address"]
    assert (node["driver"], node["power_interface"], node["provision_state"]) == ("faulty-hardware", "faulty", "enroll")
    assert node["driver_info"] == {"ipmi_address": bmc_resolver, "ipmi_username": "admin", "ipmi_password": "******"}
    assert whole.row(node["uuid"]).driver_info["ipmi_password"] == "pa$$w0rd"
    assert whole.bmc_addresses(node["uuid"]) == [bmc_resolver]
    assert (other["driver"], other["driver_info"]) == ("fake-hardware", {})


@pytest.mark.parametrize("trouble", [{"validate": "refuse"}, {"set_power_state": "refuse"}])
def test_a_discovered_node_that_can_not_be_switched_off_is_none_the_worse(whole, machine, trouble):
    rule(whole, {"op": "set-attribute", "args": ["/driver", "faulty-hardware"]},
         {"op": "set-attribute", "args": ["/driver_info", trouble]})

    node = discover(whole, machine[1])

    assert (node["provision_state"], node["last_error"]) == ("enroll", None)


def test_a_discovered_node_whose_inspection_fails_is_seen_and_can_be_deleted(whole, machine):
    rule(whole, FAIL)

    node = discover(whole, machine[1])

    assert node["provision_state"] == "inspect failed"
    assert "not in this house" in node["last_error"]
    assert (node["auto_discovered"], addresses(whole, node)) == (True, [machine[0]])
    assert post(whole, {**machine[1], "more": 1}).status_int == 404
    listed = whole.app.get("/v1/nodes?auto_discovered=true&provision_state=inspect%20failed").json["nodes"]
    assert node["uuid"] in [shown["uuid"] for shown in listed]
    whole.app.delete("/v1/inspection_rules")
    assert whole.app.delete(f"/v1/nodes/{node['uuid']}").status_int == 204
    assert discover(whole, machine[1])["provision_state"] == "enroll"


def test_machines_that_share_a_bmc_address_are_one_machine_until_they_are_enrolled_with_ports(whole, machine):
    (_, first), (mac, second) = machine, whole.machine()
    second["inventory"]["bmc_address"] = first["inventory"]["bmc_address"]
    of_first = discover(whole, first)["uuid"]
    assert post(whole, second).status_int == 404

    whole.put(of_first, provision_state="manageable")
    whole.provision(of_first, "inspect")
    assert post(whole, {**second, "number": 2}).json["uuid"] == of_first
    assert whole.at_rest(of_first).provision_state == "manageable"
    assert mac in addresses(whole, {"uuid": of_first})

    port, = whole.app.get(f"/v1/ports?address={mac}").json["ports"]
    whole.app.delete(f"/v1/ports/{port['uuid']}")
    bmc = f"https://{second['inventory']['bmc_address']}"
    of_second = whole.enroll("manageable", driver_info={"redfish_address": bmc})
    whole.app.post_json("/v1/ports", {"address": mac, "node_uuid": of_second})
    for node in (of_first, of_second):
        whole.provision(node, "inspect")
    for node, body in ((of_first, first), (of_second, second)):
        assert post(whole, {**body, "number": 3}).json["uuid"] == node
        assert whole.at_rest(node).provision_state == "manageable"


def test_an_early_rule_refuses_machines_whatever_the_default_scope_is(tmp_path):
    with running(tmp_path, f"{CONFIG}[inspection_rules]\ndefault_scope = lab\n") as whole:
        unknown, before = whole.machine()[1], count(whole)
        rule(whole, FAIL, phase="early")

        assert post(whole, unknown).status_int == 404
        assert count(whole) == before
        # A known one is refused, too.
        uuid = whole.enroll("manageable", inspection_scope="lab")
        mac, body = whole.machine()
        whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": mac})
        assert whole.provision(uuid, "inspect")["provision_state"] == "inspect wait"
        assert post(whole, body).status_int == 404


def test_an_early_rule_refuses_a_machine_before_it_gets_a_node(whole, machine):
    rule(whole, FAIL, phase="early")
    before = count(whole)

    reply = post(whole, machine[1])

    assert (reply.status_int, fault(reply)) == (404, "The requested node could not be found.")
    assert count(whole) == before


def test_s32_only_so_many_are_enrolled_in_a_minute(whole, machine, caplog):
    discover(whole, machine[1])
    made = count(whole)

    with whole.option("auto_discovery", "max_nodes_per_minute", 1), caplog.at_level(logging.WARNING):
        replies = [post(whole, whole.machine()[1]) for _ in range(5)]

    assert {(reply.status_int, fault(reply)) for reply in replies} == {(404, "The requested node could not be found.")}
    assert count(whole) == made
    assert len([record for record in caplog.records if "max_nodes_per_minute" in record.getMessage()]) <= 1


def test_nothing_is_enrolled_while_it_is_off(whole, machine):
    before = count(whole)

    with whole.option("auto_discovery", "enabled", False):
        assert post(whole, machine[1]).status_int == 404

    assert count(whole) == before


def test_a_driver_that_no_conductor_has_enrols_nothing(whole, machine):
    before = count(whole)

    with whole.option("auto_discovery", "driver", "nosuch"):
        assert post(whole, machine[1]).status_int == 404

    assert count(whole) == before


def test_a_machine_is_known_by_the_interfaces_that_became_no_ports(whole, machine):
    mac, body = machine
    body["inventory"].pop("bmc_address")
    body["inventory"]["interfaces"].append({"name": "eth1", "mac_address": mac.replace("52:54:00", "52:54:01")})
    with whole.option("inspector", "add_ports", "disabled"):
        discover(whole, body)

    body["inventory"]["interfaces"] = body["inventory"]["interfaces"][1:]
    assert post(whole, body).status_int == 404


def test_s34_of_the_nodes_in_enroll_only_a_new_one_is_accepted_and_once(whole, machine):
    manager = ConductorEndpoint(whole.conductor)
    plain = whole.enroll()
    used = discover(whole, machine[1])["uuid"]

    for uuid in (plain, used):
        with pytest.raises(messaging.ExpectedException) as caught:
            manager.continue_inspection(context.admin(), uuid, machine[1]["inventory"])
        assert "could not be found" in str(caught.value.exc_info[1])
        assert (whole.row(uuid).provision_state, whole.row(uuid).reservation) == ("enroll", None)


def test_a_node_that_no_conductor_was_asked_for_goes_after_a_while(whole):
    kept, gone = whole.enroll(), whole.enroll()
    for uuid in (kept, gone):
        whole.db.write(lambda conn, uuid=uuid: records.begin(conn, nodes.get_id(conn, uuid), []))
    whole.app.patch_json(f"/v1/nodes/{kept}", [{"op": "add", "path": "/extra/mine", "value": 1}])

    recovery.fail_overdue(whole.conductor)
    assert whole.app.get(f"/v1/nodes/{gone}").status_int == 200
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery, "ABANDONED_S", -1)
        recovery.fail_overdue(whole.conductor)

    assert whole.app.get(f"/v1/nodes/{gone}").status_int == 404
    assert whole.app.get(f"/v1/nodes/{kept}").status_int == 200
    with whole.db.reader() as conn:
        assert not records.is_pending(conn, nodes.get_id(conn, kept))


def test_m22_clients_can_not_say_that_a_node_was_discovered(whole):
    node = whole.enroll()

    assert whole.app.post_json("/v1/nodes", {"driver": "fake-hardware", "auto_discovered": True}).status_int == 400
    for op in ("add", "replace", "remove"):
        change = [{"op": op, "path": "/auto_discovered", "value": True}]
        assert whole.app.patch_json(f"/v1/nodes/{node}", change).status_int == 400
    assert whole.show(node)["auto_discovered"] is False


@pytest.mark.parametrize(("text", "named"), [
    ("[auto_discovery]\nenabled = true\n", "driver is required"),
    ("[auto_discovery]\nenabled = true\ndriver = redfish\n", "enabled_hardware_types"),
])
def test_m31_without_a_usable_driver_the_service_does_not_start(tmp_path, text, named):
    with pytest.raises(ConfigurationError, match=named):
        service.make_wsgi_app(configuration(tmp_path, text), None, None)


def test_the_interface_that_processes_the_data_is_the_one_for_ramdisks(whole, machine):
    node = discover(whole, machine[1])

    assert type(whole.conductor.hardware.interface(whole.row(node["uuid"]), "inspect")) is AgentInspect


@pytest.mark.parametrize("phase", ["preprocess", "main"])
@pytest.mark.parametrize("form", FORMS)
def test_the_example_of_the_document_can_ask_for_discovery_in_every_form(whole, machine, form, phase):
    rule(whole, {"op": "set-attribute", "args": ["/driver", "faulty-hardware"]},
         {"op": "set-attribute", "args": ["/driver_info/ipmi_address", "{plugin_data[bmc_address]}"]},
         {"op": "set-attribute", "args": ["/extra/discovered", form]},
         phase=phase, conditions=[{"op": "is-true", "args": [form]},
                                  {"op": "!is-empty", "args": ["{plugin_data[bmc_address]}"]}])
    liar = whole.machine()[1]

    node = discover(whole, machine[1])
    other = whole.inspect(whole.enroll("manageable"), {**liar, "auto_discovered": True})

    assert (node["driver"], node["extra"]) == ("faulty-hardware", {"discovered": True})
    assert node["driver_info"] == {"ipmi_address": machine[1]["inventory"]["bmc_address"]}
    assert (other["driver"], other["driver_info"], other["extra"]) == ("fake-hardware", {}, {})


def test_a_rule_as_it_was_written_for_ironic_recognizes_discovered_machines(whole, machine):
    rule(whole, {"op": "set-attribute", "args": {"path": "/extra/hit", "value": "yes"}},
         conditions=[{"op": "is-true", "args": {"value": "{plugin_data[auto_discovered]}"}}], phase="main")

    nodes_of = [discover(whole, machine[1]), whole.inspect(whole.enroll("manageable"), whole.machine()[1])]

    assert [node["extra"] for node in nodes_of] == [{"hit": "yes"}, {}]


def test_what_a_machine_says_of_its_discovery_is_not_believed(whole, machine):
    rule(whole, FAIL, phase="early", conditions=[{"op": "!is-none", "args": ["{plugin_data[auto_discovered]}"]}])
    rule(whole, {"op": "set-attribute", "args": ["/extra/discovered", "{plugin_data[auto_discovered]}"]},
         conditions=[{"op": "!is-none", "args": ["{plugin_data[auto_discovered]}"]}])
    rule(whole, {"op": "extend-attribute", "args": ["/extra/first", "once"]}, conditions=[
        {"op": "eq", "args": ["{node.target_provision_state}", "enroll"]}])

    new = discover(whole, {**machine[1], "auto_discovered": False})
    old = whole.inspect(whole.enroll("manageable"), {**whole.machine()[1], "auto_discovered": True})

    assert (new["extra"], old["extra"]) == ({"discovered": True, "first": ["once"]}, {})
    whole.provision(new["uuid"], "manage")
    assert whole.inspect(new["uuid"], machine[1])["extra"] == new["extra"]
    for node, known in ((new, {"auto_discovered": True}), (old, {})):
        data = whole.app.get(f"/v1/nodes/{node['uuid']}/inventory").json["plugin_data"]
        assert {key: data[key] for key in data if key == "auto_discovered"} == known


def test_large_reports_use_up_the_bytes_of_a_minute(whole, caplog):
    with whole.db.reader() as conn:
        used = records.bytes_since(conn, clock.now() - datetime.timedelta(minutes=1))
    most = 2**20 + used
    replies = []
    with whole.option("auto_discovery", "max_bytes_per_minute", most), caplog.at_level(logging.WARNING):
        for size in (700_000, 700_000, 1000):
            before = count(whole)
            reply = post(whole, {**whole.machine()[1], "extra": "x" * size})
            replies.append((reply.status_int, count(whole) - before))

    assert replies == [(200, 1), (404, 0), (200, 1)]
    assert "max_bytes_per_minute" in caplog.text


def test_nodes_that_nobody_claims_are_limited_and_managing_one_makes_room(whole, machine):
    claimed = discover(whole, machine[1])["uuid"]
    with whole.db.reader() as conn:
        unclaimed = records.unclaimed(conn)

    with whole.option("auto_discovery", "max_unclaimed_nodes", unclaimed):
        assert post(whole, whole.machine()[1]).status_int == 404
        assert whole.ask(claimed, "manage").status_int == 202
        whole.at_rest(claimed)
        assert post(whole, whole.machine()[1]).status_int == 200
        assert post(whole, whole.machine()[1]).status_int == 404
    with whole.option("auto_discovery", "max_unclaimed_nodes", 0):
        assert post(whole, whole.machine()[1]).status_int == 200


def test_a_node_that_nobody_claims_goes_after_the_configured_time_and_no_other(whole):
    made = {name: discover(whole, whole.machine()[1])["uuid"] for name in (
        "gone", "failed", "changed", "managed", "managed, then failed", "in maintenance", "protected", "locked")}
    old = clock.now() - datetime.timedelta(hours=2)
    for name in ("managed", "managed, then failed"):
        assert whole.provision(made[name], "manage")["provision_state"] == states.MANAGEABLE
    for name, values in {"failed": {"provision_state": states.INSPECTFAIL}, "in maintenance": {"maintenance": True},
                         "managed, then failed": {"provision_state": states.INSPECTFAIL},
                         "protected": {"protected": True}, "locked": {"reservation": "conductor-1"}}.items():
        whole.put(made[name], **values)
    with whole.db.writer() as conn:
        ids = {name: nodes.get_id(conn, uuid) for name, uuid in made.items()}
        conn.execute(sa.update(unclaimed_discoveries).where(unclaimed_discoveries.c.node_id.in_(ids.values())).values(
            created_at=old))
        aged = [node_id for name, node_id in ids.items() if name != "changed"]
        conn.execute(sa.update(node_table).where(node_table.c.id.in_(aged)).values(updated_at=old))
    enrolled = whole.enroll()

    recovery.fail_overdue(whole.conductor)
    assert all(whole.app.get(f"/v1/nodes/{uuid}").status_int == 200 for uuid in made.values())
    with whole.option("auto_discovery", "unclaimed_timeout", 3600):
        recovery.fail_overdue(whole.conductor)

    left = {name for name, uuid in made.items() if whole.app.get(f"/v1/nodes/{uuid}").status_int == 200}
    assert set(made) - left == {"gone", "failed"}
    assert whole.app.get(f"/v1/nodes/{enrolled}").status_int == 200
    whole.put(made["locked"], reservation=None)
