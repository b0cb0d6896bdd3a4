"""Rules are skipped exactly when they cannot match."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task
from ironic_rules.rules import index
from ironic_rules.rules.operators import OPERATORS
from tests.unit.rules import world

EQ = OPERATORS.get("eq").call


def lookup_of(condition: dict[str, Any]) -> index.Lookup | None:
    """Return the index lookup of a condition."""
    return world.compiled(world.rule(conditions=[condition])).conditions[0].lookup


@pytest.mark.parametrize(("condition", "keys"), [
    ({"op": "eq", "args": ["{inventory[a][b]}", "x"]}, {"x"}),
    ({"op": "eq", "args": ["x", "{inventory.a.b}"]}, {"x"}),
    ({"op": "eq", "args": {"values": ["{inventory[a][b]}", None]}}, {(None,)}),
    ({"op": "eq", "args": ["{inventory[a].b}", 1.0]}, {(float, 1)}),
    ({"op": "one-of", "args": ["{inventory[a][b]}", ["x", True]]}, {"x", (bool, True)}),
    ({"op": "one-of", "args": {"values": [], "value": "{inventory[a][b]}"}}, set()),
])
def test_comparisons_of_the_inventory_with_constants_are_looked_up(condition: dict[str, Any], keys: set[Any]) -> None:
    found = lookup_of(condition)
    assert found is not None
    assert found.steps == ("a", "b")
    assert found.keys == keys


@pytest.mark.parametrize("condition", [
    {"op": "!eq", "args": ["{inventory[a]}", "x"]},
    {"op": "eq", "args": ["{inventory[a]}", "x"], "loop": [1]},
    {"op": "eq", "args": ["{inventory[a]}", "x", "x"]},
    {"op": "eq", "args": {"values": ["{inventory[a]}", "1"], "force_strings": True}},
    {"op": "eq", "args": {"values": "{inventory[a]}"}},
    {"op": "eq", "args": ["{inventory[a]}", "{inventory[b]}"]},
    {"op": "eq", "args": ["{inventory[a]}", ["x"]]},
    {"op": "eq", "args": ["{inventory[a]}", {}]},
    {"op": "eq", "args": ["-{inventory[a]}", "-x"]},
    {"op": "eq", "args": ["{plugin_data[a]}", "x"]},
    {"op": "eq", "args": ["{node.name}", "x"]},
    {"op": "eq", "args": ["x", "x"]},
    {"op": "one-of", "args": ["{inventory[a]}", "{inventory[b]}"]},
    {"op": "one-of", "args": ["{inventory[a]}", ["x", ["y"]]]},
    {"op": "one-of", "args": ["x", ["x"]]},
    {"op": "gt", "args": ["{inventory[a]}", 1]},
])
def test_other_conditions_are_not(condition: dict[str, Any]) -> None:
    assert lookup_of(condition) is None


class Text(str):
    """A string of a type that is not JSON's."""


class Number(int):
    """An integer of a type that is not JSON's."""


SCALARS = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 0.0, 1.0, -0.0, 2**53, 2**53 + 1, float(2**53), "", "1", "None", "x"]),
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=2))
FOUND = st.one_of(SCALARS, st.just(float("nan")), st.builds(Text, st.just("x")), st.builds(Number, st.just(1)),
                  st.lists(SCALARS, max_size=1), st.dictionaries(st.text(max_size=1), SCALARS, max_size=1))


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(FOUND, SCALARS)
def test_keys_are_equal_exactly_if_the_values_are(found: Any, constant: Any) -> None:
    assert (index.key(found) == index.key(constant)) is EQ(found, constant)


class Counting(dict[str, Any]):
    """Counts how often it is read."""

    reads = 0

    def __getitem__(self, name: str) -> Any:
        self.reads += 1
        return super().__getitem__(name)


def test_a_value_is_read_once_for_all_rules() -> None:
    vendor = Counting(manufacturer="Dell Inc.")
    facts = world.facts()
    facts.inventory["system_vendor"] = vendor  # type: ignore[index]
    traces = world.run(*[
        world.rule(conditions=[{"op": "eq", "args": ["{inventory[system_vendor][manufacturer]}", f"Other {number}"]}])
        for number in range(100)], given=facts)
    assert [trace.matched for trace in traces] == [False] * 100
    assert vendor.reads == 1


def test_the_rarest_constant_decides() -> None:
    common = {"op": "eq", "args": ["{inventory[cpu][architecture]}", "x86_64"]}
    rare = [{"op": "eq", "args": ["{inventory[hostname]}", f"rack{number}"]} for number in range(3)]
    looked_up = [lookup_of(condition) for condition in (common, *rare)]
    found = index.Index([([looked_up[0], other], False) for other in looked_up[1:]] + [([looked_up[0], None], False)])
    assert found.chosen == [1, 1, 1, 0]


def scope_rules() -> list[dict[str, Any]]:
    """Return rules of which one moves the node from scope a to scope b."""
    def note(name: str, priority: int, **values: Any) -> dict[str, Any]:
        return world.rule(description=name, priority=priority, actions=[
            {"op": "extend-plugin-data", "args": ["ran", name]}], **values)

    arch = {"op": "eq", "args": ["{inventory[cpu][architecture]}", "x86_64"]}
    moves = world.rule(description="moves", priority=5, scope="a", conditions=[arch], actions=[
        {"op": "set-attribute", "args": ["/inspection_scope", "b"]}])
    return [
        note("a before", 9, scope="a", conditions=[arch]), note("b before", 8, scope="b"), note("all", 7), moves,
        note("a after", 4, scope="a"), note("b after", 3, scope="b", conditions=[arch]),
        note("b never", 2, scope="b", conditions=[{"op": "eq", "args": ["{inventory[cpu][architecture]}", "arm"]}]),
        note("all after", 1),
    ]


@pytest.mark.parametrize("explain", [False, True])
def test_a_rule_can_move_the_node_to_another_scope(explain: bool) -> None:
    facts = world.facts(node={"inspection_scope": "a"})
    traces = world.run(*scope_rules(), given=facts, explain=explain)
    assert facts.plugin_data["ran"] == ["a before", "all", "b after", "all after"]
    assert [(trace.description, trace.matched) for trace in traces] == [
        ("a before", True), ("all", True), ("moves", True), ("b after", True), ("b never", False), ("all after", True)]


@pytest.mark.parametrize(("mode", "sensitive", "matched"), [
    ("always", False, "******"), ("always", True, "******"), ("never", False, "s3cret"), ("never", True, "s3cret"),
    ("sensitive", False, "******"), ("sensitive", True, "s3cret"),
])
def test_secrets_are_looked_up_as_the_rule_sees_them(mode: str, sensitive: bool, matched: str) -> None:
    found = world.run(*[
        world.rule(description=value, sensitive=sensitive,
                   conditions=[{"op": "eq", "args": ["{inventory[bmc_password]}", value]}])
        for value in ("s3cret", "******")
    ], given=world.facts(inventory={"bmc_password": "s3cret"}), mask_secrets=mode)
    assert [trace.description for trace in found if trace.matched] == [matched]


VALUES = st.sampled_from([None, True, 1, 1.0, "1", "x", "******"])
PATHS = st.sampled_from([
    "{inventory[a]}", "{inventory.a}", "{inventory[b][c]}", "{inventory[l][0]}", "{inventory[token]}",
    "{inventory[nosuch]}", "{inventory[b]}", "{inventory[b][token][c]}", "{plugin_data[ran]}", "{node.extra[ran]}",
    "{node.inspection_scope}"])
DATA = st.recursive(VALUES, lambda inner: st.one_of(
    st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["c", "token"]), inner, max_size=2)), max_leaves=4)
INVENTORIES = st.fixed_dictionaries({"token": VALUES}, optional={"a": DATA, "b": DATA, "l": DATA})
MARKS = st.sampled_from(["", "", "!"])


def comparisons() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for conditions, most of which can be looked up."""
    eq = st.tuples(MARKS, PATHS, VALUES).map(lambda parts: {"op": parts[0] + "eq", "args": [parts[1], parts[2]]})
    turned = st.tuples(PATHS, VALUES).map(lambda parts: {"op": "eq", "args": {"values": [parts[1], parts[0]]}})
    forced = st.tuples(PATHS, VALUES).map(
        lambda parts: {"op": "eq", "args": {"values": list(parts), "force_strings": True}})
    one_of = st.tuples(MARKS, PATHS, st.lists(VALUES, max_size=3)).map(
        lambda parts: {"op": parts[0] + "one-of", "args": [parts[1], parts[2]]})
    other = PATHS.map(lambda path: {"op": "is-none", "args": [path]})
    looped = VALUES.map(lambda value: {
        "op": "eq", "args": ["{item}", value], "loop": ["{inventory[a]}", "{inventory[token]}"], "multiple": "any"})
    repeated = st.tuples(PATHS, VALUES, st.sampled_from([[], [1]]), st.sampled_from(["any", "all"])).map(
        lambda parts: {"op": "eq", "args": list(parts[:2]), "loop": parts[2], "multiple": parts[3]})
    return st.one_of(eq, eq, turned, forced, one_of, one_of, other, looped, repeated)


ACTIONS = st.one_of(
    st.sampled_from(["a", "x", 1]).map(lambda value: {"op": "set-attribute", "args": ["/extra/ran", value]}),
    st.sampled_from(["1", "x"]).map(lambda value: {"op": "set-plugin-data", "args": ["ran", value]}),
    st.just({"op": "extend-plugin-data", "args": ["all", "{inventory}"]}),
    st.sampled_from(["a", "b", None]).map(
        lambda value: {"op": "set-attribute", "args": ["/inspection_scope", value]}),
    st.sampled_from([{"op": "fail", "args": ["no"]}, {"op": "log", "args": ["{inventory[token]}"]}]),
)
RULES = st.fixed_dictionaries({
    "conditions": st.lists(comparisons(), max_size=3), "actions": st.lists(ACTIONS, min_size=1, max_size=2),
    "priority": st.integers(0, 3), "scope": st.sampled_from([None, None, "a", "b"]), "sensitive": st.booleans()})


def outcome(rule_set: rules.RuleSet, inventory: dict[str, Any], scope: str | None, explain: bool) -> list[Any]:
    """Run rules and return all visible results; with explanations every condition of every rule is evaluated."""
    node = NodeDraft({"extra": {}, "inspection_scope": scope})
    facts = rules.Facts(Task(node), copy.deepcopy(inventory), {})
    failure = None
    try:
        traces = rule_set.run("main", facts, explain=explain)
    except RuleFailed as exc:
        failure, traces = str(exc), exc.traces  # type: ignore[attr-defined]
    seen = [(trace.uuid, trace.matched, trace.error) for trace in traces]
    return [failure, seen, node.read(), facts.plugin_data, facts.messages, facts.inventory == inventory]


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(st.lists(RULES, max_size=6), INVENTORIES, st.sampled_from([None, "a", "b", "c"]),
       st.sampled_from(["always", "never", "sensitive"]))
def test_the_index_changes_nothing(bodies: list[dict[str, Any]], inventory: dict[str, Any], scope: str | None,
                                   mode: str) -> None:
    compiled = [
        world.compiled(world.rule(uuid=f"00000000-0000-4000-8000-{number:012}", **body))
        for number, body in enumerate(bodies)]
    rule_set = rules.RuleSet(compiled, mask_secrets=mode)
    expected = outcome(rule_set, inventory, scope, explain=True)
    assert outcome(rule_set, inventory, scope, explain=False) == expected
    assert expected[-1]
