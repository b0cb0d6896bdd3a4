"""Human-readable traces of rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ConditionTrace:
    """``outcome`` is None if the condition could not be evaluated; ``note`` says why."""

    where: str
    op: str
    outcome: bool | None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ActionTrace:
    """An action that ran, ``times`` times; ``notes`` describes what it did not do in a dry run."""

    where: str
    op: str
    times: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of a rule. Conditions, actions and changes are set if explained, and never for a sensitive rule.

    :ivar changes: the changes by the rule, secrets masked: ``node``, ``traits``, ``ports``, ``plugin_data``
    :ivar limited: whether the rule runs on a limited number of nodes
    :ivar note: why a rule whose conditions hold does not match; only explained
    """

    uuid: str
    description: str | None
    matched: bool
    error: str | None = None
    conditions: tuple[ConditionTrace, ...] = ()
    actions: tuple[ActionTrace, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    sensitive: bool = False
    limited: bool = False
    note: str | None = None
