"""Secrets in the arguments of deploy steps are masked in every representation."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules.api.views import resources
from ironic_rules.models import secrets
from tests import strategies
from tests.walking import walking

#: Words that keys and values consist of, so that strings look like keys, and keys like strings.
PIECES = st.sampled_from([
    "password", "Secret", "auth_token", "key", ":", '"', ",", "\\", "{", "}", " ", "ä", "\n", "a"])
TEXT = st.lists(PIECES, max_size=4).map("".join)
JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=12)


def shown(args: dict[str, Any]) -> Any:
    """Return stored arguments as a client receives them."""
    return orjson.loads(orjson.dumps(resources.template_arguments(orjson.dumps(args).decode())))


@pytest.mark.slow
@settings(max_examples=strategies.wanted(100), deadline=None)
@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_arguments_are_shown_with_exactly_their_secrets_hidden(args):
    assert shown(args) == secrets.mask(args)


@walking("args", [
    {"a": "b", ":password": "x"}, {"a": ":", "password": "x"}, {"a": "\\", "password": "x"}, {'"': "", "token": "x"},
    {"": {"": [{"secret": "x"}]}}, {"a": "password:"}, {'a":1,"password': "x"}, {"password": None}, {"pass\nword": "x"},
])
def test_no_string_hides_a_key(args):
    assert shown(args) == secrets.mask(args)


def test_arguments_without_secrets_are_not_taken_apart():
    assert isinstance(resources.template_arguments('{"a":[{"b":"password"}]}'), orjson.Fragment)
