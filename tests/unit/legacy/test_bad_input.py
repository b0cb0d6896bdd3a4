"""Bad rules and bad data: refused with pointers, or false with a note; checked and evaluated in bounded time."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import pytest

from ironic_rules import legacy
from ironic_rules.exceptions import InvalidRule
from ironic_rules.legacy import compiler, paths
from ironic_rules.rules.limits import DEFAULT
from tests.unit.legacy.world import Machine, rule, rule_set
from tests.walking import walking

HIT = {"action": "set-attribute", "path": "/extra/hit", "value": True}
#: A part of a path that finds the value before it twice.
TWICE = "(`this`|`this`)"


def refused(body: Any) -> list[str]:
    """Return where the problems of a body are."""
    with pytest.raises(InvalidRule) as caught:
        legacy.parse(body)
    assert all(problem.text for problem in caught.value.problems)
    return [problem.where for problem in caught.value.problems]


@walking("field", [
    "", " ", "http://x", "[", "a b", "node://", "data://", "a" * 10_000, ".".join("*" * 200), "a" + "[*]" * 10_000,
    "(" * 400 + "a", "a[::0]", "a..b.`parent`", "a & b", "`nope`", "a[?(@.x)]", "$." + "`parent`." * 150 + "a",
    "|".join("a" * 500)])
def test_paths_that_cannot_be_used(field: str) -> None:
    assert refused({"conditions": [{"field": field, "op": "is-empty"}], "actions": [HIT]}) == ["/conditions/0/field"]


@walking("condition, where", [
    ({"field": "a", "op": "matches"}, "value"), ({"field": "a", "op": "matches", "value": None}, "value"),
    ({"field": "a", "op": "matches", "value": 7}, "value"), ({"field": "a", "op": "contains", "value": "(a"}, "value"),
    ({"field": "a", "op": "net", "value": 7}, "value"),
    ({"field": "a", "op": "in-net", "value": "10.0.0.0/99"}, "value"),
    ({"field": "a", "op": "eq", "value": 1, "multiple": "last"}, "multiple"),
    ({"field": "a", "op": "eq", "value": 1, "multiple": ["any"]}, "multiple"),
    ({"field": "a", "op": "eq", "value": 1, "invert": "yes"}, "invert"),
    ({"field": "a", "op": "eq", "value": 1, "surplus/~": 1}, "surplus~1~0"),
    ({"field": 1, "op": "is-empty"}, "field"), ({"field": "a"}, "op"), ({"field": "a", "op": "qe", "value": 1}, "op"),
    ({"field": "a", "op": "is-empty", "value": 1}, "value"), ({"op": "is-empty"}, "field")])
def test_conditions_that_are_refused(condition: dict[str, Any], where: str) -> None:
    assert refused({"conditions": [condition], "actions": [HIT]}) == [f"/conditions/0/{where}"]


@walking("action, where", [
    ({"action": "set-attribute", "path": "/extra/a"}, "/value"), ({"action": "set-attribute", "value": 1}, "/path"),
    ({"action": "set-attribute", "key": "/uuid", "value": 1}, "/key"),
    ({"action": "set-attribute", "path": "/provision_state", "value": "x"}, "/path"),
    ({"action": "set-attribute", "path": "", "value": 1}, "/path"),
    ({"action": "set-attribute", "path": "/", "value": 1}, "/path"),
    ({"action": "set-attribute", "path": 1, "value": 1}, "/path"),
    ({"action": "set-attribute", "path": "/driver/x", "value": 1}, "/path"),
    ({"action": "set-attribute", "path": "/extra/~2", "value": 1}, "/path"),
    ({"action": "set-attribute", "path": "/driver", "value": 1}, "/value"),
    ({"action": "set-attribute", "path": "/driver", "value": "a", "cleanup": None}, "/cleanup"),
    ({"action": "set-attribute", "path": "/extra/a", "key": "/extra/b", "value": 1}, "/key"),
    ({"action": "set-attribute", "path": "/extra/a", "value": 1, "reset_interfaces": True}, "/reset_interfaces"),
    ({"action": "append-attribute", "path": "/extra", "value": 1}, "/path"),
    ({"action": "append-attribute", "path": "/extra/a", "value": 1, "unique": 1}, "/unique"),
    ({"action": "append-attribute", "path": "/extra/a", "value": 1, "cleanup": "{data"}, "/cleanup"),
    ({"action": "set-capability", "name": "a:b", "value": 1}, "/name"),
    ({"action": "set-capability", "name": "", "value": 1}, "/name"),
    ({"action": "set-capability", "name": "a", "value": [1]}, "/value"),
    ({"action": "add-trait", "name": "nope"}, "/name"), ({"action": "add-trait"}, "/name"),
    ({"action": "fail", "message": "m", "maintenance": "yes"}, "/maintenance"),
    *(({"action": "fail", "message": text}, "/message") for text in (
        "{data[", "{data[]}", "{1,2} {data[a].b}", "{data[a]|lower}", "{ {data[a]!r}}", 7)),
    ({"action": "fail"}, "/message"),
    ({"action": "nope"}, "/action"), ({}, "/action"), ("fail", "")])
def test_actions_that_are_refused(action: Any, where: str) -> None:
    assert refused({"actions": [action]}) == [f"/actions/0{where}"]


@walking("value", [
    "{", "}", "{0}", "{}", "{data[cpus]:>8}", "{data[cpus]!r}", "{data.keys}", "{data[a].b}", "{node[name]}",
    "{data[a]|int}", "{data[]}", "{data[a", "{data['a']}", {"{data.x}": 1}, ["{0}"], "a\x00"])
def test_templates_that_are_refused(value: Any) -> None:
    found = refused({"actions": [{"action": "set-attribute", "path": "/extra/a", "value": value}]})
    assert len(found) == 1
    assert found[0].startswith("/actions/0/value")


@walking("value", ["x {data[cpus]!r}", "x {data[cpus]|lower}", "x {data[cpus]|nope}"])
@walking("name", ["value", "message"])
def test_the_hint_of_a_refused_conversion_can_be_followed(name: str, value: str) -> None:
    action = {"action": "set-attribute", "path": "/extra/a"} if name == "value" else {"action": "fail"}
    with pytest.raises(InvalidRule, match=r"column 1[45]: conversions are not supported: write .* {data\[memory_mb\]}"):
        rule([], [{**action, name: value}])
    rule([], [{**action, name: "x {data[memory_mb]}"}])


@walking("body, where", [
    ([], [""]), (None, [""]), ({}, ["/actions"]), ({"actions": []}, ["/actions"]), ({"actions": "x"}, ["/actions"]),
    ({"actions": [HIT], "conditions": {}}, ["/conditions"]), ({"actions": [HIT], "uuid": "x"}, ["/uuid"]),
    ({"actions": [HIT], "scope": 1}, ["/scope"]), ({"actions": [HIT], "scope": "x" * 256}, ["/scope"]),
    ({"actions": [HIT], "description": "\x00"}, ["/description"]), ({"actions": [HIT], "priority": 1}, ["/priority"]),
    ({"actions": [HIT] * 101}, ["/actions"]), ({"actions": [{**HIT, "value": math.nan}]}, ["/actions/0/value"]),
    ({"actions": [{**HIT, "value": 2 ** 70}]}, ["/actions/0/value"])])
def test_bodies_that_are_refused(body: Any, where: list[str]) -> None:
    assert refused(body) == where


def test_all_problems_are_reported_at_once() -> None:
    assert refused({
        "uuid": 1, "conditions": [{"field": "[", "op": "nope"}, {"field": "a", "op": "eq"}],
        "actions": [{"action": "fail", "maintenance": 1, "message": "{data["}, {"action": "set-attribute"}],
    }) == ["/uuid", "/conditions/0/field", "/conditions/1/value", "/actions/0/message", "/actions/0/maintenance",
           "/actions/1/path", "/actions/1/value", "/conditions/0/op"]


def test_the_form_of_the_document_and_of_ironic_inspector() -> None:
    stored = rule([{"field": "a", "op": "net", "value": "10.0.0.0/8"}],
                  [{"action": "append-attribute", "key": "extra/l", "value": 1}], description="d", scope="",
                  uuid="0F9BD1A6-9D27-4B13-8F0E-B0F3E1B9B0B1", links=[], created_at=None)
    assert stored.said() == {
        "uuid": "0F9BD1A6-9D27-4B13-8F0E-B0F3E1B9B0B1", "description": "d", "scope": "",
        "conditions": [{"field": "a", "op": "net", "value": "10.0.0.0/8", "invert": False, "multiple": "any"}],
        "actions": [{"action": "append-attribute", "key": "extra/l", "value": 1}]}
    assert legacy.parse(stored.said()).said() == stored.said()


class TestBounds:
    def test_a_large_rule_is_refused_before_it_is_checked(self) -> None:
        value = ["{data[a][b]}"] * 300_000
        with pytest.raises(InvalidRule, match=f"a rule has at most {compiler.MAX_SIZE} bytes"):
            rule([], [{"action": "set-attribute", "path": "/extra/a", "value": value}])

    def test_problems_are_bounded(self) -> None:
        with pytest.raises(InvalidRule) as caught:
            rule([], [{"action": "fail", "message": "m", **{f"x{number}": 1 for number in range(5000)}}])
        assert len(caught.value.problems) == 100

    def test_deep_values(self) -> None:
        value: Any = 1
        for _ in range(200):
            value = [value]
        assert refused({"actions": [{**HIT, "value": value}]})[0].startswith("/actions/0/value/0/0")

    def test_recursive_descent_over_deep_data(self) -> None:
        deep: Any = {"x": 1}
        for _ in range(200):
            deep = {"a": [deep]}
        machine = Machine()
        machine.inspect(rule_set([{"conditions": [{"field": "$..x", "op": "eq", "value": 1}], "actions": [HIT]}]), deep)
        assert machine.node["extra"] == {"hit": True}

    def test_the_text_of_deep_data(self) -> None:
        deep: Any = []
        for _ in range(100_000):  # more than any version of Python makes a text of
            deep = [deep]
        made = rule([{"field": "a", "op": "contains", "value": "x", "invert": True}], [HIT])
        machine = Machine()
        outcome = machine.inspect(
            legacy.LegacyRuleSet([legacy.compile_rule(made)], mask_secrets="never"), {"a": deep})
        assert (outcome.failure, machine.node["extra"]) == (None, {})

    @walking("field", ["l[*]", "$..*", "l[*].`parent`[*]", "*.*", "l[*]|l[*]", "l..*"])
    @walking("invert", [True, False])
    def test_too_many_values_are_false_with_a_note(self, field: str, invert: bool) -> None:
        machine = Machine()
        rules = rule_set([{"conditions": [{"field": field, "op": "eq", "value": 1, "invert": invert}],
                           "actions": [HIT]}])
        outcome = machine.inspect(rules, {"l": list(range(DEFAULT.loop_items + 1))}, explain=True)
        assert outcome.traces[0].conditions[0].outcome is None
        assert outcome.traces[0].conditions[0].note == f"the path finds more than {DEFAULT.loop_items} values"

    @walking("field", [
        "$..nope..nope",
        # The same value again, twice as often for each part: none of these ends by the values that are found.
        *(f"{start}.{'.'.join([TWICE] * 58)}{end}" for start, end in (
            ("n", ".nope"), ("n", ".*"), ("n", "[0]"), ("n", "[0:9]"), ("o", "[0]"), ("o", "[0:9]"), ("e", "[0:9]"))),
        f"n.{'.'.join([f'({TWICE} where `this`)'] * 30)}.nope",
        f"a[*].({'|'.join(['nope'] * 100)})", f"a[*] wherenot ({'|'.join(['`this`'] * 100)})",
        "p[*].`parent`[*]." + ",".join(["nope"] * 150)])
    def test_a_walk_that_finds_nothing_ends(self, field: str) -> None:
        data = {"l": [[[0] * 100] * 100] * 100, "a": [0] * 4000, "p": [{}] * 64, "n": 3, "o": {}, "e": []}
        outcome = Machine().inspect(rule_set([{"conditions": [{"field": field, "op": "is-empty"}],
                                               "actions": [HIT]}]), data, explain=True)
        assert outcome.traces[0].conditions[0].note == "the path looks at too many values"

    def test_regular_expressions_are_those_of_re2(self) -> None:
        machine = Machine()
        machine.inspect(rule_set([{"conditions": [{"field": "a", "op": "matches", "value": "(a+)+$"}],
                                   "actions": [HIT]}]), {"a": "a" * 30_000 + "!"})
        assert machine.node["extra"] == {}

    @walking("expression", ["SN0|" * 1023 + "SN1", r"\Qa|b"])
    def test_an_expression_that_becomes_too_long_is_valid(self, expression: str) -> None:
        machine = Machine()
        machine.inspect(rule_set([{"conditions": [{"field": "a", "op": "matches", "value": expression}],
                                   "actions": [HIT]}]), {"a": expression[-3:]})
        assert machine.node["extra"] != {}

    def test_the_text_of_a_list_is_made_once(self) -> None:
        made = mock.Mock(return_value="x")
        listed = type("Listed", (list,), {"__repr__": made})
        rules = rule_set([{"conditions": [{"field": "a", "op": "contains", "value": "y", "invert": number % 2 > 0}],
                           "actions": [HIT]} for number in range(20)])
        Machine().inspect(rules, {"a": [listed([1])]})
        assert made.call_count <= 2

    def test_what_rules_write_is_bounded(self) -> None:
        rules = rule_set([{"actions": [{**HIT, "value": ["{data[big]}"] * 1000}]}])
        failure = Machine().inspect(rules, {"big": "x" * 60_000}).failure
        assert failure is not None
        assert "the rules write more than" in str(failure.error)

    def test_the_length_of_a_path(self) -> None:
        assert paths.parse("a" * paths.MAX_LENGTH, 10).plain is not None


@walking("invert", [True, False])
@walking("value, condition", [
    ("x", {"op": "lt", "value": 3}), ([1], {"op": "eq", "value": 3}), (None, {"op": "ne", "value": 3}),
    (1e400, {"op": "eq", "value": 3}), ("9" * 5000, {"op": "eq", "value": 3}), (3, {"op": "lt", "value": "x"}),
    ({}, {"op": "ge", "value": []}), ("x", {"op": "net", "value": "10.0.0.0/8"}), (7, {"op": "net", "value": "::/0"}),
    ("x" * 40_000, {"op": "contains", "value": "x"}), (["x"] * 20_000, {"op": "contains", "value": "x"}),
    ({"x": ["x" * 40_000]}, {"op": "matches", "value": ".*"}), ([0] * 20_000, {"op": "contains", "value": "x"})])
def test_data_that_do_not_fit_make_a_condition_and_its_inverse_false(
        value: Any, condition: dict[str, Any], invert: bool) -> None:
    rules = rule_set([{"conditions": [{"field": "a", "invert": invert, **condition}], "actions": [HIT]}])
    outcome = Machine().inspect(rules, {"a": value}, explain=True)
    assert outcome.traces[0].conditions[0].outcome is None
    assert outcome.traces[0].conditions[0].note
    machine = Machine()
    machine.inspect(rules, {"a": value})
    assert machine.node["extra"] == {}
