"""What is said to have nothing to hide is shown as it is by hiding it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ironic_rules.models import secrets
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


_KEYS = st.one_of(
    st.sampled_from(["a", "Password", "my_pin", "PIN-2", "pinning", "snmp_auth_key", "to\u212aen", "image_url", 'a"pin',
                     "api-key", "http://u:hunter22@h/", "ipmi_hex_kg_key", "x_private_key"]), st.text(max_size=6))
_DOCUMENTS = st.recursive(st.one_of(_TEXTS, _KEYS, st.integers(), st.none()), lambda parts: st.one_of(
    st.lists(parts, max_size=3), st.dictionaries(_KEYS, parts, max_size=3)), max_leaves=6)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(document=_DOCUMENTS)
@example(document={"to\u212aen": "x"})
@example(document=[{"a": "http://u:hunter22@h/"}])
@example(document={"MY-PIN": 4711})
def test_all_documents_teach_what_each_of_them_teaches(document: Any) -> None:
    """A document that is not looked at has nothing to learn from."""
    slow, fast = Concealment(), Concealment()
    slow.learn(document)
    # Small ones are always looked at.
    fast.learn_all([{"long": "-" * 1000, "document": document}])
    assert (fast._texts, fast._numbers) == (slow._texts, slow._numbers)
    if secrets.has_none(document):
        assert secrets.mask(document) == document


def test_an_inventory_is_not_looked_at() -> None:
    assert secrets.has_none({"interfaces": [{"name": "eth0", "lldp": [[1, "04112233aabbcc"]]}], "url": "http://h/"})


@pytest.mark.parametrize("words", [["kennwort"], ["ein wort"], ['quo"te'], []])
def test_other_words_are_searched_for(words: list[str]) -> None:
    secrets.configure(words)
    try:
        assert not any(secrets.has_none({key: "hunter22"}) for key in (*words, "password"))
        assert secrets.has_none({"kennwortlos": 1}) is (words in (["kennwort"], []))
    finally:
        secrets.configure(secrets.WORDS)
