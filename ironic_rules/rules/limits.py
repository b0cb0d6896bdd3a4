"""How large a rule and its work may get; passed in, so that a service can set its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts, characters and levels. What is over a limit in a rule refuses it; over one in data fails the step."""

    conditions: int = 100
    actions: int = 100
    loop_items: int = 4096
    depth: int = 20
    text: int = 65536
    result: int = 65536


DEFAULT = Limits()

#: Characters of a regular expression, the same in every service: what RE2 makes of one is many times as large.
MAX_REGEX = 4096
