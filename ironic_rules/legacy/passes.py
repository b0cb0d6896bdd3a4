"""The four passes of legacy rules over a node: take back, conditions, cleanups, actions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ironic_rules.models.legacy_rules import OwnedValue
from ironic_rules.models.task import Task


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A value that a rule no longer owns, although it stays on the node.

    :ivar reason: for the history of the node, a full sentence without values
    """

    value: OwnedValue
    reason: str


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of taking back.

    :ivar kept: what is still owned
    """

    kept: tuple[OwnedValue, ...]
    forgotten: tuple[Forgotten, ...]


def take_back(task: Task, owned: Sequence[OwnedValue], rules: Collection[str] | None = None) -> Taken:
    """Remove owned values from the drafts of a task; what was there before returns.

    :param owned: all that is owned on the node, in the order of writing
    :param rules: UUIDs of the rules whose values are taken back; None: all
    """
    raise NotImplementedError
