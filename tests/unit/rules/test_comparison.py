from __future__ import annotations

import uuid
from typing import Any

import orjson
import pytest
from hypothesis import strategies as st

from ironic_rules.api import patch
from ironic_rules.models.rules import Rule
from ironic_rules.rules.comparison import Entry
from tests import strategies
from tests.walking import walking

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, "", "a", "/", "~1"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(
    st.sampled_from(["a", "b", "a/b", "~", ""]), inner, max_size=3), max_leaves=12)


def changes(old: Any, new: Any) -> list[dict[str, Any]]:
    """Return the operations for a rule whose action gets another value."""
    def rule(value: Any) -> Rule:
        return Rule(uuid=str(uuid.UUID(int=1)), actions=[{"op": "set-attribute", "args": {"value": value}}])

    return Entry(rule(old), rule(new).said() | {"uuid": None}).patch()


def strict(value: Any) -> bytes:
    """Return a text that differs where JSON does, except for the order of keys."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@pytest.mark.slow
@pytest.mark.parametrize("batch", strategies.batches(100))
def test_a_patch_makes_the_new_rule_of_the_old(batch: tuple[int, int]) -> None:
    def one(old: Any, new: Any) -> None:
        actions = [{"op": "set-attribute", "args": {"value": old}}]
        made = patch.apply({"actions": actions}, patch.operations(changes(old, new)), defaults={})
        assert strict(made["actions"][0]["args"]["value"]) == strict(new)

    strategies.check(batch, one, old=VALUES, new=VALUES)


@walking("old, new, expected", [
    ([1, 2, 3], [1, 9, 2, 3], [{"op": "add", "path": "/1", "value": 9}]),
    ([{"a": "x", "b": 1}, 2], [{"a": "x", "b": 2}, 2], [{"op": "replace", "path": "/0/b", "value": 2}]),
    (1, 1.0, [{"op": "replace", "path": "", "value": 1.0}]),
    (1, True, [{"op": "replace", "path": "", "value": True}]),
    ({"a/b": 1, "c": [1]}, {"c": [1]}, [{"op": "remove", "path": "/a~1b"}]),
    ({"c": [1]}, {"c": [1]}, []),
])
def test_a_patch_names_what_changed(old: Any, new: Any, expected: list[dict[str, Any]]) -> None:
    place = "/actions/0/args/value"
    assert changes(old, new) == [{**operation, "path": place + operation["path"]} for operation in expected]
