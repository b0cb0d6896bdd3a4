from __future__ import annotations

import datetime
import math
import uuid

from ironic_rules.inspection.hooks.machine import MemoryHook
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.kept import Kept, problem_of_data
from ironic_rules.models.nodes import NODE
from ironic_rules.rules import ACTIONS
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

MAC = "52:54:00:00:00:01"
NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)
EMPTY = {"created_at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)}
NODE_VALUES = {name: EMPTY[name] if name in EMPTY else NODE[name].empty() for name in NODE} | {
    "id": 1, "uuid": str(uuid.uuid4()), "driver": "x", "reservation": "conductor-1", "inspection_started_at": NOW}


class OtherMemoryHook(MemoryHook):
    """A hook of another package that extends one of this package."""


def test_only_code_of_this_package_is_trusted():
    assert MemoryHook().is_trusted
    assert not OtherMemoryHook().is_trusted
    assert all(action.call.is_trusted for action in ACTIONS)


def problem_after(work, author="hooks"):
    task = make_task(NODE_VALUES, [{"address": MAC, "portgroup_id": None, "created_at": NOW}])
    task.node.inspection_finished_at = NOW  # by the conductor
    kept = Kept(task, author)
    work(task)
    return kept.problem()


@walking("author", ["rules", "hooks", "steps"])
@walking("name, value", [
    ("uuid", "zzz"), ("id", 7), ("provision_state", "available"), ("target_provision_state", "active"),
    ("reservation", None), ("reservation", "conductor-9"), ("reservation_purpose", "x"), ("reserved_at", NOW),
    ("instance_uuid", "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"), ("created_at", None), ("revision", 9),
    ("auto_discovered", True),
    ("provision_updated_at", NOW), ("inspection_started_at", None), ("last_error", "x"), ("shard", "x"),
    ("deploy_step", {"step": "x"}), ("updated_at", NOW), ("target_power_state", "power on"),
])
def test_what_identifies_a_node_its_lock_and_its_state_is_kept(author, name, value):
    problem = problem_after(lambda task: setattr(task.node, name, value), author)

    assert problem == f"it wrote /{name} of the node, which {author} may not write"


def test_a_change_in_place_is_noticed_too():
    assert problem_after(lambda task: task.node.clean_step.update(step="x")) == (
        "it wrote /clean_step of the node, which hooks may not write")


@walking("name, value, authors", [
    ("name", "rack-7", "rules hooks steps"), ("properties", {"a": 1}, "rules hooks steps"),
    ("driver_info", {"ipmi_address": "192.0.2.1"}, "rules hooks steps"), ("traits", {"CUSTOM_X"}, "rules hooks steps"),
    ("boot_mode", "uefi", "hooks steps"), ("secure_boot", True, "hooks steps"), ("maintenance", True, "hooks steps"),
    ("driver_internal_info", {"seen": 1}, "hooks steps"), ("maintenance_reason", "a DIMM is missing", "hooks steps"),
    ("power_state", "power on", "steps"), ("raid_config", {"logical_disks": []}, "steps"),
])
@walking("author", ["rules", "hooks", "steps"])
def test_rules_hooks_and_steps_may_each_write_more(author, name, value, authors):
    problem = problem_after(lambda task: setattr(task.node, name, value), author)

    assert (problem is None) is (author in authors.split())


@walking("work", [
    lambda task: None, lambda task: task.node.clean_step, lambda task: [port.extra for port in task.ports],
    lambda task: setattr(task.ports[0], "address", "52:54:00:00:00:09"),
    lambda task: task.ports[0].internal_info.update(seen=1), lambda task: task.remove_port(task.ports[0]),
    lambda task: task.add_port("52-54-00-00-00-02", uuid=str(uuid.uuid4()), extra={"a": [1.5, None, "ü"]}),
    lambda task: task.add_port("52:54:00:00:00:02", node_id=1), lambda task: task.node.extra.update(at=NOW),
])
def test_what_hooks_do_is_no_problem(work):
    assert problem_after(work) is None


@walking("work, part", [
    (lambda task: setattr(task.ports[0], "node_id", 2), "/node_id of a port"),
    (lambda task: setattr(task.ports[0], "uuid", "zzz"), "/uuid of a port"),
    (lambda task: setattr(task.ports[0], "portgroup_id", 3), "/portgroup_id of a port"),
    (lambda task: setattr(task.ports[0], "address", "zz"), "/address is not a MAC address"),
    (lambda task: task.ports[0].extra.update(x=b"1"), f"/extra/x of port {MAC} is of type bytes"),
    (lambda task: task.add_port("52:54:00:00:00:02", uuid="zzz"), "a port whose /uuid is not a UUID"),
    (lambda task: task.add_port("52:54:00:00:00:02", node_id=2), "/node_id of a new port"),
    (lambda task: task.add_port("52:54:00:00:00:02", portgroup_id=2), "/portgroup_id of a new port"),
    (lambda task: task.add_port(MAC[:-1] + "2", extra={"x": math.nan}), f"/extra/x of port {MAC[:-1]}2 is not a"),
    (lambda task: task.ports.append({"address": MAC}), "not a port; use task.add_port"),
    (lambda task: task.ports.append(PortDraft({"id": 9, "address": MAC})), "not a new one; use task.add_port"),
    (lambda task: task.ports.append(PortDraft({"uuid": str(uuid.uuid4())})), "/address is not a MAC address"),
    (lambda task: setattr(task, "node", NodeDraft({"id": 2})), "it replaced task.node"),
    (lambda task: setattr(task.node, "name", str(uuid.uuid4())), "/name of the node must consist of"),
    (lambda task: setattr(task.node, "extra", [1]), "/extra of the node must be an object"),
    (lambda task: setattr(task.node, "resource_class", 5), "/resource_class of the node must be a string"),
    (lambda task: task.node.traits.add("no trait"), "/traits of the node has what is not a trait"),
])
def test_what_hooks_may_not_do_is_told_with_its_place(work, part):
    assert part in (problem_after(work) or "")


def test_rules_do_not_change_the_address_of_a_port():
    assert problem_after(lambda task: setattr(task.ports[0], "address", "52:54:00:00:00:09"), "rules") == (
        "it wrote /address of a port, which rules may not write")


@walking("value, reason", [
    (object(), "is of type object"), ({1}, "is of type set"), (b"x", "is of type bytes"),
    ("\ud800", "has lone surrogate characters"), (math.nan, "is not a finite number"),
    (math.inf, "is not a finite number"), (-math.inf, "is not a finite number"),
    (2**80, "is an integer of more than 64 bits"),
])
def test_what_is_not_json_is_told_with_its_path(value, reason):
    data = {"good": [1, None], "a/b": {"list": ["x", value]}}

    assert problem_of_data(data) == (
        f"it left a value that cannot be stored: /a~1b/list/1 of the plug-in data {reason}")


def test_keys_that_are_not_texts_and_endless_values_are_told():
    endless: list[object] = []
    endless.append(endless)

    assert problem_of_data({"a": {1: 2}}) == (
        "it left a value that cannot be stored: /a/1 of the plug-in data has a key of type int")
    assert "/e/0/0/0/0/0/0/0 of the plug-in data is nested deeper" in (problem_of_data({"e": endless}) or "")
    assert problem_of_data({"a": {"\ud800": 1}}) == (
        "it left a value that cannot be stored: /a/\\ud800 of the plug-in data has a key with lone surrogate "
        "characters")


@walking("value", [
    None, True, 2**64 - 1, -2**63, 0.1, "ü\U0001f600", [], {}, (1, 2), {"": [{}]}, NOW, uuid.UUID(int=1)])
def test_json_is_storable(value):
    assert problem_of_data({"value": value}) is None
