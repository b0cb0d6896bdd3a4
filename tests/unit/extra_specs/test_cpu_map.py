"""CPU maps: what is refused, with which words, and that the others mean what a plain expansion says."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules.extra_specs import values
from tests import strategies
from tests.walking import walking

#: Nova's expression, which must only be applied to short texts.
NOVAS = re.compile(r"\^?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*", re.ASCII)


@walking("text", ["0", "00", "0-3", "^0", "0-3,^2,8", "3-3", "99999999999999999999", "0,0,0"])
def test_good_maps(text):
    assert values.cpu_map_problem(text, strict=True) is None


@walking("text, part, reason", [
    ("", "", "at least one CPU"),
    ("0-", "Part 1", "a range has two ends"),
    ("0,1-", "Part 2 of the CPU map, '1-'", "a range has two ends"),
    ("-1", "Part 1", "a range begins with a CPU"),
    ("0,", "Part 2 of the CPU map, ''", "nothing between"),
    (",0", "Part 1 of the CPU map, ''", "nothing between"),
    ("0, 1", "Part 2", "white space"),
    ("0\n", "Part 1", "white space"),
    ("^^0", "Part 1", "stands once"),
    ("0,^", "Part 2", "no CPU follows"),
    ("0;1", "Part 1", "digits 0 to 9"),
    ("٣", "Part 1", "digits 0 to 9"),
    ("0-3,a,b", "Part 2 of the CPU map, 'a'", "digits 0 to 9"),
    ("0--3", "Part 1", "a range has two ends"),
])
def test_malformed_maps_are_refused_in_every_mode(text, part, reason):
    for strict in (True, False):
        problem = values.cpu_map_problem(text, strict)
        assert part in problem
        assert reason in problem


@walking("text, part, reason", [
    ("3-1", "Part 1 of the CPU map, '3-1'", "the first CPU of a range is not greater"),
    ("0,^10-9", "Part 2 of the CPU map, '^10-9'", "the first CPU of a range is not greater"),
    ("0-3-5", "Part 1", "a range has two ends"),
])
def test_meaningless_maps_are_refused_in_strict_mode_only(text, part, reason):
    problem = values.cpu_map_problem(text, strict=True)
    assert part in problem
    assert reason in problem
    assert values.cpu_map_problem(text, strict=False) is None


def test_the_number_of_steps_is_linear_in_the_length():
    hostile = "1" + ",1-1" * 25_000 + "!"
    assert "Part 25001" in values.cpu_map_problem(hostile, strict=True)


def expansion(text: str) -> bool:
    """True if a map can be expanded to sets of CPUs, in the most obvious way."""
    for item in text.split(","):
        ends = item.removeprefix("^").split("-")
        if not 1 <= len(ends) <= 2 or not all(end and set(end) <= set("0123456789") for end in ends):
            return False
        if len(ends) == 2 and not range(int(ends[0]), int(ends[1]) + 1):
            return False
    return True


@pytest.mark.slow
@settings(max_examples=strategies.wanted(100), deadline=None)
@given(st.text(alphabet="019-,^ ", max_size=8))
def test_short_maps_are_good_if_they_can_be_expanded(text):
    assert (values.cpu_map_problem(text, strict=True) is None) == expansion(text)


def test_permissive_mode_takes_exactly_what_nova_takes():
    for length in range(6):
        for characters in itertools.product("12-,^", repeat=length):
            text = "".join(characters)
            assert (values.cpu_map_problem(text, strict=False) is None) == (NOVAS.fullmatch(text) is not None), text
