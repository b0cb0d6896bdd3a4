"""Evaluation of rules in order; each sees the changes of earlier ones."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.exceptions import IronicRulesError, RuleFailed
from ironic_rules.models import secrets
from ironic_rules.models.inspection_rules import PHASES
from ironic_rules.models.json_values import clone, same
from ironic_rules.models.task import Task
from ironic_rules.rules.base import EVERYTHING, ActiveRule, HttpGet
from ironic_rules.rules.compiled_actions import CompiledAction
from ironic_rules.rules.compiler import CompiledRule
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.mask import MODES, View, Views
from ironic_rules.rules.phase import Entry, Phase, ScopedRules
from ironic_rules.rules.traces import ActionTrace, ConditionTrace, Trace
from ironic_rules.text import MAX_MESSAGE, printable

WITHHELD = "details are withheld, the rule is sensitive"


#: How often each action ran, and what each did not do (only in a dry run).
_Done = tuple[list[int], list[tuple[str, ...]]]


@dataclass(slots=True)
class Facts:
    """The data that rules work on. In the early phase ``task`` is None.

    :ivar inventory: never changed
    :ivar plugin_data: changed in place
    :ivar dry_run: actions send no requests to other services; an explained trace reports what they would have done.
        They change ``task`` and ``plugin_data`` as usual; the caller does not save them
    """

    task: Task | None
    inventory: Mapping[str, Any]
    plugin_data: dict[str, Any]
    early_messages: list[tuple[str, str]] = field(default_factory=list)
    dry_run: bool = False

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Messages of ``log`` actions, (level, text), for the caller to log."""
        return self.early_messages if self.task is None else self.task.messages


class RuleSet:
    """Rules in order: priority descending, then position, then as given. Immutable, shared by threads.

    :param rules: of any phase
    :param mask_secrets: always, never, or sensitive (only sensitive rules read secrets)
    :param http_get: the function by which ``api-call`` sends requests; None: it sends none
    """

    def __init__(self, rules: Iterable[CompiledRule], *, mask_secrets: str = "always",
                 http_get: HttpGet | None = None) -> None:
        if mask_secrets not in MODES:
            raise ValueError(f"mask_secrets must be one of {', '.join(MODES)}")
        self._mask = mask_secrets
        self._http_get = http_get
        ordered = sorted(rules, key=lambda rule: (-rule.priority, rule.position))
        self._phases = {phase: Phase(rule for rule in ordered if rule.phase == phase) for phase in PHASES}

    def __len__(self) -> int:
        return sum(len(phase.rules) for phase in self._phases.values())

    def rules(self, phase: str) -> list[CompiledRule]:
        """Return the rules of a phase in the order in which they run."""
        return list(self._phases[phase].rules)

    def run(self, phase: str, facts: Facts, *, explain: bool = False) -> list[Trace]:
        """Run the rules of a phase on one node.

        :param explain: fill in conditions, actions and changes of the traces
        :returns: a trace for each rule in scope, in order
        :raises RuleFailed: at the first failing rule, whose changes are undone; ``traces`` of the exception has the
            traces up to and including that rule
        """
        if phase not in self._phases:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}")
        rules = self._phases[phase]
        if not rules.rules:
            return []
        if phase != "early" and facts.task is None:
            raise ValueError("only early rules run without a node")
        task = None if phase == "early" else facts.task
        return _Run(rules, facts, task, Views(_sources(facts, task), self._mask), explain, self._http_get).all()


def evaluate(rule: CompiledRule, facts: Facts, *, explain: bool = False, **options: Any) -> Trace | None:
    """Run a single rule, in its own phase.

    :param options: those of :class:`RuleSet`

    :returns: its trace; None if the node is not in its scope
    :raises RuleFailed: the rule failed
    """
    traces = RuleSet([rule], **options).run(rule.phase, facts, explain=explain)
    return traces[0] if traces else None


def _scope(task: Task | None) -> str | None:
    # Tests of plug-ins make drafts with the fields that they need.
    return None if task is None else getattr(task.node, "inspection_scope", None)


def _sources(facts: Facts, task: Task | None) -> dict[str, Callable[[], Any]]:
    sources: dict[str, Callable[[], Any]] = {
        "inventory": lambda: facts.inventory, "plugin_data": lambda: facts.plugin_data,
    }
    if task is not None:
        known = task
        sources["node"] = lambda: known.node.read()
        sources["ports"] = lambda: [port.read() for port in known.ports]
        sources["port_groups"] = lambda: known.port_groups
    return sources


class _Run:
    """One run of the rules of a phase on one node."""

    __slots__ = (
        "_data", "_explain", "_facts", "_http_get", "_messages", "_phase", "_plain", "_sensitive", "_task", "_views")

    def __init__(self, phase: Phase, facts: Facts, task: Task | None, views: Views, explain: bool,
                 http_get: HttpGet | None) -> None:
        self._phase = phase
        self._facts = facts
        self._task = task
        self._views = views
        self._explain = explain
        self._http_get = http_get
        self._plain, self._sensitive = views.of(sensitive=False), views.of(sensitive=True)
        self._data, self._messages = facts.plugin_data, facts.messages

    def all(self) -> list[Trace]:
        # Without a node there is no scope to compare with: an early rule with a scope never applies.
        scope = _scope(self._task)
        traces: list[Trace] = []
        order: int | None = -1
        while order is not None:
            rules = self._phase.of_scope(scope)
            order = self._follow(rules, rules.first_after(order), scope, traces)
            scope = _scope(self._task)
        return traces

    def _follow(self, rules: ScopedRules, first: int, scope: str | None, traces: list[Trace]) -> int | None:
        """Run rules from number ``first`` on, adding a trace for each.

        :returns: None at the end; if a rule changes the node's scope, that rule's position in the phase
        """
        shift = len(traces) - first
        traces += rules.unmatched[first:]
        entries, explain, is_scoped = rules.entries, self._explain, self._phase.is_scoped
        for number in self._numbers(rules, first):
            entry = entries[number]
            view = self._sensitive if entry.sensitive else self._plain
            try:
                if explain:
                    trace = self._explained(entry, view)
                elif not entry.checks or _hold(entry.checks, view):
                    self._act(entry, view)
                    trace = entry.matched
                else:
                    continue
            except RuleFailed as failure:
                failure.traces[:0] = traces[:number + shift]  # type: ignore[attr-defined]
                raise
            traces[number + shift] = trace
            if is_scoped and trace.matched and _scope(self._task) != scope:
                del traces[number + shift + 1:]
                return entry.order
        return None

    def _numbers(self, rules: ScopedRules, first: int) -> Sequence[int]:
        if self._explain:
            return range(first, len(rules.entries))
        found = rules.candidates(self._plain, self._sensitive)
        return found[bisect.bisect_left(found, first):] if first else found

    def _explained(self, entry: Entry, view: View) -> Trace:
        rule = entry.rule
        conditions = tuple(_condition_trace(condition, view) for condition in rule.conditions)
        shown = () if rule.sensitive else conditions
        if not all(condition.outcome for condition in conditions):
            return Trace(rule.uuid, rule.description, False, conditions=shown)
        before = _state(self._facts, self._task)
        done = self._act(entry, view, shown)
        if rule.sensitive:
            return entry.matched
        changes = _difference(before, _state(self._facts, self._task))
        return Trace(rule.uuid, rule.description, True, None, shown, _action_traces(rule, *done), changes)

    def _act(self, entry: Entry, view: View, conditions: tuple[ConditionTrace, ...] = ()) -> _Done:
        """Run the actions of a rule; return how often each ran, and in a dry run what each did not do."""
        task, rule = self._task, entry.rule
        if task is not None:
            if entry.keeps_node:
                task.node.checkpoint()
            elif entry.keeps_task:
                task.checkpoint()
        kept = _kept(rule, self._data) if entry.keeps_data else None
        dry_run = self._facts.dry_run
        active = ActiveRule(rule, self._data, self._messages, dry_run, self._http_get)
        times: list[int] = []
        notes: list[tuple[str, ...]] = []
        for action in entry.actions:
            try:
                times.append(action.run(task, active, view, self._views))
            except IronicRulesError as exc:
                failure = _failure(rule, action, str(exc), exc)
            except Exception as exc:  # noqa: BLE001  (actions can be third-party code; a sensitive rule must not leak)
                failure = _failure(rule, action, f"{type(exc).__name__}: {exc}", exc)
            else:
                if dry_run:
                    notes.append(active.take_withheld())
                continue
            self._undo(entry, kept)
            shown = () if rule.sensitive else _action_traces(rule, times, notes)
            failure.traces = [  # type: ignore[attr-defined]
                Trace(rule.uuid, rule.description, True, str(failure), conditions, shown)]
            raise failure
        return times, notes

    def _undo(self, entry: Entry, kept: dict[str, Any] | None) -> None:
        if self._task is not None:
            if entry.keeps_node:
                self._task.node.rollback()
            elif entry.keeps_task:
                self._task.rollback()
        if kept is not None:
            self._data.clear()
            self._data.update(kept)
        self._views.forget(EVERYTHING)


def _hold(checks: tuple[Callable[[View], bool], ...], view: View) -> bool:
    try:
        for check in checks:
            if not check(view):
                return False
    except CannotEvaluate:
        return False
    return True


def _action_traces(rule: CompiledRule, times: list[int], notes: list[tuple[str, ...]]) -> tuple[ActionTrace, ...]:
    done = zip(rule.actions, times, notes or itertools.repeat(()), strict=False)  # only actions that ran
    return tuple(ActionTrace(action.where, action.op, count, note) for action, count, note in done)


def _kept(rule: CompiledRule, plugin_data: dict[str, Any]) -> dict[str, Any]:
    """Return a copy to restore if a rule fails. Our own actions copy on write; others may change data at any depth."""
    return dict(plugin_data) if rule.touches != EVERYTHING else clone(plugin_data)


def _failure(rule: CompiledRule, action: CompiledAction, reason: str, cause: Exception) -> RuleFailed:
    if rule.sensitive:
        # Without its cause: a traceback in the log would show what the rule does.
        return RuleFailed(rule=rule.uuid, where=action.where, reason=WITHHELD)
    failure = RuleFailed(rule=rule.uuid, where=action.where, reason=printable(reason, MAX_MESSAGE))
    failure.__cause__ = cause
    return failure


def _condition_trace(condition: Any, view: View) -> ConditionTrace:
    try:
        return ConditionTrace(condition.where, condition.op, condition.check(view))
    except CannotEvaluate as exc:
        return ConditionTrace(condition.where, condition.op, None, str(exc))


def _state(facts: Facts, task: Task | None) -> dict[str, Any]:
    state: dict[str, Any] = {"plugin_data": clone(facts.plugin_data)}
    if task is not None:
        state["node"] = clone(task.node.read())
        state["traits"] = {"traits": state["node"].pop("traits")}
        state["ports"] = {str(port.address): clone(port.read()) for port in task.ports}
    return state


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for root, values in after.items():
        old = before[root]
        changed = {key: value for key, value in values.items() if key not in old or not same(value, old[key])}
        changed.update({key: None for key in old if key not in values})
        if changed:
            changes[root] = secrets.mask(changed)
    return changes
