"""What rules did, for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ConditionTrace:
    """``outcome`` is None where the data did not allow an answer; ``note`` says why."""

    where: str
    op: str
    outcome: bool | None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ActionTrace:
    """An action that ran, ``times`` times; ``notes`` says what it left undone in a dry run."""

    where: str
    op: str
    times: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """What a rule did. Conditions, actions and changes are filled in when explained, and never for a sensitive rule.

    :ivar changes: what differs after the rule, secrets masked: ``node``, ``traits``, ``ports``, ``plugin_data``
    """

    uuid: str
    description: str | None
    matched: bool
    error: str | None = None
    conditions: tuple[ConditionTrace, ...] = ()
    actions: tuple[ActionTrace, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    sensitive: bool = False
