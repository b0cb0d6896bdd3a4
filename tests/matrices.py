"""Cases of tests that combine values with values: few of them in the suite, all of them with ``tox -e fuzz``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

#: As of tests that generate their input.
OPTION = "IRONIC_RULES_TEST_EXAMPLES"


def sampled(number: int, first: Sequence[Any], second: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return ``number`` pairs, the same ones each time, in which every value occurs; with ``OPTION`` all pairs.

    :param number: at least as many as either sequence has values
    """
    if os.environ.get(OPTION):
        return [(one, other) for one in first for other in second]
    assert number >= max(len(first), len(second)), "a value would be left out"
    return [(first[index % len(first)], second[index % len(second)]) for index in range(number)]


def walks(number: int) -> range:
    """Return the seeds of ``number`` walks in random order; with ``OPTION`` of as many as that says."""
    return range(int(os.environ.get(OPTION) or number))
