"""Errors that have only a text of their own, in the table of ``ironic_rules.exceptions``."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ironic_rules.exceptions import Wording

FACT = re.compile(r"\\\{\w+(?::\w+)?\\\}")


def says(error: object, wording: Wording[Any]) -> bool:
    """Return whether this is the error that ``wording`` makes of any facts."""
    return type(error) is wording.error and re.fullmatch(pattern(wording), str(error), re.DOTALL) is not None


def pattern(wording: Wording[Any]) -> str:
    return FACT.sub(".*", re.escape(wording.text))


def refused(error: Wording[Any] | type[Exception], match: str = "") -> Any:
    """Expect an error of a class, or with a text of the table, as ``pytest.raises`` does; its text has ``match``."""
    if isinstance(error, Wording):
        return pytest.raises(error.error, match=rf"(?s)(?=.*{match})^{pattern(error)}$")
    return pytest.raises(error, match=match or None)
