"""What is counted of inspection rules."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Protocol


class CountedRule(Protocol):
    """A rule with what has become of it; without statistics its numbers are 0."""

    uuid: str
    name: str | None
    phase: str
    enabled: bool
    sensitive: bool
    built_in: bool
    considered: int
    evaluated: int
    matched: int
    failed: int
    last_matched_at: datetime.datetime | None
    last_node: str | None
    nodes_changed: int


@dataclasses.dataclass(slots=True)
class Counts:
    """What is to be added to the statistics of a rule.

    :ivar last: when it matched last, and the UUID of that node; None for a machine that no node is known of
    :ivar changed: the ids of nodes that it changed
    """

    considered: int = 0
    evaluated: int = 0
    matched: int = 0
    failed: int = 0
    last: tuple[datetime.datetime, str | None] | None = None
    changed: set[int] = dataclasses.field(default_factory=set)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """All that is added up."""
        return self.considered, self.evaluated, self.matched, self.failed

    def add(self, earlier: Counts) -> None:
        """Add what was counted before."""
        self.considered += earlier.considered
        self.evaluated += earlier.evaluated
        self.matched += earlier.matched
        self.failed += earlier.failed
        self.last = self.last or earlier.last
        self.changed |= earlier.changed
