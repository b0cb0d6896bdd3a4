"""Every action with its vectors and its own example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules import rules
from ironic_rules.exceptions import RuleFailed
from ironic_rules.rules.signatures import Operation
from tests.unit.rules import world
from tests.walking import walking

CASES = world.vectors("actions")


def rule(op: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with the vector's action."""
    action: dict[str, Any] = {"op": op, **{key: case[key] for key in ("args", "loop") if key in case}}
    return world.rule(actions=[action], phase=case.get("phase", "main"))


def given(case: dict[str, Any]) -> rules.Facts:
    """Return the vector's facts."""
    early = case.get("phase") == "early"
    return world.facts(case.get("node"), case.get("plugin_data"), case.get("inventory"), early=early)


@walking("vector", [v for v in CASES if "expect" in v[1]])
def test_effect_is_as_expected(vector: Any) -> None:
    op, case = vector
    facts = given(case)
    world.run(rule(op, case), given=facts, phase=case.get("phase", "main"))
    expected = {"plugin_data": case.get("plugin_data", {}), **case["expect"]}
    assert world.effects(facts) == expected


@walking("vector", [v for v in CASES if "fails" in v[1]])
def test_failure_names_rule_action_and_reason_and_leaves_nothing_behind(vector: Any) -> None:
    op, case = vector
    facts = given(case)
    with pytest.raises(RuleFailed) as caught:
        world.run(rule(op, case), given=facts, phase=case.get("phase", "main"))
    assert caught.value.facts["rule"] == rule(op, case)["uuid"]
    assert caught.value.facts["where"] == "/actions/0"
    assert case["fails"] in caught.value.facts["reason"]
    assert world.effects(facts) == {"plugin_data": case.get("plugin_data", {})}


@walking("vector", [v for v in CASES if "problems" in v[1]])
def test_problems_name_their_places(vector: Any) -> None:
    op, case = vector
    problems = {p.where: p.text for p in world.validate(rule(op, case))}
    assert problems.keys() == case["problems"].keys()
    assert [text for where, text in case["problems"].items() if text not in problems[where]] == []


def wrong_with_example(operation: Operation) -> Iterator[str]:
    """Yield the problems of the example in the docstring of an action."""
    example = world.example(operation)
    if example["op"] != operation.name:
        yield f"{operation.name}: the example is one of {example['op']}"
    yield from (f"{operation.name}: {problem}" for problem in world.validate(world.rule(actions=[example])))
    for facts in world.of_reports():
        try:
            world.run(world.rule(actions=[example]), given=facts)
        except RuleFailed as exc:
            if operation.name != "fail":
                yield f"{operation.name}: {facts.inventory.get('hostname')}: {exc}"


def test_every_example_in_a_docstring_runs_on_real_reports() -> None:
    assert [problem for operation in rules.ACTIONS for problem in wrong_with_example(operation)] == []


def test_every_docstring_describes_every_argument() -> None:
    assert [f"{operation.name}: {name}" for operation in rules.ACTIONS for name in operation.argument_names()
            if f":param {name}:" not in operation.doc] == []


def test_every_argument_is_formatted() -> None:
    assert [f"{operation.name}: {name}" for operation in rules.ACTIONS
            for name in operation.formatted.symmetric_difference(operation.argument_names())] == []


def test_every_action_has_vectors() -> None:
    assert {stem for stem, _ in CASES} == set(rules.ACTIONS.names())


def test_early_actions_are_those_of_the_document() -> None:
    assert {operation.name for operation in rules.ACTIONS if operation.early} == {
        "fail", "log", "set-plugin-data", "extend-plugin-data", "unset-plugin-data",
    }


def test_values_of_the_inventory_are_copied() -> None:
    facts = world.facts(node={"extra": {}})
    world.run(
        world.rule(actions=[
            {"op": "set-attribute", "args": ["/extra/flags", "{inventory[cpu][flags]}"]},
            {"op": "extend-attribute", "args": ["/extra/flags", "new"]},
            {"op": "set-plugin-data", "args": ["flags", "{inventory[cpu][flags]}"]},
            {"op": "extend-plugin-data", "args": ["flags", "new"]},
        ]),
        given=facts, mask_secrets="never",
    )
    assert facts.inventory["cpu"]["flags"] == ["vmx", "aes", "pse"]


def test_constants_of_a_rule_are_copied() -> None:
    compiled = world.compiled(world.rule(actions=[
        {"op": "set-attribute", "args": ["/extra/l", [1]]}, {"op": "extend-attribute", "args": ["/extra/l", 2]},
    ]))
    first, second = world.facts(node={"extra": {}}), world.facts(node={"extra": {}})
    rules.evaluate(compiled, first)
    rules.evaluate(compiled, second)
    assert world.effects(second)["node"] == {"extra": {"l": [1, 2]}}
