"""The compiled legacy rules, as current as the database."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from oslo_log import log as logging

from ironic_rules.db import legacy_rules
from ironic_rules.db.session import Database
from ironic_rules.inspection.legacy_rule_settings import LegacyRuleSettings
from ironic_rules.legacy import BrokenLegacyRule, CompiledLegacyRule, LegacyRuleSet
from ironic_rules.models.legacy_rules import LegacyRule

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _State:
    """The rules as of a revision, compiled, by UUID."""

    revision: int
    rules: Mapping[str, CompiledLegacyRule | BrokenLegacyRule]
    rule_set: LegacyRuleSet


def problem_of(rule: CompiledLegacyRule | BrokenLegacyRule) -> str | None:
    """Return why a rule has no effect, or fails inspections; None if it works."""
    return str(rule.failure()) if isinstance(rule, BrokenLegacyRule) else rule.disabled


class LegacyRuleCache:
    """Keeps the compiled rules, and compiles again only what has changed. One per process; thread-safe.

    The revision of the set, which is read together with the node, tells whether it is current: an inspection without
    a change of rules needs no query. A thread that finds rules changed compiles them, and others wait for it.
    """

    def __init__(self, db: Database, settings: LegacyRuleSettings | None = None) -> None:
        self._db = db
        self._settings = settings or LegacyRuleSettings()
        self._loading = threading.Lock()
        self._state: _State | None = None
        self._is_doubtful = False

    def doubt(self) -> None:
        """Read the revision next time, whatever the caller knows: a rule of the set is no longer in the database."""
        self._is_doubtful = True

    def current(self, revision: int | None = None) -> LegacyRuleSet:
        """Return the rules; stored ones that do not compile are in the set as broken ones.

        :param revision: that of the stored rules, as just read; None: it is read
        """
        return self._current(revision).rule_set

    def without(self, uuids: Collection[str]) -> LegacyRuleSet:
        """Return the rules without some of them, as of now."""
        state = self._current(None)
        gone = [state.rules[uuid] for uuid in uuids if uuid in state.rules]
        return state.rule_set.changed(gone, ()) if gone else state.rule_set

    def uuids(self) -> Collection[str]:
        """Return the UUIDs of the rules, as of now."""
        return self._current(None).rules.keys()

    def invalid(self, revision: int | None = None) -> dict[str, str]:
        """Return why rules have no effect, or fail inspections, by UUID."""
        return {uuid: problem for uuid, rule in self._current(revision).rules.items()
                if (problem := problem_of(rule)) is not None}

    def _current(self, revision: int | None) -> _State:
        state = self._state
        # A newer set was read since: its rules include those of this revision, with all that has changed.
        if state is not None and revision is not None and revision <= state.revision and not self._is_doubtful:
            return state
        with self._loading:
            state = self._state
            if state is None or revision is None or revision > state.revision or self._is_doubtful:
                self._is_doubtful = False
                state = self._state = self._read(state)
            return state

    def _read(self, old: _State | None) -> _State:
        with self._db.reader() as conn:
            # First: a rule that changes in between has a higher revision, and is read again next time.
            revision = legacy_rules.revision(conn)
            if old is not None and old.revision == revision:
                return old
            if old is None or revision < old.revision:
                # The database is older than the rules that were read from it: it was restored, and the same revisions
                # may be those of other rules.
                self._settings.compiled.clear()
                rules = legacy_rules.all_rules(conn)
                return self._told({rule.uuid: self._settings.compile(rule) for rule in rules}, revision, {})
            changed = legacy_rules.changed_since(conn, old.revision)
            kept = legacy_rules.uuids(conn)
        known = {uuid: rule for uuid, rule in old.rules.items() if uuid in kept}
        return self._told(known | self._compiled(changed), revision, old.rules)

    def _compiled(self, changed: list[LegacyRule]) -> dict[str, CompiledLegacyRule | BrokenLegacyRule]:
        return {rule.uuid: self._settings.compile(rule) for rule in changed}

    def _told(self, rules: Mapping[str, CompiledLegacyRule | BrokenLegacyRule], revision: int,
              before: Mapping[str, CompiledLegacyRule | BrokenLegacyRule]) -> _State:
        """Return the state with these rules, after each one that turns out to be unusable was logged."""
        for uuid, rule in rules.items():
            if before.get(uuid) is rule:
                continue
            if isinstance(rule, BrokenLegacyRule):
                LOG.error("%s. The inspection of every node that it applies to fails.", rule.failure())
            elif rule.disabled is not None:
                LOG.error("Legacy rule %s is disabled: %s", uuid, rule.disabled)
        in_order = sorted(rules.values(), key=lambda rule: rule.position)
        return _State(revision, rules, self._settings.rule_set(in_order))
