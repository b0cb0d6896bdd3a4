"""The compiled rule set: the stored rules, as current as the database, and the built-in ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.db import inspection_rules
from ironic_rules.db.session import Database
from ironic_rules.inspection.rule_settings import RuleSettings
from ironic_rules.rules import BrokenRule, CompiledRule, Rule, RuleSet, compile

LOG = logging.getLogger(__name__)

#: Maximum number of changed rules that the thread which needs them compiles, in 0.1 ms each. More are compiled in the
#: background; until then, inspections use the rules as they were.
_FEW = 100
#: Number of changes after which the set is tidied, without anything waiting for that.
_UNTIDY = 32

_Compiled = CompiledRule | BrokenRule


#: What happens as long as a main or preprocess rule, and as long as an early rule is broken.
_CONSEQUENCES = (
    "The inspection of every node that it applies to fails.",
    "Unknown machines are refused, and every inspection by a ramdisk fails.")


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
    :ivar is_restored: whether it is that of an older database, which replaces a newer state
    """

    revision: int
    stored: Mapping[str, _Stored]
    rule_set: RuleSet
    broken: Mapping[str, BrokenRule]
    untidy: int = 0
    is_restored: bool = False


@dataclass(frozen=True, slots=True)
class _Difference:
    """What differs between a state and the database."""

    revision: int
    changed: list[Rule]
    gone: list[str]
    is_whole: bool = False


class RuleCache:
    """Keeps the compiled rules, and compiles again only what has changed. One per process; thread-safe.

    The revision of the set tells whether it is current; it is read together with what an inspection reads anyway. A
    thread that finds a few rules changed compiles these itself, as does any other thread meanwhile: none waits for
    another one, but for the first set of the process, and none compiles rules in a transaction.
    """

    def __init__(self, db: Database, settings: RuleSettings | None = None) -> None:
        self._db = db
        self._settings = settings or RuleSettings()
        self._built_in = [
            compile(rule, limits=self._settings.limits) for rule in self._settings.built_in if rule.enabled]
        self._first = threading.Lock()
        self._in_background = threading.Lock()
        self._publishing = threading.Lock()
        self._state: _State | None = None

    def current(self, revision: int | None = None) -> RuleSet:
        """Return the rules; stored ones that do not compile are in the set as broken ones.

        While many rules are compiled after a change, the set is that before the change.

        :param revision: that of the stored rules, as just read; None: it is read
        """
        return self._current(revision).rule_set

    def broken(self, revision: int | None = None) -> Mapping[str, BrokenRule]:
        """Return the rules that do not compile, by UUID, those that are disabled included."""
        return self._current(revision).broken

    def _current(self, revision: int | None) -> _State:
        state = self._state
        if state is None:
            with self._first:
                state = self._state or self._publish(self._changed(None, self._whole()))
        if state.revision == revision or self._in_background.locked():
            return state
        difference = self._difference(state)
        if difference is None:
            return state
        if len(difference.changed) > _FEW:
            self._start(lambda: self._changed(state, difference))
            return state
        state = self._publish(self._changed(state, difference))
        if state.untidy >= _UNTIDY:
            untidy = state
            self._start(lambda: replace(untidy, rule_set=untidy.rule_set.tidied(), untidy=0))
        return state

    def _whole(self) -> _Difference:
        with self._db.reader() as conn:
            revision = inspection_rules.revision(conn)
            return _Difference(revision, inspection_rules.all_rules(conn), [], is_whole=True)

    def _difference(self, state: _State) -> _Difference | None:
        """Read what has changed since ``state``; None if nothing has."""
        with self._db.reader() as conn:
            revision = inspection_rules.revision(conn)
            if revision == state.revision:
                return None
            if revision > state.revision:
                changed = inspection_rules.changed_since(conn, state.revision)
                return _Difference(revision, changed, _gone(conn, state, changed))
        # An older database was restored.
        return self._whole()

    def _changed(self, state: _State | None, difference: _Difference) -> _State:
        known = {} if state is None or difference.is_whole else state.stored
        if state is not None and difference.is_whole:
            # The same revisions may be those of other rules.
            self._settings.compiled.clear()
        stored = dict(known)
        # Not all rules are looked at again: there may be many, and an inspection waits for this.
        broken = {} if state is None or difference.is_whole else dict(state.broken)
        for uuid in difference.gone:
            broken.pop(uuid, None)
        removed = [found.compiled for uuid in difference.gone if (found := stored.pop(uuid)).enabled]
        added: list[_Compiled] = []
        for rule in difference.changed:
            old = stored.get(rule.uuid)
            if old is not None and old.enabled:
                removed.append(old.compiled)
            new = stored[rule.uuid] = _Stored(rule.revision, rule.enabled, self._settings.compile(rule))
            if new.enabled:
                added.append(new.compiled)
            broken.pop(rule.uuid, None)
            if isinstance(new.compiled, BrokenRule):
                broken[rule.uuid] = new.compiled
        if state is None or difference.is_whole:
            rule_set = self._settings.rule_set([*added, *self._built_in])
        else:
            rule_set = state.rule_set.changed(removed, added)
        _tell(broken, {} if state is None else state.broken)
        if state is None or difference.is_whole:
            return _State(difference.revision, stored, rule_set, broken, is_restored=state is not None)
        return _State(difference.revision, stored, rule_set, broken, state.untidy + len(added))

    def _publish(self, state: _State) -> _State:
        """Make a state that of the process, unless another thread has a newer one; return ``state``."""
        with self._publishing:
            known = self._state
            if known is None or known.revision <= state.revision or state.is_restored:
                self._state = state
        return state

    def _start(self, make: Callable[[], _State]) -> None:
        """Make the next state in a thread of its own; until then, the present one is used."""
        if not self._in_background.acquire(blocking=False):
            return

        def run() -> None:
            try:
                self._publish(make())
            except Exception:  # otherwise the error of a thread is lost; the next inspection tries again
                LOG.exception("The inspection rules could not be prepared")
            finally:
                self._in_background.release()

        threading.Thread(target=run, name="inspection-rules", daemon=True).start()


def _gone(conn: sa.Connection, state: _State, changed: list[Rule]) -> list[str]:
    """Return the UUIDs of deleted rules: they are read only if the number of rules shows that some were."""
    expected = len(state.stored) + sum(rule.uuid not in state.stored for rule in changed)
    return [] if inspection_rules.count(conn) == expected else list(state.stored.keys() - inspection_rules.uuids(conn))


def _tell(broken: Mapping[str, BrokenRule], known: Mapping[str, BrokenRule]) -> None:
    """Log each rule that turns out to be broken."""
    for uuid, rule in broken.items():
        if known.get(uuid) is not rule:
            LOG.error("%s. %s", rule.failure(), _CONSEQUENCES[rule.phase == "early"])

