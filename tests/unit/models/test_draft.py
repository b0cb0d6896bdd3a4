from __future__ import annotations

import copy
import datetime
from typing import Any

import pytest

from ironic_rules.exceptions import FieldNotWritable, Invalid, InvalidParameterValue
from ironic_rules.models import documents, inspections
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.task import Task
from tests.walking import walking

VALUES: dict[str, Any] = {
    "id": 1, "uuid": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123", "name": None, "extra": {"a": {"b": [1]}}, "properties": {},
    "driver": "fake-hardware", "protected": False, "driver_info": None,
    "created_at": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
}


@pytest.fixture
def node() -> NodeDraft:
    return NodeDraft(copy.deepcopy(VALUES), ["CUSTOM_A"])


def test_nothing_is_changed_at_first(node: NodeDraft) -> None:
    assert node.extra["a"] == {"b": [1]}
    assert node.changes() == {}
    assert node.trait_changes() is None


def test_assignment_is_a_change(node: NodeDraft) -> None:
    node.name = "x"
    assert node.name == "x"
    assert node.changes() == {"name": "x"}


def test_assigning_the_old_value_is_none(node: NodeDraft) -> None:
    node.name = "x"
    node.name = None
    assert node.changes() == {}


def test_a_token_that_is_void_is_written_whatever_it_was() -> None:
    node = NodeDraft({**VALUES, "agent_token_hash": None})
    assert node.changes() == {}

    node.agent_token_hash = None

    assert node.changes() == {"agent_token_hash": None}


def test_change_in_place_is_a_change_of_the_draft_alone() -> None:
    values = copy.deepcopy(VALUES)
    node = NodeDraft(values)
    node.extra["a"]["b"].append(2)
    assert node.changes() == {"extra": {"a": {"b": [1, 2]}}}
    assert values == VALUES


def test_true_in_the_place_of_one_is_a_change(node: NodeDraft) -> None:
    node.extra["a"]["b"][0] = True
    assert node.changes() == {"extra": {"a": {"b": [True]}}}


def test_a_conductor_group_is_in_lower_case() -> None:
    group = NodeDraft({**VALUES, "conductor_group": ""})
    group.write("/conductor_group", "Rack-7")
    assert group.changes() == {"conductor_group": "rack-7"}
    group.conductor_group = "Rack-8"
    assert group.changes() == {"conductor_group": "rack-8"}


def test_unknown_field_can_be_neither_read_nor_set(node: NodeDraft) -> None:
    with pytest.raises(AttributeError):
        node.nosuch = 1
    with pytest.raises(AttributeError):
        node.nosuch  # noqa: B018


def test_read_gives_plain_data(node: NodeDraft) -> None:
    node.write("/extra/x", 1)
    values = node.read()
    assert values["created_at"] == "2026-01-02T00:00:00+00:00"
    assert values["traits"] == ["CUSTOM_A"]
    assert values["extra"] == {"a": {"b": [1]}, "x": 1}


def test_save_is_there_for_plugins(node: NodeDraft) -> None:
    node.name = "x"
    node.save()
    assert node.changes() == {"name": "x"}


def test_traits_are_a_set(node: NodeDraft) -> None:
    node.traits.add("CUSTOM_B")
    assert node.trait_changes() == ["CUSTOM_A", "CUSTOM_B"]
    node.traits = {"CUSTOM_C"}
    assert node.trait_changes() == ["CUSTOM_C"]
    assert node.changes() == {}


def test_at_most_fifty_traits(node: NodeDraft) -> None:
    node.write("/traits", [f"CUSTOM_{number}" for number in range(50)])
    with pytest.raises(InvalidParameterValue, match="at most 50"):
        node.add_trait("CUSTOM_X")


def test_write_to_a_null_object_makes_it(node: NodeDraft) -> None:
    node.write("/driver_info/a/b", 1)
    assert node.changes() == {"driver_info": {"a": {"b": 1}}}


def test_write_copies_the_value(node: NodeDraft) -> None:
    value = {"l": [1]}
    node.write("/extra/v", value)
    value["l"].append(2)
    assert node.extra["v"] == {"l": [1]}


def test_write_is_seen_through_an_attribute_read_before(node: NodeDraft) -> None:
    extra = node.extra
    node.write("/extra/x", 1)
    extra["y"] = 2
    assert node.changes() == {"extra": {"a": {"b": [1]}, "x": 1, "y": 2}}


@pytest.mark.parametrize("path", [
    "/uuid", "/provision_state", "/reservation", "/id", "/nosuch", "", "/", "/name/x", "uuid",
])
def test_other_fields_can_not_be_written(node: NodeDraft, path: str) -> None:
    for change in (lambda: node.write(path, "x"), lambda: node.extend(path, "x"), lambda: node.delete(path)):
        with pytest.raises(FieldNotWritable):
            change()
    assert node.changes() == {}


@pytest.mark.parametrize(("path", "value"), [
    ("/name", 5), ("/name", ""), ("/name", "a b"), ("/name", "x" * 256), ("/name",
    "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"),
    ("/description", "a\x00"), ("/driver", None), ("/extra", []), ("/extra", None), ("/protected", None),
    ("/protected", 1),
    ("/traits", "CUSTOM_A"), ("/traits", ["x"]), ("/traits/-", "x"), ("/traits/CUSTOM_A", "CUSTOM_A"),
    ("/extra/a/b/c", 1),
    ("/extra/a/b/9", 1),
])
def test_wrong_values_are_refused_and_change_nothing(node: NodeDraft, path: str, value: Any) -> None:
    with pytest.raises(Invalid):
        node.write(path, value)
    assert node.changes() == {}
    assert node.trait_changes() is None


def test_rollback_returns_to_the_checkpoint(node: NodeDraft) -> None:
    node.write("/extra/kept", 1)
    node.properties["kept"] = 1
    node.checkpoint()
    before = copy.deepcopy(node.read())
    node.write("/extra/a/b/0", 2)
    node.extra["gone"] = 1
    node.properties["gone"] = 1
    node.traits.add("CUSTOM_B")
    node.name = "gone"
    node.write("/owner", "gone")
    node.delete("/extra/kept")
    node.rollback()
    assert node.read() == before
    assert node.changes() == {"extra": {"a": {"b": [1]}, "kept": 1}, "properties": {"kept": 1}}


def test_many_writes_to_one_field_copy_only_the_way() -> None:
    node = NodeDraft({"extra": {"big": {str(number): [number] for number in range(100)}, "small": {}}})
    big = node.read()["extra"]["big"]
    node.write("/extra/small/x", 1)
    assert node.read()["extra"]["big"] is big


@pytest.fixture
def task() -> Task:
    ports = [PortDraft({"id": number, "uuid": f"0000000{number}-0000-4000-8000-000000000000", "extra": {},
                        "address": f"52:54:00:00:00:0{number}", "physical_network": None}) for number in (1, 2)]
    return Task(NodeDraft(VALUES), ports)


def test_nothing_to_do_for_the_ports_at_first(task: Task) -> None:
    assert not task.port_changes()


@pytest.mark.parametrize("ident", [
    "52:54:00:00:00:02", "52-54-00-00-00-02", "00000002-0000-4000-8000-000000000000", "52:54:00:00:00:02".upper(),
    "01-52-54-00-00-00-02", "80:00:02:08:fe:80:00:00:00:00:00:00:52:54:00:03:00:00:00:02",
])
def test_find_port_by_address_or_uuid(task: Task, ident: str) -> None:
    port = task.find_port(ident)
    assert port is task.ports[1]


@pytest.mark.parametrize("ident", ["", "None", "52:54:00:00:00:03", "x"])
def test_find_port_gives_none(task: Task, ident: str) -> None:
    assert task.find_port(ident) is None


def test_port_changes_tell_created_updated_and_deleted(task: Task) -> None:
    first, second = task.ports
    first.write("/extra/x", 1)
    task.remove_port(second)
    added = task.add_port("52-54-00-00-00-AA", pxe_enabled=False)
    removed = task.add_port("52:54:00:00:00:bb")
    task.remove_port(removed)
    changes = task.port_changes()
    assert changes.updated == {1: {"extra": {"x": 1}}}
    assert changes.deleted == [2]
    assert [(port["address"], port["pxe_enabled"]) for port in changes.created] == [("52:54:00:00:00:aa", False)]
    assert task.ports == [first, added]


def test_added_port_needs_a_real_address(task: Task) -> None:
    with pytest.raises(ValueError, match="address"):
        task.add_port("x")


@pytest.mark.parametrize("path", ["/address", "/uuid", "/internal_info/x", "/node_id"])
def test_other_port_fields_can_not_be_written(task: Task, path: str) -> None:
    with pytest.raises(FieldNotWritable):
        task.ports[0].write(path, "x")


def test_task_rollback_returns_ports_and_node(task: Task) -> None:
    task.checkpoint()
    task.ports[0].write("/physical_network", "x")
    task.remove_port(task.ports[1])
    task.add_port("52:54:00:00:00:bb")
    task.node.name = "x"
    task.rollback()
    assert not task.port_changes()
    assert len(task.ports) == 2
    assert task.node.changes() == {}


@walking("step, arguments, message", [
    ("write", ("/extra/list/3", 1), "/extra/list/3: the index is beyond the end of the list"),
    ("write", ("extra/list/x", 1), "/extra/list/x: a list needs an index here"),
    ("write", ("/extra/list/0/a/b", 1), "/extra/list/0: neither an object nor a list"),
    ("write", ("/extra/number/a", 1), "/extra/number: neither an object nor a list"),
    ("extend", ("/extra/number", 1), "/extra/number: not a list"),
    ("extend", ("/extra/list/9/a", 1), "/extra/list/9: the index is beyond the end of the list"),
])
@walking("draft", [NodeDraft, PortDraft])
def test_an_error_names_the_path_with_its_field(draft: Any, step: str, arguments: Any, message: str) -> None:
    made = draft({"extra": {"list": [1], "number": 2}})
    with pytest.raises(documents.PointerError) as caught:
        getattr(made, step)(*arguments)
    assert str(caught.value) == message


def test_a_draft_knows_who_wrote_a_field_last(task: Task) -> None:
    node = task.node
    node.name = "hook"
    task.checkpoint("first")
    for action, value in (("a", "x"), ("b", "y")):
        task.sign(action)
        node.write("/name", value)
        node.write(f"/extra/{value}", 1)
    task.sign("c")
    task.ports[0].write("/extra/x", 1)
    task.checkpoint("second")
    task.sign("d")
    node.write("/extra/z", 1)
    task.checkpoint()
    node.driver = "hook"

    assert [node.author_of(name) for name in ("name", "extra", "driver", "protected")] == [
        ("first", "b"), ("second", "d"), (None, None), (None, None)]
    assert [port.author_of("extra") for port in task.ports] == [("first", "c"), (None, None)]


def test_stored_values_can_be_used_for_a_while(task: Task) -> None:
    node = task.node
    task.checkpoint("rule")("action")
    node.write("/driver_info/ipmi_address", "new")
    node.write("/extra/old", "changed")
    changes = node.changes()

    with node.as_stored(["driver_info", "nothing"]):
        assert node.driver_info == node.original("driver_info")
        node.driver_info = {"lost": True}
        assert node.extra["old"] == "changed"
        node.write("/extra/kept", 1)

    assert node.changes() == {**changes, "extra": {**changes["extra"], "kept": 1}}
    assert node.author_of("driver_info") == ("rule", "action")
    task.rollback()
    assert node.changes() == {}


def test_what_was_undone_has_its_earlier_author(task: Task) -> None:
    task.checkpoint("first")
    task.sign("a")
    task.node.write("/name", "x")
    task.checkpoint("second")
    task.sign("b")
    task.node.write("/name", "y")
    task.rollback()
    assert (task.node.name, task.node.author_of("name")) == ("x", ("first", "a"))


def test_a_port_is_by_the_author_who_added_it(task: Task) -> None:
    task.checkpoint("first")
    task.sign("a")
    port = task.add_port("52:54:00:00:00:aa")
    task.sign("b")
    port.write("/extra/x", 1)
    assert [port.author_of(name) for name in ("address", "extra")] == [("first", "a"), ("first", "b")]


def test_what_did_not_exist_does_not_exist_again_after_the_rollback_of_a_copy(node: NodeDraft) -> None:
    task = Task(node, [])
    task.checkpoint("first")
    node.write("/extra/old", 1)
    task.checkpoint("second")
    node.write("/extra/new", 2)
    copied = task.copy()
    assert [patch for _, patch in inspections.changes_of_draft(copied.node)] == [
        [{"op": "add", "path": "/extra/old", "value": 1}], [{"op": "add", "path": "/extra/new", "value": 2}]]
    copied.node.rollback()
    assert dict(copied.node.extra) == {"a": {"b": [1]}, "old": 1}


def test_a_copy_of_a_task_has_its_changes_and_is_independent(node: NodeDraft) -> None:
    task = Task(node, [PortDraft({"id": 1, "uuid": VALUES["uuid"], "address": "52:54:00:00:00:01", "extra": {}})])
    task.node.extra["read"] = [1]
    task.add_port("52:54:00:00:00:02")
    copied = task.copy()
    task.node.extra["read"].append(2)
    task.node.add_trait("CUSTOM_B")
    task.ports[0].extra["x"] = 1
    assert (copied.node.changes(), copied.node.trait_changes()) == ({"extra": {"a": {"b": [1]}, "read": [1]}}, None)
    changes = copied.port_changes()
    assert ([row["address"] for row in changes.created], changes.updated) == (["52:54:00:00:00:02"], {})
    assert copied.context is task.context
    copied.remove_port(copied.ports[0])
    assert (task.port_changes().deleted, len(task.ports)) == ([], 2)
