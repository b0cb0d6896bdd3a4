"""For all rules and data: validation never raises, valid rules compile, and evaluation only raises its own errors."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.models import traits
from ironic_rules.rules import template
from ironic_rules.rules.errors import OperandError
from ironic_rules.rules.template import CONVERSIONS, MAX_CHAIN, chain_problem
from tests import strategies
from tests.unit.rules import world

pytestmark = pytest.mark.slow

SETTINGS = settings(max_examples=strategies.wanted(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])

TEMPLATES = st.sampled_from([
    "{inventory}", "{inventory[cpu][count]}", "{inventory[hostname]}-{inventory[cpu][count]}", "{inventory[nosuch]}",
    "{inventory[interfaces][0][name]}", "{plugin_data}", "{plugin_data[a]}", "x{plugin_data[a]}", "{node.extra}",
    "{node.driver_info[ipmi_password]}", "{ports}", "{port_groups}", "{previous[disks]|count}",
    "{previous}", "{item}", "{item[key]}", "{{", "{", "{x", "}",
    "{node!r}", "{inventory[hostname]|slug}", "x{plugin_data[a]|int}", "{match[a]}", "{match[a]|trait}", "{item|upper}",
])
TEXTS = st.one_of(TEMPLATES, st.text(max_size=8), st.sampled_from([
    "/extra/a", "/traits/-", "/traits", "/name", "/extra", "a.b", "/a/0", "10.0.0.0/8", "192.0.2.1", "(", "a+",
    "CUSTOM_A",
    world.PXE_MAC, "info", "/properties/capabilities", "extra/list/-", "extra/list/0",
]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)), max_leaves=6,
)
ARGUMENTS = st.one_of(
    st.lists(VALUES, max_size=4), VALUES,
    st.dictionaries(st.sampled_from(["value", "values", "regex", "path", "msg", "name", "port_id",
    "unique"]), VALUES, max_size=4),
)


def escaped(text: str) -> str:
    """Return a template that gives the text."""
    return text.replace("{", "{{").replace("}", "}}")


def operations(names: list[str]) -> st.SearchStrategy[Any]:
    """Return a strategy for conditions or actions, mostly well-formed."""
    return st.fixed_dictionaries(
        {"op": st.one_of(st.sampled_from(names), TEXTS), "args": ARGUMENTS},
        optional={"loop": st.one_of(st.none(), st.lists(VALUES, max_size=3), TEMPLATES, VALUES),
                  "multiple": st.sampled_from(["any", "all", "first", "last", None])},
    )


OPERATORS = [mark + name for name in rules.OPERATORS.names() for mark in ("", "!", "! ")]
RULES = st.fixed_dictionaries(
    {"actions": st.lists(operations(rules.ACTIONS.names()), max_size=3)},
    optional={
        "conditions": st.lists(operations(OPERATORS), max_size=3), "phase": st.sampled_from([*rules.PHASES, None]),
        "priority": st.one_of(st.integers(0, 9999), VALUES), "sensitive": st.booleans(), "description": TEXTS,
    },
)

#: Arguments that pass validation, so that evaluation is reached.
GOOD_TEXT = st.sampled_from([
    "{inventory}", "{inventory[cpu][count]}", "{inventory[nosuch]}", "{plugin_data[a]}", "x{plugin_data[a]}", "text",
    "{node.extra}", "{ports}", "{item}", "{item[key]}", "{plugin_data[a]|int}", "x{item|slug}",
])
INTEGERS = st.integers(-(2**63), 2**64 - 1)
GOOD_VALUES = st.one_of(GOOD_TEXT, st.none(), st.booleans(), INTEGERS, st.lists(GOOD_TEXT, max_size=2))
GOOD_URLS = st.sampled_from(["https://cmdb.example.org/{plugin_data[a]}", "https://cmdb.example.org/x?{item}"])
ITEMS = st.one_of(INTEGERS, st.just("{inventory[cpu]}"))
LOOPS = st.one_of(st.just("{plugin_data[c]}"), st.lists(ITEMS, max_size=3))
DATA_TEXT = st.sampled_from(["{plugin_data[a]}", "{plugin_data[b]}", "{item}", "{inventory[hostname]}"])


def good_actions() -> st.SearchStrategy[Any]:
    """Return a strategy for actions whose arguments are templates: only the data determine whether they are valid."""
    def arguments(name: str) -> st.SearchStrategy[Any]:
        plugin = rules.ACTIONS.get(name)
        free = {"value": DATA_TEXT if name == "set-capability" else GOOD_VALUES, "unique": st.booleans(),
                "url": GOOD_URLS}
        return st.fixed_dictionaries({
            "op": st.just(name), "loop": LOOPS,
            "args": st.fixed_dictionaries({p.name: free.get(p.name, DATA_TEXT) for p in plugin.parameters}),
        })

    return st.sampled_from(rules.ACTIONS.names()).flatmap(arguments)


def good_conditions() -> st.SearchStrategy[Any]:
    """Return a strategy for conditions whose arguments are templates."""
    def arguments(name: str) -> st.SearchStrategy[Any]:
        plugin = rules.OPERATORS.get(name.lstrip("! "))
        values = {"force_strings": st.booleans(), "address": DATA_TEXT, "subnet": DATA_TEXT, "regex": DATA_TEXT,
                  "values": DATA_TEXT, "fact": st.just("memory_gib")}
        return st.fixed_dictionaries({
            "op": st.just(name), "loop": LOOPS,
            "multiple": st.sampled_from(["any", "all", "first", "last"]),
            "args": st.fixed_dictionaries({p.name: values.get(p.name, GOOD_TEXT) for p in plugin.parameters}),
        })

    return st.sampled_from(OPERATORS).flatmap(arguments)


DATA = st.dictionaries(st.sampled_from(["a", "b", "c", "l"]), VALUES, max_size=4)


@SETTINGS
@given(st.one_of(RULES, VALUES))
def test_validation_only_answers_and_what_is_valid_compiles(rule: Any) -> None:
    if world.validate(rule) == []:
        world.compiled(rule)


@SETTINGS
@given(RULES)
def test_a_rule_survives_the_wire(body: Any) -> None:
    rule = rules.from_wire(body)
    assert rules.from_wire(rule) == rule or "nan" in repr(rule)


@SETTINGS
@given(st.lists(good_conditions(), max_size=2), st.lists(good_actions(), min_size=1, max_size=3), DATA, st.booleans())
def test_evaluation_only_fails_cleanly(conditions: Any, actions: Any, data: Any, explain: bool) -> None:
    rule = world.rule(conditions=conditions, actions=actions)
    assert world.validate(rule) == []
    facts = world.facts(plugin_data=data)
    inventory = copy.deepcopy(facts.inventory)
    before = json.dumps(world.effects(facts))
    try:
        world.run(rule, given=facts, explain=explain)
    except RuleFailed:
        facts.messages.clear()
        assert json.dumps(world.effects(facts)) == before
    assert facts.inventory == inventory


@SETTINGS
@given(st.lists(st.sampled_from([*"{}[].!:|ab0 \\", "|lower", "|int"]), max_size=20).map("".join), st.booleans())
def test_a_template_parses_or_is_refused(text: str, regex: bool) -> None:
    try:
        template.parse(text, regex)
    except template.TemplateError as exc:
        assert 1 <= exc.column <= len(text) + 1


KEY = st.text(st.characters(exclude_characters="[]{}"), min_size=1, max_size=5).filter(lambda key: key[0] not in "'\"")
FIELD = st.builds(
    lambda steps, names: "{node" + "".join(f"[{step}]" for step in steps) + "".join(f"|{name}" for name in names) + "}",
    st.lists(KEY, max_size=3), st.lists(st.sampled_from([*CONVERSIONS]), max_size=MAX_CHAIN).filter(
        lambda names: not any(chain_problem((*names[:end], names[end])) for end in range(len(names)))))


@SETTINGS
@given(st.lists(st.one_of(FIELD, st.text(max_size=5).map(escaped)), max_size=4).map("".join))
def test_a_template_is_its_parts(text: str) -> None:
    parts = template.parse(text)
    assert "".join(escaped(part) if isinstance(part, str) else part.text for part in parts) == text
    for part in parts:
        if isinstance(part, template.Field):
            assert part.text == text[part.column - 1:part.column - 1 + len(part.text)]
            assert template.parse(part.text)[0] == replace(part, column=1)


@SETTINGS
@given(st.sampled_from(["slug", "trait", "upper", "lower", "int"]), st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.none()), st.just({}),
    st.text(alphabet="+-0123456789 ", max_size=30)))
def test_a_conversion_gives_what_it_says_or_cannot_be_evaluated(name: str, value: Any) -> None:
    try:
        converted = CONVERSIONS[name](value)
    except OperandError:
        return
    assert CONVERSIONS[name](converted) == converted
    if name == "slug":
        assert isinstance(converted, str) and len(converted) <= 255
        assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", converted)
    if name == "trait":
        assert traits.is_trait(converted)
    if name == "int":
        assert type(converted) is int and -(2**63) <= converted < 2**64


@SETTINGS
@given(st.text(max_size=30))
def test_escaped_text_means_itself(text: str) -> None:
    assert "".join(str(part) for part in template.parse(escaped(text))) == text


@SETTINGS
@given(st.text(alphabet="(){}[]*+?|\\.^$abpP,0123", max_size=20))
def test_any_expression_is_compiled_or_refused(text: str) -> None:
    world.validate(world.rule(conditions=[{"op": "matches", "args": ["a", text]}]))


# Thousands of examples with ``tox -e fuzz``.

COMPILED = [world.compiled(rule) for rule in map(rules.from_wire, strategies.RULES) if world.validate(rule) == []]
SOME = st.lists(st.integers(0, len(COMPILED) - 1).map(COMPILED.__getitem__), min_size=1, max_size=8)
REPORTS = st.tuples(strategies.changed(strategies.INVENTORIES, 4), strategies.changed([
    {"a": 1, "b": "x", "c": [1, {"k": "v"}], "bmc_address": "192.0.2.10", "same": [1, 1], "i": "redfish"}]))


@pytest.mark.parametrize("batch", strategies.batches(50))
def test_inventories_fail_rules_only_cleanly(batch: tuple[int, int]) -> None:
    def one(many: Any, conditions: Any, actions: Any, report: Any, phase: str, explain: bool) -> None:
        inventory, plugin_data = (part if isinstance(part, dict) else {"a": part} for part in report)
        own = world.rule(conditions=conditions, actions=actions)
        assert world.validate(own) == []
        facts = rules.Facts(world.facts().task, inventory, plugin_data)
        received = repr(inventory)
        before = repr(world.effects(facts))
        try:
            rules.RuleSet([*many, world.compiled(own)]).run(phase, facts, explain=explain)
            answered["passed"] += 1
        except RuleFailed as failure:
            answered["failed"] += 1
            assert failure.facts["where"].startswith("/actions/")
            facts.messages.clear()
            if len(failure.traces) == sum(trace.matched for trace in failure.traces) == 1:
                assert repr(world.effects(facts)) == before
        assert repr(inventory) == received

    answered: Counter[str] = Counter()
    strategies.check(batch, one, many=SOME, conditions=st.lists(good_conditions(), max_size=1),
                  actions=st.lists(good_actions(), min_size=1, max_size=2), report=REPORTS,
                  phase=st.sampled_from(["main", "main", "preprocess", "early"]), explain=st.booleans())
    print("batch", batch, dict(answered))
    assert answered["passed"] and answered["failed"]


@pytest.mark.parametrize("batch", strategies.batches(50))
def test_an_explained_run_does_what_any_other_does(batch: tuple[int, int]) -> None:
    def outcome(rule_set: rules.RuleSet, report: Any, phase: str, explain: bool) -> list[Any]:
        inventory, plugin_data = (part if isinstance(part, dict) else {"a": part} for part in copy.deepcopy(report))
        facts = rules.Facts(world.facts().task, inventory, plugin_data)
        try:
            traces, failure = rule_set.run(phase, facts, explain=explain), None
        except RuleFailed as error:
            traces, failure = error.traces, str(error)  # type: ignore[attr-defined]
        return [failure, [trace.uuid for trace in traces if trace.matched], world.effects(facts)]

    def one(many: Any, conditions: Any, actions: Any, report: Any, phase: str, mode: str) -> None:
        own = world.compiled(world.rule(conditions=conditions, actions=actions))
        rule_set = rules.RuleSet([*many, own], mask_secrets=mode)
        assert outcome(rule_set, report, phase, explain=True) == outcome(rule_set, report, phase, explain=False)

    strategies.check(batch, one, many=SOME, conditions=st.lists(good_conditions(), max_size=2),
                     actions=st.lists(good_actions(), min_size=1, max_size=2), report=REPORTS,
                     phase=st.sampled_from(["main", "preprocess"]),
                     mode=st.sampled_from(["always", "never", "sensitive"]))


@pytest.mark.parametrize("batch", strategies.batches(50))
def test_validation_only_answers_whatever_became_of_a_rule(batch: tuple[int, int]) -> None:
    def one(rule: Any) -> None:
        if isinstance(rule, dict):
            rule = rules.from_wire(rule)
        problems = world.validate(rule)
        answered[bool(problems)] += 1
        if not problems:
            world.compiled(rule)

    answered: Counter[bool] = Counter()
    strategies.check(batch, one, rule=strategies.changed(strategies.RULES, 2))
    print("batch", batch, "refused", dict(answered))
    assert len(answered) == 2


@pytest.mark.parametrize("batch", strategies.batches(50))
def test_the_schema_accepts_every_rule_that_is_valid(batch: tuple[int, int]) -> None:
    validator = jsonschema.Draft202012Validator(rules.rule_schema())

    def one(body: Any) -> None:
        if isinstance(body, dict) and world.validate(rules.from_wire(body)) == []:
            validator.validate(body)
            answered["valid"] += 1

    answered: Counter[str] = Counter()
    strategies.check(batch, one, body=strategies.changed(strategies.RULES, 2))
    print("batch", batch, dict(answered))
    assert answered["valid"]
