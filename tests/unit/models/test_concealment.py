"""What is said to have nothing to hide is shown as it is by hiding it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ironic_rules.models.concealment import Concealment

_TEXTS = st.sampled_from(["hunter22", "of hunter22 too", "pin", "a", "x", "", "http://u:hunter22@h/", "http://h/",
                          "4711", 'quo"te', "line\nbreak", "\ud800", "é"])
_VALUES = st.recursive(
    st.one_of(_TEXTS, st.sampled_from([None, True, 1, 4711, 2**70, 0.5])),
    lambda parts: st.one_of(st.lists(parts, max_size=3), st.dictionaries(
        st.sampled_from(["a", "password", "hunter22", "x"]), parts, max_size=3)), max_leaves=6)
_OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "replace"]), "value": _VALUES,
     "path": st.sampled_from(["/extra/a", "/extra/hunter22", "/driver_info/password", '/extra/quo"te', "/extra/a~1b"])})
_PATCHES = st.lists(st.lists(_OPERATIONS, max_size=3), max_size=3)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(patches=_PATCHES, known=st.lists(_VALUES, max_size=2), sealed=st.booleans())
@example(patches=[[{"op": "add", "path": "/extra/a", "value": ['quo"te']}]], known=['quo"te'], sealed=False)
@example(patches=[[{"op": "add", "path": "/extra/a", "value": 4711}]], known=[4711], sealed=False)
def test_what_is_harmless_is_shown_as_it_is(patches: list[list[dict[str, Any]]], known: list[Any],
                                            sealed: bool) -> None:
    conceal = Concealment()
    for value in known:
        conceal.add(value)
    if sealed:
        conceal.seal(("node", "extra", "a"), "sealed")
    if conceal.is_harmless(patches):
        for patch in patches:
            for operation in patch:
                conceal.learn({operation["path"].rpartition("/")[2]: operation["value"]})
        assert [conceal.hide_patch(patch, ("node",)) for patch in patches] == patches


def test_most_patches_are_harmless() -> None:
    conceal = Concealment()
    conceal.add("hunter22")
    patch = [{"op": "add", "path": f"/extra/a{number}", "value": value} for number, value in enumerate(
        ("SN1", 1, None, ["x"], {"a": {"b": 1}}))]
    assert conceal.is_harmless([patch, [{"op": "remove", "path": "/extra/b"}]])
    for secret in ({"password": "x"}, "http://u:p@h/", "my hunter22"):
        assert not conceal.is_harmless([patch, [{"op": "add", "path": "/extra/c", "value": secret}]])
