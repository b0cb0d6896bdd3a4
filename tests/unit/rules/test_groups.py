"""``{match[name]}`` in actions: the named groups of the rule's conditions."""

from __future__ import annotations

from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from tests.unit.rules import world
from tests.walking import walking

MODEL = {"op": "matches",
         "args": ["{inventory[system_vendor][product_name]}", "PowerEdge (?P<model>R[0-9]+)(?P<kind>xd)?.*"]}


def keep(**values: str) -> list[dict[str, Any]]:
    """Return actions that write values into plugin data."""
    return [{"op": "set-plugin-data", "args": [name, value]} for name, value in values.items()]


def result(*conditions: dict[str, Any], data: dict[str, Any] | None = None, **values: str) -> dict[str, Any]:
    """Run one rule that writes values; return the plugin data that it adds."""
    facts = world.facts(plugin_data=data)
    world.run(world.rule(conditions=list(conditions), actions=keep(**values)), given=facts)
    return {name: value for name, value in facts.plugin_data.items() if name not in (data or {})}


def problems(*conditions: dict[str, Any], **values: str) -> list[str]:
    """Return the texts of the problems of one rule that writes values."""
    return [problem.text for problem in world.validate(world.rule(conditions=list(conditions), actions=keep(**values)))]


def test_actions_read_the_groups_of_all_conditions() -> None:
    rack = {"op": "matches", "args": {"regex": "rack(?P<rack>[0-9]+)-.*", "value": "{inventory[hostname]|lower}"}}
    values = {"a": "{match[model]}", "b": "{match.kind|upper}", "c": "{match[rack]|int}",
              "d": "{match[rack]}/{match.kind}"}
    assert result(MODEL, rack, **values) == {"a": "R740", "b": "XD", "c": 7, "d": "07/xd"}


def test_a_group_without_a_part_in_the_match_is_missing_and_not_that_of_an_earlier_rule() -> None:
    facts = world.facts(plugin_data={"name": "PowerEdge R650"})
    second = {**MODEL, "args": ["{plugin_data[name]}", MODEL["args"][1]]}
    many = [world.rule(conditions=[condition], actions=keep(**{name: "{match[kind]}"}))
            for name, condition in (("first", MODEL), ("second", second))]
    with pytest.raises(RuleFailed, match=r"\{match\[kind\]\} is missing"):
        world.run(*many, given=facts)
    assert facts.plugin_data["first"] == "xd"


def test_an_empty_group_is_empty_text() -> None:
    assert result({"op": "matches", "args": ["a", "a(?P<rest>.*)"]}, a="{match[rest]}") == {"a": ""}


@walking("multiple, expected", [(None, "ens1f0"), ("first", "ens1f0"), ("last", "ens1f1")])
def test_in_a_loop_the_item_that_matched_counts(multiple: str | None, expected: str) -> None:
    condition = {"op": "matches", "args": ["{item[name]}", "(?P<name>ens.*)"], "loop": "{inventory[interfaces]}",
                 "multiple": multiple}
    assert result(condition, a="{match[name]}") == {"a": expected}
    assert result({**condition, "loop": [{"name": "lo"}, {"name": "ensX"}]}, a="{match[name]}") == (
        {} if multiple == "first" else {"a": "ensX"})


def test_groups_reach_the_loops_of_actions_and_early_rules() -> None:
    facts = world.facts(early=True)
    action = {"op": "set-plugin-data", "args": ["{item}", "{match[model]}-{item}"], "loop": ["a", "b"]}
    world.run(world.rule(phase="early", conditions=[MODEL], actions=[action]), given=facts, phase="early")
    assert facts.plugin_data == {"a": "R740-a", "b": "R740-b"}


@walking("explain", [False, True])
def test_sensitive_rules_and_masked_values_are_as_elsewhere(explain: bool) -> None:
    facts = world.facts(plugin_data={"password": "hunter2"})
    condition = {"op": "matches", "args": ["{plugin_data[password]}", "(?P<password>.*)"]}
    many = [world.rule(sensitive=sensitive, conditions=[condition], actions=keep(**{name: "{match[password]}"}))
            for sensitive, name in ((True, "seen"), (False, "hidden"))]
    world.run(*many, given=facts, mask_secrets="sensitive", explain=explain)
    assert (facts.plugin_data["seen"], facts.plugin_data["hidden"]) == ("hunter2", "******")


def test_text_that_is_not_ascii_is_given_as_it_was() -> None:
    data = {"a": "naïve 漢", "b": "x\ud800"}
    conditions = [{"op": "matches", "args": [f"{{plugin_data[{name}]}}", f"(?P<{name}>.*)"]} for name in data]
    assert result(*conditions, data=data, x="{match[a]}", y="{match[b]}") == {"x": "naïve 漢", "y": "x?"}


@walking("conditions, value, text", [
    ([MODEL], "{match[modle]}", "column 2: no condition provides this group; did you mean 'model'?"),
    ([MODEL], "{match[x]}", "known: kind, model"),
    ([], "{match[x]}", "a condition 'matches' provides it by (?P<name>...)"),
    ([{**MODEL, "op": "!matches"}], "{match[model]}", "unless it is inverted"),
    ([{**MODEL, "loop": [1], "multiple": "all"}], "{match[model]}", "no condition provides"),
    ([{"op": "contains", "args": MODEL["args"]}], "{match[model]}", "no condition provides"),
    ([{"op": "matches", "args": ["a", "(?P<a>{inventory[hostname]})"]}], "{match[a]}", "no condition provides"),
    ([MODEL, MODEL], "-{match[model]}", "column 3: more than one group of the conditions has this name"),
    ([{"op": "matches", "args": ["a", "(?P<b>a)|(?P<b>b)(?P<c>)"]}], "{match[b]}", "more than one group"),
    ([MODEL], "{match}", "the name of one group must follow: {match[name]}"),
    ([MODEL], "{match[model][0]}", "the name of one group must follow"),
])
def test_groups_that_no_condition_provides_are_refused(conditions: list[dict[str, Any]], value: str, text: str) -> None:
    problem, = problems(*conditions, a=value)
    assert text in problem


def test_conditions_cannot_read_groups() -> None:
    problem, = problems(MODEL, {"op": "is-none", "args": ["{match[model]}"]}, a="x")
    assert "'match' has a value only in actions" in problem


def test_invalid_conditions_are_reported_without_complaints_about_their_groups() -> None:
    problem, = problems({"op": "matches", "args": ["a", "(?P<a>"]}, a="{match[a]}")
    assert "not a regular expression" in problem


def test_groups_that_nobody_reads_may_have_any_names_and_cost_nothing() -> None:
    unread = world.compiled(world.rule(conditions=[MODEL, MODEL]))
    assert [condition.captures for condition in unread.conditions] == [False, False]
    read = world.compiled(world.rule(conditions=[MODEL, {**MODEL, "op": "contains"}], actions=keep(a="{match[model]}")))
    assert [condition.captures for condition in read.conditions] == [True, False]


@walking("explain", [False, True])
def test_rules_with_the_same_condition_each_store_its_groups(explain: bool) -> None:
    """Whatever the index and the shared outcome of conditions that are written alike spare other rules."""
    written = {"op": "matches", "args": ["{plugin_data[name]}", "(?P<model>.*)"]}
    many = [world.rule(uuid=f"0d2f8a52-70f4-4f3b-8b4e-{number:012d}", conditions=[condition], actions=keep(**values))
            for number, (condition, values) in enumerate([
                (MODEL, {"unread": "x"}), (MODEL, {"name": "{match[model]}"}), (written, {"second": "{match[model]}"}),
                (written, {"unread": "y", "name": "R650"}), (MODEL, {"third": "{match[kind]}"}),
                (written, {"fourth": "{match[model]}"}), (MODEL, {"last": "{match[model]}"})])]
    facts = world.facts(plugin_data={"name": "none"})
    traces = world.run(*many, given=facts, explain=explain)
    assert [trace.matched for trace in traces] == [True] * len(many)
    assert facts.plugin_data == {
        "unread": "y", "name": "R650", "second": "R740", "third": "xd", "fourth": "R650", "last": "R740"}
    assert all(world.compiled(rule).conditions[0].lookup for rule in many)  # the index finds all of them


def test_the_number_of_named_groups_is_limited() -> None:
    def regex(count: int) -> str:
        return "".join(f"(?P<g{number}>x*)" for number in range(count))

    assert problems({"op": "matches", "args": ["a", regex(32)]}, a="{match[g31]}") == []
    problem, = problems({"op": "contains", "args": ["a", regex(33)]}, a="x")
    assert "at most 32 named groups" in problem


def test_a_rule_set_shares_nothing_between_nodes() -> None:
    condition = {"op": "matches", "args": ["{plugin_data[a]}", "(?P<a>.)"]}
    rule_set = rules.RuleSet([world.compiled(world.rule(conditions=[condition], actions=keep(b="{match[a]}")))])
    for text in ("x", "y"):
        facts = world.facts(plugin_data={"a": text})
        rule_set.run("main", facts)
        assert facts.plugin_data["b"] == text
