"""Which stored rules are no longer valid, and why: after a limit was lowered, or a plug-in was removed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from ironic_rules.db import inspection_rules
from ironic_rules.exceptions import Problem
from ironic_rules.inspection.rule_settings import RuleSettings
from ironic_rules.models.rules import Rule

Problems = tuple[Problem, ...]
#: A rule at one of its revisions.
Version = tuple[str, int]

#: Maximum number of versions of rules whose problems are remembered.
_MAX_KNOWN = 50_000
#: All that is told of a sensitive rule.
_SEALED = (Problem("", "the rule is no longer valid"),)


class RuleProblems:
    """Remembers the problems of each version of a rule. One per process; thread-safe."""

    def __init__(self, settings: RuleSettings) -> None:
        self._settings = settings
        self._known: dict[Version, Problems] = {}
        self._lock = threading.Lock()

    def invalid(self, found: Iterable[Rule]) -> dict[str, Problems]:
        """Return the problems of those of the stored rules that are invalid, by UUID."""
        result = {}
        for rule in found:
            version = rule.uuid, rule.revision
            problems = self._known.get(version)
            if problems is None:
                problems = self._settings.compile(rule).problems
                self._remember({version: _SEALED if problems and rule.sensitive else problems})
            if problems:
                # An old version of a rule that became sensitive later is remembered as it was.
                result[rule.uuid] = _SEALED if rule.sensitive else problems
        return result

    def passed(self, versions: Iterable[Version]) -> None:
        """Remember that these versions, which were just written, are valid."""
        self._remember(dict.fromkeys(versions, ()))

    def of_versions(self, conn: sa.Connection, versions: Iterable[Version]) -> dict[str, Problems]:
        """Return the problems of those of the stored rules that are invalid; only unknown versions are read."""
        known = self._known
        found: dict[str, Problems] = {}
        unknown = []
        for version in versions:
            problems = known.get(version)
            if problems is None:
                unknown.append(version[0])
            elif problems:
                found[version[0]] = problems
        return found | self.invalid(inspection_rules.some_rules(conn, unknown)) if unknown else found

    def of_all(self, conn: sa.Connection) -> dict[str, Problems]:
        """Return the problems of all stored rules that are invalid."""
        return self.of_versions(conn, inspection_rules.versions(conn))

    def _remember(self, more: Mapping[Version, Problems]) -> None:
        with self._lock:
            if len(self._known) + len(more) > _MAX_KNOWN:
                self._known = {}
            self._known.update(more)
