from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironic_rules.models import documents
from ironic_rules.models.documents import PointerError
from tests.walking import walking


@walking("text, tokens", [
    ("", ()), ("/", ("",)), ("/a", ("a",)), ("/a/0/-", ("a", "0", "-")), ("/a~1b/c~0d/~01", ("a/b", "c~d", "~1")),
])
def test_parse_and_format_are_inverse(text: str, tokens: tuple[str, ...]) -> None:
    assert documents.parse_pointer(text) == tokens
    assert documents.format_pointer(tokens) == text


@pytest.mark.slow
@given(st.lists(st.text(max_size=5), max_size=4))
def test_any_tokens_survive(tokens: list[str]) -> None:
    assert documents.parse_pointer(documents.format_pointer(tokens)) == tuple(tokens)


@walking("text", ["a", "a/b", "/a~", "/a~2", "/~~0"])
def test_malformed_pointers_are_refused(text: str) -> None:
    with pytest.raises(PointerError):
        documents.parse_pointer(text)


def test_relative_pointers_are_accepted_on_request() -> None:
    assert documents.parse_pointer("a/b", relative=True) == ("a", "b")


@walking("path, value", [("", {"a": [1, {"b": 2}]}), ("/a/0", 1), ("/a/1/b", 2)])
def test_get(path: str, value: Any) -> None:
    assert documents.get({"a": [1, {"b": 2}]}, documents.parse_pointer(path)) == value


@walking("path", ["/b", "/a/2", "/a/-", "/a/01", "/a/x", "/a/0/x", "/a/-1", "/a/99999999999"])
def test_get_names_where_the_way_ends(path: str) -> None:
    with pytest.raises(PointerError) as caught:
        documents.get({"a": [1, {"b": 2}]}, documents.parse_pointer(path))
    assert path.startswith(caught.value.path)
    assert caught.value.code == 400


@walking("path, options, result", [
    ("/a/0", {}, {"a": [9, 2]}), ("/a/-", {}, {"a": [1, 2, 9]}), ("/a/2", {}, {"a": [1, 2, 9]}),
    ("/a/0", {"insert": True}, {"a": [9, 1, 2]}), ("/b", {}, {"a": [1, 2], "b": 9}),
    ("/b/c/d", {"create": True}, {"a": [1, 2], "b": {"c": {"d": 9}}}), ("/b/-", {"create": True}, {"a": [1, 2],
    "b": [9]}),
])
def test_put(path: str, options: dict[str, bool], result: Any) -> None:
    doc: dict[str, Any] = {"a": [1, 2]}
    documents.put(doc, documents.parse_pointer(path), 9, **options)
    assert doc == result


@walking("path", ["", "/b/c", "/a/3", "/a/0/x", "/a/x"])
def test_put_refuses_what_leads_nowhere(path: str) -> None:
    doc: dict[str, Any] = {"a": [1, 2]}
    with pytest.raises(PointerError):
        documents.put(doc, documents.parse_pointer(path), 9)
    assert doc == {"a": [1, 2]}


def test_remove() -> None:
    doc: dict[str, Any] = {"a": [1, {"b": 2, "c": 3}]}
    documents.remove(doc, ("a", "1", "b"))
    documents.remove(doc, ("a", "0"))
    assert doc == {"a": [{"c": 3}]}


@walking("path", ["", "/b", "/a/5", "/a/-"])
def test_remove_refuses_what_is_not_there(path: str) -> None:
    with pytest.raises(PointerError):
        documents.remove({"a": [1]}, documents.parse_pointer(path))


def test_unshared_way_can_be_changed_without_others_noticing() -> None:
    shared = {"a": [{"b": 1}], "z": {}}
    kept = copy.deepcopy(shared)
    mine = dict(shared)
    documents.unshare(mine, ("a", "0", "nosuch", "x"))
    documents.put(mine, ("a", "0", "b"), 2)
    assert shared == kept
    assert mine["z"] is shared["z"]
