"""Places and keys decide which values are hidden; a document that is said to have nothing to hide is shown as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ironic_rules.models import secrets
from ironic_rules.models.secrets import Concealment
from tests import strategies
from tests.walking import walking

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
@given(patches=_PATCHES, sealed=st.booleans())
@example(patches=[[{"op": "add", "path": "/extra/a", "value": ['quo"te']}]], sealed=False)
@example(patches=[[{"op": "add", "path": "/extra/a", "value": {"http://u:hunter22@h/": 1}}]], sealed=False)
def test_what_is_harmless_is_shown_as_it_is(patches: list[list[dict[str, Any]]], sealed: bool) -> None:
    conceal = Concealment()
    if sealed:
        conceal.seal(("node", "extra", "a"), "sealed")
    if conceal.is_harmless(patches):
        assert [conceal.hide_patch(patch, ("node",)) for patch in patches] == patches


def test_most_patches_are_harmless() -> None:
    conceal = Concealment()
    patch = [{"op": "add", "path": f"/extra/a{number}", "value": value} for number, value in enumerate(
        ("SN1", 1, None, ["x"], {"a": {"b": 1}}))]
    assert conceal.is_harmless([patch, [{"op": "remove", "path": "/extra/b"}]])
    for secret in ({"password": "x"}, "http://u:p@h/"):
        assert not conceal.is_harmless([patch, [{"op": "add", "path": "/extra/c", "value": secret}]])


@walking("sealed, path, hidden", [
    (("node", "extra", "a"), ("node", "extra", "a"), True), (("node", "extra", "a"), ("node", "extra"), True),
    (("node", "extra", "a"), ("node",), True), (("node", "extra", "a"), ("node", "extra", "a", "b"), True),
    (("node", "extra", "a"), (), True), (("node", "extra", "a"), ("node", "extra", "b"), False),
    (("node", "extra", "a"), ("plugin_data", "a"), False), (("node", "extra", "a"), ("data", "a"), False),
    (("plugin_data", "a"), ("data", "b"), True), (("ports", "52:54:00:00:00:01", "extra"), ("ports", "0"), True),
    (("ports", "52:54:00:00:00:01", "extra"), ("ports", "0", "name"), False),
    (("node", "extra", "list", "3"), ("node", "extra", "list", "0"), True),
    (("node", "traits", "0"), ("node", "traits"), True), (("node", "traits", "0"), ("node", "extra"), False)])
def test_what_reads_a_place_is_told_by_its_path(sealed: tuple[str, ...], path: tuple[str, ...], hidden: bool) -> None:
    conceal = Concealment()
    conceal.seal(sealed, "CUSTOM_X")
    assert conceal.is_read(path) is hidden
    assert not Concealment().is_read(path)


def test_nothing_is_hidden_because_it_equals_what_is_hidden() -> None:
    conceal = Concealment()
    conceal.seal(("node", "extra", "a"), "hunter22")
    guesses = {"a": "hunter22", "b": "hunter22", "c": ["hunter22", "my hunter22"], "password": "hunter22"}
    assert conceal.hide(guesses, ("node", "extra")) == {**guesses, "a": "******", "password": "******"}


def test_items_of_a_list_move_and_are_hidden_together_except_traits() -> None:
    conceal = Concealment()
    conceal.seal(("node", "extra", "list", "1"), "x")
    conceal.seal(("node", "traits", "1"), "CUSTOM_X")
    assert conceal.hide({"extra": {"list": [1, 2], "b": 3}, "traits": ["CUSTOM_X", "CUSTOM_Y"]}, ("node",)) == {
        "extra": {"list": "******", "b": 3}, "traits": ["******", "CUSTOM_Y"]}


_KEYS = st.one_of(
    st.sampled_from(["a", "Password", "my_pin", "PIN-2", "pinning", "snmp_auth_key", "to\u212aen", "image_url", 'a"pin',
                     "api-key", "http://u:hunter22@h/", "ipmi_hex_kg_key", "x_private_key"]), st.text(max_size=6))
_DOCUMENTS = st.recursive(st.one_of(_TEXTS, _KEYS, st.integers(), st.none()), lambda parts: st.one_of(
    st.lists(parts, max_size=3), st.dictionaries(_KEYS, parts, max_size=3)), max_leaves=6)


@pytest.mark.slow
@settings(max_examples=strategies.wanted(80), deadline=None)
@given(document=_DOCUMENTS)
@example(document={"to\u212aen": "x"})
@example(document=[{"a": "http://u:hunter22@h/"}])
@example(document={"MY-PIN": 4711})
def test_what_has_no_secret_for_certain_is_masked_to_itself(document: Any) -> None:
    if secrets.has_none(document):
        assert secrets.mask(document) == document


def test_an_inventory_is_not_looked_at() -> None:
    assert secrets.has_none({"interfaces": [{"name": "eth0", "lldp": [[1, "04112233aabbcc"]]}], "url": "http://h/"})


@walking("words", [["kennwort"], ["ein wort"], ['quo"te'], []])
def test_other_words_are_searched_for(words: list[str]) -> None:
    secrets.configure(words)
    try:
        assert not any(secrets.has_none({key: "hunter22"}) for key in (*words, "password"))
        assert secrets.has_none({"kennwortlos": 1}) is (words in (["kennwort"], []))
    finally:
        secrets.configure(secrets.WORDS)
