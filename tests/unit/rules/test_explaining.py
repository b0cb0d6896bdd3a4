"""Explained runs: values, reasons and changes, and no secret by its key or by its value."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.models import documents
from ironic_rules.models.secrets import Concealment
from ironic_rules.rules import explaining
from tests.unit.rules import world
from tests.walking import walking


def condition(op: str, *args: Any, plugin_data: dict[str, Any] | None = None, **more: Any) -> rules.ConditionTrace:
    facts = world.facts(plugin_data=plugin_data)
    trace, = world.run(world.rule(conditions=[{"op": op, "args": list(args), **more}]), given=facts, explain=True)
    return trace.conditions[0]


@walking("op, args, outcome, why, detail", [
    ("eq", ["{inventory[cpu][count]}", 40], True, "equal", None),
    ("eq", ["{inventory[cpu][count]}", "40"], False, "type", "integer and string"),
    ("!eq", ["{inventory[cpu][count]}", "40"], True, "type", "integer and string"),
    ("eq", ["{inventory[cpu][count]}", 40.5], False, "not equal", None),
    ("lt", ["{inventory[cpu][count]}", None], False, "type", "integer and null"),
    ("eq", ["{inventory[disks][3][size]}", 1], False, "missing", "inventory[disks][3]"),
    ("is-none", ["{inventory[bmc_v6address]}"], True, "null", None),
    ("is-none", ["{inventory[nope][x]}"], True, "missing", "inventory[nope]"),
    ("in-net", ["{inventory[bmc_address]}", "10.0.0.0/8"], False, "not in network", None),
    ("in-net", ["{inventory[hostname]}", "10.0.0.0/8"], False, "not an address", "string"),
    ("matches", ["{inventory[hostname]}", "rack9.*"], False, "no match", None),
    ("!contains", ["{inventory[hostname]}", "rack"], False, "match", None),
    ("one-of", ["{inventory[cpu][count]}", [1, 2]], False, "not among the values", None),
])
def test_a_condition_says_why_it_has_its_outcome(op: str, args: list[Any], outcome: bool, why: str,
                                                  detail: str | None) -> None:
    found = condition(op, *args)
    assert (found.outcome, found.why, found.detail) == (outcome, why, detail)


PORT = "{plugin_data[parsed_lldp][eth0][switch_port_description]}"


@walking("op, args, outcome", [
    # Ironic leaves the text of a template that it cannot fill in, and rules such as Kayobe's test whether it is there.
    ("eq", [PORT, "{{" + PORT[1:-1] + "}}"], False), ("!eq", [PORT, "{{" + PORT[1:-1] + "}}"], True),
    ("contains", [PORT, r"\{plugin_data"], False), ("!contains", [PORT, r"\{plugin_data"], True),
    ("matches", [PORT, r"\{.*\}"], False), ("is-none", [PORT], True)])
def test_a_rule_that_tests_for_the_text_of_its_own_template_is_told_that_the_value_is_missing(
        op: str, args: list[str], outcome: bool) -> None:
    found = condition(op, *args, plugin_data={"parsed_lldp": {"eth1": {}}})
    first = found.arguments[0]
    assert (found.outcome, found.why, found.detail) == (outcome, "missing", "plugin_data[parsed_lldp][eth0]")
    assert (first.written, first.value, first.missing) == (PORT, None, "plugin_data[parsed_lldp][eth0]")
    # With the value, it is compared as any other.
    data = {"parsed_lldp": {"eth0": {"switch_port_description": "rack1-u7"}}}
    assert condition(op, *args, plugin_data=data).arguments[0].value == "rack1-u7"


def test_arguments_are_shown_as_written_and_with_their_value() -> None:
    first, second = condition("eq", "{inventory[cpu][architecture]}", "x").arguments
    assert (first.name, first.written, first.value, first.type) == (
        "values/0", "{inventory[cpu][architecture]}", "x86_64", "string")
    assert (second.written, second.value) == (None, "x")


def test_a_loop_shows_its_first_hundred_items_and_which_of_them_counted() -> None:
    found = condition("gt", "{item}", 2, loop="{plugin_data[l]}", plugin_data={"l": list(range(150))})
    assert (found.outcome, found.count, len(found.items)) == (True, 150, explaining.MAX_ITEMS)
    assert [item.outcome for item in found.items[:4]] == [False, False, False, True]
    assert [item.needed for item in found.items[2:5]] == [True, True, False]
    assert condition("gt", "{item}", 2, loop="{plugin_data[l]}", plugin_data={"l": []}).why == "empty loop"
    last = condition("gt", "{item}", 2, loop=[1, 2, 3], multiple="last")
    assert [item.needed for item in last.items] == [False, False, True]


def test_conditions_after_one_that_is_false_are_evaluated_and_marked() -> None:
    conditions = [{"op": "is-true", "args": [value]} for value in (True, False, True)]
    trace, = world.run(world.rule(conditions=conditions), explain=True)
    assert [(each.outcome, each.short_circuited) for each in trace.conditions] == [
        (True, False), (False, False), (True, True)]


def test_the_runs_of_an_action_have_their_arguments() -> None:
    rule = world.rule(actions=[
        {"op": "set-attribute", "args": ["/extra/{item}", "{node[extra]}"], "loop": ["a", "b"]}])
    trace, = world.run(rule, explain=True)
    assert [[argument.value for argument in run] for run in trace.actions[0].runs] == [
        ["/extra/a", {"old": "x", "list": [1, 2]}],
        ["/extra/b", {"old": "x", "list": [1, 2], "a": {"old": "x", "list": [1, 2]}}]]


def test_a_large_value_is_told_by_its_size() -> None:
    found = condition("is-empty", "{plugin_data[l]}", plugin_data={"l": ["x" * 100] * 1000})
    assert found.arguments[0].value is None
    assert found.arguments[0].size == 103_001


@walking("mode", ["always", "never", "sensitive"])
def test_a_secret_is_hidden_wherever_a_rule_copies_it_to(mode: str) -> None:
    planted = "Xyzzy-31415926"
    facts = world.facts(node={"driver_info": {"ipmi_password": planted, "url": f"http://me:{planted}@bmc"}},
                        plugin_data={"pin": planted, "deep": [{"pin": planted}]})
    copying = [{"op": "set-attribute", "args": [f"/extra/{name}", value]} for name, value in (
        ("a", "{node[driver_info][ipmi_password]}"), ("b", "{node[driver_info]}"), ("c", "{plugin_data[pin]|lower}"),
        ("d", "p {node[driver_info][ipmi_password]}"), ("e", "{node[driver_info][ipmi_password]|lower}"),
        ("f", "all: {node}"), ("g", "{node[driver_info][url]}")) if mode == "never" or name not in "bfg"]
    looping = {"op": "set-attribute", "args": ["/extra/i", "{item[pin]}"], "loop": "{plugin_data[deep]}"}
    saying = [{"op": "log", "args": ["{node[driver_info][ipmi_password]}"]}]
    conditions = [{"op": "!eq", "args": ["{item}", 1], "loop": "{plugin_data[deep]}"},
                  {"op": "matches", "args": ["{node[driver_info][ipmi_password]}", "(?P<group>.*)"]}]
    matched = {"op": "set-attribute", "args": ["/extra/m", "{match[group]}"]}
    first = world.rule(uuid="11111111-1111-4111-8111-111111111111", priority=2, conditions=conditions,
                       actions=[*copying, looping, matched, *saying])
    # Another rule copies what the first one has written.
    second = world.rule(actions=[{"op": "set-attribute", "args": ["/extra/again", "{node[extra][a]}"]}, {
        "op": "log", "args": ["again {node[extra][a]}"]}])
    traces = world.run(first, second, given=facts, explain=True, mask_secrets=mode)
    assert [trace.matched for trace in traces] == [True, True]
    shown = repr((traces, facts.messages)).lower()
    assert planted.lower() not in shown


@walking("mode", ["always", "never", "sensitive"])
def test_what_a_machine_has_sent_is_no_evidence_of_a_secret(mode: str) -> None:
    """Traces with the right guess among many differ in nothing but this guess from those without it."""
    def shown(guess: str) -> str:
        node = {"driver_info": {"ipmi_password": "Xyzzy-31415926"}}
        given = world.facts(node=node, plugin_data={"guesses": [f"guess-{number}" for number in range(20)] + [guess]})
        actions = [{"op": "set-attribute", "args": ["/extra/all", "{plugin_data[guesses]}"]},
                   {"op": "set-attribute", "args": ["/extra/{item}", "it is {item}"], "loop": "{plugin_data[guesses]}"},
                   {"op": "log", "args": ["{item}"], "loop": "{plugin_data[guesses]}"}]
        conditions = [{"op": "!eq", "args": ["{item}", "x"], "loop": "{plugin_data[guesses]}"}]
        traces = world.run(world.rule(conditions=conditions, actions=actions), given=given, explain=True,
                           mask_secrets=mode)
        assert traces[0].matched and guess in repr(traces)
        return repr((traces, given.messages)).replace(guess, "GUESS")

    assert shown("Xyzzy-31415926") == shown("Xyzzy-31415927")


def test_what_is_written_under_a_secret_key_is_masked_in_arguments_too() -> None:
    trace, = world.run(world.rule(actions=[
        {"op": "set-attribute", "args": ["/driver_info/ipmi_password", "Xyzzy-31415926"]}]), explain=True)
    assert [given.value for given in trace.actions[0].runs[0]] == ["/driver_info/ipmi_password", "******"]
    assert "Xyzzy" not in repr(trace)


@walking("reading", ["{node[driver_info][ipmi_password]}", "{node[driver_info]}", "{item}"])
def test_a_failure_of_a_rule_that_reads_a_secret_quotes_nothing(reading: str) -> None:
    action = {"op": "fail", "args": [f"it is {reading}"]}
    if reading == "{item}":
        action["loop"] = ["x", "{node[driver_info][ipmi_password]}"]
    with pytest.raises(RuleFailed) as raised:
        world.run(world.rule(actions=[action]), given=world.facts(), mask_secrets="never")
    assert str(raised.value.facts["reason"]) == "details are withheld, the rule reads a secret"
    assert raised.value.__cause__ is None


def test_what_a_sensitive_rule_wrote_is_hidden_in_later_rules() -> None:
    sealing = world.rule(uuid="11111111-1111-4111-8111-111111111111", priority=2, sensitive=True, actions=[
        {"op": "set-attribute", "args": ["/extra/key", "plugh"]}, {"op": "set-attribute", "args": ["/extra/n", 7]}])
    copying = world.rule(actions=[{"op": "set-attribute", "args": ["/extra/copy", "{node[extra][key]}"]}],
                         conditions=[{"op": "eq", "args": ["{node[extra][n]}", 7]}])
    first, second = world.run(sealing, copying, explain=True)
    assert (first.conditions, first.actions, first.changes) == ((), (), {})
    assert "plugh" not in repr(second)
    assert second.changes == {"node": [{"op": "add", "path": "/extra/copy", "value": "******"}]}
    assert second.conditions[0].arguments[0].value == "******"


def test_a_sensitive_rule_that_does_not_match_says_only_that() -> None:
    rule = world.rule(sensitive=True, conditions=[{"op": "eq", "args": ["{inventory[hostname]}", "x"]}])
    trace, = world.run(rule, explain=True)
    assert trace == rules.Trace(rule["uuid"], None, False, sensitive=True)


def test_rules_written_alike_are_explained_with_what_they_stand_for() -> None:
    written = {"op": "set-attribute", "args": {"path": "/extra/x", "value": "{match[rack]}"}}
    rule = world.rule(conditions=[{"op": "matches", "args": ["{inventory[hostname]}", "(?P<rack>rack[0-9]+)-.*"]}],
                      actions=[written])
    trace, = world.run(rule, explain=True)
    assert [argument.value for argument in trace.actions[0].runs[0]] == ["/extra/x", "rack07"]


_JSON = st.recursive(st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab~/", max_size=3),
                     lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab~/", max_size=2), inner,
                                                                                 max_size=4), max_leaves=12)


@pytest.mark.slow
@given(before=_JSON, after=_JSON)
def test_a_patch_makes_one_value_of_the_other(before: Any, after: Any) -> None:
    document = {"x": copy.deepcopy(before)}
    patch = documents.difference(document, {"x": after})
    assert world.patched(document, patch) == {"x": after}


def test_an_explanation_ends_when_its_time_is_over() -> None:
    class Over(Exception):
        pass

    left = iter(range(10))

    def tick() -> None:
        if next(left, None) is None:
            raise Over

    facts = world.facts(plugin_data={"l": list(range(100))})
    facts.explainer = explaining.Explainer(Concealment(), tick)
    with pytest.raises(Over):
        world.run(world.rule(conditions=[{"op": "is-true", "args": ["{item}"], "loop": "{plugin_data[l]}"}]),
                  given=facts, explain=True)


@pytest.mark.parametrize("mode", ["always", "never"])
def test_what_is_in_no_context_is_explained_as_missing(mode: str) -> None:
    rule = world.rule(conditions=[{"op": "!eq", "args": ["{nosuch.x}", 1]}],
                      actions=[{"op": "log", "args": ["{nosuch} {item}"], "loop": "{inventory[nope]}"}])
    facts = world.facts()

    trace, = world.run(rule, given=facts, mask_secrets=mode, explain=True)

    assert (trace.matched, trace.conditions[0].why, trace.conditions[0].detail) == (False, "missing", "nosuch")
    trace, = world.run({**rule, "conditions": []}, given=facts, mask_secrets=mode, explain=True)
    assert [text.partition(": ")[2] for _, text in facts.messages] == ["<missing nosuch> <missing item>"]
    assert trace.matched
