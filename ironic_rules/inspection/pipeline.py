"""The order of processing in an inspection: hooks and rules change the drafts, the caller saves them once.

1. ``preprocess`` of every hook    2. rules of phase ``preprocess``
3. every hook itself               4. rules of phase ``main``
5. legacy rules
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson
from oslo_log import log as logging

from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.exceptions import ConfigurationError, HookFailed, IronicRulesError, RuleFailed
from ironic_rules.inspection import payload
from ironic_rules.inspection.explained_steps import MAIN, PREPROCESS, TrialSteps
from ironic_rules.inspection.fact_sets import FactWork
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.inspection.hooks.disks import RootDeviceHook
from ironic_rules.inspection.hooks.extra_hardware import ExtraHardwareHook
from ironic_rules.inspection.hooks.lldp import ParseLLDPHook
from ironic_rules.inspection.hooks.validate_interfaces import ValidateInterfacesHook
from ironic_rules.legacy import DataSource, LegacyOutcome
from ironic_rules.legacy import values as legacy_values
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.inventories import AUTO_DISCOVERED, WARNINGS
from ironic_rules.models.kept import Kept, problem_of_data
from ironic_rules.models.task import HOOK, Abandoned, Task
from ironic_rules.rules import Facts, RuleRuns, RuleSet, SpentRules, Trace
from ironic_rules.rules.changes import difference_of_states, seal_changes, whole_state
from ironic_rules.text import WITHHELD, printable

LOG = logging.getLogger(__name__)

#: Runs the legacy rules on a task whose processed data the source returns.
LegacyRun = Callable[[Task, DataSource], LegacyOutcome]
#: Keys of the plug-in data that legacy rules read, each with the hook that writes it.
_READ_BY_LEGACY_RULES: Mapping[str, type[InspectionHook]] = {
    "all_interfaces": ValidateInterfacesHook, "local_gb": RootDeviceHook, "parsed_lldp": ParseLLDPHook,
    "extra": ExtraHardwareHook}


def withheld(error: BaseException) -> IronicRulesError:
    """Return an error without its text, which may quote what a sensitive rule has written."""
    return IronicRulesError(f"{type(error).__name__}; {WITHHELD}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of an inspection in addition to the changes of the drafts.

    :ivar traces: one per rule that was evaluated, in order
    :ivar plugin_data: the ramdisk's data without the inventory, with the changes of hooks and rules
    :ivar messages: ``(level, text)`` for the operator, from hooks and from rules
    :ivar seconds: of each stage so far
    :ivar matched: the traces of the rules that matched
    """

    traces: list[Trace]
    plugin_data: JSONObject
    messages: list[tuple[str, str]]
    seconds: Mapping[str, float] = field(default_factory=dict)
    matched: list[Trace] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matched", [trace for trace in self.traces if trace.matched])

    @property
    def is_sealed(self) -> bool:
        """True if the drafts contain what a sensitive rule wrote."""
        return any(trace.sensitive for trace in self.matched)


class Pipeline:
    """Runs the hooks, in order, and the rules. One per process; thread-safe.

    :param hooks: ``(name, hook)``, from ``hooks.loader.load()``
    :raises ConfigurationError: ``supported_interfaces`` is not a regular expression
    """

    def __init__(self, hooks: Sequence[tuple[str, InspectionHook]], settings: HookSettings | None = None) -> None:
        self._hooks = tuple(hooks)
        self._settings = settings or HookSettings()
        try:
            self._with_rules = re.compile(self._settings.supported_interfaces)
        except re.error as exc:
            raise ConfigurationError(
                f"[inspection_rules]supported_interfaces is not a regular expression: {exc}") from exc

    def run(self, task: Task, inventory: Mapping[str, object], plugin_data: Mapping[str, object] | None = None,
            rule_set: RuleSet | None = None, spent: SpentRules = dict,
            trial: TrialSteps | None = None, legacy: LegacyRun | None = None, *, rules_only: bool = False,
            runs: RuleRuns | None = None, facts: FactWork | None = None) -> Outcome:
        """Run hooks and rules over a ramdisk's data. Neither ``inventory`` nor ``plugin_data`` is changed.

        They read what is usable of the data; a warning tells what is not, and stays in the plug-in data.

        :param task: its drafts are changed; its inspection has begun
        :param rule_set: None runs only hooks
        :param spent: see ``rules.Facts``
        :param trial: gets what each hook and each rule has done, also before a failure; the run is then a dry run:
            actions change nothing but the drafts
        :param legacy: runs the legacy rules; None if there are none
        :param rules_only: hooks run on copies of the drafts, for the plug-in data that rules read
        :param runs: gets which rules were evaluated, for statistics
        :param facts: finds the facts of the node in the end, and for rules; None: there are none
        :raises HookFailed: with the hook's name; it failed, or changed the inventory
        :raises RuleFailed: from the first rule that failed, also a legacy one
        """
        report, warnings = payload.usable(inventory, plugin_data or {})
        received = _Inventory(report.inventory)
        data: JSONObject = orjson.loads(orjson.dumps(report.plugin_data))
        if warnings:
            task.messages.append(("warning", payload.summary(warnings)))
        # Not what a machine says of itself.
        data.pop(AUTO_DISCOVERED, None)
        if task.node.auto_discovered:
            data[AUTO_DISCOVERED] = True
        given_facts = Facts(task, received.data, data, spent=spent, runs=runs, dry_run=trial is not None,
                            explainer=None if trial is None else trial.explainer)
        if facts is not None:
            given_facts.more = facts.sources(task, received.data, data, received.sent)
        if trial is not None:
            trial.begin(task, data)
        try:
            outcome = self._run(task, received, data, given_facts, rule_set, trial, legacy, rules_only=rules_only)
        except (HookFailed, RuleFailed) as exc:
            if trial is not None:
                trial.failed(exc)
            raise
        if warnings:
            outcome.plugin_data[WARNINGS] = list(warnings)
        if facts is not None and trial is None:
            facts.find(task, received.data, outcome.plugin_data, received.sent)
        return outcome

    def _run(self, task: Task, received: _Inventory, data: JSONObject, facts: Facts, rule_set: RuleSet | None,
             trial: TrialSteps | None, legacy: LegacyRun | None, *, rules_only: bool) -> Outcome:
        rules = rule_set if self._with_rules.fullmatch(task.node.inspect_interface or "") else None
        sealed = False
        if rule_set is not None:
            task.conceal.add_sources(rule_set.sensitive_early)
        traces: list[Trace] = []
        task.stages.begin("hooks")
        for_hooks = task.copy() if rules_only else task
        for name, hook in self._hooks:
            self._call(name, hook, hook.preprocess, for_hooks, received, data, sealed)
            if trial is not None:
                trial.hook(name, PREPROCESS)
        task.messages = for_hooks.messages
        if rules is not None:
            task.stages.begin("rules")
            traces += _rules(rules, "preprocess", facts, trial)
            task.checkpoint()  # hooks write now
            sealed = any(trace.sensitive and trace.matched for trace in traces)
        task.stages.begin("hooks")
        for_hooks = task.copy() if rules_only else task
        # Hooks may write elsewhere what a sensitive rule has written.
        before = whole_state(data, task) if sealed or task.conceal.has_places else None
        for name, hook in self._hooks:
            first_new = len(for_hooks.messages)
            self._call(name, hook, hook, for_hooks, received, data, sealed)
            if before is not None:
                for_hooks.messages[first_new:] = [(level, WITHHELD) for level, _ in for_hooks.messages[first_new:]]
            if trial is not None:
                trial.hook(name, MAIN)
        task.messages = for_hooks.messages
        if before is not None:
            seal_changes(task.conceal, difference_of_states(before, whole_state(data, task)))
        if rules is not None:
            task.stages.begin("rules")
            traces += _rules(rules, "main", facts, trial)
            task.checkpoint()
            if legacy is not None:
                traces += self._run_legacy(legacy, task, received.data, data, trial)
        task.stages.begin("finish")
        return Outcome(traces, data, list(task.messages), task.stages.end())

    def _run_legacy(self, run: LegacyRun, task: Task, inventory: Mapping[str, object],
                    plugin_data: Mapping[str, object], trial: TrialSteps | None) -> list[Trace]:
        """Run the legacy rules; return their traces.

        :raises RuleFailed: a rule failed, or an action says that the inspection fails
        """
        outcome = run(task, lambda: legacy_data(task, inventory, plugin_data, self._settings))
        task.checkpoint()
        if trial is not None:
            trial.legacy(outcome)
        if outcome.failure is not None:
            error = outcome.failure.error
            failed = RuleFailed(str(error), maintenance=outcome.failure.maintenance_reason, **error.facts)
            failed.message_id = error.message_id
            # A trial has them already.
            failed.traces = [] if trial is not None else list(outcome.traces)  # type: ignore[attr-defined]
            raise failed
        return list(outcome.traces)

    def _call(self, name: str, hook: InspectionHook, work: Callable[..., None], task: Task, received: _Inventory,
              data: JSONObject, sealed: bool) -> None:
        """Run a hook.

        :param work: the hook itself, or its preprocess
        :param sealed: a sensitive rule has matched; no error may quote what it has written
        :raises HookFailed: for any exception of the hook, unless the database is unavailable: then the inspection is
            resumed later
        """
        snapshot = None if hook.is_trusted else Kept(task, "hooks")
        task.watch.begin(HOOK, _overdue, name)
        try:
            work(task, received.data, data)
        except (*DATABASE_AWAY, Abandoned):
            raise
        except BaseException as exc:  # hooks can be third-party code: whatever they raise, SystemExit too, fails them
            if sealed:
                # Without its cause: a traceback in the log would show what the rule has written.
                raise HookFailed(hook=name, reason=f"{type(exc).__name__}; {WITHHELD}") from None
            if isinstance(exc, HookFailed):
                raise
            if isinstance(exc, IronicRulesError):
                raise HookFailed(hook=name, reason=exc) from exc
            LOG.exception("Inspection hook %s failed for node %s", name, task.node.uuid)
            raise HookFailed(hook=name, reason=f"{type(exc).__name__}: {printable(exc)}") from exc
        finally:
            task.watch.end()
        if not received.is_unchanged():
            raise HookFailed(hook=name, reason="it changed the inventory, which hooks must not do")
        if snapshot is not None and (problem := snapshot.problem() or problem_of_data(data)):
            # A path can have what the rule has written.
            raise HookFailed(hook=name, reason=WITHHELD if sealed else problem)


def _rules(rules: RuleSet, phase: str, facts: Facts, trial: TrialSteps | None) -> list[Trace]:
    return rules.run(phase, facts) if trial is None else trial.run(rules, phase, facts)


def _overdue(name: str, reason: str) -> HookFailed:
    return HookFailed(hook=name, reason=reason)


class _Inventory:
    """A copy of the inventory for the hooks, and the original to compare it with afterwards."""

    def __init__(self, inventory: Mapping[str, object]) -> None:
        self.sent = orjson.dumps(inventory)
        self.data: JSONObject = orjson.loads(self.sent)

    def is_unchanged(self) -> bool:
        try:
            return orjson.dumps(self.data) == self.sent
        except orjson.JSONEncodeError:
            return False


def legacy_data(task: Task, inventory: Mapping[str, object], plugin_data: Mapping[str, object],
                settings: HookSettings | None = None) -> JSONObject:
    """Return what legacy rules read of an inspection. Nothing that is given is changed.

    :param plugin_data: as the enabled hooks have left them. The results of others are made for the rules alone; what
        they would warn of is not shown, and what they would fail at is missing
    """
    processed: JSONObject = dict(plugin_data)
    missing = [hook for key, hook in _READ_BY_LEGACY_RULES.items() if key not in processed]
    if missing:
        scratch, copied = task.copy(), clone(dict(inventory))
        processed = clone(processed)
        for kind in missing:
            hook = kind()
            hook.configure(settings or HookSettings())
            try:
                hook.preprocess(scratch, copied, processed)
                hook(scratch, copied, processed)
            except Exception:  # noqa: BLE001  (whatever a hook raises for unusual data)
                continue
    return legacy_values.processed(inventory, processed, auto_discovered=bool(task.node.auto_discovered))
