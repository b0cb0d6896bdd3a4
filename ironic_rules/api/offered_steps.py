"""The steps that the live conductors offer, read again after a heartbeat of any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import conductors
from ironic_rules.steps.offers import RegisteredSteps

#: By conductor group, and under None what all groups together offer. Empty if no conductor is alive.
StepsByGroup = Mapping[str | None, RegisteredSteps]


class OfferedSteps:
    """One per application. Safe to use from any thread: the last answer is replaced as a whole."""

    def __init__(self, heartbeat_timeout_s: int) -> None:
        self._timeout_s = heartbeat_timeout_s
        #: the conductors that were alive, and what they offer
        self._last: tuple[tuple[Any, ...], StepsByGroup] = ((), {})

    def current(self, conn: sa.Connection) -> StepsByGroup:
        """Return what the conductors that are alive now offer."""
        alive = tuple(map(tuple, conductors.living_hosts(conn, self._timeout_s)))
        last = self._last
        if last[0] != alive:
            last = self._last = alive, _by_group(conductors.alive(conn, self._timeout_s))
        return last[1]


def _by_group(alive: Sequence[Any]) -> StepsByGroup:
    groups: dict[str | None, list[Any]] = {}
    for row in alive:
        for group in (None, row.conductor_group):
            groups.setdefault(group, []).append(row.hardware_types)
    return {group: RegisteredSteps(registrations) for group, registrations in groups.items()}
