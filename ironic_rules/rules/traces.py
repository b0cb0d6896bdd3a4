"""Human-readable traces of rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.models.json_values import JSONObject


@dataclass(frozen=True, slots=True)
class ArgumentTrace:
    """An argument of a condition or an action; secrets are masked.

    :ivar name: the parameter, ``values/0`` for one of several values
    :ivar written: the argument as in the rule, if it has templates
    :ivar value: what it stands for; None too if that is too large to be shown, then ``size`` is set
    :ivar type: ``null``, ``boolean``, ``integer``, ``number``, ``string``, ``list``, ``object``; ``missing`` without a
        value, and ``unknown`` if it cannot be told
    :ivar missing: the part of the template's path that does not exist
    :ivar size: the number of bytes, as JSON, of a value that is not shown
    """

    name: str
    written: str | None
    value: Any
    type: str
    missing: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ItemTrace:
    """A condition, evaluated for one item of its loop.

    :ivar outcome: None if it could not be evaluated; that counts as false
    :ivar needed: whether the outcome of the loop depended on this item; it was not evaluated otherwise
    """

    outcome: bool | None
    arguments: tuple[ArgumentTrace, ...]
    why: str
    detail: str | None = None
    needed: bool = True


@dataclass(frozen=True, slots=True)
class ConditionTrace:
    """``outcome`` is None if the condition could not be evaluated; ``note`` says why.

    :ivar short_circuited: an earlier condition was not true, so that an inspection does not evaluate this one
    :ivar why: the reason for the outcome in a word or two: ``missing``, ``type``, ``not in network``, ``no match``, …
    :ivar detail: the part of the path that is missing, or both types
    :ivar items: of a loop, at most the first hundred; ``count`` is the number of all
    """

    where: str
    op: str
    outcome: bool | None
    note: str | None = None
    short_circuited: bool = False
    arguments: tuple[ArgumentTrace, ...] = ()
    why: str | None = None
    detail: str | None = None
    multiple: str | None = None
    items: tuple[ItemTrace, ...] = ()
    count: int | None = None


@dataclass(frozen=True, slots=True)
class ActionTrace:
    """An action that ran, ``times`` times; ``notes`` describes what it did not do in a dry run.

    :ivar runs: the arguments of each run, of at most the first hundred; only explained
    """

    where: str
    op: str
    times: int
    notes: tuple[str, ...] = ()
    runs: tuple[tuple[ArgumentTrace, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of a rule. Conditions, actions and changes are set if explained, and never for a sensitive rule.

    A dry run that is not explained sets the actions of rules with an action that did not do what it does otherwise.

    :ivar changes: the changes by the rule, secrets masked: a patch (RFC 6902) of ``node``, of ``plugin_data``, and of
        ``ports``, by address; a port that was removed or added is one operation with an empty path
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


#: The state of a task that an explained step compares: roots by name, ports by address.
State = Mapping[str, Any]
Patch = Sequence[JSONObject]
