"""Random legacy rules over random data and nodes: what is promised of the four passes holds for all of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ironic_rules import legacy
from tests import strategies
from tests.unit.legacy.world import Machine, rule, rule_set

pytestmark = pytest.mark.slow

EXAMPLES = settings(max_examples=strategies.wanted(40), deadline=None, suppress_health_check=list(HealthCheck))
#: Few names and values, so that rules meet each other, and what was there before.
_VALUES = st.sampled_from([1, 2, "x", "1", True, None, ["a"], {"k": 1}, {"k": {"m": 2}}, "{data[n]}"])
_ITEMS = st.sampled_from(["a", "b", 1, True, {"k": 1}])
_PATHS = ("/extra/a", "/extra/a/k", "/extra/a/k/m", "/extra/b", "/extra", "/properties/cpus", "/description",
          "/extra/l/-", "/extra/l/0", "/properties/new/deep/er", "/driver", "/extra/hooked", "/properties/capabilities")
#: Also those that are not written as rules write them.
_WRITTEN = [None, "", "a:9,z:1", "x", "a:1, b:2", "a:1,,a:2"]
_LISTS = ("/extra/l", "/extra/m/n", "/extra/a")
_TRAITS = st.sampled_from(["CUSTOM_A", "CUSTOM_B"])
_CAPABILITIES = st.sampled_from(["a", "b", "c"])


def _path_value(path: str) -> st.SearchStrategy[Any]:
    if path == "/extra":
        return st.sampled_from([{}, {"a": 1}, {"l": ["z"]}])
    if path == "/properties/capabilities":
        return st.sampled_from(_WRITTEN)
    return st.sampled_from(["ipmi", "redfish"]) if path in ("/driver", "/description") else _VALUES


@st.composite
def _set_attribute(draw: Any) -> dict[str, Any]:
    path = draw(st.sampled_from(_PATHS))
    made = {"action": "set-attribute", "path": path, "value": draw(_path_value(path))}
    return {**made, **draw(st.one_of(st.just({}), st.fixed_dictionaries({"cleanup": _path_value(path)})))}


_ACTIONS = st.one_of(
    _set_attribute(),
    st.fixed_dictionaries({"action": st.sampled_from(["append-attribute", "extend-attribute"]),
                           "path": st.sampled_from(_LISTS), "value": _ITEMS, "unique": st.booleans()}),
    st.fixed_dictionaries({"action": st.just("set-capability"), "name": _CAPABILITIES,
                           "value": st.sampled_from(["1", "2", 3, None, "{data[n]}"])}),
    st.fixed_dictionaries({"action": st.sampled_from(["add-trait", "remove-trait"]), "name": _TRAITS}))
_CONDITIONS = st.one_of(
    st.fixed_dictionaries({
        "field": st.sampled_from(["n", "t", "l[*]", "missing", "o.k", "node://extra.a", "node://extra.l[*]",
                                  "node://properties.capabilities", "node://driver"]),
        "op": st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "contains", "matches"]),
        "value": st.sampled_from(["1", "2", "x", "ipmi"]), "invert": st.booleans(),
        "multiple": st.sampled_from(["any", "all", "first"])}),
    st.fixed_dictionaries({"field": st.sampled_from(["n", "t", "l[*]", "missing"]),
                           "op": st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]),
                           "value": st.sampled_from([1, 2, 1.5, True]), "invert": st.booleans()}),
    st.fixed_dictionaries({"field": st.sampled_from(["n", "t", "missing", "node://extra.a", "node://extra.b"]),
                           "op": st.just("is-empty"), "invert": st.booleans()}))
_RULES = st.lists(st.fixed_dictionaries({
    "conditions": st.lists(_CONDITIONS, max_size=2), "actions": st.lists(_ACTIONS, min_size=1, max_size=3),
    "scope": st.sampled_from([None, None, None, "", "rack1"])}), max_size=5)
_DATA = st.fixed_dictionaries({"n": st.sampled_from([1, 2, "1", "", None, True]),
                               "t": st.sampled_from(["x", "1.5", []]),
                               "l": st.lists(st.sampled_from([1, 2, "x", None]), max_size=3),
                               "o": st.sampled_from([{}, {"k": "x"}])})
_NODES = st.fixed_dictionaries({
    "extra": st.sampled_from([
        {}, {"a": 1}, {"a": {"k": 5}}, {"l": ["a", "z", "a"]}, {"l": None}, {"a": ["q"], "b": 2}]),
    "properties": st.sampled_from([{}, {"cpus": 4, "capabilities": ""}, {"capabilities": {"b": "1"}},
                                   *({"capabilities": written} for written in _WRITTEN)]),
    "traits": st.lists(_TRAITS, unique=True), "inspection_scope": st.sampled_from([None, "rack1"]),
    "power_interface": st.sampled_from([None, "ipmitool"])})
#: Values of hooks, which differ from those of rules: otherwise the two could not be distinguished.
_HOOKS = st.fixed_dictionaries({"/extra/hooked": st.sampled_from(["from hook 1", "from hook 2"])})


@EXAMPLES
@given(_RULES, _NODES, _DATA, _HOOKS)
def test_inspecting_twice_is_inspecting_once(rules: Any, node: Any, data: Any, hooks: Any) -> None:
    machine = Machine(node)
    first = machine.inspect(rule_set(rules), data, hooks=hooks)
    once, owned = machine.state(), machine.owned
    second = machine.inspect(rule_set(rules), data, hooks=hooks)

    assert machine.state() == once
    assert second.owned == owned
    assert not second.forgotten
    assert not machine.is_changed
    assert (first.failure is None) == (second.failure is None)


@EXAMPLES
@given(_RULES, _NODES, _DATA, _DATA, _HOOKS, _HOOKS)
def test_the_result_does_not_depend_on_the_last_inspection(
        rules: Any, node: Any, before: Any, now: Any, hooks_before: Any, hooks: Any) -> None:
    machine, new = Machine(node), Machine(node)
    first = machine.inspect(rule_set(rules), before, hooks=hooks_before)
    second = machine.inspect(rule_set(rules), now, hooks=hooks)
    fresh = new.inspect(rule_set(rules), now, hooks=hooks)

    assert second.failure is None or fresh.failure is not None
    if not (first.failure or second.failure):
        assert machine.state() == new.state()
        assert [value.place for value in machine.owned] == [value.place for value in new.owned]


@EXAMPLES
@given(_RULES, _NODES, _DATA)
def test_without_rules_nothing_remains(rules: Any, node: Any, data: Any) -> None:
    machine, untouched = Machine(node), Machine(node)
    machine.inspect(rule_set(rules), data)
    machine.inspect(rule_set([]), data)

    assert machine.state() == untouched.state()
    assert machine.owned == ()


@EXAMPLES
@given(_RULES, _NODES, _DATA, st.integers(0, 4))
def test_one_rule_is_taken_back_as_if_it_had_never_been(rules: Any, node: Any, data: Any, which: int) -> None:
    made = [rule(**said, number=number) for number, said in enumerate(rules, 1)]
    others = [each for number, each in enumerate(made) if number != which]
    machine, without = Machine(node), Machine(node)
    if machine.inspect(_set(made), data).failure or without.inspect(_set(others), data).failure:
        return
    if which < len(made):
        task = machine.task()
        taken = legacy.take_back(task, machine.owned, {made[which].uuid})
        assert made[which].uuid not in {value.rule_uuid for value in taken.kept}
        machine.node.update(copy.deepcopy(task.node.changes()))
        machine.traits = sorted(task.node.traits)
        machine.owned = taken.kept
    machine.inspect(_set(others), data)

    assert machine.state() == without.state()


@EXAMPLES
@given(_RULES, _NODES, _DATA)
def test_the_index_finds_the_rules_that_match(rules: Any, node: Any, data: Any) -> None:
    found = Machine(node).inspect(rule_set(rules), data)
    explained = Machine(node).inspect(rule_set(rules), data, explain=True)

    assert [trace.uuid for trace in found.traces] == [trace.uuid for trace in explained.traces if trace.matched]


@EXAMPLES
@given(_RULES, _NODES, _DATA)
def test_a_failure_leaves_everything_as_it_was(rules: Any, node: Any, data: Any) -> None:
    machine = Machine(node)
    machine.inspect(rule_set(rules), data)
    task = machine.task()
    before = task.node.read()
    failing = [*rules, {"actions": [{"action": "fail", "message": "no", "maintenance": True}]}]
    outcome = rule_set(failing).run(task, lambda: data, machine.owned)

    assert outcome.failure is not None
    assert outcome.owned == machine.owned
    assert task.node.changes() == {}
    assert task.node.trait_changes() is None
    assert task.node.read() == before


def _set(rules: Any) -> legacy.LegacyRuleSet:
    return legacy.LegacyRuleSet(map(legacy.compile_rule, rules))
