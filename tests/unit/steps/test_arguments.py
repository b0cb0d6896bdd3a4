"""Validation of arguments by the schema of their step."""

from __future__ import annotations

import pytest

from ironic_rules.steps import declaration
from tests.walking import walking

SCHEMA = {"description": "an object", "type": "object", "required": ["a", "b"], "additionalProperties": False,
          "properties": {"a": {"description": "a number", "type": "integer"}, "b": {"enum": [1]}}}


def test_a_value_that_fits():
    assert declaration.argument_problems(SCHEMA, {"a": 2, "b": 1}) == []


@walking("value, wrong", [
    (5, [((), "must be an object")]), ({}, [(("a",), "is required"), (("b",), "is required")]),
    ({"a": 1, "b": 1, "c": 1, "d": 1}, [(("c",), "is not one of a, b"), (("d",), "is not one of a, b")]),
    ({"a": True, "b": 2}, [(("a",), "must be a number"), (("b",), "is not accepted by the step")]),
    ({"a": 1.0, "b": 1}, [(("a",), "must be a number")]),
])
def test_each_problem_has_its_place(value, wrong):
    assert declaration.argument_problems(SCHEMA, value) == wrong


def test_no_problem_has_the_value():
    assert "s3cr3t" not in str(declaration.argument_problems({"items": {"type": "integer"}}, ["s3cr3t"]))


def test_what_is_no_schema_is_refused():
    with pytest.raises(TypeError, match="schema"):
        declaration.check_schema({"type": "nonsense"})


@walking("value, fits", [
    ("2026-11-21T12:00:00+00:00", True), ("2026-11-21T12:00:00Z", True), ("2026-11-21T12:00:00", False),
    ("2026-02-30T12:00:00Z", False), ("noon", False), ("", False), (5, True)])
def test_a_time_has_an_offset(value, fits):
    assert (declaration.argument_problems({"format": "date-time"}, value) == []) == fits


def test_one_of_a_few_texts():
    schema = declaration.one_of(("a", "b"))

    assert declaration.argument_problems(schema, "b") == []
    expected = [((), "must be one of a, b")]
    assert declaration.argument_problems(schema, "c") == declaration.argument_problems(schema, ["a"]) == expected
