"""Trials of rules: an inspection without its commit. Hooks and rules change drafts that nothing saves.

:func:`try_rules` runs each of them. Dry runs of one node and of many, cases in files and comparisons differ in where
the machine comes from and in whether each step is explained. As far as the result goes, a trial is what the conductor
does: the pipeline with legacy rules, and the choice of interfaces after it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from ironic_rules import rules
from ironic_rules.db.session import Database
from ironic_rules.exceptions import (
    DriverNotFound,
    HookFailed,
    InterfaceNotFound,
    IronicRulesError,
    LookupFailed,
    RuleFailed,
)
from ironic_rules.inspection import fitting, payload, reapplying
from ironic_rules.inspection.explained_steps import TrialSteps, messages
from ironic_rules.inspection.fact_sets import FactCache, FactWork, previous_of
from ironic_rules.inspection.pipeline import LegacyRun, Outcome, Pipeline, withheld
from ironic_rules.inspection.rule_sets import LegacyRuleCache, RuleCache
from ironic_rules.inspection.trial_machines import Machine
from ironic_rules.legacy import LegacyRuleSet
from ironic_rules.models import documents
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.nodes import NODE
from ironic_rules.models.rules import OwnedValue, Rule
from ironic_rules.models.secrets import Concealment
from ironic_rules.models.task import Task, Watch
from ironic_rules.rules import CompiledRule, Facts, Limits, RuleRuns, RuleSet
from ironic_rules.rules.changes import difference_of_port, hide_changes
from ironic_rules.rules.phase import considered

FINISHED, FAILED, REFUSED = "finished", "failed", "refused"
#: Verdicts of a rule on a machine, except ``failed``: an inspection does not reach a disabled rule, one of another
#: scope, and one after the rule that fails.
MATCHED, UNMATCHED, UNREACHED = "matched", "unmatched", "unreached"
#: Changes that a trial shows which changes nothing: to find them costs a third of the trial of such a node.
_NOTHING: JSONObject = {
    "node": {"patch": []}, "ports": [], "ports_created": [], "ports_removed": [],
    "traits": {"added": [], "removed": []}, "plugin_data": {"patch": []}}


class RulesToTry(NamedTuple):
    """Rule sets.

    :ivar legacy: None: they do not run, and what they own stays
    :ivar left_out: UUIDs; the values of a legacy rule among them stay, as after its deletion
    :ivar facts: what rules read as ``fact``; None: no fact has a value
    """

    rule_set: RuleSet
    legacy: LegacyRuleSet | None = None
    left_out: Collection[str] = ()
    facts: FactCache | None = None


@dataclass(frozen=True, slots=True)
class RuleChanges:
    """The difference of a set of rules from the stored one.

    :ivar removed: UUIDs
    :ivar added: rules that are valid
    :ivar compiled: those of them that are enabled
    :ivar only: there are no others, not even built-in ones
    :ivar left_out: those of the removed ones that have no replacement
    """

    removed: Sequence[str]
    added: Sequence[Rule]
    compiled: Sequence[CompiledRule]
    only: bool
    left_out: Collection[str] = ()

    def to_json(self) -> JSONObject:
        """Return what :func:`rules_of_operation` reads. Legacy rules are not left out of it."""
        added = [{**rule.said(), "position": rule.position} for rule in self.added]
        return {"removed": list(self.removed), "added": added, "only": self.only}

    def rules(self, cache: RuleCache, legacy: LegacyRuleCache) -> RulesToTry:
        """Return the rule sets."""
        if self.only:
            return RulesToTry(cache.settings.rule_set(self.compiled), facts=cache.facts)
        return RulesToTry(cache.as_if(self.removed, self.compiled), legacy.as_if(self.left_out), self.left_out,
                          cache.facts)


def stored_rules(cache: RuleCache, legacy: LegacyRuleCache) -> RulesToTry:
    """Return the rules that inspections run now."""
    return RulesToTry(cache.latest(), legacy.latest(), facts=cache.facts)


def rules_of_operation(changes: JSONObject | None, cache: RuleCache, legacy: LegacyRuleCache) -> RulesToTry:
    """Return the rules of an operation, given by ``RuleChanges.to_json``; None: the stored ones."""
    if changes is None:
        return stored_rules(cache, legacy)
    compiled = _compiled(orjson.dumps(changes["added"]), cache.settings.limits)
    return RuleChanges(changes["removed"], (), compiled, changes["only"]).rules(cache, legacy)


@functools.lru_cache(maxsize=4)
def _compiled(added: bytes, limits: Limits) -> Sequence[CompiledRule]:
    """Return compiled rules: those of an operation are the same for each of its nodes."""
    return [rules.compile(rule, limits=limits) for rule in map(Rule.of, orjson.loads(added)) if rule.enabled]


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """The surroundings of trials: all but rules and machines.

    :ivar db: only read; without one, interfaces are not chosen after a change of the driver
    :ivar heartbeat_timeout: seconds after which a conductor is not alive
    :ivar cleanup: of legacy rules, see ``[legacy_rules]cleanup``
    :ivar tick: called often; may raise to end the trial
    :ivar watch: where the thread notes which code of a plug-in it runs
    """

    pipeline: Pipeline
    db: Database | None = None
    heartbeat_timeout: int = 0
    cleanup: str = "own"
    tick: Callable[[], None] = lambda: None
    watch: Watch = field(default_factory=Watch)


@dataclass(slots=True)
class Result:
    """The result of a trial: what an inspection would do.

    :ivar outcome: ``finished``, ``failed``, or ``refused`` if the machine's report would be
    :ivar shown: all of it as JSON
    :ivar conceal: what must not be shown
    :ivar error: of the hook or the rule that has failed
    :ivar is_changed: whether anything of the node, its ports or the plug-in data would change
    :ivar final: the fields and data that change, as they would be: what two results are compared by
    :ivar original: the fields of the node that change, as they are
    """

    outcome: str
    shown: JSONObject
    conceal: Concealment
    error: Exception | None = None
    is_changed: bool = False
    final: JSONObject = field(default_factory=dict)
    original: JSONObject = field(default_factory=dict)


def try_rules(setting: TrialSetting, machine: Machine | LookupFailed, data: InspectionData, rules: RulesToTry, *,
              traces: bool, early: bool = False, before: JSONObject | None = None,
              runs: RuleRuns | None = None) -> Result:
    """Return what an inspection of the machine would do.

    :param machine: why the report would be rejected, if no early rule rejects it before
    :param traces: whether each step is explained. Early rules, rules that may read any secret, and legacy rules are
        explained nevertheless: their traces tell what is secret
    :param early: the data have not passed the early rules yet
    :param before: the plug-in data that those of the trial are compared with; None: those of ``data``
    :param runs: gets which rules were evaluated, for :func:`verdict`
    :raises IronicRulesError: rules change a machine that has an instance as they may not
    """
    runs_legacy = not isinstance(machine, LookupFailed) and _runs_legacy(machine, rules)
    steps = TrialSteps(setting.tick, traces=traces or early or runs_legacy or rules.rule_set.shows_secrets)
    read = payload.usable(data.inventory, data.plugin_data)[0].inventory
    facts = Facts(None, read, dict(data.plugin_data), dry_run=True, explainer=steps.explainer)
    if early:
        try:
            rules.rule_set.check("early", None)
            steps.run(rules.rule_set, "early", facts)
        except RuleFailed as exc:
            steps.failed(exc)
            return _ended(REFUSED, steps, facts.messages, exc)
    if isinstance(machine, LookupFailed):
        return _ended(REFUSED, steps, facts.messages, machine)
    task = machine.task()
    task.watch = setting.watch
    legacy = _legacy_run(setting, machine, rules, steps) if runs_legacy else None
    try:
        outcome = setting.pipeline.run(task, data.inventory, facts.plugin_data, rules.rule_set, machine.spent, steps,
                                       legacy, rules_only=machine.rules_only, runs=runs,
                                       facts=_fact_work(setting, task, rules))
        _check(setting, machine, task, outcome)
    except (HookFailed, RuleFailed, DriverNotFound, InterfaceNotFound) as exc:
        return _ended(FAILED, steps, [*facts.messages, *task.messages], exc)
    setting.tick()
    before = data.plugin_data if before is None else before
    return _finished(machine, task, steps, outcome, before, [*facts.messages, *task.messages])


def verdict(runs: RuleRuns, rule: str) -> str:
    """Return what a trial says of the rule with this UUID: matched, unmatched, failed or unreached."""
    if runs.failure == rule:
        return FAILED
    if rule in runs.matched:
        return MATCHED
    reached = any(part.phase.entries[number].rule.uuid == rule for part in runs.parts
                  for number in considered(part.phase, part.scope, part.after, part.until))
    return UNMATCHED if reached else UNREACHED


def _fact_work(setting: TrialSetting, task: Task, rules: RulesToTry) -> FactWork | None:
    if rules.facts is None:
        return None
    return FactWork(rules.facts, previous=previous_of(setting.db, task.node.id))


def _owned(machine: Machine, rules: RulesToTry) -> list[OwnedValue]:
    return [value for value in machine.owned if value.rule_uuid not in rules.left_out]


def _runs_legacy(machine: Machine, rules: RulesToTry) -> bool:
    return rules.legacy is not None and bool(rules.legacy or _owned(machine, rules))


def _legacy_run(setting: TrialSetting, machine: Machine, to_try: RulesToTry, steps: TrialSteps) -> LegacyRun:
    rules, owned = to_try.legacy, _owned(machine, to_try)
    assert rules is not None
    return lambda task, source: rules.run(
        task, source, owned, setting.cleanup, explain=True, explainer=steps.explainer, dry_run=True)


def _check(setting: TrialSetting, machine: Machine, task: Task, outcome: Outcome) -> None:
    """Do what an inspection does after its rules.

    :raises RuleFailed, DriverNotFound, InterfaceNotFound, IronicRulesError: a rule or a hook changed what it may not
    """
    if setting.db is not None:
        fitting.fit(setting.db, setting.heartbeat_timeout, task, sealed=outcome.is_sealed)
    if machine.rules_only:
        try:
            reapplying.check_ports(task)
        except IronicRulesError as exc:
            raise withheld(exc) if outcome.is_sealed else exc from None


def _ended(outcome: str, steps: TrialSteps, logged: Sequence[tuple[str, str]],
           error: Exception | None = None) -> Result:
    failure = None if error is None else {name: steps.conceal.hide(value) for name, value in _failure(error).items()}
    shown = {"outcome": outcome, "admitted": outcome != REFUSED, "failure": failure, "steps": steps.shown(),
             "messages": messages(logged, steps.conceal), "would": steps.would()}
    return Result(outcome, shown, steps.conceal, error)


def _failure(error: Exception) -> JSONObject:
    """Return which hook or rule has failed, and why."""
    if isinstance(error, RuleFailed):
        failure = {"rule": error.facts["rule"], "pointer": error.facts["where"], "reason": str(error.facts["reason"])}
        maintenance = error.facts.get("maintenance")
        return failure if maintenance is None else {**failure, "maintenance_reason": maintenance}
    if isinstance(error, HookFailed):
        return {"hook": error.facts.get("hook"), "reason": str(error)}
    return {"reason": error.reason if isinstance(error, LookupFailed) else str(error)}


def _finished(machine: Machine, task: Task, steps: TrialSteps, outcome: Outcome, before: JSONObject,
              logged: Sequence[tuple[str, str]]) -> Result:
    """Return the result of a trial that has not failed: the differences of the drafts and of the plug-in data."""
    node, result = task.node, _ended(FINISHED, steps, logged)
    changed = node.changes()
    result.is_changed = reapplying.changes(task) or not reapplying.are_equal(outcome.plugin_data, before)
    result.original = {name: node.original(name) for name in changed}
    result.final = {"node": changed, "plugin_data": outcome.plugin_data, "traits": sorted(node.read()["traits"]),
                    "ports": {str(port.address): _port(port.read()) for port in task.ports}}
    result.shown |= _changes(machine, result, before) if result.is_changed or machine.is_new else _NOTHING
    return result


def _changes(machine: Machine, result: Result, before: JSONObject) -> JSONObject:
    """Return the patches that make what a trial leaves of what was there before, as they may be shown."""
    final, conceal = result.final, result.conceal
    old_ports = {} if machine.is_new else {str(port["address"]): _port(port) for port in machine.ports}
    patches = {address: difference_of_port(old_ports.get(address), final["ports"].get(address))
               for address in dict.fromkeys((*old_ports, *final["ports"]))}
    changes = hide_changes({"node": documents.difference(result.original, final["node"]),
                            "plugin_data": documents.difference(before, final["plugin_data"]),
                            "ports": {address: patch for address, patch in patches.items() if patch}}, conceal)
    old = set(machine.traits)
    shown = {
        "node": {"patch": changes["node"]},
        "ports": [{"address": address, "patch": patch} for address, patch in changes["ports"].items()
                  if patch[0]["path"] != ""],
        "ports_created": [operation["value"] for patch in changes["ports"].values() for operation in patch
                          if operation["path"] == "" and operation["op"] == "add"],
        "ports_removed": [address for address, patch in changes["ports"].items()
                          if patch[0]["path"] == "" and patch[0]["op"] == "remove"],
        "traits": {"added": conceal.hide(sorted(set(final["traits"]) - old), ("node", "traits")),
                   "removed": sorted(old - set(final["traits"]))},
        "plugin_data": {"patch": changes["plugin_data"]}}
    if machine.is_new:
        shown["new_node"] = conceal.hide(
            {name: value for name, value in machine.node.items() if NODE[name].create and value not in (None, {}, [])})
    return shown


#: Port fields that an inspection does not change.
_NOT_OF_PORT = frozenset({"id", "node_id", "created_at", "updated_at", "revision"})


def _port(values: Mapping[str, object]) -> JSONObject:
    is_new = values.get("id") is None
    return {name: value for name, value in values.items()
            if name not in _NOT_OF_PORT and not (is_new and name == "uuid")}


def difference_of(first: Result, second: Result) -> JSONObject:
    """Return how the second result differs from the first: patches from what the first would leave."""
    differences: JSONObject = {}
    for name in ("node", "traits", "ports", "plugin_data"):
        old, new = _left_by(first, name, second), _left_by(second, name, first)
        of_sets = name == "traits" and old is not None and new is not None
        patch = documents.difference_of_sets(old, new, ()) if of_sets else documents.difference(old, new)
        # Each may hide what the other one shows.
        place = ("node", name) if name == "traits" else (name,)
        differences[name] = second.conceal.hide_patch(first.conceal.hide_patch(patch, place), place)
    outcomes = [result.outcome for result in (first, second)]
    return {"outcome": outcomes if outcomes[0] != outcomes[1] else None, **differences}


def _left_by(result: Result, name: str, other: Result) -> Any:
    """Return what a result would leave, also where only the other one changes it."""
    values = result.final.get(name)
    return {**other.original, **values} if name == "node" and values is not None else values
