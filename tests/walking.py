"""Walks: one test that goes through a table, and fails with all places of it that are wrong."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]
#: Ends of a test that has not passed. A skip would hide the places that follow.
_WRONG = (Exception, pytest.fail.Exception, pytest.skip.Exception)


def walking(names: str, places: Iterable[Any], between: str = "") -> Callable[[Test], Test]:
    """Call a test for each of ``places``, as ``pytest.mark.parametrize`` does, but as one test with the same fixtures.

    A case for each place would say the same, and take longer.

    :param names: arguments that a place has, e.g. ``"route"`` or ``"route, status"``
    :param between: fixture that is called before each place, where one changes what the next one finds
    """
    wanted = [name.strip() for name in names.split(",")]
    rows = [dict(zip(wanted, [place] if len(wanted) == 1 else place, strict=True)) for place in places]

    def decorated(test: Test) -> Test:
        given = inspect.signature(test)

        @functools.wraps(test)
        def walk(*own: Any, **fixtures: Any) -> None:
            passed = {name: value for name, value in fixtures.items() if name in given.parameters}
            wrong: list[BaseException] = []
            for row in rows:
                try:
                    if between:
                        fixtures[between]()
                    test(*own, **passed, **row)
                except _WRONG as error:
                    error.add_note("with " + ", ".join(f"{name}={value!s:.200}" for name, value in row.items()))
                    wrong.append(error)
            if wrong:
                raise BaseExceptionGroup(f"{len(wrong)} of {len(rows)} are wrong", wrong)

        fixtures = [each for each in given.parameters.values() if each.name not in wanted]
        if between and between not in given.parameters:
            fixtures.append(inspect.Parameter(between, inspect.Parameter.KEYWORD_ONLY))
        walk.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined]
        return walk

    return decorated
