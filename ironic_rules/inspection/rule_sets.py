"""The compiled rules of a process: inspection and legacy rules, stored and built-in, as current as the database.

The settings of ``[inspection_rules]`` are read here for both kinds: their engines do not read the configuration.
"""

from __future__ import annotations

import abc
import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import legacy
from ironic_rules.db import inspection_rules, inventory, legacy_rules
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.hardware import destinations
from ironic_rules.inspection.fact_sets import FactCache
from ironic_rules.inspection.rule_statistics import RuleStatistics
from ironic_rules.legacy import BrokenLegacyRule, CompiledLegacyRule, LegacyRuleSet, Plugins
from ironic_rules.models.inventories import Catalogue
from ironic_rules.models.rules import LegacyRule
from ironic_rules.rules import (
    BrokenRule,
    Checked,
    CompiledRule,
    Limits,
    Rule,
    RuleSet,
    RuleWarning,
    built_in,
    compile_stored,
    load_plugins,
)
from ironic_rules.rules.base import HttpGet
from ironic_rules.rules.limits import AllowedHosts
from ironic_rules.text import enumeration, printable

LOG = logging.getLogger(__name__)

#: Maximum number of rules that were checked and stored, and are not in the set yet.
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """Settings that every process that validates or compiles rules requires.

    :ivar limits: of both kinds of rules: for ``rules.validate``, ``rules.compile`` and ``rules.rule_schema``
    :ivar http_get: for ``rules.RuleSet``; None if rules may not call any service
    :ivar mask_secrets: always, never or sensitive
    :ivar default_scope: scope of rules that do not set one, except built-in ones and those of phase early
    :ivar built_in: in the order of the files, as returned by ``rules.built_in.load``
    :ivar plugins: conditions and actions of other packages, for legacy rules
    :ivar compiled: stored rules in use, by UUID and revision, for all rule sets of the process
    """

    limits: Limits = field(default_factory=Limits)
    mask_secrets: str = "always"
    default_scope: str | None = None
    built_in: tuple[Rule, ...] = ()
    http_get: HttpGet | None = None
    plugins: Plugins = field(default_factory=Plugins)
    compiled: MutableMapping[tuple[str, int], CompiledRule | BrokenRule] = field(
        default_factory=weakref.WeakValueDictionary, compare=False, repr=False)
    _checked: OrderedDict[tuple[str, int], Checked] = field(default_factory=OrderedDict, compare=False, repr=False)
    compiled_legacy: MutableMapping[tuple[str, int], CompiledLegacyRule | BrokenLegacyRule] = field(
        default_factory=weakref.WeakValueDictionary, compare=False, repr=False)

    def compile(self, rule: Rule) -> CompiledRule | BrokenRule:
        """Return a stored rule compiled: once for all that need this revision of it."""
        key = rule.uuid, rule.revision
        compiled = self.compiled.get(key)
        if compiled is None:
            compiled = self.compiled[key] = compile_stored(
                rule, limits=self.limits, checked=self._checked.pop(key, None))
        return compiled

    def keep(self, uuid: str, revision: int, checked: Checked) -> None:
        """Keep what was compiled to check a rule, until it is needed for the rule as it was stored then."""
        while len(self._checked) >= _MOST_KEPT:
            self._checked.popitem(last=False)
        self._checked[uuid, revision] = checked

    def forget(self) -> None:
        """Forget what is compiled: the same revisions may be those of other rules."""
        self.compiled.clear()
        self._checked.clear()

    def rule_set(self, rules: Iterable[CompiledRule | BrokenRule]) -> RuleSet:
        """Return a set of these rules, which runs them as configured."""
        return RuleSet(rules, mask_secrets=self.mask_secrets, http_get=self.http_get)

    def compile_legacy(self, rule: LegacyRule) -> CompiledLegacyRule | BrokenLegacyRule:
        """Return a stored legacy rule compiled, as :meth:`compile` does."""
        compiled = self.compiled_legacy.get((rule.uuid, rule.revision))
        if compiled is None:
            compiled = self.compiled_legacy[rule.uuid, rule.revision] = legacy.compile_stored(
                rule, limits=self.limits, plugins=self.plugins)
        return compiled

    def legacy_rule_set(self, rules: Iterable[CompiledLegacyRule | BrokenLegacyRule]) -> LegacyRuleSet:
        """Return a set of these legacy rules, which runs them as configured."""
        return LegacyRuleSet(rules, mask_secrets=self.mask_secrets)


def prepare_rules(conf: cfg.ConfigOpts, db: Database | None = None) -> RuleSettings:
    """Prepare this process for rules: load actions of other packages, read the built-in rules.

    Called at start, before any rule is validated or compiled. Calling it again changes nothing. Warnings about built-in
    rules are logged, and stored early rules whose scope is ignored.

    :param db: without it, the paths of the inventory that built-in rules read are not checked, nor stored rules
    :raises ConfigurationError: an action cannot be loaded, a host is invalid, or with all problems of built-in rules
    """
    load_plugins()
    allowed = limits(conf)
    if db is not None:
        _log_scopes(db)
    built_in_rules = _built_in(conf, db, allowed)
    settings = RuleSettings(
        limits=allowed, http_get=_http_get(conf) if allowed.hosts.entries else None,
        mask_secrets=conf.inspection_rules.mask_secrets,
        plugins=_legacy_plugins(),
        default_scope=conf.inspection_rules.default_scope or None, built_in=tuple(rule for rule, _ in built_in_rules))
    for rule, checked in built_in_rules:
        settings.keep(rule.uuid, rule.revision, checked)
    return settings


def _legacy_plugins() -> Plugins:
    plugins = legacy.load_plugins()
    for text in plugins.warnings:
        LOG.warning("%s", text)
    for (group, name), reason in plugins.broken.items():
        LOG.error("The plug-in %s of %s cannot be used, and legacy rules with it are disabled: %s", name, group, reason)
    return plugins


def _http_get(conf: cfg.ConfigOpts) -> HttpGet:
    # 5 MiB, which a service without such hosts does not need.
    from ironic_rules.inspection.http_get import HttpxGet

    return HttpxGet(destinations.denied_networks(conf))


def limits(conf: cfg.ConfigOpts) -> Limits:
    """Return the limits of rules: the hosts that they may call, and the size of rules and of their results.

    :raises ConfigurationError: a host that they may call is invalid
    """
    group = conf.inspection_rules
    return Limits(
        conditions=group.max_conditions, actions=group.max_actions, loop_items=group.max_loop_items,
        depth=group.max_depth, text=group.max_text_size, result=group.max_result_size,
        subject=group.max_regex_subject, written=group.max_written_size,
        hosts=AllowedHosts.of(group.api_call_allowed_hosts))


def _built_in(conf: cfg.ConfigOpts, db: Database | None, allowed: Limits) -> list[tuple[Rule, Checked]]:
    path = conf.inspection_rules.built_in
    if not path:
        return []
    known_paths = None if db is None else functools.partial(_known_paths, db)
    try:
        rules = built_in.load(path, limits=allowed, known_paths=known_paths)
    except ConfigurationError as exc:
        problems = str(exc).splitlines()[1:]  # after a line about all of them
        raise ConfigurationError("\n".join(f"[inspection_rules]built_in: {problem}" for problem in problems)) from exc
    for place in built_in.writable_by_others(path):
        LOG.warning("%s contains built-in inspection rules and can be written by users other than its owner.", place)
    for rule, checked in rules:
        _log_warnings(rule, checked.warnings)
    LOG.info("%d built-in inspection rules from %s", len(rules), path)
    return rules


def _log_warnings(rule: Rule, warnings: Sequence[RuleWarning]) -> None:
    if warnings and rule.sensitive:
        LOG.warning("Built-in inspection rule %s has warnings (%d), not shown because it is sensitive", rule.uuid,
                    len(warnings))
        return
    for warning in warnings:
        LOG.warning("Built-in inspection rule %s: %s", rule.uuid, printable(warning))


def _log_scopes(db: Database) -> None:
    with db.reader() as conn:
        uuids = inspection_rules.early_with_scope(conn)
    if uuids:
        LOG.warning("These inspection rules of phase early have a scope, which is ignored: they run for every "
                    "report. Set their scope to null, or another phase: %s", enumeration(uuids))


def _known_paths(db: Database) -> Catalogue:
    with db.reader() as conn:
        return inventory.known_paths(conn)


#: Maximum number of changed rules that the thread which needs them compiles. More are compiled in the background; until
#: then, inspections use main and preprocess rules as they were.
_FEW = 100
#: Number of changes after which the set is tidied, without anything waiting for that.
_UNTIDY = 32

#: Consequences of a broken main or preprocess rule, and of a broken early rule.
_CONSEQUENCES = (
    "The inspection of every node that it applies to fails.",
    "Unknown machines are refused, and every inspection by a ramdisk fails.")
_OF_DISABLED = "It is not enabled, and does not run."

#: A rule as it is stored, the same compiled or broken, and a set of these.
StoredRule = TypeVar("StoredRule", bound=Rule | LegacyRule)
Made = TypeVar("Made")
RulesMade = TypeVar("RulesMade", bound="_Changing[Any]")
Given = TypeVar("Given", contravariant=True)


class _Changing(Protocol[Given]):
    """A set of rules that can be changed; each change makes another set."""

    def changed(self: RulesMade, removed: Iterable[Given], added: Iterable[Given]) -> RulesMade: ...
    def tidied(self: RulesMade) -> RulesMade: ...


class _Table(Protocol[StoredRule]):
    """A module that reads the stored rules of one kind."""

    def revision(self, conn: sa.Connection, /) -> int: ...
    def all_rules(self, conn: sa.Connection, /) -> list[StoredRule]: ...
    def changed_since(self, conn: sa.Connection, revision: int, limit: int | None, /) -> list[StoredRule]: ...
    def count(self, conn: sa.Connection, /) -> int: ...
    def uuids(self, conn: sa.Connection, /) -> set[str]: ...


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Made]):
    """A stored rule as it was last read.

    :ivar is_enabled: whether it is in the set
    """

    revision: int
    is_enabled: bool
    compiled: Made


@dataclass(frozen=True, slots=True)
class _RulesState(Generic[Made, RulesMade]):
    """The rules as of a revision.

    :ivar broken: those that do not compile, disabled ones included
    :ivar untidy: the number of changes since the set was tidied
    """

    revision: int
    stored: Mapping[str, _Kept[Made]]
    rule_set: RulesMade
    broken: Mapping[str, Made]
    untidy: int = 0


@dataclass(frozen=True, slots=True)
class _Difference(Generic[StoredRule]):
    """The difference between a state and the database."""

    revision: int
    changed: list[StoredRule]
    gone: list[str]


class _OlderDatabase(Exception):
    """The database is older than the rules that were read from it: it was restored."""


class _SetCache(abc.ABC, Generic[StoredRule, Made, RulesMade]):
    """Keeps the compiled rules of one kind, and compiles again only what has changed. Thread-safe.

    The revision of the set tells whether it is current; it is read together with what an inspection reads anyway. A
    thread that finds a few rules changed compiles these itself, as does any other thread until then. Threads wait for
    another one where there are no rules yet, and in :meth:`latest`. None compiles rules in a transaction.

    :param table: of the stored rules
    :param always: the rules that are also in the set
    """

    def __init__(self, db: Database, settings: RuleSettings, table: _Table[StoredRule],
                 always: Collection[Made] = ()) -> None:
        self._db = db
        self._settings = settings
        self._table = table
        self._always = always
        self._loading = threading.Lock()
        self._compiling = threading.Lock()
        self._tidying = threading.Lock()
        self._publishing = threading.Lock()
        self._state: _RulesState[Made, RulesMade] | None = None
        self._is_doubtful = False

    @abc.abstractmethod
    def _compile(self, rule: StoredRule) -> Made:
        """Return a rule compiled, or broken."""

    @abc.abstractmethod
    def _made(self, rules: Iterable[Made]) -> RulesMade:
        """Return a set of rules."""

    @abc.abstractmethod
    def _is_broken(self, rule: Made) -> bool:
        """Return whether a rule fails inspections, or has no effect."""

    @abc.abstractmethod
    def _tell(self, rule: Made, *, is_enabled: bool) -> None:
        """Log that a rule is broken."""

    @abc.abstractmethod
    def _forget(self) -> None:
        """Forget what is compiled: the same revisions may be those of other rules."""

    @property
    def settings(self) -> RuleSettings:
        """The settings with which rules are compiled and run in this process."""
        return self._settings

    def doubt(self) -> None:
        """Read the revision next time, whatever the caller knows: a rule of the set is no longer in the database."""
        self._is_doubtful = True

    def current(self, revision: int | None = None) -> RulesMade:
        """Return the rules; stored ones that do not compile are in the set as broken ones.

        While many rules are compiled after a change, the set is that before the change: for inspections, which do not
        wait. :meth:`latest` is for what must not use a rule that has been changed.

        :param revision: that of the stored rules, as just read; None: it is read
        """
        return self._current(revision).rule_set

    def latest(self, revision: int | None = None) -> RulesMade:
        """Return the rules as they are now; wait while many are compiled. The parameter is that of :meth:`current`."""
        return self._current(revision, wait=True).rule_set

    def broken(self, revision: int | None = None) -> Mapping[str, Made]:
        """Return the rules that do not compile, by UUID, those that are disabled included."""
        return self._current(revision).broken

    def uuids(self) -> Collection[str]:
        """Return the UUIDs of the stored rules as they are now."""
        return self._current(None, wait=True).stored.keys()

    def as_if(self, removed: Collection[str], added: Iterable[Made] = ()) -> RulesMade:
        """Return the stored and built-in rules without some, and with others.

        :param removed: UUIDs; those that no enabled rule has are ignored
        """
        state = self._current(None, wait=True)
        return state.rule_set.changed(self._known(state, removed), added)

    def _known(self, state: _RulesState[Made, RulesMade], uuids: Collection[str]) -> list[Made]:
        """Return those rules of a set that have these UUIDs."""
        return [stored.compiled for uuid in uuids if (stored := state.stored.get(uuid)) and stored.is_enabled]

    def _current(self, revision: int | None, *, wait: bool = False) -> _RulesState[Made, RulesMade]:
        state = self._state or self._load(None)
        is_doubtful, self._is_doubtful = self._is_doubtful, False
        if (state.revision == revision and not is_doubtful) or (self._compiling.locked() and not wait):
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

    def _wait(self, state: _RulesState[Made, RulesMade]) -> _RulesState[Made, RulesMade]:
        """Return the present state after many rules have changed."""
        with self._compiling:
            # If another thread has just compiled them, the lock is not kept to look for later changes: inspections
            # do without these as long as it is held.
            if self._state is state:
                return self._compile_many()
        return self._current(None, wait=True)

    def _load(self, useless: _RulesState[Made, RulesMade] | None) -> _RulesState[Made, RulesMade]:
        """Read and compile all rules, unless another thread has already replaced ``useless``."""
        with self._loading:
            if self._state is not None and self._state is not useless:
                return self._state
            if useless is not None:
                self._forget()
            with self._db.reader() as conn:
                revision, rules = self._table.revision(conn), self._table.all_rules(conn)
            stored = {rule.uuid: self._compiled(rule) for rule in rules}
            broken = {uuid: entry.compiled for uuid, entry in stored.items() if self._is_broken(entry.compiled)}
            self._tell_new(stored, broken, {} if useless is None else useless.broken)
            enabled = [entry.compiled for entry in stored.values() if entry.is_enabled]
            loaded = _RulesState(revision, stored, self._made([*enabled, *self._always]), broken)
            with self._publishing:
                self._state = loaded
            return loaded

    def _compiled(self, rule: StoredRule) -> _Kept[Made]:
        return _Kept(rule.revision, self._is_enabled(rule), self._compile(rule))

    def _is_enabled(self, rule: StoredRule) -> bool:
        return True

    def _tell_new(self, stored: Mapping[str, _Kept[Made]], broken: Mapping[str, Made],
                  before: Mapping[str, Made]) -> None:
        """Log each rule that turns out to be broken."""
        for uuid, rule in broken.items():
            if before.get(uuid) is not rule:
                self._tell(rule, is_enabled=stored[uuid].is_enabled)

    def _difference(self, state: _RulesState[Made, RulesMade],
                    limit: int | None = None) -> _Difference[StoredRule] | None:
        """Read what has changed since ``state``; None if nothing has.

        :param limit: maximum number of changed rules to read
        """
        with self._db.reader() as conn:
            # First: a rule that changes in between has a higher revision, and is read again next time.
            if (revision := self._newer(conn, state)) is None:
                return None
            changed = self._table.changed_since(conn, state.revision, limit)
            return _Difference(revision, changed, [] if len(changed) == limit else self._gone(conn, state, changed))

    def _newer(self, conn: sa.Connection, state: _RulesState[Made, RulesMade]) -> int | None:
        """Return the revision of the stored rules; None: that of the state.

        :raises _OlderDatabase: it is a lower one
        """
        revision = self._table.revision(conn)
        if revision < state.revision:
            raise _OlderDatabase
        return None if revision == state.revision else revision

    def _gone(self, conn: sa.Connection, state: _RulesState[Made, RulesMade], changed: list[StoredRule]) -> list[str]:
        """Return the UUIDs of deleted rules: they are read only if the number of rules shows that some were."""
        expected = len(state.stored) + sum(rule.uuid not in state.stored for rule in changed)
        return [] if self._table.count(conn) == expected else list(state.stored.keys() - self._table.uuids(conn))

    def _changed(self, state: _RulesState[Made, RulesMade], difference: _Difference[StoredRule]) -> _RulesState[Made,
                                                                                                                RulesMade]:
        # Not all rules are looked at again: there may be many, and an inspection waits for this.
        stored, broken = dict(state.stored), dict(state.broken)
        for uuid in difference.gone:
            broken.pop(uuid, None)
        removed = [entry.compiled for uuid in difference.gone if (entry := stored.pop(uuid)).is_enabled]
        added: list[Made] = []
        for rule in difference.changed:
            old = stored.get(rule.uuid)
            if old is not None and old.is_enabled:
                removed.append(old.compiled)
            new = stored[rule.uuid] = self._compiled(rule)
            if new.is_enabled:
                added.append(new.compiled)
            broken.pop(rule.uuid, None)
            if self._is_broken(new.compiled):
                broken[rule.uuid] = new.compiled
        return _RulesState(difference.revision, stored, state.rule_set.changed(removed, added), broken,
                           state.untidy + max(len(removed), len(added)))

    def _publish(self, state: _RulesState[Made, RulesMade]) -> _RulesState[Made, RulesMade]:
        """Make a state that of the process, unless another thread has a newer or tidier one; return ``state``."""
        with self._publishing:
            current = self._state
            is_news = current is None or (current.revision, -current.untidy) < (state.revision, -state.untidy)
            if is_news:
                self._state = state
        if is_news:
            self._tell_new(state.stored, state.broken, {} if current is None else current.broken)
        return state

    def _compile_many(self) -> _RulesState[Made, RulesMade]:
        state = self._state or self._load(None)
        difference = self._difference(state)
        return state if difference is None else self._publish(self._changed(state, difference))

    def _tidy(self) -> None:
        state = self._state
        if state is None:
            return
        tidy = replace(state, rule_set=state.rule_set.tidied(), untidy=0)
        # Rules that have just changed are added, or this state would be older than the present one.
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


class RuleCache(_SetCache[Rule, CompiledRule | BrokenRule, RuleSet]):
    """The inspection rules of a process: the stored and the built-in ones."""

    def __init__(self, db: Database, settings: RuleSettings | None = None) -> None:
        settings = settings or RuleSettings()
        super().__init__(db, settings, inspection_rules, [
            settings.compile(rule) for rule in settings.built_in if rule.enabled])
        #: the facts that the rules read, and that inspections find
        self.facts = FactCache(db, settings.limits)

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
            difference = self._early_difference(state)
        except _OlderDatabase:
            return self._load(state).rule_set
        if difference is None:
            return state.rule_set
        if len(difference.changed) > _FEW:
            return self.latest()
        return self._changed(state, difference).rule_set

    def _early_difference(self, state: _RulesState[CompiledRule | BrokenRule, RuleSet]) -> _Difference[Rule] | None:
        """Read what has changed of the rules that are or were early ones; None if no rule has changed at all."""
        with self._db.reader() as conn:
            if (revision := self._newer(conn, state)) is None:
                return None
            changed = inspection_rules.changed_since(conn, state.revision, _FEW + 1, phase="early")
            were = {uuid for uuid, entry in state.stored.items() if entry.compiled.phase == "early"}
            return _Difference(revision, changed, list(were - inspection_rules.uuids(conn, "early")) if were else [])

    def _known(self, state: _RulesState[CompiledRule | BrokenRule, RuleSet],
               uuids: Collection[str]) -> list[CompiledRule | BrokenRule]:
        return [*super()._known(state, uuids), *(rule for rule in self._always if rule.uuid in uuids)]

    def _compile(self, rule: Rule) -> CompiledRule | BrokenRule:
        return self._settings.compile(rule)

    def _made(self, rules: Iterable[CompiledRule | BrokenRule]) -> RuleSet:
        return self._settings.rule_set(rules)

    def _is_enabled(self, rule: Rule) -> bool:
        return rule.enabled

    def _is_broken(self, rule: CompiledRule | BrokenRule) -> bool:
        return isinstance(rule, BrokenRule)

    def _tell(self, rule: CompiledRule | BrokenRule, *, is_enabled: bool) -> None:
        if isinstance(rule, BrokenRule):
            LOG.log(logging.ERROR if is_enabled else logging.WARNING, "%s. %s", rule.failure(),
                    _CONSEQUENCES[rule.phase == "early"] if is_enabled else _OF_DISABLED)

    def _forget(self) -> None:
        self._settings.forget()


class LegacyRuleCache(_SetCache[LegacyRule, CompiledLegacyRule | BrokenLegacyRule, LegacyRuleSet]):
    """The legacy rules of a process."""

    def __init__(self, db: Database, settings: RuleSettings | None = None) -> None:
        super().__init__(db, settings or RuleSettings(), legacy_rules)

    def _compile(self, rule: LegacyRule) -> CompiledLegacyRule | BrokenLegacyRule:
        return self._settings.compile_legacy(rule)

    def _made(self, rules: Iterable[CompiledLegacyRule | BrokenLegacyRule]) -> LegacyRuleSet:
        return self._settings.legacy_rule_set(rules)

    def _is_broken(self, rule: CompiledLegacyRule | BrokenLegacyRule) -> bool:
        return legacy_rule_problem(rule) is not None

    def _tell(self, rule: CompiledLegacyRule | BrokenLegacyRule, *, is_enabled: bool) -> None:
        if isinstance(rule, BrokenLegacyRule):
            LOG.error("%s. The inspection of every node that it applies to fails.", rule.failure())
        else:
            LOG.error("Legacy rule %s is disabled: %s", rule.uuid, rule.disabled)

    def _forget(self) -> None:
        self._settings.compiled_legacy.clear()


def legacy_rule_problem(rule: CompiledLegacyRule | BrokenLegacyRule) -> str | None:
    """Return why a rule has no effect, or fails inspections; None if it works."""
    return str(rule.failure()) if isinstance(rule, BrokenLegacyRule) else rule.disabled


class RuleCaches:
    """All rules of a process, which its API and its conductor share.

    :ivar settings: how rules are compiled and run
    :ivar statistics: how often they match; None: the API and its conductor have one each
    """

    def __init__(self, db: Database, settings: RuleSettings | None = None,
                 statistics: RuleStatistics | None = None) -> None:
        self.settings = settings or RuleSettings()
        self.statistics = statistics
        self.inspection = RuleCache(db, self.settings)
        self.legacy = LegacyRuleCache(db, self.settings)
