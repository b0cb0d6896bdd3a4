"""The compiled rule set: the stored rules, as current as the database, and the built-in ones."""

from __future__ import annotations

import threading

import sqlalchemy as sa

from ironic_rules.db import inspection_rules
from ironic_rules.exceptions import InvalidRule, RuleFailed
from ironic_rules.inspection.rule_settings import RuleSettings
from ironic_rules.rules import CompiledRule, Limits, Rule, RuleSet, compile


class RuleCache:
    """Compiles the stored rules when their revision has changed. One per process; thread-safe.

    The built-in rules of ``settings`` are compiled once, and are part of every set.
    """

    def __init__(self, settings: RuleSettings | None = None) -> None:
        self._settings = settings or RuleSettings()
        self._built_in = [compile(rule, limits=self._settings.limits) for rule in self._settings.built_in]
        self._lock = threading.Lock()
        self._revision: int | None = None
        self._rules = self._settings.rule_set(())

    def current(self, conn: sa.Connection) -> RuleSet:
        """Return the rules as ``conn`` sees them: one small query while nothing has changed.

        :raises RuleFailed: a stored rule is no longer valid, for example because a plug-in was removed. It would be
            wrong to inspect nodes without it.
        """
        # Read before the rules: if they change in between, the next call detects it.
        revision = inspection_rules.revision(conn)
        with self._lock:
            if revision != self._revision:
                stored = [_compiled(rule, self._settings.limits) for rule in inspection_rules.all_rules(conn)]
                self._rules = self._settings.rule_set([*stored, *self._built_in])
                self._revision = revision
            return self._rules


def _compiled(rule: Rule, limits: Limits) -> CompiledRule:
    try:
        return compile(rule, limits=limits)
    except InvalidRule as exc:
        first = exc.problems[0]
        reason = "it is no longer valid" if rule.sensitive else f"it is no longer valid: {first.text}"
        raise RuleFailed(rule=rule.uuid, where=first.where or "/", reason=reason) from (None if rule.sensitive else exc)
