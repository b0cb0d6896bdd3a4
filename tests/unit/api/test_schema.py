"""Schemas of bodies."""

from __future__ import annotations

import pytest

from ironic_rules.api import schema
from ironic_rules.exceptions import Invalid
from tests.walking import walking

UUID = "AAAAAAAA-1111-4111-8111-111111111111"


@walking("shape, value, loaded", [
    (schema.Text(5), "abc", "abc"), (schema.Text(nullable=True), None, None),
    (schema.Text(multiline=True), "a\nb", "a\nb"),
    (schema.Uuid(), UUID, UUID.lower()), (schema.Mac(), "52-54-00-AA-00-01", "52:54:00:aa:00:01"),
    (schema.Boolean(), "True", True), (schema.Boolean(), False, False), (schema.Boolean(), "no", False),
    (schema.Integer(0, 9), 9, 9), (schema.Integer(0, 9), 1.0, 1),
    (schema.Integer(-9, 9), "-5", -5), (schema.Enum("a", "b"), "b", "b"),
    (schema.Map(), {"x": [1]}, {"x": [1]}), (schema.List(schema.Integer(0, 9)), ["1", 2], [1, 2]),
    (schema.Object({"a": schema.Uuid()}), {"a": UUID}, {"a": UUID.lower()}),
    (schema.Object({}, extra=True), {"z": 1}, {"z": 1}),
    (schema.Text(pattern="[a-z]+"), "abc", "abc"), (schema.Anything(nullable=True), None, None),
])
def test_a_value_of_the_shape_is_converted(shape, value, loaded):
    assert shape.load(value) == loaded


@walking("shape, value", [
    (schema.Text(5), "abcdef"), (schema.Text(min_length=1), ""), (schema.Text(), None), (schema.Text(), 5),
    (schema.Text(), "a\nb"), (schema.Text(multiline=True), "a\x00b"), (schema.Text(pattern="[a-z]+"), "abc\n"),
    (schema.Text(pattern="a"), "ab"), (schema.Uuid(), UUID + "\n"), (schema.Uuid(), UUID.replace("-", "")),
    (schema.Mac(), "52:54:00:aa:00:01\n"), (schema.Mac(), "ff:ff:ff:ff:ff"), (schema.Mac(), 5),
    (schema.Boolean(), 1), (schema.Boolean(), "perhaps"), (schema.Boolean(lenient=False), "true"),
    (schema.Boolean(), None),
    (schema.Integer(0, 9), 10), (schema.Integer(0, 9), True), (schema.Integer(0, 9), 1.5),
    (schema.Integer(0, 9), float("inf")),
    (schema.Integer(0, 9), "1.0"),
    (schema.Integer(0, 9), "9" * 5000), (schema.Integer(0, 9, lenient=False), "1"), (schema.Enum("a"), ["a"]),
    (schema.Enum("a"), "A"), (schema.Map(), []), (schema.Map(), None), (schema.List(), {}),
    (schema.List(max_items=1), [1, 2]),
    (schema.List(min_items=1), []), (schema.Object({}), []), (schema.Object({}), {"x": 1}),
    (schema.Object({"a": schema.Map()}, required=["a"]), {}),
])
def test_a_value_of_another_shape_is_refused(shape, value):
    with pytest.raises(Invalid):
        shape.load(value)


def test_every_problem_has_the_pointer_of_its_place():
    shape = schema.Object({"list": schema.List(schema.Object({"n": schema.Integer(0, 9)})), "name": schema.Text()},
                          required=("uuid",))

    with pytest.raises(Invalid) as caught:
        shape.load({"list": [{"n": 1}, {"n": 10, "x/y~": 1}], "name": None})

    assert {problem.where for problem in caught.value.problems} == {"/uuid", "/list/1/n", "/list/1/x~1y~0", "/name"}


def test_errors_do_not_repeat_values_and_bound_names():
    with pytest.raises(Invalid) as caught:
        schema.Object({"password": schema.Integer(0, 9)}).load({"password": "hunter2", "\x1b" + "x" * 1000: 1})

    assert "hunter2" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300
