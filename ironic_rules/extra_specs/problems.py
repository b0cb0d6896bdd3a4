"""The problems of an extra spec, as data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.text import pointer_token, printable

#: There is no such key.
UNKNOWN = "unknown"
#: The value is not of the type: not an integer, not a boolean, not a text.
TYPE = "type"
#: An integer is too low or too high, or a text too long.
RANGE = "range"
#: The value is not one of those allowed.
ENUM = "enum"
#: The value has not the form that it must have.
PATTERN = "pattern"
#: The key no longer works, or may cease to. Never a reason to refuse anything.
DEPRECATED = "deprecated"
#: The key is given more than once. Only what is no object can have it: a file, or arguments of a command.
DUPLICATE = "duplicate"
KINDS = (UNKNOWN, TYPE, RANGE, ENUM, PATTERN, DEPRECATED, DUPLICATE)

#: Maximum number of characters of a key, and of a value, as in Nova's database.
MAX_LENGTH = 255


@dataclass(frozen=True)
class SpecProblem:
    """One problem of one extra spec.

    :ivar key: the extra spec's name as given, printable
    :ivar pointer: JSON pointer to it below the object that was checked, or below the prefix given to the check
    :ivar kind: one of ``KINDS``
    :ivar reason: one sentence, without a hint
    :ivar allowed: the values that are allowed, where they are few enough to be listed; empty where not
    :ivar find_nearest: finds the nearest valid key or value, or None; called when it is needed, as it takes longer than
        the check
    """

    key: str
    pointer: str
    kind: str
    reason: str
    allowed: tuple[str, ...] = ()
    find_nearest: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)

    @functools.cached_property
    def nearest(self) -> str | None:
        """The nearest valid key (of an unknown one) or value; None if there is none that resembles it."""
        return self.find_nearest() if self.find_nearest else None

    @property
    def text(self) -> str:
        """The reason, with the nearest valid key or value if there is one: for people."""
        return f"{self.reason} Did you mean '{self.nearest}'?" if self.nearest else self.reason

    def to_wire(self) -> dict[str, Any]:
        """Return the problem as JSON-like data."""
        return {"key": self.key, "pointer": self.pointer, "kind": self.kind, "text": self.text,
                "allowed": list(self.allowed), "nearest": self.nearest}


def problem_of(key: object, prefix: str, kind: str, reason: str, allowed: tuple[str, ...] = (),
               find_nearest: Callable[[], str | None] | None = None) -> SpecProblem:
    """Return a problem of the extra spec ``key``, which can be of any type and any length.

    :param prefix: JSON pointer to the object that the extra spec is in
    """
    return SpecProblem(printable(key, MAX_LENGTH), f"{prefix}/{pointer_token(str(key))}", kind, reason, allowed,
                       find_nearest)
