"""Walks are one test each, which fails with all places that are wrong."""

from __future__ import annotations

import inspect

import pytest

from tests.walking import walking


def test_all_places_that_are_wrong_are_told_at_once():
    seen = []

    @walking("number, word", [(1, "one"), (2, "two"), (3, "three"), (4, "four")])
    def test(number, word):
        seen.append(word)
        assert number != 2
        if number == 3:
            pytest.fail("three")
        if number == 4:
            pytest.skip("four")

    with pytest.raises(BaseExceptionGroup, match="3 of 4 are wrong") as caught:
        test()

    assert seen == ["one", "two", "three", "four"]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["with number=2, word=two"], ["with number=3, word=three"], ["with number=4, word=four"]]


def test_what_one_place_has_changed_can_be_restored_before_the_next_one():
    found = []

    @walking("place", ["a", "b"], between="afresh")
    def test(place, rows):
        rows.append(place)
        found.append(list(rows))

    rows: list[str] = []
    assert list(inspect.signature(test).parameters) == ["rows", "afresh"]
    test(rows=rows, afresh=rows.clear)

    assert found == [["a"], ["b"]]


def test_walks_can_be_nested_and_take_what_else_the_test_takes():
    seen = []

    @walking("first", "ab")
    @walking("second", {"x": 1, "y": 2})
    def test(fixture, first, second):
        seen.append(fixture + first + second)

    test(fixture="-")

    assert list(inspect.signature(test).parameters) == ["fixture"]
    assert seen == ["-ax", "-ay", "-bx", "-by"]
