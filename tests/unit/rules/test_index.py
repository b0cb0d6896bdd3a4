"""Rules are skipped exactly when they cannot match."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task
from ironic_rules.rules import index, operators, phase, regex
from ironic_rules.rules.operators import OPERATORS
from ironic_rules.rules.regex import Pattern, PatternSets
from tests import strategies
from tests.unit.rules import world
from tests.walking import walking

EQ = OPERATORS.get("eq").call


def lookup_of(condition: dict[str, Any]) -> index.Lookup | None:
    """Return the index lookup of a condition."""
    return world.compiled(world.rule(conditions=[condition])).conditions[0].lookup


def forms(condition: dict[str, Any]) -> list[Any]:
    """Return what the lookup of a condition tests, and how."""
    found = lookup_of(condition)
    assert found is not None
    operand = getattr(found.operand, "text", found.operand)
    return [found.root, found.steps, found.test, operand, found.inverted]


AB = ["inventory", ("a", "b")]


@walking("condition, form", [
    ({"op": "eq", "args": ["{inventory[a][b]}", "x"]}, [*AB, "equal", {"x"}, False]),
    ({"op": "eq", "args": ["x", "{inventory.a.b}"]}, [*AB, "equal", {"x"}, False]),
    ({"op": "! eq", "args": ["{inventory[a].b}", 1.0]}, [*AB, "equal", {(float, 1)}, True]),
    ({"op": "eq", "args": ["{inventory.a.b}", [True]]}, [*AB, "equal", {(list, ((bool, True),))}, False]),
    ({"op": "one-of", "args": ["{inventory[a][b]}", ["x", True]]}, [*AB, "equal", {"x", (bool, True)}, False]),
    ({"op": "one-of", "args": {"values": [], "value": "{inventory[a][b]}"}}, [*AB, "equal", set(), False]),
    ({"op": "lt", "args": ["{inventory.a.b}", 1]}, [*AB, "below", 1, False]),
    ({"op": "lt", "args": [1, "{inventory.a.b}"]}, [*AB, "above", 1, False]),
    ({"op": "!gt", "args": ["{inventory.a.b}", "x"]}, [*AB, "above", "x", True]),
    ({"op": "gt", "args": [True, "{inventory.a.b}"]}, [*AB, "below", None, False]),
    ({"op": "in-net", "args": ["{inventory.a.b}", "10.0.0.9/8"]},
     [*AB, "network", (4, 10 << 24, (11 << 24) - 1), False]),
    ({"op": "!is-true", "args": ["{inventory.a.b}"]}, [*AB, "predicate", operators.is_true, True]),
    ({"op": "matches", "args": ["{inventory.a.b}", "x.*"]}, [*AB, "full match", "x.*", False]),
    ({"op": "contains", "args": ["{plugin_data.a}", "x"]}, ["plugin_data", ("a",), "search", "x", False]),
])
def test_comparisons_of_one_path_with_a_constant_are_looked_up(condition: dict[str, Any], form: list[Any]) -> None:
    assert forms(condition) == form


@walking("condition", [
    {"op": "eq", "args": ["{inventory[a]}", "x"], "loop": [1]},
    {"op": "eq", "args": {"values": ["{inventory[a]}", None]}},
    {"op": "one-of", "args": ["{inventory[a]}", ["x", None]]},
    {"op": "eq", "args": ["{inventory[a]}", "x", "x"]},
    {"op": "eq", "args": ["{inventory[a]}"]},
    {"op": "eq", "args": {"values": ["{inventory[a]}", "1"], "force_strings": True}},
    {"op": "eq", "args": {"values": "{inventory[a]}"}},
    {"op": "eq", "args": ["{inventory[a]}", "{inventory[b]}"]},
    {"op": "eq", "args": ["-{inventory[a]}", "-x"]},
    {"op": "eq", "args": ["{node.name}", "x"]},
    {"op": "eq", "args": ["x", "x"]},
    {"op": "one-of", "args": ["{inventory[a]}", "{inventory[b]}"]},
    {"op": "one-of", "args": ["x", ["x"]]},
    {"op": "in-net", "args": ["{inventory[a]}", "{inventory[b]}"]},
    {"op": "matches", "args": ["{inventory[a]}", "{inventory[b]}"]},
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
                  st.lists(SCALARS, max_size=1), st.dictionaries(st.text(max_size=1), SCALARS, max_size=1),
                  st.sampled_from([[1], [True], [1.0], {"a": [0]}, {"a": [False]}, {"a": [0.0]}]))


@pytest.mark.slow
@settings(max_examples=strategies.wanted(150), deadline=None)
@given(FOUND, FOUND)
def test_keys_are_equal_exactly_if_the_values_are(found: Any, constant: Any) -> None:
    # A value that is not equal to itself is no constant.
    assert EQ(constant, constant) is False or (index.hash_key(found) == index.hash_key(constant)) is EQ(found, constant)


class Counting(dict[str, Any]):
    """Counts how often it is read."""

    reads = 0

    def __getitem__(self, name: str) -> Any:
        self.reads += 1
        return super().__getitem__(name)


MAKER = "{inventory[system_vendor][manufacturer]}"


def test_a_value_is_read_once_for_all_rules() -> None:
    vendor = Counting(manufacturer="Dell Inc.")
    facts = world.facts()
    facts.inventory["system_vendor"] = vendor  # type: ignore[index]
    assert world.run(*[
        world.rule(conditions=[condition]) for number in range(100) for condition in (
            {"op": "eq", "args": [MAKER, f"Other {number}"]}, {"op": "gt", "args": [MAKER, f"E{number}"]},
            {"op": "contains", "args": [MAKER, f"other {number}"]}, {"op": "!is-empty", "args": [f"x{number}"]})
        if condition["op"] != "!is-empty"], given=facts) == []
    assert vendor.reads == 1


def test_a_condition_that_rules_share_is_evaluated_once() -> None:
    """The rule is not in the index, because text around a template has no lookup."""
    vendor = Counting(manufacturer="Dell Inc.")
    facts = world.facts()
    facts.inventory["system_vendor"] = vendor  # type: ignore[index]
    shared = {"op": "eq", "args": [f"{MAKER}!", "Dell Inc.!"]}
    own = [{"op": "!eq", "args": ["{inventory[hostname]}", f"rack{number}"]} for number in range(50)]
    traces = world.run(*[world.rule(conditions=[shared, one]) for one in own], given=facts)
    assert len(traces) == 50
    assert vendor.reads == 1


def test_a_shared_condition_is_evaluated_again_after_a_change() -> None:
    unset = {"op": "is-none", "args": ["{node.resource_class}"]}
    traces = world.run(*[
        world.rule(description=name, conditions=[unset], actions=[
            {"op": "set-attribute", "args": ["/resource_class", name]}]) for name in ("first", "second")])
    assert [trace.description for trace in traces] == ["first"]


def test_the_rarest_constant_decides() -> None:
    common = {"op": "eq", "args": ["{inventory[cpu][architecture]}", "x86_64"]}
    rare = [{"op": "eq", "args": ["{inventory[hostname]}", f"rack{number}"]} for number in range(3)]
    half = {"op": "gt", "args": ["{inventory[cpu][count]}", 1]}
    found = [lookup_of(condition) for condition in (common, half, *rare)]
    chooser = index.Chooser(index.Index())
    assert [chooser.choose([*found[:2], None, other], False) for other in found[2:]] == [0, 3, 3]
    assert [chooser.choose(found[:2], False), chooser.choose(found[1:2], False), chooser.choose([None], False)] == [
        0, 0, None]


def written(paths: int, *conditions: dict[str, Any]) -> list[str | None]:
    """Return which of two rules after one that writes plugin data match; many others read what it writes."""
    found = world.run(
        world.rule(description="writer", priority=9, actions=[
            {"op": "set-plugin-data", "args": {"path": "site.rack", "value": 7}},
            {"op": "unset-plugin-data", "args": {"path": "old"}}]),
        *[world.rule(description=f"other {number}", conditions=[
            {"op": "eq", "args": [f"{{plugin_data[site][{number}]}}", 1]}]) for number in range(paths)],
        *[world.rule(description=f"rule {place}", conditions=[condition])
          for place, condition in enumerate(conditions)],
        given=world.facts(plugin_data={"old": 1, "site": {"rack": 6}}))
    return [trace.description for trace in found[1:]]


@walking("paths", [0, 3, 2 * phase.MAX_PATHS])
def test_plugin_data_are_looked_up_as_earlier_rules_left_them(paths: int) -> None:
    seven, six, gone, whole = (
        {"op": "eq", "args": ["{plugin_data.site.rack}", 7]}, {"op": "eq", "args": ["{plugin_data.site.rack}", 6]},
        {"op": "is-none", "args": ["{plugin_data.old}"]},
        {"op": "eq", "args": ["{plugin_data}", {"site": {"rack": 7}}]})
    assert written(paths, seven, six) == ["rule 0"]
    assert written(paths, gone, six, whole) == ["rule 0", "rule 2"]


def test_rules_are_added_and_removed_without_the_others() -> None:
    """A set that has changed many times answers as one that was made of the same rules at once."""
    made = [world.compiled(one) for one in varied(120)]
    whole = rules.RuleSet(made[::3], mask_secrets="always")
    changed = rules.RuleSet(made[:40], mask_secrets="always")
    kept = changed.rules("main")
    changed = changed.changed([rule for rule in made[:40] if rule not in made[::3]], made[40::1])
    changed = changed.changed([rule for rule in made[40:] if rule not in made[::3]], []).tidied()
    assert changed.rules("main") == whole.rules("main")
    assert ran(changed) == ran(whole)
    assert all(any(rule is one for one in made) for rule in kept)


def varied(number: int) -> list[dict[str, Any]]:
    """Return rules with many kinds of conditions."""
    bodies = []
    for count in range(number):
        conditions = [
            {"op": "!eq", "args": ["{inventory[hostname]}", f"rack{count}"]},
            {"op": "gt", "args": ["{inventory[cpu][count]}", count]},
            {"op": "matches", "args": ["{inventory[hostname]}", f"rack[0-9]+-node{count % 5}"]},
            {"op": "in-net", "args": ["{inventory[bmc_address]}", f"192.0.{count % 4}.0/24"]},
        ]
        bodies.append(world.rule(description=str(count), position=count, priority=count % 3,
                                 scope=[None, "a"][count % 2], conditions=[conditions[count % 4]]))
    return bodies


def ran(rule_set: rules.RuleSet) -> list[str | None]:
    """Return the rules that match a node of scope a."""
    facts = world.facts(node={"inspection_scope": "a"})
    return [trace.description for trace in rule_set.run("main", facts)]


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


@walking("explain", [False, True])
def test_a_rule_can_move_the_node_to_another_scope(explain: bool) -> None:
    facts = world.facts(node={"inspection_scope": "a"})
    traces = world.run(*scope_rules(), given=facts, explain=explain)
    assert facts.plugin_data["ran"] == ["a before", "all", "b after", "all after"]
    assert [trace.description for trace in traces if trace.matched] == [
        "a before", "all", "moves", "b after", "all after"]
    assert [trace.description for trace in traces if not trace.matched] == (["b never"] if explain else [])


@walking("mode, sensitive, matched", [
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


VALUES = st.sampled_from([
    None, True, 1, 1.0, 2, -0.5, "1", "x", "xy", "yes", "******", "10.1.2.3", [], [1], [True], {}])
PATHS = st.sampled_from([
    "{inventory[a]}", "{inventory.a}", "{inventory[b][c]}", "{inventory[l][0]}", "{inventory[token]}",
    "{inventory[nosuch]}", "{inventory[b]}", "{inventory[b][token][c]}", "{inventory[l]}", "{plugin_data[ran]}",
    "{plugin_data[all]}", "{plugin_data[sent]}", "{plugin_data}", "{node.extra[ran]}", "{node.inspection_scope}",
    "{previous[a]}", "{previous[b][c]}", "{previous[token]}", "{previous}"])
DATA = st.recursive(VALUES, lambda inner: st.one_of(
    st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["c", "token"]), inner, max_size=2)), max_leaves=4)
INVENTORIES = st.fixed_dictionaries({"token": VALUES}, optional={"a": DATA, "b": DATA, "l": DATA})
MARKS = st.sampled_from(["", "", "!"])
NETWORKS = st.sampled_from(["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "0.0.0.0/0", "2001:db8::/32", "10.1.2.3/31"])
REGEXES = st.sampled_from(["x", "x.*", ".*", "", "1|x", "(?i)X", "[^x]+", "True|1.0", r"\\d+", "a{30}", "(x|y)*"])


def comparisons() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for conditions, most of which can be looked up."""
    def of(ops: list[str], *args: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        return st.builds(lambda mark, op, args: {"op": mark + op, "args": list(args)}, MARKS, st.sampled_from(ops),
                         st.tuples(*args))

    pairs = st.one_of(of(["eq", "lt", "gt"], PATHS, VALUES), of(["eq", "lt", "gt"], VALUES, PATHS))
    forced = st.tuples(PATHS, VALUES).map(
        lambda parts: {"op": "eq", "args": {"values": list(parts), "force_strings": True}})
    looped = VALUES.map(lambda value: {
        "op": "eq", "args": ["{item}", value], "loop": ["{inventory[a]}", "{inventory[token]}"], "multiple": "any"})
    repeated = st.tuples(PATHS, VALUES, st.sampled_from([[], [1]]), st.sampled_from(["any", "all"])).map(
        lambda parts: {"op": "eq", "args": list(parts[:2]), "loop": parts[2], "multiple": parts[3]})
    counts = st.sampled_from([1, 2, "{inventory|count}", "{inventory[a]|count}", "{previous|count}",
                              "{previous[a]|count}"])
    counted = of(["eq", "lt"], counts, counts)
    return st.one_of(
        pairs, pairs, counted, of(["one-of"], PATHS, st.lists(VALUES, max_size=3)),
        of(["is-true", "is-false", "is-none", "is-empty"], PATHS), of(["in-net"], PATHS, NETWORKS),
        of(["matches", "contains"], PATHS, REGEXES), of(["eq", "lt"], PATHS, PATHS), forced, looped, repeated)


ACTIONS = st.one_of(
    st.sampled_from(["a", "x", 1]).map(lambda value: {"op": "set-attribute", "args": ["/extra/ran", value]}),
    st.sampled_from(["1", "x"]).map(lambda value: {"op": "set-plugin-data", "args": ["ran", value]}),
    st.sampled_from(["1", "x"]).map(lambda value: {"op": "set-plugin-data", "args": ["{inventory[token]}", value]}),
    st.just({"op": "unset-plugin-data", "args": ["sent"]}),
    st.just({"op": "extend-plugin-data", "args": ["all", "{inventory}"]}),
    st.sampled_from(["a", "b", None]).map(
        lambda value: {"op": "set-attribute", "args": ["/inspection_scope", value]}),
    st.sampled_from([{"op": "del-attribute", "args": ["inspection_scope"]},
                     {"op": "set-attribute", "args": ["{plugin_data[scope]}", "a"]}]),
    st.sampled_from([{"op": "fail", "args": ["no"]}, {"op": "log", "args": ["{inventory[token]}"]}]),
)
RULES = st.fixed_dictionaries({
    "conditions": st.lists(comparisons(), max_size=3), "actions": st.lists(ACTIONS, min_size=1, max_size=2),
    "priority": st.integers(0, 3), "scope": st.sampled_from([None, None, "a", "b"]), "sensitive": st.booleans()})
#: Rules that also write a group of one of their conditions.
GROUPED = st.builds(
    lambda rule, path, regex, key: {
        **rule, "conditions": [*rule["conditions"], {"op": "matches", "args": [path, regex]}],
        "actions": [{"op": "set-plugin-data", "args": [key, "{match[g]}"]}, *rule["actions"]]},
    RULES, PATHS, st.sampled_from(["(?P<g>.*)", "(?P<g>x)?(?P<h>.*)", "(?P<g>[^x]+)x?"]), st.sampled_from(["ran", "g"]))


#: Limit of texts in bytes: regular expressions have no outcome for longer ones.
LIMITS = rules.Limits(subject=4)


def outcome(rule_set: rules.RuleSet, inventory: dict[str, Any], previous: dict[str, Any] | None, scope: str | None,
            explain: bool) -> list[Any]:
    """Run rules and return all visible results; with explanations every condition of every rule is evaluated."""
    node = NodeDraft({"extra": {}, "properties": {"1": "x"}, "inspection_scope": scope})
    task = Task(node)
    task.begin_inspection((), lambda: copy.deepcopy(previous))
    facts = rules.Facts(task, copy.deepcopy(inventory), {"sent": "x", "scope": "/inspection_scope"})
    failure = None
    try:
        traces = rule_set.run("main", facts, explain=explain)
    except RuleFailed as exc:
        failure, traces = str(exc), exc.traces  # type: ignore[attr-defined]
    seen = [(trace.uuid, trace.error) for trace in traces if trace.matched]
    unchanged = facts.inventory == inventory and task.previous_inventory() == previous
    return [failure, seen, node.read(), facts.plugin_data, facts.messages, unchanged]


def check_index(bodies: list[dict[str, Any]], inventory: dict[str, Any], previous: dict[str, Any] | None,
                scope: str | None, mode: str, data: st.DataObject) -> None:
    compiled = [
        world.compiled(world.rule(uuid=f"00000000-0000-4000-8000-{number:012}", position=number, **body), limits=LIMITS)
        for number, body in enumerate(bodies)]
    expected = outcome(rules.RuleSet(compiled, mask_secrets=mode), inventory, previous, scope, explain=True)
    # The same set as the result of a change, with all expressions in sets or none.
    some = st.lists(st.sampled_from(compiled), unique=True) if compiled else st.just([])
    with mock.patch.object(regex, "LOOSE", data.draw(st.sampled_from([0, 32]))):
        first = data.draw(some)
        removed = [rule for rule in first if rule in data.draw(some)]
        changed = rules.RuleSet(first, mask_secrets=mode).changed(
            removed, [rule for rule in compiled if rule not in first or rule in removed]).tidied()
    assert outcome(changed, inventory, previous, scope, explain=False) == expected
    assert outcome(changed, inventory, previous, scope, explain=True) == expected
    assert expected[-1]


@pytest.mark.slow
@pytest.mark.parametrize("batch", strategies.batches(400))
def test_the_index_changes_nothing(batch: tuple[int, int]) -> None:
    strategies.check(
        batch, check_index, bodies=st.lists(st.one_of(RULES, RULES, GROUPED), max_size=8), inventory=INVENTORIES,
        previous=st.one_of(st.none(), INVENTORIES),
        scope=st.sampled_from([None, "a", "b", "c"]), mode=st.sampled_from(["always", "never", "sensitive"]),
        data=st.data())


@walking("full", [True, False])
@walking("memory", [1 << shift for shift in range(12, 24)])
def test_no_match_is_lost_when_patterns_burst_the_budget(memory: int, full: bool) -> None:
    """RE2 refuses some of the sets, and of others reports no match where it had too little memory to look."""
    texts = [f"(?s)[a-f]*a[a-f]{{{number}}}{'.*' if full else ''}" for number in range(40)]
    patterns = [Pattern(text, 1 << 15) for text in texts]
    sets = PatternSets.compiled(full, patterns, memory)
    for subject in (b"abcdef" * 200, b"b" * 500, b"", b"bbba" + b"bbbb" * 3):
        expected = {pattern.text for pattern in patterns
                    if (pattern.is_all_of(subject) if full else pattern.is_in(subject))}
        assert sets.matching([subject]) == expected


def test_nothing_is_left_of_rules_that_were_removed() -> None:
    """A set that changes for months does not grow: not even by the conditions that removed rules shared."""
    # Conditions that rules of other tests do not share.
    shared = {"op": "eq", "args": [f"{MAKER}!", "left"]}
    made = [world.compiled(world.rule(position=number, conditions=[
        shared, {"op": "contains", "args": ["{inventory[hostname]}", f"left{number}"]}])) for number in range(50)]
    checks = [weakref.ref(condition) for rule in made for condition in rule.conditions]
    rule_set = rules.RuleSet(made[:40]).changed(made[:2], made[40:]).changed(made[2:], [])
    made.clear()
    gc.collect()
    assert len(rule_set) == 0
    assert [check for check in checks if check() is not None] == []
