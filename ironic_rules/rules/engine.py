"""Evaluation of rules in order; each sees the changes of earlier ones."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ironic_rules.exceptions import IronicRulesError, RuleFailed
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.kept import Kept, problem_of_data
from ironic_rules.models.rules import PHASES
from ironic_rules.models.secrets import Concealment, Place
from ironic_rules.models.task import ACTION, Abandoned, Task, Watch
from ironic_rules.rules import reads
from ironic_rules.rules.base import EVERYTHING, SECRETIVE, ActiveRule, HttpGet
from ironic_rules.rules.changes import copied_data, difference_of_states, hide_changes, seal_changes, touched_state
from ironic_rules.rules.compiled import BrokenRule, CompiledAction, CompiledRule, Condition, condition_pointer
from ironic_rules.rules.errors import ActionError, CannotEvaluate
from ironic_rules.rules.explaining import ActionTrace, ConditionTrace, Explainer, NotedAction, Trace
from ironic_rules.rules.getters import FACT, MODES, PREVIOUS_FACT, View, Views
from ironic_rules.rules.phase import Entry, Part, Phase, RuleRuns
from ironic_rules.rules.values import PREVIOUS
from ironic_rules.text import MAX_MESSAGE, RULE_WITHHELD, printable

_SECRETIVE = f"details are withheld, {SECRETIVE}"

#: Numbers of runs of each action, and the effects that each did not have (only in a dry run).
_Done = tuple[list[int], list[tuple[str, ...]]]

#: Returns, on request, the rules that may not run on a node, and on how many others each has run, by their UUIDs.
SpentRules = Callable[[], Mapping[str, int]]


@dataclass(slots=True)
class Facts:
    """The data that rules work on. In the early phase ``task`` is None.

    :ivar inventory: never changed
    :ivar plugin_data: changed in place
    :ivar dry_run: actions send no requests to other services; the traces report what they would have done. They change
        ``task`` and ``plugin_data`` as usual; the caller does not save them
    :ivar spent: called only if the conditions of a rule with ``max_nodes`` hold
    :ivar explainer: makes the traces of all explained runs of one inspection; None: each run has its own
    :ivar early_watch: where the thread notes which action it runs; with a task, in that of the task
    :ivar runs: gets which rules each run has evaluated, for statistics; None: they are not noted
    :ivar more: further roots of templates, with a task
    """

    task: Task | None
    inventory: Mapping[str, Any]
    plugin_data: JSONObject
    early_messages: list[tuple[str, str]] = field(default_factory=list)
    dry_run: bool = False
    spent: SpentRules = dict
    explainer: Explainer | None = None
    early_watch: Watch = field(default_factory=Watch)
    runs: RuleRuns | None = None
    more: Mapping[str, Callable[[], Any]] = field(default_factory=dict)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Messages of ``log`` actions, (level, text), for the caller to log."""
        return self.early_messages if self.task is None else self.task.messages


class RuleSet:
    """Rules in order: priority descending, then position, then as given. Immutable, shared by threads.

    :param rules: of any phase, each with its own position among those of equal priority; broken ones fail the nodes
        that they apply to
    :param mask_secrets: always, never, or sensitive (only sensitive rules read secrets)
    :param http_get: the function by which ``api-call`` sends requests; None: it sends none
    """

    def __init__(self, rules: Iterable[CompiledRule | BrokenRule] = (), *, mask_secrets: str = "always",
                 http_get: HttpGet | None = None) -> None:
        if mask_secrets not in MODES:
            raise ValueError(f"mask_secrets must be one of {', '.join(MODES)}")
        self._mask = mask_secrets
        self._http_get = http_get
        self._phases = {phase: changed.tidied() for phase, changed in _changed({}, (), rules).items()}

    @property
    def shows_secrets(self) -> bool:
        """True if all rules read secrets, and not only sensitive ones."""
        return self._mask == "never"

    @property
    def reads_previous(self) -> bool:
        """True if any rule needs the previous inventory."""
        return any(phase.reads_previous for phase in self._phases.values())

    def __len__(self) -> int:
        return sum(len(phase.entries) for phase in self._phases.values())

    def changed(self, removed: Iterable[CompiledRule | BrokenRule],
                added: Iterable[CompiledRule | BrokenRule]) -> RuleSet:
        """Return the set without some rules and with others; only these are indexed again."""
        return self._with(_changed(self._phases, removed, added))

    def tidied(self) -> RuleSet:
        """Return the set in its fastest form, which some changes leave to the caller; itself if it is."""
        phases = {name: phase.tidied() for name, phase in self._phases.items()}
        return self if phases == self._phases else self._with(phases)

    def _with(self, phases: dict[str, Phase]) -> RuleSet:
        rule_set = RuleSet(mask_secrets=self._mask, http_get=self._http_get)
        rule_set._phases = phases
        return rule_set

    def rules(self, phase: str) -> list[CompiledRule]:
        """Return the rules of a phase in the order in which they run."""
        return self._phases[phase].rules

    def has(self, phase: str) -> bool:
        """Return whether there are rules of a phase."""
        return bool(self._phases[phase])

    def check(self, phase: str, scope: str | None) -> None:
        """Check that the rules of a phase can run for the nodes of a scope.

        :raises RuleFailed: one of them is broken
        """
        if broken := self._phases[phase].broken_for(scope):
            raise broken.failure()

    def run(self, phase: str, facts: Facts, *, explain: bool = False) -> list[Trace]:
        """Run the rules of a phase on one node.

        :param explain: fill in conditions, actions and changes of the traces
        :returns: a trace for each rule that matches, in order; if explained, for each rule in scope
        :raises RuleFailed: at the first failing rule, whose changes are undone, or for a broken rule; ``traces`` of the
            exception has the traces up to and including that rule
        """
        if phase not in self._phases:
            raise ValueError(f"phase must be one of {', '.join(PHASES)}")
        rules = self._phases[phase]
        if not rules:
            return []
        if phase != "early" and facts.task is None:
            raise ValueError("only early rules run without a node")
        task = None if phase == "early" else facts.task
        return _Run(rules, facts, task, Views(_sources(facts, task), self._mask), explain, self._http_get).all()

    @functools.cached_property
    def sensitive_early(self) -> frozenset[Place]:
        """The places that sensitive rules of the phase ``early`` write, which have run before there is a task."""
        return frozenset(place for rule in self.rules("early") if rule.sensitive for place in reads.written_by(rule))

    def withheld_places(self) -> frozenset[Place]:
        """Return the places that rules write of which nothing must be shown, in whatever inspection that was."""
        return frozenset(place for name in PHASES for rule in self.rules(name)
                         if rule.sensitive or self.shows_secrets for place in reads.written_by(rule))


def _changed(phases: Mapping[str, Phase], removed: Iterable[CompiledRule | BrokenRule],
             added: Iterable[CompiledRule | BrokenRule]) -> dict[str, Phase]:
    changes: dict[str, tuple[list[Any], list[Any]]] = {phase: ([], []) for phase in PHASES}
    for side, rules in enumerate((removed, added)):
        for rule in rules:
            changes[rule.phase][side].append(rule)
    return {name: phases.get(name, Phase()).changed(*change) if any(change) else phases.get(name, Phase())
            for name, change in changes.items()}


def evaluate(rule: CompiledRule, facts: Facts, *, explain: bool = False, **options: Any) -> Trace | None:
    """Run a single rule, in its own phase.

    :param options: those of :class:`RuleSet`

    :returns: its trace; None if it does not match, or, if explained, if the node is not in its scope
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
        current = task
        sources["node"] = lambda: current.node.read()
        sources["ports"] = lambda: [port.read() for port in current.ports]
        sources["port_groups"] = lambda: current.port_groups
        sources[PREVIOUS] = current.previous_inventory
        sources |= {FACT: dict, PREVIOUS_FACT: lambda: None, **facts.more}
    return sources


class _Run:
    """One run of the rules of a phase on one node."""

    __slots__ = ("_active", "_conceal", "_data", "_explain", "_facts", "_http_get", "_messages", "_phase", "_plain",
                 "_rewritten", "_scope", "_sensitive", "_stopped", "_task", "_traces", "_views", "_watch")

    _explain: Explainer | None

    def __init__(self, phase: Phase, facts: Facts, task: Task | None, views: Views, explain: bool,
                 http_get: HttpGet | None) -> None:
        self._phase = phase
        self._facts = facts
        self._task = task
        self._views = views
        self._explain = (facts.explainer or Explainer()) if explain else None
        self._conceal = self._explain.conceal if self._explain else Concealment() if task is None else task.conceal
        self._http_get = http_get
        self._plain, self._sensitive = views.of(sensitive=False), views.of(sensitive=True)
        self._data, self._messages = facts.plugin_data, facts.messages
        self._watch = facts.early_watch if task is None else task.watch
        self._scope = _scope(task)
        self._traces: list[Trace] = []
        self._active: ActiveRule | None = None
        #: the first keys of the plugin data that rules have written since the index was asked; None: any
        self._rewritten: frozenset[str] | None = frozenset()
        #: the number of the rule after which those that remain had to be found again
        self._stopped: int | None = None

    def all(self) -> list[Trace]:
        parts: list[Part] = []
        try:
            self._all(parts)
        except RuleFailed as failure:
            failure.traces[:0] = self._traces  # type: ignore[attr-defined]
            if self._facts.runs is not None:
                self._facts.runs.failed(failure, parts)
            raise
        finally:
            self._watch.end()
        if self._facts.runs is not None:
            self._facts.runs.ended(self._traces, parts)
        return self._traces

    def _all(self, parts: list[Part]) -> None:
        """Run the rules; note which of them, a part for each time that they are found."""
        remaining = self._of_scope()
        while True:
            after, self._stopped = self._stopped, None
            part = Part(self._phase, self._scope, remaining, after)
            parts.append(part)
            if remaining:
                self._fetch_previous(remaining)
                remaining = self._explain_all(remaining) if self._explain else self._each(remaining)
            if self._stopped is None:
                return
            part.until = self._stopped

    def _fetch_previous(self, numbers: list[int]) -> None:
        """Read the previous inventory if any of these rules needs it; the task keeps it.

        Here and not in a condition, whose errors fail its rule: a database that is unavailable must not.
        """
        reading = self._phase.reads_previous
        if reading and self._task is not None and not reading.isdisjoint(numbers):
            self._task.previous_inventory()

    def _of_scope(self) -> list[int]:
        """Return the numbers of the rules to evaluate.

        :raises RuleFailed: one of the rules that apply is broken
        """
        broken = self._phase.broken_for(self._scope)
        if broken is not None:
            raise _traced(broken.failure())
        if self._explain:
            return self._phase.of_scope(self._scope)
        self._rewritten = frozenset()
        return self._phase.candidates(self._scope, self._plain, self._sensitive)

    def _is_secretive(self, entry: Entry, view: View) -> bool:
        """Return whether a rule that is not sensitive reads what must not be shown; nearly always at once."""
        if (view.masked and not self._conceal.has_sources) or entry.sensitive:
            return False
        return reads.is_secretive(entry.rule, view, self._conceal)

    def _each(self, remaining: list[int]) -> list[int]:
        """Run rules in order, adding their traces; return those that remain when a change affects which they are."""
        entries, traces, plain, sensitive = self._phase.entries, self._traces, self._plain, self._sensitive
        is_scoped, reads_data = self._phase.is_scoped, self._phase.reads_data(self._scope)
        dry_run = self._facts.dry_run
        for number in remaining:
            entry = entries[number]
            view = sensitive if entry.sensitive else plain
            if entry.only is not None:
                # As _hold does, in the shortest way: a rule that cannot be looked up takes only this.
                try:
                    if not entry.only.call(view):
                        continue
                except CannotEvaluate:
                    continue
                except BaseException as exc:  # noqa: BLE001  (as in _hold)
                    raise self._failed_condition(entry, entry.only, view, exc) from None
            else:
                undecided = entry.undecided if entry.data_key is None else self._undecided(entry)
                if undecided and not self._hold(entry, undecided, view):
                    continue
            if entry.limited and entry.rule.uuid in self._facts.spent():
                continue
            if dry_run:
                traces.append(self._tried(entry, view))
            else:
                self._act(entry, view)
                traces.append(entry.matched)
            if is_scoped and entry.moves and _scope(self._task) != self._scope:
                return self._moved(number)
            if reads_data and entry.keeps_data:
                return self._found_again(entry, remaining[bisect.bisect_right(remaining, number):])
        return []

    def _explain_all(self, remaining: list[int]) -> list[int]:
        for number in remaining:
            entry = self._phase.entries[number]
            trace = self._explained(entry, self._sensitive if entry.sensitive else self._plain)
            self._traces.append(trace)
            if trace.matched and _scope(self._task) != self._scope:
                return self._moved(number)
        return []

    def _moved(self, number: int) -> list[int]:
        """Return what remains after rule ``number``, which has changed the scope of the node."""
        self._stopped = number
        self._scope = _scope(self._task)
        return [later for later in self._of_scope() if later > number]

    def _undecided(self, entry: Entry) -> tuple[Condition, ...]:
        """Return the undecided conditions of a rule that was found by plugin data, which may have changed since."""
        rewritten = self._rewritten
        decided = rewritten is not None and entry.data_key not in rewritten and (entry.data_key or not rewritten)
        return entry.undecided if decided else entry.rule.conditions

    def _found_again(self, writer: Entry, remaining: list[int]) -> list[int]:
        """Return what remains after a rule that wrote plugin data: also those that are found by them only now."""
        self._stopped = writer.number
        keys = writer.rule.writes
        self._rewritten = None if keys is None or self._rewritten is None else self._rewritten | keys
        numbers = self._phase.found_again(self._scope, keys, self._plain, self._sensitive)
        numbers.difference_update(remaining)
        more = [number for number in numbers if number > writer.number]
        return sorted(remaining + more) if more else remaining

    def _explained(self, entry: Entry, view: View) -> Trace:
        rule, explainer = entry.rule, self._explain
        assert explainer is not None
        is_secretive = explainer.is_secretive = self._is_secretive(entry, view)
        holds, shown = self._conditions(rule, view, explainer)
        if not holds:
            return Trace(rule.uuid, rule.description, False, conditions=shown, sensitive=rule.sensitive,
                         limited=entry.limited)
        if entry.limited and (nodes := self._facts.spent().get(rule.uuid)) is not None:
            return Trace(rule.uuid, rule.description, False, conditions=shown, sensitive=rule.sensitive, limited=True,
                         note=_spent(nodes))
        before = touched_state(self._data, self._task, rule)
        if rule.sensitive:
            self._act(entry, view)
            seal_changes(explainer.conceal, difference_of_states(before, touched_state(self._data, self._task, rule)))
            return entry.matched
        noted = explainer.noted(entry.actions)
        times, notes = self._act(entry, view, shown, noted)
        difference = difference_of_states(before, touched_state(self._data, self._task, rule))
        if is_secretive:
            seal_changes(explainer.conceal, difference)
        return Trace(rule.uuid, rule.description, True, None, shown, _action_traces(noted, times, notes),
                     hide_changes(difference, explainer.conceal), limited=entry.limited)

    def _conditions(self, rule: CompiledRule, view: View,
                    explainer: Explainer) -> tuple[bool, tuple[ConditionTrace, ...]]:
        """Evaluate all conditions of a rule; return whether they hold, and their traces, unless it is sensitive."""
        holds, shown = True, []
        for place, condition in enumerate(rule.conditions):
            where = condition_pointer(place)
            outcome, note = _outcome(rule, condition, where, view, is_secretive=explainer.is_secretive)
            if not rule.sensitive:
                shown.append(explainer.condition(condition, where, view, outcome, note, short_circuited=not holds))
            holds = holds and bool(outcome)
        return holds, tuple(shown)

    def _act(self, entry: Entry, view: View, conditions: tuple[ConditionTrace, ...] = (),
             noted: tuple[NotedAction, ...] | None = None) -> _Done:
        """Run the actions of a rule; return how often each ran, and in a dry run what each did not do.

        :param noted: its actions, if they are to be explained
        """
        task, rule = self._task, entry.rule
        if is_secretive := self._is_secretive(entry, view):
            self._conceal.secretive.add(rule.uuid)
        if rule.sensitive or is_secretive:
            self._conceal.add_sources(reads.written_by(rule))
        sign = None
        if task is not None and (entry.keeps_node or entry.keeps_task):
            sign = task.node.checkpoint(rule) if entry.keeps_node else task.checkpoint(rule)
        data_before = copied_data(rule, self._data) if entry.keeps_data else None
        dry_run = self._facts.dry_run
        active = self._active
        if active is None:
            active = self._active = ActiveRule(
                rule, self._data, self._messages, dry_run, self._http_get, self._watch)
        active.follow(rule, is_secretive=is_secretive)
        times: list[int] = []
        notes: list[tuple[str, ...]] = []
        for action in noted or entry.actions:
            if sign is not None:
                sign(action)
            try:
                if action.waits:
                    times.append(self._watched(rule, action, active, view, data_before))
                else:
                    times.append(action.run(task, active, view, self._views))
            except Abandoned:
                raise
            except IronicRulesError as exc:
                failure = _failure(rule, action.where, str(exc), exc, is_secretive=is_secretive,
                                   template=_message_of(rule, action))
            except BaseException as exc:  # noqa: BLE001  (third-party code, also SystemExit; a sensitive rule must not leak)
                failure = _failure(rule, action.where, f"{type(exc).__name__}: {printable(exc, MAX_MESSAGE)}", exc,
                                   is_secretive=is_secretive)
            else:
                if dry_run:
                    notes.append(active.take_withheld())
                continue
            self._undo(entry, data_before)
            shown = () if rule.sensitive else _action_traces(noted or entry.actions, times, notes)
            try:
                raise _traced(failure, Trace(rule.uuid, rule.description, True, str(failure), conditions, shown))
            finally:
                del failure  # it knows this frame, and they would keep the data in memory until cycles are collected
        return times, notes

    def _tried(self, entry: Entry, view: View) -> Trace:
        """Run the actions of a rule in a dry run that is not explained; its trace has what they did not do."""
        rule = entry.rule
        is_sealed = rule.sensitive or self._is_secretive(entry, view)
        before = touched_state(self._data, self._task, rule) if is_sealed else {}
        times, notes = self._act(entry, view)
        if is_sealed:
            seal_changes(self._conceal, difference_of_states(before, touched_state(self._data, self._task, rule)))
        if rule.sensitive or not any(notes):
            return entry.matched
        return replace(entry.matched, actions=_action_traces(entry.actions, times, notes))

    def _watched(self, rule: CompiledRule, action: CompiledAction | NotedAction, active: ActiveRule, view: View,
                 data_before: JSONObject | None) -> int:
        """Run an action that may never end, and return how often it ran.

        :raises ActionError, SecretMasked: it is of another package and wrote what it may not
        """
        task = self._task
        self._watch.begin(ACTION, _overdue, rule, action)
        before = Kept(task, "rules") if action.is_foreign and task is not None else None
        times = action.run(task, active, view, self._views)
        if action.is_foreign:
            if problem := (before and before.problem()) or problem_of_data(self._data):
                raise ActionError(problem)
            # Our own actions check what they write.
            if task is not None:
                task.check_secrets()
            if data_before is not None:
                secrets.refuse_masks(self._data, ("plugin_data",), data_before)
        self._watch.end()
        return times

    def _hold(self, entry: Entry, conditions: tuple[Condition, ...], view: View) -> bool:
        """Return whether all conditions hold; those that several rules have are evaluated once.

        :raises RuleFailed: an operator raised what operators must not
        """
        condition = None
        try:
            for condition in conditions:
                if not condition.is_shared:
                    if condition.call(view):
                        continue
                    return False
                outcomes = view.stable if condition.stable else view.volatile
                if condition not in outcomes:
                    outcomes[condition] = False
                    outcomes[condition] = condition.call(view)
                if not outcomes[condition]:
                    return False
        except CannotEvaluate:
            return False
        except BaseException as exc:  # noqa: BLE001  (also SystemExit; a sensitive rule must not leak)
            raise self._failed_condition(entry, condition, view, exc) from None
        return True

    def _failed_condition(self, entry: Entry, condition: Condition | None, view: View,
                          cause: BaseException) -> RuleFailed:
        rule = entry.rule
        where = "/conditions" if condition is None else condition_pointer(rule.conditions.index(condition))
        return _failed_condition(rule, where, cause, is_secretive=self._is_secretive(entry, view))

    def _undo(self, entry: Entry, data_before: JSONObject | None) -> None:
        if self._task is not None:
            if entry.keeps_node:
                self._task.node.rollback()
            elif entry.keeps_task:
                self._task.rollback()
        if data_before is not None:
            self._data.clear()
            self._data.update(data_before)
        self._views.forget(EVERYTHING)


def _action_traces(actions: Iterable[CompiledAction | NotedAction], times: list[int],
                   notes: list[tuple[str, ...]]) -> tuple[ActionTrace, ...]:
    actions_run = zip(actions, times, notes or itertools.repeat(()), strict=False)  # only actions that ran
    return tuple(
        ActionTrace(action.where, action.op, count, note,
                    tuple(action.runs) if isinstance(action, NotedAction) else ())
        for action, count, note in actions_run)


def _spent(nodes: int) -> str:
    return f"not applied: it has been applied to {nodes} other node{'' if nodes == 1 else 's'}, and may not to more"


def _failure(rule: CompiledRule, where: str, reason: str, cause: BaseException, *,
             is_secretive: bool = False, template: str | None = None) -> RuleFailed:
    if rule.sensitive or is_secretive:
        # Without its cause: a traceback in the log would show what the rule does.
        return RuleFailed(rule=rule.uuid, called=rule.called, where=where,
                          reason=RULE_WITHHELD if rule.sensitive else _SECRETIVE)
    failure = RuleFailed(rule=rule.uuid, called=rule.called, where=where, reason=printable(reason, MAX_MESSAGE),
                         template=template)
    failure.__cause__ = cause
    return failure


def _message_of(rule: CompiledRule, action: CompiledAction | NotedAction) -> str | None:
    """Return the message of an action ``fail`` as the rule has it, with its templates; None for another action."""
    if action.op != "fail":
        return None
    written = next((compiled.written for compiled in rule.actions if compiled.where == action.where), b"")
    arguments = orjson.loads(written)["args"] if written else {}
    message = arguments.get("msg") if isinstance(arguments, dict) else arguments[0]
    return message if isinstance(message, str) else None


def _traced(failure: RuleFailed, *traces: Trace) -> RuleFailed:
    failure.traces = list(traces)  # type: ignore[attr-defined]
    return failure


def _failed_condition(rule: CompiledRule, where: str, cause: BaseException, *, is_secretive: bool) -> RuleFailed:
    return _traced(_failure(rule, where, f"{type(cause).__name__}: {printable(cause, MAX_MESSAGE)}", cause,
                            is_secretive=is_secretive))


def _overdue(rule: CompiledRule, action: CompiledAction | NotedAction, reason: str) -> RuleFailed:
    return RuleFailed(rule=rule.uuid, called=rule.called, where=action.where, reason=reason)


def _outcome(rule: CompiledRule, condition: Condition, where: str, view: View, *,
             is_secretive: bool) -> tuple[bool | None, str | None]:
    """Return the outcome of a condition; None, and why, if it cannot be evaluated."""
    try:
        return condition.call(view), None
    except CannotEvaluate as exc:
        return None, str(exc)
    except BaseException as exc:  # noqa: BLE001  (as in _hold)
        raise _failed_condition(rule, where, exc, is_secretive=is_secretive) from None
