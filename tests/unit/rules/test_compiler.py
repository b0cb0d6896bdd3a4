from __future__ import annotations

import tracemalloc
from typing import Any

from ironic_rules import rules
from tests.unit.rules import world
from tests.walking import walking


def problems(rule: Any, **options: Any) -> dict[str, str]:
    """Return the texts of all problems by place."""
    return {problem.where: problem.text for problem in world.validate(rule, **options)}


def test_minimal_rule_is_valid() -> None:
    assert world.validate({"actions": [{"op": "fail", "args": ["x"]}]}) == []


def test_full_rule_is_valid() -> None:
    rule = world.rule(
        description="full rule", priority=9999, phase="preprocess", scope="lab", sensitive=True,
        conditions=[{"op": "! matches", "loop": ["eth0"], "multiple": "all", "args": {"value": "{item}",
        "regex": "ib"}}],
    )
    assert world.validate(rule) == []


def test_all_problems_are_found_at_once() -> None:
    found = problems({
        "uuid": "x", "priority": 10000, "phase": "late", "nosuch": 1,
        "conditions": [{"op": "eqq", "args": [1]}, {"op": "in-net", "args": ["a", "b"]}, 5],
        "actions": [{"op": "set-attribute", "args": {"path": "/uuid", "value": "{node.nm}", "extra": 1}}, {"args": []}],
    })
    assert set(found) == {
        "/uuid", "/priority", "/phase", "/nosuch", "/conditions/0/op", "/conditions/1/args/0", "/conditions/1/args/1",
        "/conditions/2", "/actions/0/args/path", "/actions/0/args/value", "/actions/0/args/extra",
        "/actions/1/op",
    }
    assert "did you mean 'eq'?" in found["/conditions/0/op"]
    assert found["/actions/0/args/value"] == "column 7: there is no such field; did you mean 'name'?"


@walking("field, value", [
    ("uuid", "x"), ("uuid", 5), ("uuid", "{1be26c0b-03f2-4d2e-ae87-c02d7f33c123}"),
    ("uuid", "1be26c0b-03f2-4d2e-ae87-c02d7f33c123\n"), ("description", 5), ("description", "x" * 256),
    ("description", "a\x00"), ("description", "\ud800"), ("priority", -1), ("priority", 10000), ("priority", True),
    ("priority", None), ("priority", "5"), ("priority", 1.0), ("phase", None), ("phase", "late"), ("phase", []),
    ("scope", ""), ("scope", 5), ("sensitive", "true"), ("sensitive", None), ("sensitive", 1), ("conditions", None),
    ("conditions", {}), ("conditions", "x"), ("actions", None), ("actions", []), ("actions", {}), ("nosuch", 1),
    ("built_in", True), ("created_at", None), ("id", 1),
])
def test_wrong_field_is_named(field: str, value: Any) -> None:
    assert set(problems(world.rule(**{"uuid": None, field: value}))) == {f"/{field}"}


def test_a_rule_without_actions_is_refused() -> None:
    assert problems({"conditions": []}) == {"/actions": "is required"}


@walking("field, value", [
    ("uuid", None), ("description", None), ("description", "x" * 255), ("priority", 0), ("priority", 9999),
    ("scope", None), ("phase", "early"), ("sensitive", True), ("conditions", []),
])
def test_right_field_passes(field: str, value: Any) -> None:
    assert problems(world.rule(**{"uuid": None, field: value})) == {}


@walking("priority", [-5, 10000, 123456])
def test_built_in_rules_have_any_priority(priority: int) -> None:
    assert problems(world.rule(priority=priority), built_in=True) == {}
    assert world.compiled(world.rule(priority=priority, built_in=True)).priority == priority


def test_stored_rule_compiles_with_its_columns() -> None:
    stored = world.rule(position=3, revision=4, created_at=None, updated_at=None, built_in=False, phase=None)
    assert world.compiled(stored).position == 3


@walking("rule", [None, [], "x", 5])
def test_something_else_than_an_object_is_a_problem(rule: Any) -> None:
    assert set(problems(rule)) == {""}


@walking("operation, where", [
    ("x", ""), ([], ""), ({}, "/op"), ({"op": 5}, "/op"), ({"op": None}, "/op"), ({"op": ""}, "/op"),
    ({"op": "!!eq", "args": [1]}, "/op"), ({"op": "!  eq", "args": [1]}, "/op"), ({"op": "eq", "args": None}, "/args"),
    ({"op": "eq", "args": "x"}, "/args"), ({"op": "eq", "args": [1], "nosuch": 1}, "/nosuch"),
    ({"op": "eq", "args": [1], "loop": [1], "multiple": ""}, "/multiple"),
    ({"op": "eq", "args": [1], "loop": [1], "multiple": []}, "/multiple"),
    ({"op": "eq", "args": [1], "loop": "{inventory"}, "/loop"), ({"op": "eq", "args": [1], "loop": "x"}, "/loop"),
    ({"op": "eq", "args": [{1: 2}]}, "/args/0"), ({"op": "eq", "args": [1, float("nan")]}, "/args/1"),
    ({"op": "eq", "args": [1, {"a/b": "{"}]}, "/args/1/a~1b"), ({"op": "eq", "args": [1, "\x00"]}, "/args/1"),
    ({"op": "eq", "args": [1, {1, 2}]}, "/args/1"),
])
def test_malformed_condition_is_named(operation: Any, where: str) -> None:
    assert set(problems(world.rule(conditions=[operation]))) == {f"/conditions/0{where}"}


@walking("operation, where", [
    ("x", ""), ({}, "/op"), ({"op": "!log", "args": ["x"]}, "/op"), ({"op": "log", "args": ["x"], "multiple": "any"},
    "/multiple"),
    ({"op": "api-call", "args": {"url": "x"}}, "/args/url"),
])
def test_malformed_action_is_named(operation: Any, where: str) -> None:
    assert set(problems(world.rule(actions=[operation]))) == {f"/actions/0{where}"}


def test_null_loop_and_multiple_are_absent_ones() -> None:
    assert problems(world.rule(conditions=[{"op": "eq", "args": [1], "loop": None, "multiple": None}])) == {}


def test_underscores_are_answered_with_hyphens() -> None:
    assert "did you mean 'set-attribute'?" in problems(world.rule(actions=[{"op": "set_attribute"}]))["/actions/0/op"]


SECRET = "hunter2-in-a-rule"


@walking("rule", [
    world.rule(conditions=[{"op": SECRET}]), world.rule(conditions=[SECRET]), world.rule(phase=SECRET),
    world.rule(conditions=[{"op": "matches", "args": ["a", f"({SECRET}"]}]),
    world.rule(conditions=[{"op": "matches", "args": ["a", f"{SECRET}(?<={SECRET})"]}]),
    world.rule(conditions=[{"op": "in-net", "args": ["a", SECRET]}]),
    world.rule(conditions=[{"op": "eq", "args": ["a", f"{{{SECRET}"]}]),
    world.rule(conditions=[{"op": "eq", "args": ["a", f"{{node.{SECRET}}}"]}]),
    world.rule(actions=[{"op": "set-attribute", "args": ["/name", [SECRET]]}]),
    world.rule(actions=[{"op": "set-attribute", "args": [f"/{SECRET}", 1]}]),
    world.rule(actions=[{"op": "log", "args": ["x", SECRET]}]), world.rule(actions=[{"op": "add-trait",
    "args": [SECRET]}]),
    world.rule(actions=[{"op": "set-port-attribute", "args": [SECRET, "/extra/x", 1]}]),
    world.rule(uuid=SECRET), world.rule(description=[SECRET]), world.rule(priority=SECRET),
    world.rule(sensitive=SECRET),
])
def test_no_problem_quotes_a_value(rule: Any) -> None:
    found = world.validate(rule)
    assert found
    assert SECRET not in repr(found)


@walking("limits, rule, where", [
    (rules.Limits(conditions=1), {"conditions": [{"op": "eq", "args": [1]}] * 2}, "/conditions"),
    (rules.Limits(actions=1), {"actions": [{"op": "log", "args": ["x"]}] * 2}, "/actions"),
    (rules.Limits(loop_items=1), {"conditions": [{"op": "eq", "args": [1], "loop": [1, 2]}]}, "/conditions/0/loop"),
    (rules.Limits(depth=2), {"conditions": [{"op": "eq", "args": [1, [[[]]]]}]}, "/conditions/0/args/1/0/0"),
    (rules.Limits(text=3), {"conditions": [{"op": "eq", "args": [1, "four"]}]}, "/conditions/0/args/1"),
    (rules.Limits(), {"conditions": [{"op": "matches", "args": ["a", "a" * 5000]}]}, "/conditions/0/args/1"),
    (rules.Limits(), {"conditions": [{"op": "matches", "args": ["a", "((a{100}){100}){100}"]}]},
    "/conditions/0/args/1"),
])
def test_limits_are_kept(limits: rules.Limits, rule: dict[str, Any], where: str) -> None:
    assert set(problems(world.rule(**rule), limits=limits)) == {where}


def test_limits_hold_for_data_too() -> None:
    limits = rules.Limits(loop_items=2, result=5, subject=10)
    conditions = [
        {"op": "is-true", "args": [True], "loop": "{inventory[cpu][flags]}"}, {"op": "eq",
        "args": ["{inventory[hostname]}!"]},
        {"op": "contains", "args": ["{inventory[hostname]}", "x"]}, {"op": "!matches", "args": ["é" * 5, ".*"]},
        {"op": "contains", "args": [["12345", "67890", 1], "^1"]}, {"op": "contains", "args": ["ten bytes!", "^t"]},
        {"op": "!matches", "args": ["é" * 5 + "e", "x"]},
    ]
    rule = world.compiled(world.rule(conditions=conditions), limits=limits)
    trace = rules.evaluate(rule, world.facts(), explain=True)
    too_long = "the text is longer than the 10 bytes that regular expressions are applied to"
    assert trace is not None
    assert [condition.note for condition in trace.conditions] == [
        "the loop has more than 2 items", "the text is longer than 5 characters", too_long, None, too_long, None,
        too_long]
    assert [condition.outcome for condition in trace.conditions] == [None, None, None, False, None, True, None]


def test_a_compiled_rule_keeps_little_of_its_text() -> None:
    """The buffers in which JSON is written are many times as large as what is written."""
    stored = [rules.Rule.of({"uuid": f"00000000-0000-4000-8000-{number:012x}", "conditions": [
        {"op": "eq", "args": ["{inventory[hostname]}", f"host-{number}"]}],
        "actions": [{"op": "set-attribute", "args": [f"/extra/a{number}", number]}]}) for number in range(200)]
    kept = [rules.compile(stored[0])]
    tracemalloc.start()
    try:
        kept += map(rules.compile, stored[1:])
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(stored) < 4096
