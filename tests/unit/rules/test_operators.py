"""Every operator with its vectors and its own example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironic_rules import rules
from ironic_rules.rules.signatures import Operation
from tests.unit.rules import world
from tests.walking import walking

CASES = world.vectors("operators")
EXPECTED = [vector for vector in CASES if "expect" in vector[1]]


def condition(op: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return the vector's condition."""
    return {"op": op, **{key: case[key] for key in ("args", "loop", "multiple") if key in case}}


def outcome(op: str, case: dict[str, Any]) -> bool | None:
    """Return true or false, or None if the condition cannot be evaluated."""
    rule = world.rule(conditions=[condition(op, case)])
    given = world.facts(plugin_data=case.get("plugin_data"))
    return world.run(rule, given=given, explain=True)[0].conditions[0].outcome


def test_outcome_is_as_expected() -> None:
    found = [(world.name_of(vector), outcome(*vector)) for vector in EXPECTED]
    assert found == [(world.name_of(vector), vector[1]["expect"]) for vector in EXPECTED]


@walking("mark", ["!", "! "])
def test_inverse_is_the_opposite_of_what_can_be_evaluated(mark: str) -> None:
    found = [(world.name_of((op, case)), outcome(mark + op, case)) for op, case in EXPECTED]
    opposites = {True: False, False: True, None: None}
    assert found == [(world.name_of(vector), vector[1].get("inverse", opposites[vector[1]["expect"]]))
                     for vector in EXPECTED]


def test_rule_matches_exactly_when_its_condition_is_true() -> None:
    found = [(world.name_of((op, case)), matches(op, case)) for op, case in EXPECTED]
    assert found == [(world.name_of(vector), vector[1]["expect"] is True) for vector in EXPECTED]


def matches(op: str, case: dict[str, Any]) -> bool:
    """Return whether a rule with the vector's condition has a trace, without explanations."""
    rule = world.rule(conditions=[condition(op, case)])
    return bool(world.run(rule, given=world.facts(plugin_data=case.get("plugin_data"))))


@walking("vector", [v for v in CASES if "problems" in v[1]])
def test_problems_name_their_places(vector: Any) -> None:
    op, case = vector
    problems = {p.where: p.text for p in world.validate(world.rule(conditions=[condition(op, case)]))}
    assert problems.keys() == case["problems"].keys()
    assert [text for where, text in case["problems"].items() if text not in problems[where]] == []


def wrong_with_example(operation: Operation) -> Iterator[str]:
    """Yield the problems of the example in the docstring of an operator."""
    example = world.example(operation)
    if example["op"] != operation.name:
        yield f"{operation.name}: the example is one of {example['op']}"
    for facts in world.of_reports():
        trace, = world.run(world.rule(conditions=[example]), given=facts, explain=True)
        if trace.conditions[0].outcome is None:
            yield f"{operation.name}: {facts.inventory.get('hostname')}: {trace.conditions[0]}"


def test_every_example_in_a_docstring_runs_on_real_reports() -> None:
    assert [problem for operation in rules.OPERATORS for problem in wrong_with_example(operation)] == []


def test_every_docstring_describes_every_argument() -> None:
    assert [f"{operation.name}: {name}" for operation in rules.OPERATORS for name in operation.argument_names()
            if f":param {name}:" not in operation.doc] == []


def test_every_operator_has_vectors() -> None:
    assert {stem for stem, _ in CASES} == set(rules.OPERATORS.names())


def test_operators_are_those_of_the_document() -> None:
    assert set(rules.OPERATORS.names()) == {
        "is-true", "is-false", "is-none", "is-empty", "eq", "lt", "gt", "in-net", "contains", "matches", "one-of",
        # Those of ironic-inspector.
        "ne", "le", "ge",
        # That of facts.
        "changed",
    }


@walking("text", ["lone \ud800 surrogate", "naïve"])
def test_text_that_is_not_ascii_is_searched(text: str) -> None:
    rule = world.rule(conditions=[{"op": "contains", "args": ["{plugin_data[x]}", "[a-z]"]}])
    trace, = world.run(rule, given=world.facts(plugin_data={"x": text}))
    assert trace.matched
