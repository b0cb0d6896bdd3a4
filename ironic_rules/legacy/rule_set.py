"""The set of all legacy rules, and what they do to a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import RuleFailed
from ironic_rules.legacy.compiler import BrokenLegacyRule, CompiledLegacyRule
from ironic_rules.legacy.passes import Forgotten
from ironic_rules.models.legacy_rules import OwnedValue
from ironic_rules.models.task import Task
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.traces import Trace

#: Returns what ironic-inspector's rules read: the processed data, see ``legacy.data``. It is called at most once per
#: inspection, and only if a rule asks.
DataSource = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LegacyFailure:
    """Why an inspection fails.

    :ivar maintenance_reason: the reason for which the node is put in maintenance, although all else in the draft is
        thrown away; None: it is not
    """

    error: RuleFailed
    maintenance_reason: str | None = None


@dataclass(frozen=True, slots=True)
class LegacyOutcome:
    """What the rules did besides the changes of the drafts.

    :ivar owned: all values that rules own on the node from now on, in the order of writing; after a failure as before
    :ivar forgotten: values of which somebody else is the owner now
    :ivar traces: of each rule that matches, in the order of the rules; if explained, of each rule in scope
    :ivar failure: then the drafts are as they were before the rules ran
    """

    owned: tuple[OwnedValue, ...]
    forgotten: tuple[Forgotten, ...] = ()
    traces: tuple[Trace, ...] = ()
    failure: LegacyFailure | None = None


class LegacyRuleSet:
    """Rules in the order of creation. Immutable, shared by threads. False if it has no rule.

    :param mask_secrets: as for inspection rules
    """

    def __init__(self, rules: Iterable[CompiledLegacyRule | BrokenLegacyRule] = (), *, mask_secrets: str = "always",
                 limits: Limits = DEFAULT) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def changed(self, removed: Iterable[CompiledLegacyRule | BrokenLegacyRule],
                added: Iterable[CompiledLegacyRule | BrokenLegacyRule]) -> LegacyRuleSet:
        """Return the set without some rules and with others."""
        raise NotImplementedError

    def run(self, task: Task, data: DataSource, owned: Sequence[OwnedValue] = (), cleanup: str = "own", *,
            explain: bool = False) -> LegacyOutcome:
        """Run the four passes on one node; to be called even if the set is empty, when the node has owned values.

        :param owned: what rules own on the node, in the order of writing
        :param cleanup: ``own``, ``any`` or ``off``, see ``[legacy_rules]cleanup``
        :param explain: fill in conditions, actions and changes of the traces
        """
        raise NotImplementedError
