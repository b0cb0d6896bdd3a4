"""The four passes over a node that is inspected several times: what is taken back, what stays, and why."""

from __future__ import annotations

from typing import Any

from ironic_rules import legacy
from ironic_rules.models.rules import CAPABILITY, ITEM, PATH, TRAIT, LegacyRule
from tests.unit.legacy.world import NODE_UUID, Machine, rule, rule_set
from tests.walking import walking

EXAMPLE: dict[str, Any] = {
    "conditions": [
        {"field": "inventory.disk.*.size", "op": "gt", "value": 4},
        {"field": "inventory.network.*.ipv4", "op": "net", "value": "192.0.2.0/24"},
        {"field": "memory_mb", "op": "ge", "value": 4096}],
    "actions": [
        {"action": "set-capability", "name": "much-memory", "value": "wow"},
        {"action": "append-attribute", "key": "/extra/matched", "value": "much-memory"}]}
INVENTORY = {"disk": [{"size": 40}], "network": [{"ipv4": "192.0.2.7"}]}
BIG, SMALL = ({"inventory": INVENTORY, "memory_mb": size} for size in (8192, 1024))


def _set(*actions: dict[str, Any], **said: Any) -> dict[str, Any]:
    return {"conditions": [{"field": "on", "op": "eq", "value": True}], "actions": list(actions), **said}


def _attribute(path: str, value: Any, **said: Any) -> dict[str, Any]:
    return {"action": "set-attribute", "path": path, "value": value, **said}


ON, OFF = {"on": True}, {"on": False}


class TestExample:
    def test_it_matches_then_memory_is_removed_then_it_is_back(self) -> None:
        machine, rules = Machine({"properties": {"capabilities": "boot_mode:uefi"}}), rule_set([EXAMPLE])
        before = machine.state()
        machine.inspect(rules, BIG)
        with_memory = machine.state()
        assert machine.node["properties"]["capabilities"] == "boot_mode:uefi,much-memory:wow"
        assert machine.node["extra"] == {"matched": ["much-memory"]}
        assert [(value.kind, value.place, value.written) for value in machine.owned] == [
            (CAPABILITY, "much-memory", "wow"), (ITEM, "/extra/matched/-", "much-memory")]

        machine.inspect(rules, SMALL)
        assert machine.state() == before
        assert machine.owned == ()

        machine.inspect(rules, BIG)
        assert machine.state() == with_memory

    def test_what_others_add_meanwhile_stays(self) -> None:
        machine, rules = Machine({"properties": {"capabilities": "boot_mode:uefi"}}), rule_set([EXAMPLE])
        machine.inspect(rules, BIG)
        machine.node["properties"]["capabilities"] += ",raid:1"
        machine.node["extra"]["matched"] += ["much-memory", "other"]
        with_more = machine.state()
        outcome = machine.inspect(rules, BIG)
        assert machine.state() == with_more
        assert not outcome.forgotten

        machine.inspect(rules, SMALL)
        assert machine.node["properties"]["capabilities"] == "boot_mode:uefi,raid:1"
        assert sorted(machine.node["extra"]["matched"]) == ["much-memory", "other"]


class TestOwnership:
    def test_a_value_that_somebody_changed_is_theirs(self) -> None:
        machine = Machine()
        rules = rule_set([_set(_attribute("/extra/a", 1), _attribute("/extra/b", 1),
                               {"action": "set-capability", "name": "c", "value": 1},
                               {"action": "add-trait", "name": "CUSTOM_X"},
                               {"action": "append-attribute", "path": "/extra/l", "value": "v"})])
        machine.inspect(rules, ON)
        machine.node["extra"]["a"] = "operator's"
        machine.node["extra"]["l"] = []
        machine.node["properties"]["capabilities"] = "c:9"
        machine.traits = []
        outcome = machine.inspect(rules, OFF)

        assert machine.node["extra"] == {"a": "operator's", "l": []}
        assert machine.node["properties"] == {"capabilities": "c:9"}
        assert machine.traits == []
        assert machine.owned == ()
        assert [(each.value.kind, each.value.place) for each in outcome.forgotten] == [
            (PATH, "/extra/a"), (CAPABILITY, "c"), (TRAIT, "CUSTOM_X"), (ITEM, "/extra/l/-")]
        assert outcome.forgotten[0].reason == (
            "Legacy rule 00000000-0000-4000-8000-000000000001 does not own the value at /extra/a any more: it was "
            "changed since the rule wrote it.")
        assert not machine.inspect(rules, OFF).forgotten

    def test_the_value_that_was_there_before_returns(self) -> None:
        node = {"extra": {"a": {"deep": [1]}}, "properties": {"capabilities": "c:old,d:1"}, "traits": ["CUSTOM_X"],
                "resource_class": "gold", "driver_info": {}}
        machine = Machine(node)
        before = machine.state()
        rules = rule_set([_set(_attribute("/extra/a", 1), _attribute("/resource_class", None),
                               _attribute("driver_info/x/y/z", 1), _attribute("/extra", {"only": "this"}),
                               {"action": "set-capability", "name": "c", "value": "new"},
                               {"action": "set-capability", "name": "d", "value": None},
                               {"action": "remove-trait", "name": "CUSTOM_X"})])
        machine.inspect(rules, ON)
        assert machine.node["extra"] == {"only": "this"}
        assert machine.node["driver_info"] == {"x": {"y": {"z": 1}}}
        assert machine.node["properties"] == {"capabilities": "c:new"}
        assert machine.traits == []
        machine.inspect(rules, OFF)
        assert machine.state() == before

    @walking("written", [
        None, "", " ", "x", "x:", "a:b", "a:1, b:2", "a:1,a:2", "a:1,,b:2", "b:2,x,a:1"])
    @walking("given", [{"b": "new"}, {"a": "1", "c": "3"}, {"a": None, "b": None, "d": 4}])
    def test_capabilities_return_as_they_were_written(self, written: str | None, given: dict[str, Any]) -> None:
        capabilities = [{"action": "set-capability", "name": name, "value": value} for name, value in given.items()]
        for node, first in (("profile:old,boot_mode:bios", [_attribute("/properties/capabilities", written)]),
                            (written, [])):
            machine = Machine({"properties": {"capabilities": node}})
            before, rules = machine.state(), rule_set([_set(*first, *capabilities)])
            machine.inspect(rules, ON)
            again = machine.inspect(rules, ON, hooks={"/properties/cpus": "4"})
            assert machine.node["properties"].pop("cpus") == "4"
            assert not again.forgotten
            ended = machine.inspect(rules, OFF)
            assert (machine.state(), ended.forgotten) == (before, ())

    def test_capabilities_that_are_written_otherwise_keep_what_others_add_meanwhile(self) -> None:
        machine = Machine({"properties": {"capabilities": "a:1, b:2,a:3"}})
        rules = rule_set([_set({"action": "set-capability", "name": "b", "value": "new"})])
        for now, expected in (("a:3,b:new,raid:1", "a:3,b:2,raid:1"), ("b:new", "b:2")):
            machine.node["properties"]["capabilities"] = "a:1, b:2,a:3"
            machine.inspect(rules, ON)
            assert machine.node["properties"]["capabilities"] == "a:3,b:new"
            machine.node["properties"]["capabilities"] = now
            assert not machine.inspect(rules, OFF).forgotten
            assert machine.node["properties"]["capabilities"] == expected

    def test_two_rules_that_fight_for_one_capability(self) -> None:
        fight = [_set({"action": "set-capability", "name": "p", "value": name}, conditions=[
            {"field": name, "op": "eq", "value": True}]) for name in ("a", "b")]
        machine, rules = Machine({"properties": {"capabilities": "p:0"}}), rule_set(fight)
        for data, expected in (({"a": True, "b": True}, "p:b"), ({"a": True}, "p:a"), ({"b": True}, "p:b"),
                               ({"a": True, "b": True}, "p:b"), ({}, "p:0")):
            machine.inspect(rules, data)
            assert machine.node["properties"]["capabilities"] == expected

    def test_an_operators_value_that_equals_that_of_an_earlier_rule_is_theirs(self) -> None:
        machine, rules = Machine(), rule_set([_set(_attribute("/extra/a", 1)), _set(_attribute("/extra/a", 2))])
        machine.inspect(rules, ON)
        machine.node["extra"]["a"] = 1
        outcome = machine.inspect(rules, OFF)
        assert machine.node["extra"] == {"a": 1}
        assert len(outcome.forgotten) == 2

    def test_own_items_of_a_list_among_equal_ones(self) -> None:
        append = {"action": "append-attribute", "path": "/extra/l", "value": "x"}
        machine, rules = Machine({"extra": {"l": ["x", "y"]}}), rule_set([_set(append, append)])
        machine.inspect(rules, ON)
        assert machine.node["extra"]["l"] == ["x", "y", "x", "x"]
        machine.inspect(rules, ON)
        assert not machine.is_changed
        machine.inspect(rules, OFF)
        assert machine.node["extra"]["l"] == ["x", "y"]

    def test_unique_items_that_were_there_are_not_owned(self) -> None:
        machine = Machine({"extra": {"l": ["x"]}})
        rules = rule_set([_set({"action": "extend-attribute", "path": "/extra/l", "value": "x", "unique": True})])
        machine.inspect(rules, ON)
        assert machine.owned == ()
        machine.inspect(rules, OFF)
        assert machine.node["extra"]["l"] == ["x"]

    def test_a_rule_that_was_replaced(self) -> None:
        machine = Machine()
        machine.inspect(rule_set([_set(_attribute("/extra/old", 1), {"action": "add-trait", "name": "CUSTOM_A"})]), ON)
        machine.inspect(rule_set([_set(_attribute("/extra/new", 1))]), ON)
        assert machine.node["extra"] == {"new": 1}
        assert machine.traits == []

    def test_what_hooks_write_is_not_anybodys_change(self) -> None:
        machine = Machine()
        rules = rule_set([_set(_attribute("/properties/memory_mb", "9"),
                               {"action": "set-capability", "name": "cpu_vt", "value": "false"})])
        hooks = {"/properties/memory_mb": 65536, "/properties/capabilities": "cpu_vt:true"}
        machine.inspect(rules, ON, hooks=hooks)
        assert machine.node["properties"] == {"memory_mb": "9", "capabilities": "cpu_vt:false"}
        again = machine.inspect(rules, ON, hooks=hooks)
        assert not machine.is_changed
        assert not again.forgotten
        machine.inspect(rules, OFF, hooks={**hooks, "/properties/memory_mb": 131072})
        assert machine.node["properties"] == {"memory_mb": 131072, "capabilities": "cpu_vt:true"}

    def test_conditions_read_the_node_without_legacy_rules(self) -> None:
        credentials = {"conditions": [{"field": "node://driver_info.ipmi_username", "op": "is-empty"}],
                       "actions": [_attribute("driver_info/ipmi_username", "admin")]}
        machine, rules = Machine(), rule_set([credentials])
        for _ in range(3):
            machine.inspect(rules)
            assert machine.node["driver_info"] == {"ipmi_username": "admin"}
        assert not machine.is_changed
        machine.node["driver_info"]["ipmi_username"] = "operator"
        outcome = machine.inspect(rules)
        assert machine.node["driver_info"] == {"ipmi_username": "operator"}
        assert len(outcome.forgotten) == 1

    def test_values_of_one_rule_are_taken_back(self) -> None:
        machine = Machine()
        one, two = (rule(number=number, **_set({"action": "set-capability", "name": "p", "value": number},
                                               _attribute("/extra/deep/a", number), _attribute(f"/extra/{number}", 1)))
                    for number in (1, 2))
        machine.inspect(legacy.LegacyRuleSet(map(legacy.compile_rule, (one, two))), ON)
        task = machine.task()
        taken = legacy.take_back(task, machine.owned, {one.uuid})
        assert task.node.changes()["extra"] == {"deep": {"a": 2}, "2": 1}
        assert {value.rule_uuid for value in taken.kept} == {two.uuid}
        legacy.take_back(task, taken.kept)
        assert task.node.read()["extra"] == {}


class TestCleanup:
    def test_an_explicit_value_is_set_before_any_action(self) -> None:
        machine = Machine()
        rules = rule_set([_set(_attribute("/extra/a", "late"), conditions=[]),
                          _set(_attribute("/extra/a", 1, cleanup=0), _attribute("/extra/b", 1, cleanup=0))])
        machine.inspect(rules, OFF)
        assert machine.node["extra"] == {"a": "late", "b": 0}
        machine.inspect(rules, ON)
        assert machine.node["extra"] == {"a": 1, "b": 1}

    def test_any_deletes_what_the_rule_never_set(self) -> None:
        node = {"extra": {"a": "operator's", "l": ["v", "w", "v"], "c": 5}, "properties": {"capabilities": "c:9,d:1"},
                "traits": ["CUSTOM_X", "CUSTOM_Y"], "driver": "redfish"}
        rules = rule_set([_set(_attribute("/extra/a", 1), _attribute("/extra/c", 1, cleanup="clean"),
                               _attribute("/driver", "ipmi"), {"action": "set-capability", "name": "c", "value": 1},
                               {"action": "add-trait", "name": "CUSTOM_X"},
                               {"action": "remove-trait", "name": "CUSTOM_Y"},
                               {"action": "append-attribute", "path": "/extra/l", "value": "v"},
                               {"action": "append-attribute", "path": "/extra/l", "value": "{data[gone]}"})])
        machine = Machine(node)
        machine.inspect(rules, OFF, "any")
        assert machine.node["extra"] == {"l": ["w"], "c": "clean"}
        assert machine.node["properties"] == {"capabilities": "d:1"}
        assert machine.node["driver"] == "redfish"
        assert machine.traits == ["CUSTOM_Y"]
        untouched = Machine(node)
        untouched.inspect(rules, OFF, "off")
        assert untouched.state() == Machine(node).state()

    def test_off_is_ironic_inspector(self) -> None:
        machine = Machine()
        append = {"action": "extend-attribute", "path": "/extra/l", "value": "x"}
        rules = rule_set([_set(_attribute("/extra/a", 1), append)])
        for count in (1, 2):
            machine.inspect(rules, ON, "off")
            assert machine.node["extra"] == {"a": 1, "l": ["x"] * count}
            assert machine.owned == ()
        machine.inspect(rules, OFF, "off")
        assert machine.node["extra"] == {"a": 1, "l": ["x", "x"]}


class TestFailures:
    def test_maintenance_survives_the_draft(self) -> None:
        machine = Machine({"extra": {"a": 1}})
        rules = rule_set([_set(_attribute("/extra/b", 1)),
                          _set({"action": "fail", "message": "only {data[n]}", "maintenance": True})])
        outcome = machine.inspect(rules, {**ON, "n": 4})
        assert outcome.failure is not None
        assert outcome.failure.maintenance_reason == "only 4"
        assert str(outcome.failure.error) == (
            "Legacy rule 00000000-0000-4000-8000-000000000002 failed at /actions/0: only 4")
        assert machine.node["extra"] == {"a": 1}

    @walking("message, expected", [
        ("expected {1,2} disks", "expected {1,2} disks"), ("{}{0} }{ {{x}}", "{}{0} }{ {{x}}"),
        ("{data.n}, {node[name]}, {data}", "{data.n}, {node[name]}, {data}"), ("{1,2}{data[n]}}", "{1,2}4}"),
        ("{{data[n]}} {{data[a].b}}", "{{data[n]}} {{data[a].b}}")])
    def test_braces_of_a_message_are_text_unless_they_are_a_template(self, message: str, expected: str) -> None:
        outcome = Machine().inspect(rule_set([_set({"action": "fail", "message": message, "maintenance": True})]),
                                    {**ON, "n": 4}, explain=True)
        assert outcome.failure is not None
        assert outcome.failure.maintenance_reason == expected

    def test_a_message_without_its_data(self) -> None:
        rules = rule_set([_set({"action": "fail", "message": "{data[gone]}! {1,2}", "maintenance": True})])
        failure = Machine().inspect(rules, ON).failure
        assert failure is not None
        assert failure.maintenance_reason == "<missing data[gone]>! {1,2}"

    @walking("value", ["{data[gone]}", "x {data[gone]}", {"{data[list]}": 1}])
    def test_an_action_without_its_data_fails(self, value: Any) -> None:
        outcome = Machine().inspect(rule_set([_set(_attribute("/extra/a", value))]), {**ON, "list": [1]})
        assert outcome.failure is not None
        assert outcome.failure.maintenance_reason is None

    def test_a_stored_rule_that_does_not_compile_fails_the_nodes_of_its_scope(self) -> None:
        broken = legacy.compile_stored(LegacyRule(uuid=NODE_UUID, scope="rack1", actions=[{"action": "fail"}]))
        assert isinstance(broken, legacy.BrokenLegacyRule)
        rules = legacy.LegacyRuleSet([broken])
        assert Machine().inspect(rules).failure is None
        for node in ({"inspection_scope": "rack1"}, {"properties": {"inspection_scope": "rack1"}}):
            failure = Machine(node).inspect(rules).failure
            assert failure is not None
            assert "/actions/0/message" in str(failure.error)

    def test_secrets_are_masked_and_masks_not_written(self) -> None:
        node = {"driver_info": {"ipmi_password": "s3cret"}}
        read = {"conditions": [{"field": "node://driver_info.ipmi_password", "op": "eq", "value": "s3cret"}],
                "actions": [_attribute("/extra/guessed", True)]}
        machine = Machine(node)
        machine.inspect(rule_set([read]))
        assert machine.node["extra"] == {}
        failure = machine.inspect(rule_set([_set(_attribute("/driver_info/a_password", "{data[password]}"))]),
                                  {**ON, "password": "x"}).failure
        assert failure is not None


class TestTraces:
    def test_explained(self) -> None:
        rules = rule_set([
            _set(_attribute("/driver_info/ipmi_password", "s3cret")),
            {"conditions": [{"field": "word", "op": "lt", "value": 3}], "actions": [_attribute("/extra/a", 1)]},
            {"conditions": [{"field": "gone", "op": "eq", "value": 3}], "actions": [_attribute("/extra/a", 1)]}])
        matched, unfit, missing = Machine().inspect(rules, {**ON, "word": "x"}, explain=True).traces
        assert matched.changes == {"node": [{"op": "add", "path": "/driver_info/ipmi_password", "value": "******"}]}
        assert [(action.op, action.times) for action in matched.actions] == [("set-attribute", 1)]
        assert unfit.conditions[0].outcome is None
        assert unfit.conditions[0].note == "the value is not an integer"
        assert missing.conditions[0].note == "{data[gone]} is missing"

    @walking("field, op, value, outcome, why, detail", [
        ("n", "eq", 40, True, "equal", None), ("n", "ne", 40, False, "equal", None),
        ("n", "eq", "40", False, "type", "integer and string"), ("text", "eq", 40, True, "equal", None),
        ("n", "le", 39, False, "greater", None), ("n", "ge", 41, False, "less", None),
        ("word", "gt", 3, None, "cannot be evaluated", None),
        ("a", "net", "192.0.2.0/24", False, "not in network", None),
        ("word", "in-net", "192.0.2.0/24", None, "not an address", "string"),
        ("word", "matches", "y", False, "no match", None), ("gone.x", "eq", 1, None, "missing", "data[gone]"),
        ("gone", "is-empty", None, True, "missing", "data[gone]"), ("no[*]", "eq", 1, None, "missing", "no[*]"),
        ("node://driver", "eq", "fake-hardware", True, "equal", None)])
    def test_a_condition_says_why_it_has_its_outcome(self, field: str, op: str, value: Any, outcome: bool | None,
                                                     why: str, detail: str | None) -> None:
        said = {"field": field, "op": op} | ({} if value is None else {"value": value})
        data = {"n": 40, "text": "40", "word": "x", "a": "10.0.0.1"}
        trace, = Machine({"driver": "fake-hardware"}).inspect(
            rule_set([{"conditions": [said], "actions": [_attribute("/extra/a", 1)]}]), data, explain=True).traces
        condition = trace.conditions[0]
        assert (condition.outcome, condition.why, condition.detail) == (outcome, why, detail)
        shown = [argument.value for argument in condition.arguments if argument.name == "value"]
        assert shown == ([] if value is None or condition.multiple else [value])

    def test_values_of_secrets_are_masked_in_explanations_whatever_is_read(self) -> None:
        conditions = [{"field": field, "op": "ne", "value": "x"} for field in (
            "users[*].password", "users[0].password", "users[*]")]
        said = {"conditions": conditions, "actions": [_attribute("/extra/a", "{data[users][0][password]} and more")]}
        guessing = {"conditions": [{"field": "guesses[*]", "op": "ne", "value": "x"}],
                    "actions": [_attribute("/extra/b", "{data[guesses]}")]}
        rules = legacy.LegacyRuleSet([legacy.compile_rule(rule(number=number, **each)) for number, each in (
            (1, said), (2, guessing))], mask_secrets="never")
        trace, other = Machine().inspect(rules, {"users": [{"password": "s3cret-1"}], "guesses": ["s3cret-1", "no"]},
                                         explain=True).traces
        assert trace.matched
        assert "s3cret" not in str(trace)
        assert trace.conditions[0].items[0].arguments[0].value == "******"
        # A text that a machine has sent is not hidden because it equals a secret.
        assert [item.arguments[0].value for item in other.conditions[0].items] == ["s3cret-1", "no"]
        assert other.changes["node"][0]["value"] == ["s3cret-1", "no"]

    def test_the_data_are_made_only_if_a_rule_asks_and_once(self) -> None:
        asked: list[int] = []

        def data() -> dict[str, Any]:
            asked.append(1)
            return {}

        node_only = {"conditions": [{"field": "node://extra.x", "op": "is-empty"}],
                     "actions": [_attribute("/extra/a", 1)]}
        rule_set([node_only]).run(Machine().task(), data)
        assert not asked
        rule_set([_set(_attribute("/extra/a", "{data[b]}")), EXAMPLE, node_only]).run(Machine().task(), data)
        assert asked == [1]

    def test_changed_sets(self) -> None:
        first, second = (legacy.compile_rule(rule(number=number, **_set(_attribute("/extra/a", number), conditions=[])))
                         for number in (1, 2))
        rules = legacy.LegacyRuleSet([second])
        assert len(rules.changed([], [first])) == 2
        machine = Machine()
        machine.inspect(rules.changed([], [first]))
        assert machine.node["extra"] == {"a": 2}
        machine.inspect(rules.changed([second], [first]))
        assert machine.node["extra"] == {"a": 1}
        assert not legacy.LegacyRuleSet()
