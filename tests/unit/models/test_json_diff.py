from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import strategies as st

from ironic_rules.api import patch
from ironic_rules.models.json_diff import diff
from tests import strategies

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, "", "a", "/", "~1"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(
    st.sampled_from(["a", "b", "a/b", "~", ""]), inner, max_size=3), max_leaves=12)


def strict(value: Any) -> bytes:
    """Return a text that differs where JSON does, except for the order of keys."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@pytest.mark.slow
@pytest.mark.parametrize("batch", strategies.batches(300))
def test_a_diff_makes_the_new_value_of_the_old(batch: tuple[int, int]) -> None:
    def one(old: Any, new: Any) -> None:
        changes = diff({"field": old}, {"field": new})
        made = patch.apply({"field": old}, patch.operations(changes), defaults={})
        assert strict(made["field"]) == strict(new)
        assert len(strict(changes)) <= len(strict([{"op": "replace", "path": "/field", "value": new}]))

    strategies.check(batch, one, old=VALUES, new=VALUES)


@pytest.mark.parametrize(("old", "new", "expected"), [
    ({"f": [1, 2, 3, 4]}, {"f": [1, 2, 9, 3, 4]}, [{"op": "add", "path": "/f/2", "value": 9}]),
    ({"f": [1, 2, 3, 4]}, {"f": [1, 4]}, [{"op": "replace", "path": "/f", "value": [1, 4]}]),
    ({"f": [{"a": "x" * 50, "b": 1}, 2]}, {"f": [{"a": "x" * 50, "b": 2}, 2]},
     [{"op": "replace", "path": "/f/0/b", "value": 2}]),
    ({"f": 1}, {"f": 1.0}, [{"op": "replace", "path": "/f", "value": 1.0}]),
    ({"f": 1}, {"f": True}, [{"op": "replace", "path": "/f", "value": True}]),
    ({"f": {"a/b": 1, "c": [1]}}, {"f": {"c": [1]}}, [{"op": "remove", "path": "/f/a~1b"}]),
    ({"f": [1], "g": None}, {"f": [1], "g": None}, []),
])
def test_a_diff_is_short(old: Any, new: Any, expected: Any) -> None:
    assert diff(old, new) == expected
