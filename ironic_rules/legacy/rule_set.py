"""The set of all legacy rules, and the four passes of a run over a node.

1. The values of rules on the node are reverted. 2. All conditions are evaluated, over the data and the node as it is
then: without legacy rules. 3. Rules that do not match clean up. 4. The actions of those that do run, in the order of
creation.

So the result does not depend on what rules did in the last inspection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ironic_rules.exceptions import IronicRulesError, RuleFailed, legacy_rule_failed
from ironic_rules.legacy import explaining
from ironic_rules.legacy.actions import Failed, LegacyAction
from ironic_rules.legacy.compiler import TASK, BrokenLegacyRule, CompiledLegacyRule
from ironic_rules.legacy.ownership import Forgotten, Ledger, settle, take_back
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.nodes import NODE
from ironic_rules.models.rules import CLEANUPS, OwnedValue
from ironic_rules.models.task import Abandoned, Task
from ironic_rules.rules.base import SECRETIVE
from ironic_rules.rules.changes import difference_of_states, hide_changes, seal_changes, whole_state
from ironic_rules.rules.compiled import condition_pointer
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.explaining import ActionTrace, ConditionTrace, Explainer, State, Trace
from ironic_rules.rules.getters import MODES, View, Views
from ironic_rules.rules.index import Chooser, Index
from ironic_rules.text import MAX_MESSAGE, in_parentheses, printable

#: Returns what ironic-inspector's rules read: the processed data, see ``legacy.values``. It is called at most once per
#: inspection, and only if a rule asks.
DataSource = Callable[[], Mapping[str, Any]]

_OF_NODE = (*NODE.columns, "traits")


@dataclass(frozen=True, slots=True)
class LegacyFailure:
    """The failure of an inspection by a rule.

    :ivar maintenance_reason: the reason for which the node is put in maintenance, although all else in the draft is
        discarded; None: it is not
    """

    error: RuleFailed
    maintenance_reason: str | None = None


@dataclass(frozen=True, slots=True)
class LegacyOutcome:
    """The results of the rules, without the changes of the drafts.

    :ivar owned: all values that rules own on the node from now on, in the order of writing; after a failure as before
    :ivar forgotten: values that were changed since, and are not owned any more
    :ivar traces: of each rule that matches, in the order of the rules; if explained, of each rule in scope
    :ivar failure: then the drafts are as they were before the rules ran
    :ivar taken_back: what taking back owned values has changed, as ``Trace.changes``; only explained
    """

    owned: tuple[OwnedValue, ...]
    forgotten: tuple[Forgotten, ...] = ()
    traces: tuple[Trace, ...] = ()
    failure: LegacyFailure | None = None
    taken_back: Mapping[str, Any] = field(default_factory=dict)


class LegacyRuleSet:
    """Rules in the order of creation. Immutable, shared by threads. False if it has no rule.

    :param mask_secrets: as for inspection rules
    """

    def __init__(self, rules: Iterable[CompiledLegacyRule | BrokenLegacyRule] = (), *,
                 mask_secrets: str = "always") -> None:
        if mask_secrets not in MODES:
            raise ValueError(f"mask_secrets must be one of {', '.join(MODES)}")
        self._mask = mask_secrets
        self._given = tuple(sorted(rules, key=lambda rule: (rule.position, rule.uuid)))
        self._broken = tuple(rule for rule in self._given if isinstance(rule, BrokenLegacyRule))
        self._rules = tuple(rule for rule in self._given if isinstance(rule, CompiledLegacyRule))
        #: numbers of rules that are evaluated always, and of those that do something if they do not match
        self._always: list[int] = []
        self._cleaning: list[int] = []
        self._disabled = frozenset(rule.uuid for rule in self._rules if rule.disabled is not None)
        self._index = self._indexed()

    def _indexed(self) -> Index:
        index = Index()
        chooser = Chooser(index)
        added = []
        for number, rule in enumerate(self._rules):
            if rule.disabled is not None:
                continue
            lookups = [condition.lookup for condition in rule.conditions]
            place = chooser.choose(lookups, False)
            lookup = None if place is None else lookups[place]
            if lookup is None:
                self._always.append(number)
            else:
                added.append((lookup, False, number))
            if any(action.has_cleanup for action in rule.actions):
                self._cleaning.append(number)
        return index.changed((), added).tidied()

    def __len__(self) -> int:
        return len(self._given)

    def changed(self, removed: Iterable[CompiledLegacyRule | BrokenLegacyRule],
                added: Iterable[CompiledLegacyRule | BrokenLegacyRule]) -> LegacyRuleSet:
        """Return the set without some rules and with others."""
        gone = set(removed)
        return LegacyRuleSet([*(rule for rule in self._given if rule not in gone), *added], mask_secrets=self._mask)

    def tidied(self) -> LegacyRuleSet:
        """Return the set in its fastest form: itself."""
        return self

    def run(self, task: Task, data: DataSource, owned: Sequence[OwnedValue] = (), cleanup: str = "own", *,
            explain: bool = False, explainer: Explainer | None = None, dry_run: bool = False) -> LegacyOutcome:
        """Run the four passes on one node; to be called even if the set is empty, when the node has owned values.

        :param owned: what rules own on the node, in the order of writing
        :param cleanup: ``own``, ``any`` or ``off``, see ``[legacy_rules]cleanup``
        :param explain: fill in conditions, actions and changes of the traces
        :param explainer: as in ``rules.Facts``
        :param dry_run: actions of other packages do not run: they may do more than change the task
        """
        if cleanup not in CLEANUPS:
            raise ValueError(f"cleanup must be one of {', '.join(CLEANUPS)}")
        owned = tuple(owned)
        if not self._given and not owned:
            return LegacyOutcome(owned)
        task.checkpoint()
        if explain:
            explainer = explainer or Explainer(task.conceal)
        drafts: tuple[NodeDraft | PortDraft, ...] = (task.node, *task.ports)
        positions = [draft.position() for draft in drafts]
        run = _Run(self._rules, task, data, cleanup, explainer if explain else None, dry_run, self._mask)
        try:
            for broken in self._broken:
                if _applies(broken.scope, run.scopes()):
                    raise broken.failure()
            outcome = self._passes(run, owned)
        except RuleFailed as error:
            # Each rule is an author, whose checkpoint is not that of the run.
            for draft, position in zip(drafts, positions, strict=True):
                draft.rollback(position)
            task.rollback()
            return LegacyOutcome(owned, (), tuple(run.traces), LegacyFailure(error, run.maintenance_reason))
        finally:
            task.watch.end()
        task.checkpoint()
        return outcome

    def _passes(self, run: _Run, owned: tuple[OwnedValue, ...]) -> LegacyOutcome:
        forgotten: tuple[Forgotten, ...] = ()
        remaining = owned
        if owned and run.cleanup != "off":
            rules = None
            if self._disabled:
                rules = {value.rule_uuid for value in owned} - self._disabled
            remaining, forgotten = run.take_back(owned, rules)
        numbers = self._numbers(run)
        matching = run.matching(numbers)
        if run.cleanup != "off":
            matched = set(matching)
            every = range(len(self._rules)) if run.cleanup == "any" else self._cleaning
            if cleaning := [number for number in every if number not in matched]:
                run.clean_up(cleaning)
        if matching:
            run.act(matching)
        run.sort_traces()
        now = (*remaining, *run.ledger.owned)
        if owned:
            settle(run.task, owned, now)
        return LegacyOutcome(now, forgotten, tuple(run.traces), taken_back=run.taken_back)

    def _numbers(self, run: _Run) -> list[int]:
        """Return the numbers of the rules that may match, in order; of all rules if they are explained."""
        if run.explainer is not None:
            return list(range(len(self._rules)))
        numbers = list(self._always)
        for tables in self._index.places.values():
            tables.find(run.view, run.view, numbers)
        numbers.sort()
        return numbers


class _Run:
    """One run of the rules on one node.

    :ivar traces: of the rules so far
    :ivar taken_back: what was changed by taking back
    :ivar maintenance_reason: that of the action ``fail`` that ended the run
    """

    def __init__(self, rules: Sequence[CompiledLegacyRule], task: Task, data: DataSource, cleanup: str,
                 explainer: Explainer | None, dry_run: bool, mask: str) -> None:
        self._rules = rules
        self.task = task
        self.cleanup = cleanup
        self.explainer = explainer
        self._dry_run = dry_run
        self._views = Views({"data": data, "node": self._node}, mask)
        self.view = self._views.of(sensitive=False)
        self.view[TASK] = task
        self.ledger = Ledger(task, cleanup != "off")
        self.traces: list[Trace] = []
        self.taken_back: Mapping[str, Any] = {}
        self._conditions: dict[int, tuple[ConditionTrace, ...]] = {}
        self.maintenance_reason: str | None = None

    def _node(self) -> JSONObject:
        """Return the node in the form of the API."""
        values = self.task.node.read()
        return {name: values[name] for name in _OF_NODE if name in values}

    def scopes(self) -> frozenset[Any]:
        """Return the scopes that the node is in: in its field, and where ironic-inspector had it."""
        properties = self.task.node.current("properties") or {}
        scope = properties.get("inspection_scope")
        return frozenset({self.task.node.current("inspection_scope"), scope if isinstance(scope, str) else None})

    def take_back(self, owned: tuple[OwnedValue, ...],
                  rules: set[str] | None) -> tuple[tuple[OwnedValue, ...], tuple[Forgotten, ...]]:
        """Take back what is owned; None: by any rule."""
        before = self._state()
        result = take_back(self.task, owned, rules)
        self.taken_back = self._changes_since(before)
        return result.kept, result.forgotten

    def matching(self, numbers: Iterable[int]) -> list[int]:
        """Return the numbers of the rules whose conditions hold."""
        matched = []
        scopes = self.scopes()
        for number in numbers:
            rule = self._rules[number]
            if not _applies(rule.scope, scopes):
                continue
            if self.explainer is not None:
                if self._explained(number, rule, self.explainer):
                    matched.append(number)
            elif self._holds(rule):
                matched.append(number)
        return matched

    def _holds(self, rule: CompiledLegacyRule) -> bool:
        view = self.view
        # Conditions that several rules have are evaluated once: nothing is written between.
        results = view.stable
        for place, condition in enumerate(rule.conditions):
            if condition not in results:
                try:
                    results[condition] = condition.call(view)
                except CannotEvaluate:
                    results[condition] = False
                except RecursionError as exc:
                    raise _failure(rule, condition_pointer(place), exc) from None
            if not results[condition]:
                return False
        return True

    def _explained(self, number: int, rule: CompiledLegacyRule, explainer: Explainer) -> bool:
        if rule.disabled is not None:
            self.traces.append(Trace(rule.uuid, rule.description, False, note=f"disabled: {rule.disabled}"))
            return False
        conditions: list[ConditionTrace] = []
        holds = True
        explainer.is_secretive = self._is_secretive(rule)
        for place, condition in enumerate(rule.conditions):
            outcome, note, where = None, None, condition_pointer(place)
            try:
                outcome = condition.call(self.view)
            except CannotEvaluate as exc:
                note = str(exc)
            except RecursionError as exc:
                raise _failure(rule, where, exc) from None
            conditions.append(explainer.condition(
                condition, where, self.view, outcome, note, short_circuited=not holds, read=explaining.read_condition))
            holds = holds and bool(outcome)
        self._conditions[number] = tuple(conditions)
        if not holds:
            self.traces.append(Trace(rule.uuid, rule.description, False, conditions=tuple(conditions)))
        return holds

    def _state(self) -> State:
        """Return the values that rules can change, if they are explained."""
        return whole_state({}, self.task) if self.explainer is not None else {}

    def _changes_since(self, before: State) -> JSONObject:
        if self.explainer is None:
            return {}
        return hide_changes(difference_of_states(before, self._state()), self.explainer.conceal)

    def _seal(self, before: State) -> None:
        """Note that nothing may be shown of what was changed, if rules are explained."""
        if self.explainer is not None:
            seal_changes(self.explainer.conceal, difference_of_states(before, self._state()))

    def clean_up(self, numbers: Iterable[int]) -> None:
        """Let rules that do not match clean up.

        :raises RuleFailed: a clean-up failed
        """
        # Values that the document deletes do not return.
        ledger = Ledger(self.task, False) if self.cleanup == "any" else self.ledger
        scopes = self.scopes()
        places = {trace.uuid: place for place, trace in enumerate(self.traces)}
        for rule in [self._rules[number] for number in numbers]:
            if rule.disabled is not None or not _applies(rule.scope, scopes):
                continue
            before = self._state()
            action_traces: list[ActionTrace] = []
            for index, action in enumerate(rule.actions):
                ledger.begin(rule.uuid, index)
                work = action.undo_any if self.cleanup == "any" else action.cleanup
                trace = self._do(rule, action, work, ledger)
                if trace is not None and (self.cleanup == "any" or action.has_cleanup):
                    action_traces.append(trace)
            if action_traces:
                if self._is_secretive(rule):
                    self._seal(before)
                place = places[rule.uuid]
                self.traces[place] = replace(self.traces[place], actions=tuple(action_traces), note="it cleans up",
                                             changes=self._changes_since(before))

    def _is_secretive(self, rule: CompiledLegacyRule) -> bool:
        """Return whether a rule reads what must not be shown; nearly always at once."""
        conceal = self.task.conceal
        return (conceal.has_sources or not self.view.masked) and explaining.is_secretive(rule, self.view, conceal)

    def _begin_author(self, rule: CompiledLegacyRule | None) -> None:
        """Note who writes from now on, for the history of inspections."""
        self.task.node.checkpoint(rule)
        for port in self.task.ports:
            port.checkpoint(rule)

    def act(self, numbers: Iterable[int]) -> None:
        """Run the actions of rules.

        :raises RuleFailed: an action failed
        """
        for number in numbers:
            rule = self._rules[number]
            before = self._state()
            action_traces: list[ActionTrace] = []
            self._begin_author(rule)
            is_secretive = self._is_secretive(rule)
            if self.explainer is not None:
                self.explainer.is_secretive = is_secretive
            if is_secretive:
                self.task.conceal.secretive.add(rule.uuid)
            try:
                for index, action in enumerate(rule.actions):
                    self.ledger.begin(rule.uuid, index)
                    trace = self._do(rule, action, action.apply, self.ledger)
                    if trace is not None:
                        action_traces.append(trace)
            except RuleFailed as failed:
                failure = _withheld(failed) if is_secretive else failed
                self.traces.append(Trace(rule.uuid, rule.description, True, str(failure),
                                         self._conditions.get(number, ()), tuple(action_traces)))
                if is_secretive:
                    self.maintenance_reason = self.maintenance_reason and SECRETIVE
                    raise failure from None
                raise
            if is_secretive:
                self._seal(before)
            self.traces.append(Trace(rule.uuid, rule.description, True, None, self._conditions.get(number, ()),
                                     tuple(action_traces), self._changes_since(before)))
        self._begin_author(None)

    def sort_traces(self) -> None:
        """Put the traces into the order of the rules, if they are explained: others are in it."""
        if self.explainer is not None:
            order = {rule.uuid: number for number, rule in enumerate(self._rules)}
            self.traces.sort(key=lambda trace: order[trace.uuid])

    def _do(self, rule: CompiledLegacyRule, action: LegacyAction, work: Callable[[Ledger, View, Views], None],
            ledger: Ledger) -> ActionTrace | None:
        """Do what an action does; return its trace, if it is explained."""
        trace = None
        if self.explainer is not None:
            trace = ActionTrace(action.where, action.op, 1, (), (explaining.run_of(self.explainer, action, self.view),))
        if self._dry_run and action.is_foreign:
            return trace and replace(trace, times=0, notes=(f"{action.op} of another package is not run",))
        self.task.sign(action)
        try:
            work(ledger, self.view, self._views)
        except Abandoned:
            raise
        except Failed as exc:
            if exc.maintenance:
                self.maintenance_reason = str(exc)
            raise _failure(rule, action.where, exc) from exc
        except BaseException as exc:  # third-party code can raise anything, SystemExit too
            raise _failure(rule, action.where, exc) from exc
        return trace


def _withheld(failure: RuleFailed) -> RuleFailed:
    """Return a failure without its reason, which may quote values that must not be shown."""
    return legacy_rule_failed(rule=failure.facts["rule"], called=failure.facts["called"], where=failure.facts["where"],
                              reason=f"details are withheld, {SECRETIVE}")


def _failure(rule: CompiledLegacyRule, where: str, exc: BaseException) -> RuleFailed:
    text = str(exc) if isinstance(exc, IronicRulesError) else f"{type(exc).__name__}: {printable(exc, MAX_MESSAGE)}"
    return legacy_rule_failed(rule=rule.uuid, called=in_parentheses(rule.description), where=where,
                              reason=printable(text, MAX_MESSAGE))


def _applies(scope: str | None, scopes: frozenset[object]) -> bool:
    return not scope or scope in scopes
