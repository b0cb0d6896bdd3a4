"""Rules read the same values as from a masked copy of all data."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules.models import secrets
from ironic_rules.rules import template
from ironic_rules.rules.errors import MissingPath
from ironic_rules.rules.getters import Views, path_getter
from tests import strategies

KEYS = ["a", "0", "bmc_password", "auth_token"]
DATA = st.recursive(
    st.sampled_from([None, "", "s3cret", 1, True]),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=8)
STEPS = st.lists(st.sampled_from([*KEYS, "1"]), max_size=3)


def walk(value: Any, steps: list[str]) -> Any:
    """Return the value at the end of the steps; raises LookupError or TypeError."""
    for step in steps:
        value = value[int(step) if isinstance(value, list) and step.isdecimal() else step]
    return value


@pytest.mark.slow
@settings(max_examples=strategies.wanted(100), deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), DATA), STEPS, st.booleans(), st.booleans())
def test_a_masked_view_is_a_masked_copy(data: dict[str, Any], steps: list[str], masked: bool, strict: bool) -> None:
    field, = template.parse("{inventory" + "".join(f"[{step}]" for step in steps) + "}")
    assert isinstance(field, template.Field)
    before = copy.deepcopy(data)
    view = Views({"inventory": lambda: data}, "always" if masked else "never").of(sensitive=False)
    get = path_getter(field, strict)
    try:
        expected = walk(secrets.mask(data) if masked else data, steps)
    except (LookupError, TypeError):
        expected = MissingPath if strict else None
    for _ in range(2):
        try:
            found = get(view)
        except MissingPath:
            found = MissingPath
        assert found == expected
    assert data == before


def test_masked_parts_are_made_once_until_they_are_forgotten() -> None:
    data = {"l": [{"password": "x"}]}
    views = Views({"plugin_data": lambda: data}, "always")
    view = views.of(sensitive=True)
    get = path_getter(template.Field("plugin_data", ("l",), "{plugin_data[l]}", 1), True)
    first = get(view)
    assert first == [{"password": "******"}]
    assert get(view) is first
    data["l"].append({"password": "y"})
    views.forget({"plugin_data"})
    assert len(get(view)) == 2


def test_items_of_loops_are_not_masked_again() -> None:
    view = Views({}, "always").of(sensitive=False)
    view["item"] = {"password": "from the rule itself"}
    assert path_getter(template.Field("item", ("password",), "{item[password]}", 1), True)(view) == view["item"][
        "password"]
