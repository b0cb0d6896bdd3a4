"""The compiled rule set: the stored rules, as current as the database, and the built-in ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.db import inspection_rules
from ironic_rules.db.session import Database
from ironic_rules.inspection.rule_settings import RuleSettings
from ironic_rules.rules import BrokenRule, CompiledRule, Rule, RuleSet, compile

LOG = logging.getLogger(__name__)

#: Maximum number of changed rules that the thread which needs them compiles, in 0.1 ms each. More are compiled in the
#: background; until then, inspections use main and preprocess rules as they were.
_FEW = 100
#: Number of changes after which the set is tidied, without anything waiting for that.
_UNTIDY = 32

_Compiled = CompiledRule | BrokenRule


#: What happens as long as a main or preprocess rule, and as long as an early rule is broken.
_CONSEQUENCES = (
    "The inspection of every node that it applies to fails.",
    "Unknown machines are refused, and every inspection by a ramdisk fails.")
_OF_DISABLED = "It is not enabled, and does not run."


@dataclass(frozen=True, slots=True)
class _Stored:
    """A stored rule as it was last read."""

    revision: int
    enabled: bool
    compiled: _Compiled


@dataclass(frozen=True, slots=True)
class _State:
    """The rules as of a revision.

    :ivar broken: those that do not compile, disabled ones included
    :ivar untidy: the number of changes since the set was tidied
    """

    revision: int
    stored: Mapping[str, _Stored]
    rule_set: RuleSet
    broken: Mapping[str, BrokenRule]
    untidy: int = 0


@dataclass(frozen=True, slots=True)
class _Difference:
    """What differs between a state and the database."""

    revision: int
    changed: list[Rule]
    gone: list[str]


class _OlderDatabase(Exception):
    """The database is older than the rules that were read from it: it was restored."""


class RuleCache:
    """Keeps the compiled rules, and compiles again only what has changed. One per process; thread-safe.

    The revision of the set tells whether it is current; it is read together with what an inspection reads anyway. A
    thread that finds a few rules changed compiles these itself, as does any other thread meanwhile. Threads wait for
    another one where there are no rules yet, and in :meth:`latest`. None compiles rules in a transaction.
    """

    def __init__(self, db: Database, settings: RuleSettings | None = None) -> None:
        self._db = db
        self._settings = settings or RuleSettings()
        self._built_in = [
            compile(rule, limits=self._settings.limits) for rule in self._settings.built_in if rule.enabled]
        self._loading = threading.Lock()
        self._compiling = threading.Lock()
        self._tidying = threading.Lock()
        self._publishing = threading.Lock()
        self._state: _State | None = None

    @property
    def settings(self) -> RuleSettings:
        """How rules are compiled and run in this process."""
        return self._settings

    def current(self, revision: int | None = None) -> RuleSet:
        """Return the rules; stored ones that do not compile are in the set as broken ones.

        While many rules are compiled after a change, the set is that before the change: for inspections, which do not
        wait. :meth:`early` and :meth:`latest` are for what must not use a rule that has been changed.

        :param revision: that of the stored rules, as just read; None: it is read
        """
        return self._current(revision).rule_set

    def early(self, revision: int | None = None) -> RuleSet:
        """Return a set whose rules of the early phase are the present ones: they decide which machines are accepted.

        While many rules are compiled after a change, early ones among them are compiled by each thread that needs them;
        if these are many, too, it waits.

        :param revision: that of the stored rules, as just read; None: it is read
        """
        state = self._current(revision)
        if state.revision == revision:
            return state.rule_set
        try:
            difference = self._difference(state, _FEW + 1, phase="early")
        except _OlderDatabase:
            return self._load(state).rule_set
        if difference is None:
            return state.rule_set
        if len(difference.changed) > _FEW:
            return self.latest()
        return self._changed(state, difference).rule_set

    def latest(self) -> RuleSet:
        """Return the rules as they are now; wait while many are compiled."""
        return self._current(None, wait=True).rule_set

    def broken(self, revision: int | None = None) -> Mapping[str, BrokenRule]:
        """Return the rules that do not compile, by UUID, those that are disabled included."""
        return self._current(revision).broken

    def as_if(self, removed: Collection[str], added: Iterable[CompiledRule | BrokenRule]) -> RuleSet:
        """Return the stored and built-in rules without some, and with others.

        :param removed: UUIDs; those that no enabled rule has are ignored
        """
        state = self._current(None, wait=True)
        known = [found.compiled for uuid in removed if (found := state.stored.get(uuid)) and found.enabled]
        built_in = [rule for rule in self._built_in if rule.uuid in removed]
        return state.rule_set.changed([*known, *built_in], added)

    def _current(self, revision: int | None, *, wait: bool = False) -> _State:
        state = self._state or self._load(None)
        if state.revision == revision or (self._compiling.locked() and not wait):
            return state
        try:
            difference = self._difference(state, _FEW + 1)
            if difference is None:
                return state
            if len(difference.changed) > _FEW:
                if wait:
                    return self._wait(state)
                self._start(self._compiling, self._compile_many)
                return state
        except _OlderDatabase:
            return self._load(state)
        state = self._publish(self._changed(state, difference))
        if state.untidy >= _UNTIDY:
            self._start(self._tidying, self._tidy)
        return state

    def _wait(self, state: _State) -> _State:
        """Return the present state after many rules have changed."""
        with self._compiling:
            # If another thread has compiled them meanwhile, the lock is not kept to look for later changes: inspections
            # do without these as long as it is held.
            if self._state is state:
                return self._compile_many()
        return self._current(None, wait=True)

    def _load(self, useless: _State | None) -> _State:
        """Read and compile all rules, unless another thread has meanwhile replaced ``useless``."""
        with self._loading:
            if self._state is not None and self._state is not useless:
                return self._state
            if useless is not None:
                # The same revisions may be those of other rules.
                self._settings.compiled.clear()
            with self._db.reader() as conn:
                revision, rules = inspection_rules.revision(conn), inspection_rules.all_rules(conn)
            stored = {rule.uuid: self._compiled(rule) for rule in rules}
            broken = {uuid: found.compiled for uuid, found in stored.items()
                      if isinstance(found.compiled, BrokenRule)}
            _tell(stored, broken, {} if useless is None else useless.broken)
            enabled = [found.compiled for found in stored.values() if found.enabled]
            loaded = _State(revision, stored, self._settings.rule_set([*enabled, *self._built_in]), broken)
            with self._publishing:
                self._state = loaded
            return loaded

    def _compiled(self, rule: Rule) -> _Stored:
        return _Stored(rule.revision, rule.enabled, self._settings.compile(rule))

    def _difference(self, state: _State, limit: int | None = None, *, phase: str | None = None) -> _Difference | None:
        """Read what has changed since ``state``; None if nothing has.

        :param limit: maximum number of changed rules to read
        :param phase: only the rules that are or were of this phase
        """
        with self._db.reader() as conn:
            revision = inspection_rules.revision(conn)
            if revision == state.revision:
                return None
            if revision < state.revision:
                raise _OlderDatabase
            if phase is not None:
                changed = inspection_rules.changed_since(conn, state.revision, limit, phase=phase)
                were = {uuid for uuid, found in state.stored.items() if found.compiled.phase == phase}
                gone = list(were - inspection_rules.uuids(conn, phase)) if were else []
                return _Difference(revision, changed, gone)
            changed = inspection_rules.changed_since(conn, state.revision, limit)
            gone = [] if len(changed) == limit else _gone(conn, state, changed)
            return _Difference(revision, changed, gone)

    def _changed(self, state: _State, difference: _Difference) -> _State:
        # Not all rules are looked at again: there may be many, and an inspection waits for this.
        stored, broken = dict(state.stored), dict(state.broken)
        for uuid in difference.gone:
            broken.pop(uuid, None)
        removed = [found.compiled for uuid in difference.gone if (found := stored.pop(uuid)).enabled]
        added: list[_Compiled] = []
        for rule in difference.changed:
            old = stored.get(rule.uuid)
            if old is not None and old.enabled:
                removed.append(old.compiled)
            new = stored[rule.uuid] = self._compiled(rule)
            if new.enabled:
                added.append(new.compiled)
            broken.pop(rule.uuid, None)
            if isinstance(new.compiled, BrokenRule):
                broken[rule.uuid] = new.compiled
        return _State(difference.revision, stored, state.rule_set.changed(removed, added), broken,
                      state.untidy + max(len(removed), len(added)))

    def _publish(self, state: _State) -> _State:
        """Make a state that of the process, unless another thread has a newer or tidier one; return ``state``."""
        with self._publishing:
            known = self._state
            is_news = known is None or (known.revision, -known.untidy) < (state.revision, -state.untidy)
            if is_news:
                self._state = state
        if is_news:
            _tell(state.stored, state.broken, {} if known is None else known.broken)
        return state

    def _compile_many(self) -> _State:
        state = self._state or self._load(None)
        difference = self._difference(state)
        return state if difference is None else self._publish(self._changed(state, difference))

    def _tidy(self) -> None:
        state = self._state
        if state is None:
            return
        tidy = replace(state, rule_set=state.rule_set.tidied(), untidy=0)
        # Rules that changed meanwhile are added, or this state would be older than the present one.
        if difference := self._difference(tidy):
            tidy = self._changed(tidy, difference)
        self._publish(tidy)

    def _start(self, lock: threading.Lock, make: Callable[[], object]) -> None:
        """Make the next state in a thread of its own, unless one does so already."""
        if not lock.acquire(blocking=False):
            return

        def run() -> None:
            try:
                make()
            except _OlderDatabase:
                pass  # the next inspection reads all rules
            except Exception:  # otherwise the error of a thread is lost; the next inspection tries again
                LOG.exception("The inspection rules could not be prepared")
            finally:
                lock.release()

        threading.Thread(target=run, name="inspection-rules", daemon=True).start()


def _gone(conn: sa.Connection, state: _State, changed: list[Rule]) -> list[str]:
    """Return the UUIDs of deleted rules: they are read only if the number of rules shows that some were."""
    expected = len(state.stored) + sum(rule.uuid not in state.stored for rule in changed)
    return [] if inspection_rules.count(conn) == expected else list(state.stored.keys() - inspection_rules.uuids(conn))


def _tell(stored: Mapping[str, _Stored], broken: Mapping[str, BrokenRule], known: Mapping[str, BrokenRule]) -> None:
    """Log each rule that turns out to be broken."""
    for uuid, rule in broken.items():
        if known.get(uuid) is not rule:
            enabled = stored[uuid].enabled
            LOG.log(logging.ERROR if enabled else logging.WARNING, "%s. %s", rule.failure(),
                    _CONSEQUENCES[rule.phase == "early"] if enabled else _OF_DISABLED)

