"""The steps and interfaces that the live conductors offer, read again after a heartbeat of any of them.

To read them for each node that is created took a quarter of its processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import conductors
from ironic_rules.hardware import selection
from ironic_rules.steps.offers import RegisteredSteps

#: By conductor group, and under None what all groups together offer. Empty if no conductor is alive.
StepsByGroup = Mapping[str | None, RegisteredSteps]
#: The same of hardware types.
InterfacesByGroup = Mapping[str | None, selection.Description]


class OfferedSteps:
    """One per application. Safe to use from any thread: the last answer is replaced as a whole."""

    def __init__(self, heartbeat_timeout_s: int) -> None:
        self._timeout_s = heartbeat_timeout_s
        #: the conductors that were alive, and what they offer
        self._last: tuple[tuple[Any, ...], StepsByGroup, InterfacesByGroup] = ((), {}, {})

    def current(self, conn: sa.Connection) -> StepsByGroup:
        """Return the steps that the conductors that are alive now offer."""
        return self._read(conn)[1]

    def interfaces(self, conn: sa.Connection) -> InterfacesByGroup:
        """Return the hardware types that the conductors that are alive now offer, with their interfaces."""
        return self._read(conn)[2]

    def _read(self, conn: sa.Connection) -> tuple[tuple[Any, ...], StepsByGroup, InterfacesByGroup]:
        alive = tuple(map(tuple, conductors.living_hosts(conn, self._timeout_s)))
        last = self._last
        if last[0] != alive:
            groups = _by_group(conductors.alive(conn, self._timeout_s))
            last = self._last = (alive, {group: RegisteredSteps(types) for group, types in groups.items()},
                                 {group: selection.union(types) for group, types in groups.items()})
        return last


def _by_group(alive: Sequence[Any]) -> dict[str | None, list[Any]]:
    groups: dict[str | None, list[Any]] = {}
    for row in alive:
        for group in (None, row.conductor_group):
            groups.setdefault(group, []).append(row.hardware_types)
    return groups
