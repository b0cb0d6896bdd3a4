"""The rules of a phase for the nodes of each scope, prepared once for all nodes."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ironic_rules.rules.compiled_actions import CompiledAction
from ironic_rules.rules.compiler import CompiledRule
from ironic_rules.rules.index import Index
from ironic_rules.rules.mask import View
from ironic_rules.rules.traces import Trace


@dataclass(frozen=True, slots=True)
class Entry:
    """The precomputed attributes of a rule that the loop over the rules reads.

    :ivar order: its position among all rules of the phase
    :ivar checks: the checks of those of its conditions that the index does not decide
    :ivar keeps_node: whether its actions change the node, but nothing else of the task
    :ivar keeps_task: whether they change other parts of the task
    :ivar keeps_data: whether they change plugin data
    """

    rule: CompiledRule
    order: int
    actions: tuple[CompiledAction, ...]
    checks: tuple[Callable[[View], bool], ...]
    sensitive: bool
    keeps_node: bool
    keeps_task: bool
    keeps_data: bool
    matched: Trace


class ScopedRules:
    """The rules that apply to the nodes of one scope, in order. Immutable, shared by threads.

    :param rules: with their positions among all rules of the phase
    """

    __slots__ = ("_index", "_orders", "entries", "unmatched")

    def __init__(self, rules: Iterable[tuple[int, CompiledRule]]) -> None:
        numbered = list(rules)
        self._index = Index([([c.lookup for c in rule.conditions], rule.sensitive) for _, rule in numbered])
        self.entries = tuple(
            _entry(order, rule, answered)
            for (order, rule), answered in zip(numbered, self._index.chosen, strict=True))
        #: a trace for each rule: what a run returns if none of them matches
        self.unmatched = tuple(Trace(rule.uuid, rule.description, False) for _, rule in numbered)
        self._orders = [order for order, _ in numbered]

    def candidates(self, view: View, sensitive_view: View) -> Sequence[int]:
        """Return the numbers of the entries that may match, in order; others have a condition known to be false."""
        return self._index.candidates(view, sensitive_view)

    def first_after(self, order: int) -> int:
        """Return the number of the first entry after a position among all rules of the phase."""
        return bisect.bisect_right(self._orders, order)


def _entry(order: int, rule: CompiledRule, answered: int | None) -> Entry:
    checks = tuple(condition.check for place, condition in enumerate(rule.conditions) if place != answered)
    keeps_task = not rule.touches <= {"node", "plugin_data"}
    keeps_node = "node" in rule.touches and not keeps_task
    return Entry(rule, order, rule.actions, checks, rule.sensitive, keeps_node, keeps_task,
                "plugin_data" in rule.touches, Trace(rule.uuid, rule.description, True, sensitive=rule.sensitive))


class Phase:
    """The rules of a phase, in order, and those for each scope, prepared for the first node of that scope."""

    def __init__(self, rules: Iterable[CompiledRule]) -> None:
        self.rules = tuple(rules)
        self._scopes = frozenset(rule.scope for rule in self.rules if rule.scope is not None)
        self._by_scope: dict[str | None, ScopedRules] = {}

    @property
    def is_scoped(self) -> bool:
        """Whether the scope of a node affects which rules run."""
        return bool(self._scopes)

    def of_scope(self, scope: str | None) -> ScopedRules:
        """Return the rules without a scope, and those of the given one."""
        known = scope if scope in self._scopes else None
        if known not in self._by_scope:
            self._by_scope[known] = ScopedRules(
                (order, rule) for order, rule in enumerate(self.rules) if rule.scope in (None, known))
        return self._by_scope[known]
