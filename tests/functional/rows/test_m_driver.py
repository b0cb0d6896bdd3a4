"""The call to the conductor, the inspect interface, and the hooks that run by default (M-39 to M-48)."""

from __future__ import annotations

import contextlib
import inspect
import json
import sqlite3
import subprocess
import sys
from typing import Any

import oslo_messaging as messaging
import pytest

from ironic_rules.exceptions import ConfigurationError, NodeLocked, NotFound, UnsupportedDriverExtension
from ironic_rules.hardware.absent import NoInspect
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task
from tests.functional.brokers import temporary_vhost
from tests.functional.clients import machines
from tests.functional.installations import only_in_one_process, refusal, running
from tests.functional.processes import standalone
from tests.functional.rows import drivers, hooks, interfaces
from tests.functional.rows.conductor_calls import calling
from tests.functional.rows.conftest import create, inspected, stored, waiting
from tests.functional.whole import Whole
from tests.walking import walking

NOBODY = "00000000-0000-4000-8000-00000000dead"


def test_m_39_the_call_hands_over_data_and_raises_what_the_document_says(whole):
    with calling(whole) as client:
        def call(node_id: str | int, **more: Any) -> Any:
            return client(node_id=node_id, inventory=data, **more)

        (uuid, body), (other, _), (locked, _) = waiting(whole), waiting(whole), waiting(whole)
        data = body["inventory"]
        whole.put(locked, reservation="conductor-9")
        resting = whole.enroll("manageable")

        with pytest.raises(NodeLocked, match="conductor-9"):
            call(locked)
        for ident in (resting, NOBODY, 987654):
            with pytest.raises(NotFound):
                call(ident)
        assert [whole.inventories(ident) for ident in (locked, resting)] == [[], []]

        assert call(uuid, plugin_data={"sent": True}) is None
        assert whole.at_rest(uuid).provision_state == "manageable"
        assert stored(whole, uuid)["plugin_data"]["sent"] is True
        data = {**data, "interfaces": []}
        assert call(whole.row(other).id) is None
        assert whole.at_rest(other).provision_state == "manageable"


@pytest.mark.parametrize("version", ["1.99", "2.0"])
def test_m_39_a_version_that_the_conductor_does_not_know_is_refused(whole, version):
    uuid, body = waiting(whole)

    with calling(whole, version) as client, pytest.raises(messaging.MessagingException, match="RPC version"):
        client(node_id=uuid, inventory=body["inventory"])

    assert (whole.row(uuid).provision_state, whole.inventories(uuid)) == ("inspect wait", [])


@pytest.mark.slow
@only_in_one_process("in the others all tests of this row call over RabbitMQ")
def test_m_39_the_call_is_the_same_over_rabbitmq(tmp_path):
    machine, locked = machines.machine(3901), machines.machine(3902)
    settings = "[conductor]\nrecovery_interval = 3600\n"
    with temporary_vhost() as url, standalone(
            tmp_path, config=f"{settings}[DEFAULT]\ntransport_url = {url}\n") as (_, endpoint):
        for each in (machine, locked):
            machines.enrol(endpoint, f"m-39-{each.uuid[:4]}", each)
            machines.start_inspection(endpoint, each.uuid)
        with contextlib.closing(sqlite3.connect(tmp_path / "state" / "ironic-rules.sqlite")) as database, database:
            database.execute("UPDATE nodes SET reservation = 'conductor-9' WHERE uuid = ?", (locked.uuid,))
        calls = [{"version": version, "arguments": {"node_id": uuid, "inventory": machine.inventory}}
                 for version, uuid in (("1.0", locked.uuid), ("1.0", NOBODY), ("2.0", machine.uuid),
                                       ("1.0", machine.uuid))]
        caller = [sys.executable, "-W", "ignore", "-m", "tests.functional.rows.rpc_caller", url]
        done = subprocess.run(caller, input="\n".join(map(json.dumps, calls)), text=True, timeout=120,
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        refused, unknown, version, accepted = map(json.loads, done.stdout.splitlines())
        machines.wait_for_state(endpoint, machine.uuid, "manageable")
        inventory = machines.call(endpoint, "GET", f"nodes/{machine.uuid}/inventory")["inventory"]

    assert ("NodeLocked" in refused[0], "conductor-9" in refused[1]) == (True, True)
    assert ("NotFound" in unknown[0], NOBODY in unknown[1]) == (True, True)
    assert "RPC version" in version[1]
    assert (accepted, inventory) == (None, machine.inventory)


def test_m_40_the_data_are_processed_under_a_lock_and_after_the_answer(whole):
    uuid, body = waiting(whole)

    with calling(whole) as client:
        def send() -> Any:
            return client(node_id=uuid, inventory=body["inventory"])

        with hooks.held(whole, send) as answer:
            row = whole.row(uuid)
            assert (answer, row.provision_state, row.reservation) == (None, "inspecting", whole.conf.host)
            # They are already stored.
            assert whole.inventories(uuid) == ["received"]
            with pytest.raises(NodeLocked):
                send()
    assert whole.at_rest(uuid).provision_state == "manageable"
    assert whole.inventories(uuid) == ["processed"]


@pytest.mark.parametrize("state", ["enroll", "manageable", "available", "active", "inspect failed", "clean wait"])
def test_m_40_the_state_is_checked_again_by_the_conductor(whole, state):
    uuid = whole.enroll()
    whole.put(uuid, provision_state=state)
    data = whole.machine()[1]["inventory"]

    # Discovery is no exception: only a node that it has just created may be in enroll.
    with calling(whole) as client, whole.option("auto_discovery", "enabled", True), pytest.raises(NotFound):
        client(node_id=uuid, inventory=data)

    row = whole.row(uuid)
    assert (row.provision_state, row.reservation, whole.inventories(uuid)) == (state, None, [])


OF_SILENT = {"silent": interfaces.Silent, "own": interfaces.Own}


def test_m_41_an_inspect_interface_takes_task_inventory_and_plugin_data(tmp_path):
    taken = inspect.signature(InspectInterface.continue_inspection).parameters
    assert [(name, parameter.default) for name, parameter in taken.items()] == [
        *((name, inspect.Parameter.empty) for name in ("self", "task", "inventory")), ("plugin_data", None)]
    with drivers.running(tmp_path, "", {"remote": interfaces.SilentHardware}, OF_SILENT) as whole:
        node = whole.inspect(whole.enroll("manageable", driver="remote", inspect_interface="own"),
                             {"inventory": {"cpu": {"architecture": "x86_64"}}, "sent": 1})

        assert (node["provision_state"], node["extra"]) == ("manageable", {"own": [["cpu"], {"sent": 1}]})
        assert stored(whole, node["uuid"])["plugin_data"]["own"] is True


def test_m_41_one_that_expects_no_data_says_that_it_does_not_support_them(tmp_path):
    with drivers.running(tmp_path, "", {"remote": interfaces.SilentHardware}, OF_SILENT) as whole:
        task = Task(NodeDraft({"uuid": None, "driver": "remote"}))
        for cls in (interfaces.Silent, NoInspect):
            with pytest.raises(UnsupportedDriverExtension, match="continue_inspection"):
                cls(whole.conf, None).continue_inspection(task, {})

        node = whole.inspect(whole.enroll("manageable", driver="remote", inspect_interface="silent"),
                             whole.machine()[1])

        assert node["provision_state"] == "inspect failed"
        assert "does not support continue_inspection" in node["last_error"]


class Needy(InspectionHook):
    dependencies = ["validate-interfaces", "ports"]

    def __call__(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        pass


class Incomplete(InspectionHook):
    def preprocess(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        pass


def test_m_42_a_hook_has_dependencies_a_preprocess_and_a_call_which_it_must_override():
    for method in (InspectionHook.preprocess, InspectionHook.__call__):
        assert list(inspect.signature(method).parameters) == ["self", "task", "inventory", "plugin_data"]
    assert InspectionHook.dependencies == []
    with pytest.raises(TypeError, match="__call__"):
        Incomplete()


@walking("order", ["needy", "needy,validate-interfaces,ports", "validate-interfaces,needy,ports"])
def test_m_42_what_a_hook_depends_on_must_be_enabled_before_it(order):
    needed = loader.load(["validate-interfaces", "ports"])
    classes: Any = {"needy": Needy, **{name: type(hook) for name, hook in needed}}

    with pytest.raises(ConfigurationError, match=r"'needy' needs '(validate-interfaces|ports)' before it"):
        loader.load(order.split(","), None, classes)

    good = "validate-interfaces,ports,needy"
    assert [name for name, _ in loader.load(good.split(","), None, classes)] == good.split(",")


def test_m_42_all_hooks_preprocess_before_the_first_is_called(whole, tmp_path):
    seen = tmp_path / "seen"

    with hooks.added(whole, hooks.Noting(seen, "first"), hooks.Noting(seen, "second")):
        inspected(whole)

    assert seen.read_text().splitlines() == ["first preprocess", "second preprocess", "first call", "second call"]


@pytest.mark.parametrize("in_preprocess", [False, True])
@pytest.mark.parametrize("is_new", [False, True])
def test_m_43_hooks_run_under_the_lock_while_the_node_is_inspecting(whole, is_new, in_preprocess):
    uuid, body = (None, whole.machine()[1]) if is_new else waiting(whole)
    query = "" if is_new else f"?node_uuid={uuid}"

    def send() -> Any:
        return whole.app.post_json(f"/v1/continue_inspection{query}", body)

    with (whole.option("auto_discovery", "enabled", is_new), whole.option("auto_discovery", "driver", "fake-hardware"),
          hooks.held(whole, send, in_preprocess) as reply):
        node = reply.json["node"]["uuid"]
        row = whole.row(node)
        change = whole.app.patch_json(f"/v1/nodes/{node}", [{"op": "add", "path": "/extra/x", "value": 1}])
        assert (row.provision_state, row.reservation, change.status_int) == ("inspecting", whole.conf.host, 409)
    assert "x" not in whole.at_rest(node).extra


def test_m_44_a_hook_changes_plugin_data_the_node_and_ports_and_saves(whole):
    with hooks.added(whole, hooks.Calling(hooks.change_all)):
        node = inspected(whole)

    port, = whole.app.get(f"/v1/nodes/{node['uuid']}/ports?detail=true").json["ports"]
    assert (node["extra"], port["extra"]) == ({"hook": 1}, {"hook": 2})
    assert stored(whole, node["uuid"])["plugin_data"]["hook"] == ["was here"]


def test_m_44_what_a_hook_has_saved_goes_if_the_inspection_fails_after_it(whole):
    with hooks.added(whole, hooks.Calling(hooks.change_all), hooks.Calling(hooks.fail)):
        node = inspected(whole)

    assert (node["provision_state"], node["extra"], node["properties"]) == ("inspect failed", {}, {})
    assert whole.app.get(f"/v1/nodes/{node['uuid']}/ports").json["ports"] == []


def test_m_45_an_error_of_the_ramdisk_fails_the_inspection_before_anything_else(whole, tmp_path):
    create(whole, {"op": "set-attribute", "args": ["/extra/rule", 1]}, phase="preprocess")
    seen = tmp_path / "seen"

    with hooks.added(whole, hooks.Noting(seen)):
        node = inspected(whole, plugin_data={"error": "the disk is on fire"})
        fine = [inspected(whole, plugin_data={"error": error})["provision_state"] for error in (None, "")]

    assert node["provision_state"] == "inspect failed"
    assert "the disk is on fire" in node["last_error"]
    assert (node["properties"], node["extra"]) == ({}, {})
    assert (fine, seen.read_text().splitlines()) == (["manageable"] * 2, ["hook preprocess", "hook call"] * 2)


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_m_46_cpu_arch_comes_from_the_inventory(whole, architecture):
    assert inspected(whole, {"cpu": {"architecture": architecture}})["properties"] == {"cpu_arch": architecture}


def test_m_46_an_inventory_without_architecture_fails_the_inspection(whole):
    assert "/cpu/architecture is missing" in inspected(whole, {"cpu": {"count": 4}})["last_error"]


def cards(whole: Whole, count: int) -> list[dict[str, Any]]:
    """Return ``eth0``, which the machine boots from and which has no IP address, and others that have one."""
    return [{"name": f"eth{number}", "mac_address": whole.machine()[0],
             "ipv4_address": f"192.0.2.{number}" if number else None} for number in range(count)]


def test_m_47_valid_interfaces_tell_which_one_the_machine_booted_from(whole):
    sent = cards(whole, 2)
    odd = [{"name": "lo", "mac_address": "00:00:00:00:00:01", "ipv4_address": "127.0.0.1"},
           {"name": None, "mac_address": "52:54:00:ff:00:01"}, {"name": "ib0", "mac_address": ""}]
    boot = {"pxe_interface": "01-" + sent[0]["mac_address"].replace(":", "-")}

    node = inspected(whole, {"interfaces": [*sent, *odd], "boot": boot})

    valid = stored(whole, node["uuid"])["plugin_data"]["valid_interfaces"]
    assert {name: interface["pxe_enabled"] for name, interface in valid.items()} == {"eth0": True, "eth1": False}
    assert [valid[interface["name"]]["mac_address"] for interface in sent] == [item["mac_address"] for item in sent]


@pytest.mark.parametrize(("options", "added", "left"), [
    ("", {"eth0", "eth1"}, {"eth0", "eth1", "old"}), ("add_ports = pxe\n", {"eth0"}, {"eth0", "old"}),
    ("add_ports = active\n", {"eth1"}, {"eth0", "eth1", "old"}),
    ("keep_ports = present\n", {"eth0", "eth1"}, {"eth0", "eth1"}),
    ("add_ports = active\nkeep_ports = added\n", {"eth1"}, {"eth1"}),
])
def test_m_48_ports_are_made_and_kept_as_the_options_say_and_interfaces_tell(tmp_path, options, added, left):
    with running(tmp_path, f"[inspector]\n{options}") as whole:
        sent, uuid, body = cards(whole, 2), whole.enroll("manageable"), whole.machine()[1]
        names = {whole.machine()[0]: "old", **{item["mac_address"]: item["name"] for item in sent}}
        for address in [address for address, name in names.items() if name != "eth1"]:
            assert whole.app.post_json("/v1/ports", {"node_uuid": uuid, "address": address}).status_int == 201
        boot = {"pxe_interface": "01-" + sent[0]["mac_address"].replace(":", "-")}
        body["inventory"] |= {"interfaces": sent, "boot": boot}

        assert whole.inspect(uuid, body)["last_error"] is None

        valid = stored(whole, uuid)["plugin_data"]["valid_interfaces"]
        assert {name: interface["is_added"] for name, interface in valid.items()} == {
            name: name in added for name in ("eth0", "eth1")}
        assert {names[port["address"]] for port in whole.app.get(f"/v1/nodes/{uuid}/ports").json["ports"]} == left


def test_m_48_an_address_of_another_node_is_not_taken_and_its_interface_says_so(whole):
    (first, second), owner, (uuid, body) = cards(whole, 2), whole.enroll(), waiting(whole)
    assert whole.app.post_json("/v1/ports", {"node_uuid": owner, "address": second["mac_address"]}).status_int == 201

    # The API would refuse such a report; a card may move after it has looked.
    with calling(whole) as client:
        client(node_id=uuid, inventory={**body["inventory"], "interfaces": [first, second]})
    assert whole.at_rest(uuid).provision_state == "manageable"

    valid = stored(whole, uuid)["plugin_data"]["valid_interfaces"]
    assert [valid[name]["is_added"] for name in ("eth0", "eth1")] == [True, False]
    ports = {node: [port["address"] for port in whole.app.get(f"/v1/nodes/{node}/ports").json["ports"]]
             for node in (uuid, owner)}
    assert ports == {uuid: [first["mac_address"]], owner: [second["mac_address"]]}


def test_m_48_ports_need_validate_interfaces_before_them(tmp_path):
    assert "'ports' needs 'validate-interfaces' before it" in refusal(
        tmp_path, "[inspector]\nhooks = ports,validate-interfaces\n")
