"""Values of facts: types, lists, bounds, and what is absent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ironic_rules import facts
from ironic_rules.facts import evaluation
from ironic_rules.facts.evaluation import FactData, FactSet, LazyFacts
from ironic_rules.models.facts import MAX_TEXT, MAX_VALUES, Fact, NodeFacts, of_stored
from ironic_rules.models.secrets import Concealment
from tests import strategies
from tests.walking import walking

A = "{inventory[a]}"
SETTINGS = settings(max_examples=strategies.wanted(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=300), st.sampled_from([
        2**53, "******", "52:54:00:12:34:56", "http://a:b@c", "\ud800", "\x00"])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8)


def compiled(**definition: Any) -> facts.CompiledFact:
    return facts.check({"name": "x", **definition}).of(Fact(name="x", id=1))


def found(given: Any, plugin_data: dict[str, Any] | None = None, conceal: Concealment | None = None,
          **definition: Any) -> NodeFacts:
    data = FactData({"a": given}, plugin_data or {}, lambda: {"name": "node-1"}, conceal)
    return FactSet([compiled(**{"value": A, **definition})]).find(data)


def plain(given: Any, **definition: Any) -> Any:
    """Return type and value; None if it is absent without a problem, or the problem."""
    result = found(given, **definition)
    if "x" in result.values:
        return result.values["x"].type, result.values["x"].plain()
    return result.problems.get("x")


LOOP = {"loop": A, "value": "{item}"}


@walking("value, definition, expected", [
    (" Dell ", {}, ("text", "Dell")), ("", {}, None), ("  ", {}, None), (None, {}, None), (True, {}, ("boolean", True)),
    (7, {}, ("integer", 7)), (7.0, {}, ("number", 7.0)), (2**53, {}, ("integer", 2**53)),
    ({}, {}, evaluation._NO_SCALAR),
    (2**53 + 1, {}, evaluation._TOO_GREAT), (float("inf"), {}, evaluation._TOO_GREAT),
    (float("nan"), {}, evaluation._TOO_GREAT), ("x" * 256, {}, evaluation._TOO_LONG),
    ("a\x00", {}, evaluation._UNSTORABLE),
    ("\ud800", {}, evaluation._UNSTORABLE), ("a\nb", {}, ("text", "a\nb")),
    ([1, 2.5], {}, ("number", [1, 2.5])), ([], {}, None), ([None, "", "a"], {}, ("text", ["a"])),
    ([1, True], {}, "the values have several types: boolean, integer"),
    (["a", 1], {}, evaluation._MIXED.format("integer, text")),
    ([[1]], {}, evaluation._NO_SCALAR), ([["a"], "b"], LOOP, ("text", ["a", "b"])),
    ("52-54-00-12-34-5E", {"value": "{inventory[a]|mac}"}, ("mac", "52:54:00:12:34:5e")),
    ("fe80::1%eth0", {"value": "{inventory[a]|address}"}, ("address", "fe80::1")),
    ("no", {"value": "{inventory[a]|mac}"}, "{inventory[a]|mac}: the value must be a MAC address"),
    ("52-54-00-12-34-5E", {"value": "x{inventory[a]|mac}"}, ("text", "x52:54:00:12:34:5e")),
    (["52-54-00-12-34-5E", None], {"loop": A, "value": "{item|mac}", "combine": "unique"},
     ("mac", ["52:54:00:12:34:5e"])),
    ([3, 1], {**LOOP, "combine": "max"}, ("integer", 3)), ([], {**LOOP, "combine": "max"}, None),
    ([], {**LOOP, "combine": "count"}, ("integer", 0)), ([], {**LOOP, "combine": "sum"}, ("integer", 0)),
    ([], {**LOOP, "combine": "any"}, None), (None, {**LOOP, "combine": "count"}, None), ("a", LOOP, None),
    ({"k": 1}, {"loop": A, "value": "{item[key]}={item[value]}"}, ("text", ["k=1"])),
    ([1, 2, 3], {**LOOP, "conditions": [{"op": "gt", "args": ["{item}", 1]}]}, ("integer", [2, 3])),
    (["a", 2], {**LOOP, "combine": "sum"}, "must be a number"),
    (5, {"conditions": [{"op": "gt", "args": [A, 5]}]}, None), (6, {"conditions": [{"op": "gt", "args": [A, 5]}]},
                                                              ("integer", 6)),
    (5, {"value": {"op": "gt", "args": [A, 4]}}, ("boolean", True)), (5, {"value": {"op": "gt", "args": [A, 5]}},
                                                                      ("boolean", False)),
    (None, {"value": {"op": "eq", "args": [A, 5]}}, None),
    ("a", {"value": {"op": "gt", "args": [A, 5]}}, ("boolean", False)),
    (["b"], {"value": {"op": "eq", "loop": A, "args": ["{item}", "b"]}}, ("boolean", True)),
    ([{"n": [1]}, {"n": [2]}, {}], {"loop": A, "value": {"op": "eq", "loop": "{item[n]}", "args": ["{item}", 1]}},
     ("boolean", [True, False])),
    ("a", {"value": [A, "{inventory[b]}", "{node[name]}"]}, ("text", ["a", "node-1"])),
    ("a", {"value": ["{inventory[b]}", A], "combine": "first"}, ("text", "a")),
    ("a", {"value": "{inventory[a]}-{inventory[b]}"}, None), (["sr0"], {"loop": ["x", A], "value": "{item}"},
                                                              ("text", ["x", "sr0"])),
])
def test_a_value_has_a_type_or_is_absent(value: Any, definition: dict[str, Any], expected: Any) -> None:
    assert plain(value, **definition) == expected


def test_long_lists_are_cut_and_the_loops_of_all_facts_are_bounded(monkeypatch: Any) -> None:
    result = found(list(range(10_000)), **LOOP)
    assert len(result.values["x"].values) == MAX_VALUES
    assert "1000 values" in result.problems["x"]
    assert plain(list(range(10_000)), **LOOP, combine="count") == ("integer", 10_000)
    monkeypatch.setattr(evaluation, "MAX_ITEMS", 5)
    result = found(list(range(10)), **LOOP)
    assert (result.values["x"].plain(), result.problems["x"]) == (
        [0, 1, 2, 3, 4], "the loops of all facts have more than 5 items")


def test_what_must_not_be_shown_is_absent() -> None:
    assert plain({"b": "******"}, value="{inventory[a][b]}") is None
    assert plain({"password": "x", "b": "y"}, loop=A, value="{item[value]}") == ("text", ["y"])
    assert plain("http://a:b@c/") is None
    conceal = Concealment()
    conceal.add_sources([("plugin_data", "hidden")])
    read = "{plugin_data[hidden][a]}"
    assert found(None, {"hidden": {"a": 1}}, conceal, value=read).values == {}
    assert found(None, {"hidden": {"a": 1}}, conceal, value="{plugin_data|count}").values == {}
    assert found(None, {"other": 1}, conceal, value="{plugin_data[other]}").values["x"].plain() == 1


def test_rules_find_a_fact_when_they_read_it() -> None:
    read: list[str] = []

    def node() -> dict[str, Any]:
        read.append("node")
        return {"name": "node-1"}

    known = FactSet([compiled(value="{node[name]}")])
    lazy = LazyFacts(known, FactData({}, {}, node))
    assert read == []
    assert (lazy["x"], lazy["x"], read) == ("node-1", "node-1", ["node"])


@pytest.mark.slow
@SETTINGS
@given(JSON_VALUES, st.sampled_from([{}, LOOP, {**LOOP, "combine": "unique"}, {**LOOP, "combine": "max"},
                                     {"value": [A, A]}, {"value": {"op": "eq", "args": [A, 1]}}]))
def test_whatever_a_report_has_is_a_bounded_value_or_a_problem(value: Any, definition: dict[str, Any]) -> None:
    result = found(value, **definition)
    for fact in result.values.values():
        assert 0 < len(fact.values) <= MAX_VALUES
        assert fact.is_list or len(fact.values) == 1
        assert all(isinstance(one, (str, int, float)) and (not isinstance(one, str) or 0 < len(one) <= MAX_TEXT)
                   for one in fact.values)
        stored = [one if fact.is_text else float(one) for one in fact.values]
        assert of_stored(fact.type, fact.is_list, stored) == fact.plain()
