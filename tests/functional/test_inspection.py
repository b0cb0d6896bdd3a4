"""Inspection from the request to the finished node, in one process."""

from __future__ import annotations

import datetime
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from ironic_rules.conductor import recovery, state_machine, task_store
from ironic_rules.db import inventory, node_sets, nodes, ports
from ironic_rules.exceptions import BMCError
from ironic_rules.hardware import resolver
from ironic_rules.hardware.agent.inspect import AgentInspect
from ironic_rules.hardware.fake import FakeBoot, FakeManagement, FakePower
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.models import states
from ironic_rules.models.internal_keys import MANAGED_BOOT
from ironic_rules.models.inventories import InspectionData
from tests.functional.faulty import FaultyPower
from tests.functional.processes import wait_for
from tests.functional.whole import running

TRAIT = {"op": "add-trait", "args": {"name": "CUSTOM_SEEN"}}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("whole")) as service:
        yield service


@pytest.fixture
def whole(service):
    yield service
    service.app.delete("/v1/inspection_rules")


def rule(whole, *actions, **fields):
    reply = whole.app.post_json("/v1/inspection_rules", {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return reply.json["uuid"]


def port_addresses(whole, node):
    return [port["address"] for port in whole.app.get(f"/v1/nodes/{node}/ports").json["ports"]]


def test_a_node_from_the_request_to_the_inventory(whole):
    matching = rule(whole, TRAIT, description="what all get")
    other = rule(whole, {"op": "add-trait", "args": {"name": "CUSTOM_NEVER"}},
                 conditions=[{"op": "eq", "args": ["{inventory[hostname]}", "nobody"]}])
    mac, body = whole.machine()
    node = whole.enroll(driver_info={"ipmi_address": "192.0.2.33", "redfish_address": "https://[2001:DB8::33]/x"})
    whole.provision(node, "manage")

    waiting = whole.provision(node, "inspect")

    assert (waiting["provision_state"], waiting["target_provision_state"]) == ("inspect wait", "manageable")
    assert (waiting["power_state"], waiting["inspection_finished_at"]) == ("power on", None)
    assert waiting["inspection_started_at"]
    assert whole.bmc_addresses(node) == ["192.0.2.33", "2001:db8::33"]
    body["inventory"]["bmc_address"] = "192.0.2.33"

    reply = whole.app.post_json("/v1/continue_inspection", body)

    assert (reply.status_int, reply.json["node"]["uuid"]) == (200, node)
    row = whole.at_rest(node)
    shown = whole.show(node)
    assert (shown["provision_state"], shown["target_provision_state"]) == ("manageable", None)
    assert (shown["power_state"], shown["last_error"]) == ("power off", None)
    assert shown["inspection_started_at"] is None
    assert shown["inspection_finished_at"] > waiting["inspection_started_at"]
    assert shown["properties"]["cpu_arch"] == body["inventory"]["cpu"]["architecture"]
    assert (shown["traits"], port_addresses(whole, node)) == (["CUSTOM_SEEN"], [mac])
    assert "lookup_bmc_addresses" not in row.driver_internal_info
    assert whole.bmc_addresses(node) == ["192.0.2.33", "2001:db8::33"]
    stored = whole.app.get(f"/v1/nodes/{node}/inventory").json
    assert stored["inventory"] == body["inventory"]
    assert stored["plugin_data"]["macs"] == [mac]
    (severity, event), = whole.events(node)
    assert (severity, matching in event, "what all get" in event, other in event) == ("INFO", True, True, False)


@pytest.mark.parametrize("backend", ["database", "none"])
@pytest.mark.parametrize("cause", ["hook", "rule", "crash"])
def test_a_failed_inspection_leaves_the_node_as_it_was(whole, cause, backend):
    rule(whole, TRAIT, {"op": "set-attribute", "args": {"path": "/extra/x", "value": 1}}, priority=10)
    _, body = whole.machine()
    if cause == "hook":
        body["error"] = "the disk is on fire"
    elif cause == "rule":
        rule(whole, {"op": "fail", "args": {"msg": "the disk is on fire"}})
    node = whole.enroll("manageable", driver="faulty-hardware", driver_info={"ipmi_address": "192.0.2.34"} | (
        {"continue_inspection": "crash"} if cause == "crash" else {}))
    whole.put(node, properties={"a": 1})

    with whole.option("inventory", "data_backend", backend):
        shown = whole.inspect(node, body)

    assert (shown["provision_state"], shown["target_provision_state"]) == ("inspect failed", "manageable")
    assert ("unexpected error" if cause == "crash" else "the disk is on fire") in shown["last_error"]
    assert (shown["power_state"], shown["reservation"]) == ("power off", None)
    assert (shown["traits"], shown["extra"], shown["properties"]) == ([], {}, {"a": 1})
    assert port_addresses(whole, node) == []
    assert whole.inventories(node) == (["failed"] if backend == "database" else [])
    assert (whole.bmc_addresses(node), whole.row(node).agent_token_hash) == (["192.0.2.34"], None)
    assert "lookup_bmc_addresses" not in whole.row(node).driver_internal_info
    stored = whole.app.get(f"/v1/nodes/{node}/inventory")
    if backend == "none":
        assert stored.status_int == 404
    else:
        assert whole.app.get(f"/v1/nodes/{node}/inventory?status=failed").json == {**stored.json, "status": "failed"}
        assert stored.json["inventory"] == body["inventory"]
        assert stored.json["plugin_data"].get("error") == body.get("error")
    assert [severity for severity, _ in whole.events(node)] == ["ERROR"]


def test_a_power_supply_that_fails_too_does_not_hold_the_node(whole):
    _, body = whole.machine()
    body["error"] = "the disk is on fire"
    node = whole.enroll("manageable", driver="faulty-hardware", driver_info={"abort": "crash"})

    shown = whole.inspect(node, body)

    assert (shown["provision_state"], shown["reservation"]) == ("inspect failed", None)
    assert "the disk is on fire" in shown["last_error"]


@pytest.mark.parametrize("trouble", [{}, {"abort": "refuse"}, {"abort": "crash"}])
def test_an_aborted_inspection(whole, trouble):
    node = whole.enroll("manageable", driver="faulty-hardware", driver_info={"ipmi_address": "192.0.2.35", **trouble})
    whole.provision(node, "inspect")

    shown = whole.provision(node, "abort")

    assert shown["provision_state"] == "inspect failed"
    assert shown["last_error"].startswith("Inspection was aborted by request.")
    assert (" Cleaning up failed: " in shown["last_error"]) == bool(trouble)
    assert shown["power_state"] == ("power on" if trouble else "power off")
    assert (whole.bmc_addresses(node), whole.row(node).agent_token_hash) == (["192.0.2.35"], None)
    assert whole.callback(node, whole.machine()[1]).status_int == 404


@pytest.mark.parametrize(("set_by_rule", "kept"), [(None, ["198.51.100.26", "198.51.100.27"]),
                                                   ("new-bmc.example.org", ["198.51.100.26"])])
def test_a_node_inspected_out_of_band_is_known_by_the_name_of_its_bmc(whole, monkeypatch, set_by_rule, kept):
    def inspect_hardware(self, task):
        return InspectionData({"cpu": {"architecture": "x86_64"}})

    monkeypatch.setattr(AgentInspect, "inspect_hardware", inspect_hardware)
    monkeypatch.setattr(resolver, "cache", resolver.Cache())
    monkeypatch.setattr(resolver.socket, "getaddrinfo", lambda *arguments, **named: [
        (0, 0, 0, "", ("198.51.100.27", 0))])
    node = whole.enroll("manageable", driver_info={
        "redfish_address": "https://old-bmc.example.org", "ipmi_address": "198.51.100.26"})
    if set_by_rule:
        rule(whole, {"op": "set-attribute", "args": {"path": "/driver_info/redfish_address", "value": set_by_rule}})

    assert whole.provision(node, "inspect")["provision_state"] == "manageable"

    assert whole.bmc_addresses(node) == kept


@pytest.mark.parametrize("booted_before", [False, True])
def test_a_ramdisk_that_looks_up_before_the_late_power_on_is_saved_keeps_its_token(whole, monkeypatch, booted_before):
    node = whole.enroll("manageable", driver="faulty-hardware", automated_clean=False)
    if booted_before:
        # The token of an earlier ramdisk, which is not running any more.
        whole.put(node, agent_token_hash="0" * 64)
    issued = []

    def boots_at_once(self, task, target, timeout_s=None):
        FakePower.set_power_state(self, task, target, timeout_s)
        if target in (states.REBOOT, states.POWER_ON):
            issued.append(whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"])

    monkeypatch.setattr(FaultyPower, "set_power_state", boots_at_once)
    assert whole.provision(node, "inspect")["provision_state"] == "inspect wait"

    token, = issued
    beat = whole.app.post_json(f"/v1/heartbeat/{node}", {"callback_url": "http://192.0.2.1:1", "agent_token": token})
    assert (len(token) >= 32, beat.status_int) == (True, 202)


def wait_long(whole, node, **values):
    whole.provision(node, "inspect")
    long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    whole.put(node, **values)
    whole.put(node, provision_updated_at=long_ago)


def test_a_ramdisk_that_never_comes(whole):
    node, patient = whole.enroll("manageable"), whole.enroll("manageable")
    wait_long(whole, node)
    whole.provision(patient, "inspect")

    with whole.option("conductor", "inspect_wait_timeout", 1800):
        recovery.fail_overdue(whole.conductor)

    row = whole.at_rest(node)
    assert (row.provision_state, row.power_state) == ("inspect failed", "power off")
    assert "Timeout reached while waiting" in row.last_error
    assert whole.row(patient).provision_state == "inspect wait"


@pytest.mark.parametrize("values", [{"maintenance": True}, {"conductor_group": "rack-9"}, {"reservation": "other"}])
def test_who_may_wait_longer(whole, values):
    node = whole.enroll("manageable")
    wait_long(whole, node, **values)

    recovery.fail_overdue(whole.conductor)

    assert whole.row(node).provision_state == "inspect wait"


def test_a_node_may_wait_for_ever(whole):
    node = whole.enroll("manageable")
    wait_long(whole, node)

    with whole.option("conductor", "inspect_wait_timeout", 0):
        recovery.fail_overdue(whole.conductor)

    assert whole.row(node).provision_state == "inspect wait"


def test_nothing_is_stored_without_a_back_end(whole):
    mac, body = whole.machine()
    node = whole.enroll("manageable")

    with whole.option("inventory", "data_backend", "none"):
        shown = whole.inspect(node, body)

    assert (shown["provision_state"], port_addresses(whole, node)) == ("manageable", [mac])
    assert whole.inventories(node) == []


def test_old_inventories_go(whole):
    _, body = whole.machine()
    node = whole.enroll("manageable")

    with whole.option("inventory", "max_versions", 2):
        for _ in range(3):
            whole.inspect(node, body)
        assert whole.inventories(node) == ["processed", "processed"]
        for _ in range(3):
            whole.inspect(node, {**body, "error": "no"})
        assert whole.inventories(node) == ["processed", "failed", "failed"]

    assert whole.app.get(f"/v1/nodes/{node}/inventory").status_int == 200


def test_data_of_an_earlier_inspection_are_not_taken_up(whole):
    node = whole.enroll("manageable")
    with whole.db.writer() as conn:
        inventory.receive(conn, nodes.get_id(conn, node), {"cpu": {"architecture": "stale"}}, {}, None)

    assert whole.provision(node, "inspect")["provision_state"] == "inspect wait"
    assert whole.inventories(node) == ["failed"]


def test_a_report_with_the_bmc_of_another_node(whole):
    _, body = whole.machine()
    node, other = whole.enroll(states.MANAGEABLE), whole.enroll(states.MANAGEABLE)
    whole.db.write(lambda conn: node_sets.set_bmc_addresses(conn, nodes.get_id(conn, other), ["192.0.2.77"]))
    whole.provision(node, "inspect")
    body["inventory"]["bmc_address"] = "192.0.2.77"

    assert whole.callback(node, body).status_int == 404
    assert whole.inventories(node) == []
    with whole.option("inspector", "foreign_bmc", "warn"):
        assert whole.callback(node, body).status_int == 200
    whole.at_rest(node)
    assert whole.inventories(node) == ["processed"]


def test_a_name_that_is_taken_fails_the_inspection(whole):
    whole.enroll(name="taken")
    rule(whole, TRAIT, {"op": "set-attribute", "args": {"path": "/name", "value": "taken"}})
    node = whole.enroll("manageable", name="original")

    shown = whole.inspect(node, whole.machine()[1])

    assert (shown["provision_state"], shown["reservation"]) == ("inspect failed", None)
    assert "A node with name taken already exists" in shown["last_error"]
    assert (shown["name"], shown["traits"], port_addresses(whole, node)) == ("original", [], [])
    assert whole.inventories(node) == ["failed"]


def between_rules_and_commit(whole, monkeypatch, action):
    run = whole.conductor.pipeline.run

    def run_and_act(task, *arguments, **options):
        outcome = run(task, *arguments, **options)
        action(task)
        return outcome

    monkeypatch.setattr(whole.conductor.pipeline, "run", run_and_act)


def test_an_address_that_another_node_gets_meanwhile_is_left_to_it(whole, monkeypatch, caplog):
    other, node = whole.enroll("manageable"), whole.enroll("manageable")
    mac, body = whole.machine()
    second = body["inventory"]["interfaces"][0] | {"name": "eth1", "mac_address": mac.replace("52:54:00", "52:54:01")}
    body["inventory"]["interfaces"].append(second)
    rule(whole, {"op": "extend-attribute", "args": ["/extra/ports", "{item[address]}"], "loop": "{ports}"})
    free = [mac]

    def take(task):
        if free:
            with whole.db.writer() as conn:
                ports.create(conn, {"node_id": nodes.get_id(conn, other), "address": free.pop()})

    between_rules_and_commit(whole, monkeypatch, take)
    shown = whole.inspect(node, body)

    assert (shown["provision_state"], shown["power_state"]) == ("manageable", "power off")
    assert (port_addresses(whole, node), port_addresses(whole, other)) == ([second["mac_address"]], [mac])
    assert shown["extra"] == {"ports": [second["mac_address"]]}
    assert f"no port is created for {mac}: it belongs to another node" in caplog.text
    assert ([severity for severity, _ in whole.events(node)], whole.inventories(node)) == (["INFO"], ["processed"])


def test_an_address_that_another_node_gets_while_a_machine_is_booted_is_left_to_it(whole, monkeypatch):
    other, node = whole.enroll(), whole.enroll("manageable")
    (mac, _), (own, _) = whole.machine(), whole.machine()
    booted, boot = [], AgentInspect.inspect_hardware

    def inspect_hardware(self, task):
        boot(self, task)
        booted.append(whole.app.post_json("/v1/ports", {"node_uuid": other, "address": mac}).status_int)

    monkeypatch.setattr(FakeManagement, "get_mac_addresses", lambda self, task: [mac, own])
    monkeypatch.setattr(AgentInspect, "inspect_hardware", inspect_hardware)

    assert whole.provision(node, "inspect")["provision_state"] == "inspect wait"
    assert (booted, port_addresses(whole, node), port_addresses(whole, other)) == ([201], [own], [mac])


class AnyPort(InspectionHook):
    """Adds a port for the address of another node, whatever it could know."""

    def __init__(self, address):
        self.address, self.runs = address, 0

    def __call__(self, task, inventory, plugin_data):
        self.runs += 1
        task.add_port(self.address)


def test_a_hook_that_adds_the_port_of_another_node_fails_the_inspection(whole):
    mac, body = whole.machine()
    whole.inspect(whole.enroll("manageable"), body)
    hook = AnyPort(mac)

    with whole.with_hooks(hook):
        node = whole.enroll("manageable")
        shown = whole.inspect(node, whole.machine()[1])

    assert shown["provision_state"] == "inspect failed"
    assert f"the result could not be saved: A port with MAC address {mac} already exists" in shown["last_error"]
    assert (hook.runs, whole.inventories(node)) == (2, ["failed"])


def test_machines_that_share_an_address_can_be_inspected_at_once(whole):
    bodies = [whole.machine()[1] for _ in range(6)]
    shared = whole.machine()[0]
    nodes_of = [whole.enroll("manageable") for _ in bodies]
    for node, body in zip(nodes_of, bodies, strict=True):
        body["inventory"]["interfaces"].append({"name": "usb0", "mac_address": shared})
        whole.provision(node, "inspect")
    with ThreadPoolExecutor(len(bodies)) as pool:
        replies = list(pool.map(whole.callback, nodes_of, bodies))

    assert {reply.status_int for reply in replies} == {200}
    assert {whole.at_rest(node).provision_state for node in nodes_of} == {"manageable"}
    assert sum(shared in port_addresses(whole, node) for node in nodes_of) == 1


def test_work_that_has_waited_knows_what_has_changed_since_its_report_was_stored(whole, monkeypatch):
    other, node = whole.enroll("manageable"), whole.enroll("manageable")
    mac, body = whole.machine()
    work = state_machine.run

    def late(conductor, lock, context, *begun):
        if begun:
            rule(whole, TRAIT)
            with whole.db.writer() as conn:
                ports.create(conn, {"node_id": nodes.get_id(conn, other), "address": mac})
        work(conductor, lock, context, *begun)

    monkeypatch.setattr(state_machine, "run", late)
    monkeypatch.setattr(task_store, "_RECENT_S", 0)
    shown = whole.inspect(node, body)

    assert (shown["provision_state"], shown["traits"]) == ("manageable", ["CUSTOM_SEEN"])
    assert (port_addresses(whole, node), port_addresses(whole, other)) == ([], [mac])


def test_a_drive_that_can_not_be_emptied_is_not_told_as_a_failed_power_off(whole, monkeypatch):
    def clean_up_ramdisk(self, task):
        raise BMCError(node="n", reason="the drive is stuck")

    node = whole.enroll("manageable")
    whole.provision(node, "inspect")
    whole.put(node, driver_internal_info={MANAGED_BOOT: {"driver": "fake-hardware", "boot_interface": "fake"}})
    monkeypatch.setattr(FakeBoot, "clean_up_ramdisk", clean_up_ramdisk)

    shown = whole.provision(node, "abort")

    assert (shown["provision_state"], shown["power_state"]) == ("inspect failed", "power off")
    assert "Undoing its boot (media, boot scripts) failed: The BMC of node n: the drive is stuck" in shown["last_error"]
    assert "off failed" not in shown["last_error"]


@pytest.mark.parametrize("value", [object(), {1, 2}, "\ud800"])
def test_what_can_not_be_stored_fails_the_inspection(whole, monkeypatch, value):
    node = whole.enroll("manageable")
    between_rules_and_commit(whole, monkeypatch, lambda task: task.node.extra.update(bad=value))

    shown = whole.inspect(node, whole.machine()[1])

    assert (shown["provision_state"], shown["reservation"], shown["extra"]) == ("inspect failed", None, {})
    assert "could not be saved" in shown["last_error"]


def test_a_long_error_is_cut(whole):
    rule(whole, {"op": "fail", "args": {"msg": "{inventory[hostname]}" * 20}})
    node = whole.enroll("manageable")
    _, body = whole.machine()
    body["inventory"]["hostname"] = "x" * 4000

    shown = whole.inspect(node, body)

    assert shown["provision_state"] == "inspect failed"
    assert len(shown["last_error"]) < 5000


def test_many_matching_rules_are_counted_in_the_history(whole):
    for _ in range(53):
        rule(whole, TRAIT)
    node = whole.enroll("manageable")

    whole.inspect(node, whole.machine()[1])

    assert [event.endswith(" and 3 more") for _, event in whole.events(node)] == [True]


def test_a_rule_that_changes_the_driver_leaves_interfaces_that_fit(whole):
    rule(whole, {"op": "set-attribute", "args": {"path": "/driver", "value": "faulty-hardware"}})
    _, body = whole.machine()
    node = whole.enroll("manageable", driver_info={"ipmi_address": "192.0.2.35"})

    shown = whole.inspect(node, body)

    assert shown["driver"] == "faulty-hardware"
    assert (shown["power_interface"], shown["deploy_interface"]) == ("faulty", "faulty")
    assert (shown["provision_state"], shown["bios_interface"]) == ("manageable", "fake")


def test_a_rule_that_sets_a_driver_that_nobody_offers_fails_the_inspection(whole):
    rule(whole, {"op": "set-attribute", "args": {"path": "/driver", "value": "abacus"}})
    _, body = whole.machine()
    node = whole.enroll("manageable", driver_info={"ipmi_address": "192.0.2.36"})

    shown = whole.inspect(node, body)

    assert (shown["driver"], shown["provision_state"]) == ("fake-hardware", "inspect failed")
    assert "abacus" in shown["last_error"]


def test_what_an_early_rule_notes_reaches_the_rules_of_the_main_phase(whole):
    rule(whole, {"op": "set-plugin-data", "args": ["seen_early", "{inventory[interfaces][0][name]}"]}, phase="early")
    rule(whole, {"op": "set-attribute", "args": ["/extra/early", "{plugin_data[seen_early]}"]})
    _, body = whole.machine()
    node = whole.enroll("manageable", driver_info={"ipmi_address": "192.0.2.37"})

    assert whole.inspect(node, body)["extra"] == {"early": "eth0"}


def test_built_in_rules_run_among_the_stored_ones(tmp_path):
    file = tmp_path / "built-in.yaml"
    file.write_text("- priority: 20000\n  actions: [{op: set-attribute, args: [/extra/order, [built-in-first]]}]\n"
                    "- priority: -1\n  actions: [{op: extend-attribute, args: [/extra/order, built-in-last]}]\n")
    with running(tmp_path, f"built_in = {file}\n") as whole:
        rule(whole, {"op": "extend-attribute", "args": ["/extra/order", "stored"]})
        _, body = whole.machine()
        node = whole.enroll("manageable", driver_info={"ipmi_address": "192.0.2.38"})
        assert whole.inspect(node, body)["extra"] == {"order": ["built-in-first", "stored", "built-in-last"]}


def test_nothing_of_an_inspection_is_left_to_the_garbage_collector(whole):
    seen = []

    class Hook(InspectionHook):
        def __call__(self, task, inventory, plugin_data):
            seen.append(weakref.ref(task))

    _, body = whole.machine()
    node = whole.enroll("manageable")
    with whole.with_hooks(Hook()):
        gc.disable()
        try:
            whole.inspect(node, body)
            wait_for("the end of the task", lambda: seen and seen[0]() is None)
        finally:
            gc.enable()
