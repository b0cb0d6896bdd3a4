"""Conversions in templates: their results, and templates that have them in conditions and actions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.rules.errors import OperandError
from ironic_rules.rules.template import CONVERSIONS, OF_LISTS
from tests.unit.rules import world
from tests.walking import walking


@walking("name, value, expected", [
    ("slug", "PowerEdge R740xd", "poweredge-r740xd"), ("slug", "--a__b..c--", "a-b-c"), ("slug", "a\x00b\nc", "a-b-c"),
    ("slug", "Crème Brûlée", "creme-brulee"), ("slug", "Straße ﬁ Ⅻ", "strasse-fi-xii"), ("slug", "e\u0301\u0315", "e"),
    ("slug", "københavn", "k-benhavn"), ("slug", 40, "40"), ("slug", True, "true"), ("slug", "x" * 255, "x" * 255),
    ("trait", "PowerEdge R740xd", "CUSTOM_POWEREDGE_R740XD"), ("trait", "CUSTOM__A_", "CUSTOM__A_"),
    ("trait", "HW_CPU_X86_VMX", "HW_CPU_X86_VMX"), ("trait", "custom-gpu", "CUSTOM_GPU"),
    ("trait", "customs", "CUSTOM_CUSTOMS"), ("trait", "Zürich", "CUSTOM_ZURICH"), ("trait", 2400.5, "CUSTOM_2400_5"),
    ("trait", "x" * 248, "CUSTOM_" + "X" * 248),
    ("upper", "rack7-é", "RACK7-É"), ("upper", "******", "******"), ("upper", 7, "7"),
    ("lower", "ÀB", "àb"), ("lower", True, "true"),
    ("int", " +007\n", 7), ("int", "-0", 0), ("int", "0" * 6000 + "42", 42), ("int", 40, 40), ("int", 40.0, 40),
    ("int", str(2**64 - 1), 2**64 - 1), ("int", str(-(2**63)), -(2**63)),
    ("count", [], 0), ("count", [None, [1, 2]], 2), ("count", {"a": {}}, 1),
    ("round", 2.5, 2), ("round", 3.51, 4), ("gib", 0, 0), ("gib", 515000, 502.93), ("gib", 2**20, 1024),
    ("hex", "10de", "10de"), ("hex", "0X8086", "8086"), ("gb", 480 * 10**9, 480), ("gb", 3840755982336, 3840.76),
    ("mac", "52-54-00-AB-CD-5E", "52:54:00:ab:cd:5e"),
    ("mac", "a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:61:1c:f1", "e4:1d:2d:61:1c:f1"),
    ("address", "2001:DB8:0:0::1/64", "2001:db8::1"), ("address", "::ffff:192.0.2.1", "192.0.2.1"),
    ("any", [], False), ("any", [False, True], True),
    ("sum", [], 0), ("sum", [1, 2.5], 3.5), ("max", [3, 20], 20), ("min", ["b", "a"], "a"), ("first", [None], None),
    ("sort", [], []), ("sort", [2, 1.5], [1.5, 2]), ("unique", [1, True, "1", 1, 1.5], [1, True, "1", 1.5]),
])
def test_a_value_is_converted(name: str, value: Any, expected: Any) -> None:
    converted = CONVERSIONS[name](value)
    assert (converted, type(converted)) == (expected, type(expected))


@walking("name, value", [
    *((name, value) for name in CONVERSIONS if name not in OF_LISTS for value in (None, [], {}, ["a"])),
    *((name, value) for name in OF_LISTS for value in (None, "ab", 2, True, "******")),
    *((name, []) for name in ("first", "max", "min")), ("any", [1, True]), ("sum", [1, "2"]), ("sum", [True]),
    ("max", ["a", 1]),
    ("sort", [None]), ("unique", [[]]), ("unique", [None]), ("gib", "512"), ("gb", float("nan")), ("round", "1.5"),

    ("hex", "0x"), ("hex", "10dg"), ("hex", 16), ("mac", "a"), ("mac", "ff:ff:ff:ff:ff:ff"), ("address", "a"),
    ("address", "192.0.2.300"),
    ("slug", ""), ("slug", "******"), ("slug", "漢字"), ("slug", "x" * 256), ("trait", "******"), ("trait", "x" * 249),
    *(("int", value) for value in (
        "", True, "1_0", "12.0", "0x1f", "٤٢", "+ 1", "+", 40.5, float("inf"), float("nan"), 1e300, str(2**64),
        -(2**63) - 1, "9" * 60000, "******")),
])
def test_other_values_cannot_be_converted(name: str, value: Any) -> None:
    with pytest.raises(OperandError, match=r"^must "):
        CONVERSIONS[name](value)


def wrong_with_example(name: str) -> list[str]:
    """Return the problems of the example in the docstring of a conversion."""
    line, = (line for line in str(CONVERSIONS[name].__doc__).splitlines() if ".. conversion:: " in line)
    value, expected = map(yaml.safe_load, line.partition(".. conversion:: ")[2].split(" -> "))
    return [] if CONVERSIONS[name](value) == expected else [f"{name}: {value!r}"]


def test_every_conversion_has_an_example_that_is_true() -> None:
    assert [problem for name in CONVERSIONS for problem in wrong_with_example(name)] == []


def written(value: Any, plugin_data: dict[str, Any], **options: Any) -> Any:
    """Return what an action writes for ``value``."""
    facts = world.facts(plugin_data=plugin_data)
    world.run(world.rule(actions=[{"op": "set-plugin-data", "args": ["x", value]}]), given=facts, **options)
    return facts.plugin_data["x"]


def test_one_template_keeps_the_type_of_the_conversion_and_text_is_text() -> None:
    values = ["{plugin_data[a]|int}", "<{plugin_data[a]|int}>", "{plugin_data[b]|lower|slug}"]
    assert written(values, {"a": " 5", "b": "Ä b"}) == [5, "<5>", "a-b"]


def test_what_has_items_is_counted_also_a_root() -> None:
    assert written(["{plugin_data[a]|count}", "{ports|count}", "{plugin_data|count}"], {"a": [1, 2, 3]}) == [3, 2, 1]


def test_conversions_of_lists_follow_one_another_and_give_the_items_of_a_loop() -> None:
    assert written(["{plugin_data[a]|sort|unique|count}", "{plugin_data[a]|unique|max}"], {"a": [3, 1, 3]}) == [2, 3]
    rule = world.rule(conditions=[{"op": "eq", "args": ["{item}", 3], "loop": "{plugin_data[a]|unique}"}])
    assert rules.evaluate(world.compiled(rule), world.facts(plugin_data={"a": [1, 3]})) is not None


@walking("value", ["{plugin_data[a]|lower}", "x{plugin_data[a]|lower}", "{plugin_data[nosuch]|lower}"])
def test_an_action_fails_without_a_value_to_convert(value: str) -> None:
    with pytest.raises(RuleFailed, match=r"\|lower} is missing"):
        written(value, {"a": None})


def test_what_cannot_be_converted_fails_an_action_with_the_template_and_without_the_value() -> None:
    with pytest.raises(RuleFailed, match=r"\{plugin_data\[a\]\|int\}: the value must be an integer") as caught:
        written("{plugin_data[a]|int}", {"a": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_masked_secrets_are_not_made_into_names() -> None:
    secrets = {"password": "hunter2"}
    assert written("{plugin_data[password]|upper}", secrets) == "******"
    assert written("{plugin_data[password]|upper}", secrets, mask_secrets="never") == "HUNTER2"
    for name in ("slug", "trait", "int"):
        with pytest.raises(RuleFailed, match="the value must"):
            written(f"{{plugin_data[password]|{name}}}", secrets)


def test_converted_text_is_limited_before_and_after() -> None:
    rule = world.rule(actions=[{"op": "set-plugin-data", "args": ["x", "{plugin_data[a]|upper}"]}])
    compiled = world.compiled(rule, limits=rules.Limits(result=3))
    rules.evaluate(compiled, world.facts(plugin_data={"a": "abc"}))
    for text in ("abcd", "aß\u0390"):
        with pytest.raises(RuleFailed, match="longer than 3 characters"):
            rules.evaluate(compiled, world.facts(plugin_data={"a": text}))


@walking("rule, where, text", [
    ({"conditions": [{"op": "is-true", "args": ["{inventory[a]|lower}"], "loop": "{inventory[disks]|lower}"}]},
     "/conditions/0/loop", "this template gives text"),
    ({"conditions": [{"op": "one-of", "args": ["a", "{inventory[a]|int}"]}]}, "/conditions/0/args/1",
     "must be a list, or a template that gives one; this template gives an integer"),
    ({"conditions": [{"op": "eq", "args": {"values": "{inventory[a]|slug}"}}]}, "/conditions/0/args/values",
     "this template gives text"),
    ({"conditions": [{"op": "matches", "args": ["a", "{inventory[a]|int}"]}]}, "/conditions/0/args/1",
     "must be a string"),
    ({"actions": [{"op": "log", "args": ["a {ports|upper}"]}]}, "/actions/0/args/0",
     "column 4: this is a list or an object, which cannot be converted"),
    ({"actions": [{"op": "add-trait", "args": ["{inventory[a]|treat}"]}]}, "/actions/0/args/0",
     "did you mean 'trait'?"),
    ({"actions": [{"op": "log", "args": ["{inventory[a]|lower|count}"]}]}, "/actions/0/args/0",
     "column 21: count must be the first conversion"),
    ({"conditions": [{"op": "eq", "args": ["{inventory[a]|count|count}", 1]}]}, "/conditions/0/args/0",
     "column 21: count must be the first conversion, or follow sort or unique"),
    ({"conditions": [{"op": "eq", "args": ["{inventory[a]|unique|lower}", 1]}]}, "/conditions/0/args/0",
     "column 22: lower converts no list; those that do are any, count, first, max"),
    ({"conditions": [{"op": "is-true", "args": ["{item}"], "loop": "{inventory[disks]|max}"}]},
     "/conditions/0/loop", "this template gives one value"),
])
def test_a_conversion_that_can_never_fit_is_refused(rule: dict[str, Any], where: str, text: str) -> None:
    problem, = world.validate(world.rule(**rule))
    assert problem.where == where
    assert text in problem.text


def test_a_converted_path_is_not_a_lookup_of_the_index() -> None:
    plain, converted = (
        world.compiled(world.rule(conditions=[{"op": "eq", "args": [text, "rack07-node3"]}])).conditions[0]
        for text in ("{inventory[hostname]}", "{inventory[hostname]|lower}"))
    assert plain.lookup is not None
    assert converted.lookup is None
