"""The steps of a trial in order: what each hook and each rule has done, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.exceptions import HookFailed, RuleFailed
from ironic_rules.legacy import LegacyOutcome
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.secrets import Concealment
from ironic_rules.models.task import Task
from ironic_rules.rules import ActionTrace, ConditionTrace, Facts, RuleSet, Trace
from ironic_rules.rules.changes import difference_of_states, hide_changes
from ironic_rules.rules.explaining import ArgumentTrace, Explainer, ItemTrace

#: The two stages of a hook.
PREPROCESS, MAIN = "preprocess", "main"
#: The phase of legacy rules.
LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class HookStep:
    """The trace of a hook.

    :ivar stage: ``preprocess`` or ``main``
    :ivar changes: as those of a rule's trace
    :ivar messages: ``(level, text)``
    """

    name: str
    stage: str
    changes: JSONObject = field(default_factory=dict)
    messages: tuple[tuple[str, str], ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RuleStep:
    """The trace of a rule: its effects, or the reason why it had none."""

    phase: str
    trace: Trace


@dataclass(frozen=True, slots=True)
class TakenBackStep:
    """The trace of what legacy rules wrote in earlier inspections, and take back before they run.

    :ivar changes: as those of a rule's trace
    :ivar forgotten: why values that were changed since stay as they are
    """

    changes: Mapping[str, Any]
    forgotten: tuple[str, ...] = ()


class TrialSteps:
    """Collects the steps of one inspection without its commit, up to its end or its failure.

    :param traces: whether each step is explained; otherwise only rules are noted whose actions would have done more
    :param tick: called often; may raise to end the run
    """

    def __init__(self, tick: Callable[[], None] = lambda: None, *, traces: bool = True) -> None:
        self.conceal = Concealment()
        #: None: nothing is explained
        self.explainer = Explainer(self.conceal, tick) if traces else None
        self.steps: list[HookStep | RuleStep | TakenBackStep] = []
        self._tick = tick
        self._phase = "early"
        self._stage = PREPROCESS
        self._task: Task | None = None
        self._data: JSONObject = {}
        self._before: JSONObject = {}
        self._messages = 0

    def begin(self, task: Task, data: JSONObject) -> None:
        """Note the task and the plug-in data that all further steps change."""
        self._task, self._data = task, data
        task.conceal = self.conceal
        self._note_state()

    def hook(self, name: str, stage: str) -> None:
        """Add a hook that has ended."""
        self._tick()
        if self.explainer is None:
            return
        assert self._task is not None
        now = self._state()
        changes = hide_changes(difference_of_states(self._before, now), self.conceal)
        self.steps.append(HookStep(name, stage, changes, tuple(self._task.messages[self._messages:])))
        self._messages = len(self._task.messages)
        self._before = now
        self._stage = stage

    def run(self, rules: RuleSet, phase: str, facts: Facts) -> list[Trace]:
        """Run the rules of a phase, add them, and return their traces.

        :raises RuleFailed: the first of them that fails; not added yet
        """
        self._phase = phase
        traces = rules.run(phase, facts, explain=self.explainer is not None)
        self._add(traces)
        return traces

    def _add(self, traces: Iterable[Trace]) -> None:
        self.steps += [RuleStep(self._phase, trace) for trace in traces if trace.actions or self.explainer is not None]
        self._stage = MAIN
        self._note_state()

    def legacy(self, outcome: LegacyOutcome) -> None:
        """Add what legacy rules have taken back, and these rules, up to the one that has failed."""
        self._phase = LEGACY
        if outcome.taken_back or outcome.forgotten:
            self.steps.append(TakenBackStep(outcome.taken_back, tuple(change.reason for change in outcome.forgotten)))
        self._add(outcome.traces)

    def failed(self, error: HookFailed | RuleFailed) -> None:
        """Add the hook or the rule that has failed, and what came before it in its phase."""
        if isinstance(error, HookFailed):
            self.steps.append(HookStep(str(error.facts.get("hook")), self._stage, error=str(error)))
        else:
            self._add(getattr(error, "traces", ()))

    def _note_state(self) -> None:
        """Note what the next hook is compared with."""
        if self._task is not None and self.explainer is not None:
            self._before = self._state()
            self._messages = len(self._task.messages)

    def _state(self) -> JSONObject:
        assert self._task is not None
        # Hooks change their drafts in place.
        return {"node": clone(self._task.node.read()), "plugin_data": clone(self._data),
                "ports": {str(port.address): clone(port.read()) for port in self._task.ports}}

    def shown(self) -> list[JSONObject]:
        """Return the steps as JSON, without what must not be shown, also what that is by a later step."""
        return [_shown(step, self.conceal) for step in self.steps]

    def would(self) -> list[JSONObject]:
        """Return as JSON what actions have not done."""
        return [{"rule": step.trace.uuid, "pointer": action.where, "text": self.conceal.hide(note)}
                for step in self.steps if isinstance(step, RuleStep) and not step.trace.sensitive
                for action in step.trace.actions for note in action.notes]


def _shown(step: HookStep | RuleStep | TakenBackStep, conceal: Concealment) -> JSONObject:
    if isinstance(step, HookStep):
        return _hook(step, conceal)
    return rule(step, conceal) if isinstance(step, RuleStep) else _taken_back(step, conceal)


def _taken_back(step: TakenBackStep, conceal: Concealment) -> JSONObject:
    return {"phase": LEGACY, "taken_back": hide_changes(step.changes, conceal),
            "forgotten": [conceal.hide(reason) for reason in step.forgotten]}


def _hook(step: HookStep, conceal: Concealment) -> JSONObject:
    shown: JSONObject = {"hook": step.name, "stage": step.stage, "changes": hide_changes(step.changes, conceal)}
    if step.messages:
        shown["messages"] = messages(step.messages, conceal)
    if step.error is not None:
        shown["error"] = conceal.hide(step.error)
    return shown


def messages(logged: Iterable[tuple[str, str]], conceal: Concealment) -> list[JSONObject]:
    """Return messages of hooks and rules as JSON, without secrets."""
    return [{"level": level, "text": conceal.hide(text)} for level, text in logged]


def rule(step: RuleStep, conceal: Concealment) -> JSONObject:
    """Return a rule's trace as JSON. Only whether it matched, for a sensitive rule."""
    trace = step.trace
    shown: JSONObject = {"rule": trace.uuid, "phase": step.phase, "matched": trace.matched,
                         "sensitive": trace.sensitive}
    if trace.error is not None:
        shown["error"] = conceal.hide(trace.error)
    if trace.sensitive:
        return shown
    shown |= {"description": conceal.hide(trace.description), "note": trace.note,
              "conditions": [_condition(condition, conceal) for condition in trace.conditions],
              "actions": [_action(action, conceal) for action in trace.actions],
              "changes": hide_changes(trace.changes, conceal)}
    return shown


def _condition(trace: ConditionTrace, conceal: Concealment) -> JSONObject:
    shown: JSONObject = {"pointer": trace.where, "op": trace.op, "outcome": trace.outcome, "why": trace.why,
                         "detail": trace.detail, "short_circuited": trace.short_circuited}
    if trace.note is not None:
        shown["note"] = conceal.hide(trace.note)
    if trace.multiple is None:
        shown["arguments"] = [_argument(argument, conceal) for argument in trace.arguments]
    else:
        shown |= {"multiple": trace.multiple, "items_total": trace.count,
                  "items": [_item(item, conceal) for item in trace.items]}
    return shown


def _item(trace: ItemTrace, conceal: Concealment) -> JSONObject:
    return {"outcome": trace.outcome, "why": trace.why, "detail": trace.detail, "needed": trace.needed,
            "arguments": [_argument(argument, conceal) for argument in trace.arguments]}


def _action(trace: ActionTrace, conceal: Concealment) -> JSONObject:
    return {"pointer": trace.where, "op": trace.op, "times": trace.times,
            "notes": [conceal.hide(note) for note in trace.notes],
            "runs": [[_argument(argument, conceal) for argument in run] for run in trace.runs]}


def _argument(trace: ArgumentTrace, conceal: Concealment) -> JSONObject:
    shown: JSONObject = {"name": trace.name, "type": trace.type, "value": conceal.hide(trace.value)}
    if trace.written is not None:
        shown["written"] = conceal.hide(trace.written)
    if trace.missing is not None:
        shown["missing"] = trace.missing
    if trace.size is not None:
        shown["size"] = trace.size
    return shown
