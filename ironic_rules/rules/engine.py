"""Evaluation: rules in order, one after the other, each seeing what the earlier ones changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ironic_rules.exceptions import IronicRulesError, RuleFailed
from ironic_rules.models import plain, secrets
from ironic_rules.models.draft import Task
from ironic_rules.rules.base import EVERYTHING, ActiveRule, printable
from ironic_rules.rules.compiler import Action, CompiledRule
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.fields import PHASES
from ironic_rules.rules.kinds import compile_regex
from ironic_rules.rules.mask import MODES, View, Views

WITHHELD = "details are withheld, the rule is sensitive"

#: What somebody else's action may raise when it is wrong: it ends the rule, not the conductor's thread.
_PLUGIN_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError,
    ValueError,
)


@dataclass(slots=True)
class Facts:
    """What rules work on. In the early phase ``task`` is None.

    :ivar inventory: never changed
    :ivar plugin_data: changed in place
    :ivar interface: the node's inspect interface, if ``supported_interfaces`` is to be respected
    """

    task: Task | None
    inventory: Mapping[str, Any]
    plugin_data: dict[str, Any]
    interface: str | None = None
    early_messages: list[tuple[str, str]] = field(default_factory=list)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """What ``log`` actions said, (level, text), for the caller to log."""
        return self.early_messages if self.task is None else self.task.messages


@dataclass(frozen=True, slots=True)
class ConditionTrace:
    """``outcome`` is None where the data did not allow an answer; ``note`` says why."""

    where: str
    op: str
    outcome: bool | None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ActionTrace:
    """An action that ran, ``times`` times."""

    where: str
    op: str
    times: int


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


class _Ready(NamedTuple):
    """What the loop over the rules needs of each, at hand."""

    rule: CompiledRule
    checks: tuple[Callable[[View], bool], ...]
    scope: str | None
    sensitive: bool
    matched: Trace
    unmatched: Trace

    @classmethod
    def of(cls, rule: CompiledRule) -> _Ready:
        return cls(rule, rule.checks, rule.scope, rule.sensitive, Trace(rule.uuid, rule.description, True),
                   Trace(rule.uuid, rule.description, False))


class RuleSet:
    """Rules in order: priority descending, then position, then as given. Immutable, shared by threads.

    :param rules: of any phase
    :param mask_secrets: always, never, or sensitive (only sensitive rules read secrets)
    :param supported_interfaces: RE2 expression that the whole of ``facts.interface`` must match for rules to run
    """

    def __init__(self, rules: Iterable[CompiledRule], *, mask_secrets: str = "always",
                 supported_interfaces: str | None = None) -> None:
        if mask_secrets not in MODES:
            raise ValueError(f"mask_secrets must be one of {', '.join(MODES)}")
        self._mask = mask_secrets
        self._interfaces = None if supported_interfaces is None else compile_regex(supported_interfaces)
        self._phases: dict[str, tuple[_Ready, ...]] = {}
        ordered = sorted(rules, key=lambda rule: (-rule.priority, rule.position))
        for phase in PHASES:
            self._phases[phase] = tuple(_Ready.of(rule) for rule in ordered if rule.phase == phase)

    def __len__(self) -> int:
        return sum(map(len, self._phases.values()))

    def rules(self, phase: str) -> list[CompiledRule]:
        """Return the rules of a phase in the order in which they run."""
        return [ready.rule for ready in self._phases[phase]]

    def run(self, phase: str, facts: Facts, *, explain: bool = False) -> list[Trace]:
        """Run the rules of a phase on one node.

        :param explain: fill in conditions, actions and changes of the traces
        :returns: a trace for each rule in scope, in order
        :raises RuleFailed: at the first failing rule, whose changes are undone; ``traces`` of the exception has the
            traces up to and with it
        """
        if phase not in self._phases:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}")
        if not self._supports(facts.interface):
            return []
        rules = self._phases[phase]
        if not rules:
            return []
        if phase != "early" and facts.task is None:
            raise ValueError("only early rules run without a node")
        task = None if phase == "early" else facts.task
        scope = _scope(task)
        views = Views(_sources(facts, task), self._mask)
        plain, sensitive = views.of(sensitive=False), views.of(sensitive=True)
        traces: list[Trace] = []
        for ready in rules:
            # Without a node there is no scope to compare with: a scoped early rule applies to nothing.
            if ready.scope is not None and ready.scope != scope:
                continue
            view = sensitive if ready.sensitive else plain
            if explain:
                trace = _explained(ready, facts, task, view, views, traces)
            elif _holds(ready.checks, view):
                _act(ready.rule, facts, task, view, views, traces)
                trace = ready.matched
            else:
                trace = ready.unmatched
            traces.append(trace)
            if trace.matched:
                scope = _scope(task)
        return traces

    def _supports(self, interface: str | None) -> bool:
        return self._interfaces is None or interface is None or self._interfaces.fullmatch(interface) is not None


def evaluate(rule: CompiledRule, facts: Facts, *, mask_secrets: str = "always", explain: bool = False) -> Trace | None:
    """Run one rule on its own, in its own phase.

    :returns: its trace; None if it is out of the node's scope
    :raises RuleFailed: the rule failed
    """
    traces = RuleSet([rule], mask_secrets=mask_secrets).run(rule.phase, facts, explain=explain)
    return traces[0] if traces else None


def _scope(task: Task | None) -> str | None:
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


def _holds(checks: tuple[Callable[[View], bool], ...], view: View) -> bool:
    try:
        for check in checks:
            if not check(view):
                return False
    except CannotEvaluate:
        return False
    return True


def _act(rule: CompiledRule, facts: Facts, task: Task | None, view: View, views: Views, traces: list[Trace],
         conditions: tuple[ConditionTrace, ...] = ()) -> tuple[ActionTrace, ...]:
    if task is not None:
        task.checkpoint()
    kept = _kept(rule, facts.plugin_data)
    active = ActiveRule(
        uuid=rule.uuid, description=rule.description, priority=rule.priority, phase=rule.phase, scope=rule.scope,
        sensitive=rule.sensitive, plugin_data=facts.plugin_data, messages=facts.messages,
    )
    done = []
    for action in rule.actions:
        try:
            done.append(ActionTrace(action.where, action.op, action.run(task, active, view, views)))
        except IronicRulesError as exc:
            failure = _failure(rule, action, str(exc), exc)
        except _PLUGIN_ERRORS as exc:
            failure = _failure(rule, action, f"{type(exc).__name__}: {exc}", exc)
        else:
            continue
        if task is not None:
            task.rollback()
        if kept is not None:
            facts.plugin_data.clear()
            facts.plugin_data.update(kept)
        views.forget(EVERYTHING)
        traces.append(Trace(rule.uuid, rule.description, True, str(failure), conditions, tuple(done)))
        failure.traces = list(traces)  # type: ignore[attr-defined]
        raise failure
    return tuple(done)


def _kept(rule: CompiledRule, plugin_data: dict[str, Any]) -> dict[str, Any] | None:
    """Keep what a failing rule has to give back. Our own actions copy on write; others may change any depth."""
    if "plugin_data" not in rule.touches:
        return None
    return dict(plugin_data) if rule.touches != EVERYTHING else plain.clone(plugin_data)


def _failure(rule: CompiledRule, action: Action, reason: str, cause: Exception) -> RuleFailed:
    if rule.sensitive:
        # Without its cause: a traceback in the log would show what the rule does.
        return RuleFailed(rule=rule.uuid, where=action.where, reason=WITHHELD)
    failure = RuleFailed(rule=rule.uuid, where=action.where, reason=printable(reason))
    failure.__cause__ = cause
    return failure


def _explained(ready: _Ready, facts: Facts, task: Task | None, view: View, views: Views, traces: list[Trace]) -> Trace:
    rule = ready.rule
    conditions = tuple(_condition_trace(condition, view) for condition in rule.conditions)
    matched = all(condition.outcome for condition in conditions)
    shown = () if rule.sensitive else conditions
    if not matched:
        return Trace(rule.uuid, rule.description, False, conditions=shown)
    before = _state(facts, task)
    actions = _act(rule, facts, task, view, views, traces, shown)
    if rule.sensitive:
        return ready.matched
    changes = _difference(before, _state(facts, task))
    return Trace(rule.uuid, rule.description, True, None, shown, actions, changes)


def _condition_trace(condition: Any, view: View) -> ConditionTrace:
    try:
        return ConditionTrace(condition.where, condition.op, condition.check(view))
    except CannotEvaluate as exc:
        return ConditionTrace(condition.where, condition.op, None, str(exc))


def _state(facts: Facts, task: Task | None) -> dict[str, Any]:
    state: dict[str, Any] = {"plugin_data": plain.clone(facts.plugin_data)}
    if task is not None:
        state["node"] = plain.clone(task.node.read())
        state["traits"] = {"traits": state["node"].pop("traits")}
        state["ports"] = {str(port.address): plain.clone(port.read()) for port in task.ports}
    return state


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for root, values in after.items():
        old = before[root]
        changed = {key: value for key, value in values.items() if key not in old or not plain.same(value, old[key])}
        changed.update({key: None for key in old if key not in values})
        if changed:
            changes[root] = secrets.mask(changed)
    return changes
