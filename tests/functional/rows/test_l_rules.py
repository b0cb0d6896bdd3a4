"""L-01 to L-31: the rules of ironic-inspector (document 002)."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.installations import only_in_one_process, running
from tests.functional.legacy import EXAMPLE, RULES, Machine, at_least, capabilities, rule, sets, with_plugins
from tests.functional.rows.conftest import inspected
from tests.functional.whole import Whole, fault

UUID = "11111111-1111-4111-8111-111111111111"
VERSION = "X-OpenStack-Ironic-Inspector-API-Version"

pytestmark = only_in_one_process("it loads a plug-in package that is not installed")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """A service with a package of conditions and actions."""
    with with_plugins(tmp_path_factory.mktemp("plugins")), running(tmp_path_factory.mktemp("rows")) as service:
        yield service


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    """The service without any rules."""
    yield service
    assert service.app.delete(RULES).status_int == 204


def matches(whole: Whole, *conditions: dict[str, Any], inventory: dict[str, Any] | None = None,
            **data: Any) -> bool:
    """Return whether a rule with these conditions matches a machine whose ramdisk sends ``data``, too."""
    uuid = rule(whole, sets(), conditions=conditions)
    found: bool = "a" in inspected(whole, inventory, data)["extra"]
    assert whole.app.delete(f"{RULES}/{uuid}").status_int == 204
    return found


def field(name: str, op: str, value: Any = None, **more: Any) -> dict[str, Any]:
    return {"field": name, "op": op, **({} if value is None else {"value": value}), **more}


def refusal(whole: Whole, *actions: dict[str, Any], **fields: Any) -> str:
    reply = whole.app.post_json(RULES, {"actions": list(actions) or [sets()], **fields})
    assert reply.status_int == 400, reply.text
    return fault(reply)


def test_l_01_post_creates_a_rule(whole):
    assert whole.app.post_json(RULES, {"actions": [sets()]}).status_int == 201
    assert whole.app.post_json(RULES, {"actions": [sets()]}, headers={VERSION: "1.5"}).status_int == 200


def test_l_02_a_rule_is_shown_replaced_and_deleted_by_its_uuid(whole):
    assert whole.app.put_json(f"{RULES}/{UUID}", {"actions": [sets()]}).status_int == 201
    assert whole.app.put_json(f"{RULES}/{UUID}", {"actions": [sets()], "scope": "x"}).status_int == 200
    assert whole.app.get(f"{RULES}/{UUID}").json["scope"] == "x"
    assert [found["uuid"] for found in whole.app.get(RULES).json["rules"]] == [UUID]
    assert whole.app.delete(f"{RULES}/{UUID}").status_int == 204
    assert whole.app.get(f"{RULES}/{UUID}").status_int == 404


def test_l_03_what_was_sent_is_shown(whole):
    uuid = rule(whole, *EXAMPLE["actions"], conditions=EXAMPLE["conditions"], description="much")
    shown = whole.app.get(f"{RULES}/{uuid}").json

    assert shown["description"] == "much"
    assert shown["actions"] == EXAMPLE["actions"]
    assert shown["conditions"] == [
        {**condition, "invert": False, "multiple": "any"} for condition in EXAMPLE["conditions"]]


def test_l_04_rules_run_in_the_service_over_the_data_of_any_ramdisk(whole):
    rule(whole, sets(value="{data[memory_mb]}"), conditions=at_least(1))
    node = inspected(whole, {"memory": {"physical_mb": 4096}})

    assert node["extra"]["a"] == "4096"
    assert "a" not in whole.app.get(f"/v1/nodes/{node['uuid']}/inventory").json["plugin_data"]


def test_l_05_all_conditions_have_to_hold(whole):
    small, large = field("n", "gt", 1), field("n", "lt", 5)
    assert [matches(whole, small, large, n=n) for n in (1, 3, 7)] == [False, True, False]


def test_l_06_a_condition_has_a_field_an_operator_a_value_and_multiple(whole):
    assert matches(whole, field("n", "eq", 3, multiple="all", invert=False), n=3)
    assert not matches(whole, field("n", "eq", 3, invert=True), n=3)
    assert "/conditions/0/op" in refusal(whole, conditions=[{"field": "n", "value": 3}])


def test_l_07_a_field_is_a_json_path(whole):
    disks = {"disks": [{"name": "/dev/sda", "size": 5}, {"name": "/dev/sdb", "size": 50}]}
    for path in ("inventory.disks[*].size", "inventory.disks.*.size", "data://inventory.disks[1].size", "$..size"):
        assert matches(whole, field(path, "eq", 50), inventory=disks), path
    assert matches(whole, field("node://driver", "eq", "fake-hardware"))
    assert "/conditions/0/field" in refusal(whole, conditions=[field("a[", "eq", 1)])


def test_l_08_multiple_is_any_all_or_first(whole):
    numbers = [1, 2, 3]
    for multiple, hits in (("any", [1, 2, 3]), ("first", [1]), ("all", [])):
        found = [value for value in (1, 2, 3, 4) if matches(
            whole, field("n[*]", "eq", value, multiple=multiple), n=numbers)]
        assert found == hits, multiple
    assert "/conditions/0/multiple" in refusal(whole, conditions=[field("n", "eq", 1, multiple="last")])


def test_l_09_the_operators_compare(whole):
    for op, hits in {"lt": [1], "le": [1, 2], "eq": [2], "ne": [1, 3], "ge": [2, 3], "gt": [3]}.items():
        assert [n for n in (1, 2, 3) if matches(whole, field("n", op, 2), n=n)] == hits, op


def test_l_10_net_tells_whether_an_address_is_in_a_network(whole):
    for op in ("net", "in-net"):
        assert matches(whole, field("a", op, "192.0.2.0/24"), a="192.0.2.9")
        assert not matches(whole, field("a", op, "192.0.2.0/24"), a="198.51.100.9")
    assert "/conditions/0/value" in refusal(whole, conditions=[field("a", "net", "everywhere")])


def test_l_11_data_get_the_type_of_the_value_of_the_condition(whole):
    assert matches(whole, field("n", "eq", 3), n="3")
    assert matches(whole, field("n", "gt", 2.5), n="2.75")
    assert not matches(whole, field("n", "ne", 3), n="three")
    assert not matches(whole, field("n", "ne", 3, invert=True), n="three")


def test_l_12_operators_are_plug_ins(whole):
    assert matches(whole, field("n", "divides", 3), n=9)
    assert not matches(whole, field("n", "divides", 3), n=10)


def test_l_13_an_action_names_its_type(whole):
    assert "/actions/0/action" in refusal(whole, {"path": "/extra/a", "value": 1})
    assert "/actions/0/action" in refusal(whole, {"action": "unheard-of"})


def test_l_14_what_actions_did_is_undone_when_the_conditions_do_not_hold_any_more(whole):
    rule(whole, sets(), {"action": "set-capability", "name": "c", "value": 1}, {"action": "add-trait",
         "name": "CUSTOM_LARGE"}, {"action": "append-attribute", "key": "/extra/l", "value": 1},
         conditions=at_least(4096))
    machine = Machine(whole, extra={"own": 1})
    before = machine.inspect(1024)
    during = machine.inspect(8192)
    after = machine.inspect(1024)

    assert (during["extra"], during["traits"]) == ({"own": 1, "a": 1, "l": [1]}, ["CUSTOM_LARGE"])
    for name in ("extra", "traits", "properties"):
        assert after[name] == (before[name] if name != "properties" else {**before[name]})


def test_l_15_set_capability_sets_it_and_removes_it_on_a_mismatch(whole):
    rule(whole, {"action": "set-capability", "name": "profile", "value": "x"}, conditions=at_least(4096))
    machine = Machine(whole, properties={"capabilities": "other:1"})

    assert {"other:1", "profile:x"} <= capabilities(machine.inspect(8192))
    assert "profile:x" not in capabilities(less := machine.inspect(1024))
    assert "other:1" in capabilities(less)


def test_l_16_fail_fails_the_inspection_and_puts_the_node_in_maintenance_if_asked(whole):
    rule(whole, {"action": "fail", "message": "too small", "maintenance": True},
         conditions=[field("memory_mb", "lt", 4096)])
    failed = inspected(whole, {"memory": {"physical_mb": 1024}})
    passed = inspected(whole, {"memory": {"physical_mb": 8192}})

    assert (failed["provision_state"], failed["maintenance"], failed["maintenance_reason"]) == (
        "inspect failed", True, "too small")
    assert (passed["provision_state"], passed["maintenance"]) == ("manageable", False)


def test_l_17_set_attribute_sets_it_and_on_a_mismatch_sets_cleanup_or_deletes_it(whole):
    rule(whole, sets("/extra/a"), sets("/extra/b", cleanup="small"), conditions=at_least(4096))
    machine = Machine(whole)

    assert machine.inspect(8192)["extra"] == {"a": 1, "b": 1}
    assert machine.inspect(1024)["extra"] == {"b": "small"}


@pytest.mark.parametrize("action", [
    {"action": "append-attribute", "key": "/extra/l"}, {"action": "extend-attribute", "path": "/extra/l"}])
def test_l_18_append_attribute_appends_and_removes_its_own_item_on_a_mismatch(whole, action):
    rule(whole, {**action, "value": "x"}, conditions=at_least(4096))
    machine = Machine(whole, extra={"l": ["x", "y"]})

    assert machine.inspect(8192)["extra"]["l"] == ["x", "y", "x"]
    assert machine.inspect(8192)["extra"]["l"] == ["x", "y", "x"]
    assert machine.inspect(1024)["extra"]["l"] == ["x", "y"]


@pytest.mark.parametrize("mode, back", [("own", ["x", "v"]), ("any", ["x", "small", "v"]), ("off", ["x", "v", "v"])])
def test_l_18_append_attribute_appends_cleanup_instead_on_a_mismatch(tmp_path, mode, back):
    with running(tmp_path, f"[legacy_rules]\ncleanup = {mode}\n") as whole:
        rule(whole, {"action": "append-attribute", "key": "/extra/l", "value": "v", "cleanup": "small"},
             conditions=at_least(4096))
        machine = Machine(whole, extra={"l": ["x"]})

        assert machine.inspect(8192)["extra"]["l"] == ["x", "v"]
        for _ in range(2):
            assert machine.inspect(1024)["extra"]["l"] == (["x", "v"] if mode == "off" else ["x", "small"])
        # To the letter of the document, nothing takes back what a clean-up has written.
        assert machine.inspect(8192)["extra"]["l"] == back


def test_l_19_actions_are_plug_ins(whole):
    rule(whole, {"action": "label", "label": "{data[n]}"})

    assert inspected(whole, None, {"n": 7})["properties"]["label"] == "7"


def test_l_20_a_condition_validates_its_parameters_and_needs_a_value_by_default(whole):
    assert "0 divides nothing" in refusal(whole, conditions=[field("n", "divides", 0)])
    assert "/conditions/0" in refusal(whole, conditions=[field("n", "plain")])
    rule(whole, sets(), conditions=[field("n", "absent")])


def test_l_21_a_condition_checks_the_field(whole):
    importlib.import_module("legacy_rule_plugins").CALLS.clear()
    assert matches(whole, field("n[*]", "divides", 2, multiple="all"), n=[2, 4])
    assert not matches(whole, field("n[*]", "divides", 2, multiple="all"), n=[2, 5])


def test_l_22_a_missing_field_fails_the_condition_unless_it_allows_none(whole):
    assert not matches(whole, field("nothing.here", "plain", 1))
    assert not matches(whole, field("nothing.here", "eq", 1, invert=True))
    assert matches(whole, field("nothing.here", "absent"))


def test_l_23_an_action_validates_its_parameters_and_takes_none_by_default(whole):
    assert "/actions/0" in refusal(whole, {"action": "label"})
    assert "/actions/0" in refusal(whole, {"action": "bare", "colour": "red"})
    rule(whole, {"action": "bare"})


def test_l_24_apply_changes_the_node(whole):
    rule(whole, {"action": "bare"})

    assert inspected(whole)["extra"]["bare"] is True


def test_l_25_cleanup_is_called_if_the_conditions_do_not_hold(whole):
    calls = importlib.import_module("legacy_rule_plugins").CALLS
    rule(whole, {"action": "label", "label": "big"}, conditions=at_least(4096))
    machine = Machine(whole)
    assert machine.inspect(8192)["properties"]["label"] == "big"
    calls.clear()
    node = machine.inspect(1024)

    assert calls == [("cleanup", {"label": "big"})]
    assert "label" not in node["properties"]


def test_l_26_plug_ins_get_all_but_the_required_fields_as_params(whole):
    calls = importlib.import_module("legacy_rule_plugins").CALLS
    calls.clear()
    rule(whole, {"action": "label", "label": "x"}, conditions=[field("n", "divides", 3)])
    inspected(whole, None, {"n": 3})

    assert calls == [("check", {"value": 3}), ("apply", {"label": "x"})]


def test_l_27_all_cleanups_come_before_all_actions(whole):
    calls = importlib.import_module("legacy_rule_plugins").CALLS
    rule(whole, {"action": "label", "label": "first"}, conditions=at_least(1))
    rule(whole, {"action": "label", "label": "second"}, conditions=at_least(10**9))
    calls.clear()

    assert inspected(whole)["properties"]["label"] == "first"
    assert [kind for kind, _ in calls] == ["cleanup", "apply"]


def test_l_28_all_conditions_are_evaluated_before_any_action(whole):
    rule(whole, sets("/extra/a"))
    rule(whole, sets("/extra/b"), conditions=[field("node://extra.a", "eq", 1)])
    machine = Machine(whole)

    assert machine.inspect()["extra"] == {"a": 1}
    assert machine.inspect()["extra"] == {"a": 1}


def test_l_29_a_rule_gets_a_uuid_and_has_a_description(whole):
    made = whole.app.post_json(RULES, {"uuid": None, "description": "mine", "actions": [sets()]}).json

    assert len(made["uuid"]) == 36
    found, = whole.app.get(RULES).json["rules"]
    assert (found["uuid"], found["description"]) == (made["uuid"], "mine")


def test_l_30_the_example_works(whole):
    whole.app.post_json(RULES, EXAMPLE)
    node = Machine(whole).inspect(8192)

    assert "much-memory:wow" in capabilities(node)
    assert node["extra"]["matched"] == ["much-memory"]


def test_l_31_what_inspector_added_works_too(whole):
    rule(whole, sets("/extra/scoped"), scope="hall-1")
    rule(whole, sets("/extra/deep", {"list": ["{data[n]}", {"{data[key]}": "{data[n]}"}]}),
         {"action": "add-trait", "name": "CUSTOM_A"}, {"action": "remove-trait", "name": "CUSTOM_B"},
         conditions=[field("n", "gt", 5, invert=True)])
    inside, outside = (inspected(whole, None, {"n": 3, "key": "k"}, **fields) for fields in (
        {"inspection_scope": "hall-1"}, {}))

    assert inside["extra"] == {"scoped": 1, "deep": {"list": ["3", {"k": "3"}]}}
    assert outside["extra"] == {"deep": {"list": ["3", {"k": "3"}]}}
    assert inside["traits"] == ["CUSTOM_A"]
    rule(whole, sets("/driver", "faulty-hardware", reset_interfaces=True))
    moved = inspected(whole)
    assert (moved["driver"], moved["deploy_interface"]) == ("faulty-hardware", "faulty")
