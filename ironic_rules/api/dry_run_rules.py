"""The rules of a dry run: those that are stored, those of the request, or the stored ones as if some were different."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oslo_utils import uuidutils

from ironic_rules import rules
from ironic_rules.api import patch, rule_set
from ironic_rules.db import inspection_rules, inventory
from ironic_rules.db.session import Database
from ironic_rules.exceptions import Invalid, InvalidRule, Problem
from ironic_rules.inspection.rule_cache import LegacyRuleCache, RuleCache
from ironic_rules.inspection.trials import RuleChanges
from ironic_rules.models.documents import JSON
from ironic_rules.models.inventories import Catalogue
from ironic_rules.models.rules import RULE, Rule
from ironic_rules.rules import RuleWarning
from ironic_rules.text import is_uuid

_PATCHABLE = RULE.where(lambda entry: entry.patch)
#: The position of rules that are not stored: after the stored ones of their priority, before the built-in ones.
_LAST = 1 << 31
#: Rules are not warned of after so many warnings.
_MANY_WARNINGS = 1000


@dataclass(slots=True)
class Checked:
    """The rules of a request, which are valid.

    :ivar uuids: which rule each place of the request stands for
    :ivar warnings: about the rules of the request
    """

    changes: RuleChanges
    uuids: dict[str, str]
    warnings: Sequence[RuleWarning]


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored rules of this process, and the paths that inventories have."""

    cache: RuleCache
    legacy: LegacyRuleCache
    db: Database

    def named(self, as_if: Sequence[Any]) -> dict[str, Rule]:
        """Return the stored rules that a request names, by UUID."""
        uuids = {item["uuid"].lower() for item in as_if if isinstance(item, dict) and is_uuid(item.get("uuid"))}
        with self.db.reader() as conn:
            return {rule.uuid: rule for rule in inspection_rules.some_rules(conn, sorted(uuids))}

    def known_paths(self) -> Catalogue:
        """Return the paths that inventories have."""
        with self.db.reader() as conn:
            return inventory.known_paths(conn)


def check_rules(given: Sequence[Any] | None, as_if: Sequence[Any], stored: Stored,
                tick: Callable[[], None]) -> Checked:
    """Return the rules of a request.

    :param given: the only rules; None: the stored ones
    :param as_if: a rule to add, or in place of the stored one with its UUID; or ``{"uuid", "patch"}``, or
        ``{"uuid", "left_out": true}``
    :param tick: called between rules
    :raises InvalidRule: 400, with every problem of every rule
    """
    return _Check(stored, stored.named(as_if), tick).run(given, as_if)


class _Check:
    def __init__(self, stored: Stored, named: Mapping[str, Rule], tick: Callable[[], None]) -> None:
        self._named = named
        self._settings = stored.cache.settings
        self._stored = stored
        self._tick = tick
        self._problems: list[Problem] = []
        self._uuids: dict[str, str] = {}
        self._removed: set[str] = set()
        #: those of them in whose place there is no other one: of the legacy rules as well
        self._left_out: set[str] = set()
        self._added: list[Rule] = []
        self._warnings: list[RuleWarning] = []
        self._known_paths = functools.cache(stored.known_paths)

    def run(self, given: Sequence[Any] | None, as_if: Sequence[Any]) -> Checked:
        for place, rule in enumerate(given or ()):
            self._add(f"/rules/{place}", rule)
        for place, item in enumerate(as_if):
            self._as_if(f"/as_if/{place}", item)
        if self._problems:
            raise InvalidRule(problems=self._problems)
        if given is not None:
            changes = RuleChanges([], self._added, only=True)
        else:
            changes = RuleChanges(sorted(self._removed), self._added, only=False, left_out=frozenset(self._left_out))
        return Checked(changes, self._uuids, self._warnings)

    def _as_if(self, where: str, item: JSON) -> None:
        if not isinstance(item, Mapping) or not ("patch" in item or "left_out" in item):
            self._add(where, item)
            return
        known = str(item.get("uuid")).lower()
        stored = self._named.get(known)
        unknown = set(item) - {"uuid", "patch", "left_out"}
        if unknown or len(item) != 2:
            self._complain(where, "has a uuid, and either a patch or left_out, and nothing else")
        elif item.get("left_out") is True:
            if stored is None and known not in self._others:
                self._complain(f"{where}/uuid", "there is no such rule")
            self._left_out.add(known)
            self._remove(where, known)
        elif "left_out" in item:
            self._complain(f"{where}/left_out", "must be true")
        elif stored is None:
            self._complain(f"{where}/uuid", "there is no such stored rule")
        elif stored.sensitive:
            self._complain(where, "a sensitive rule can be left out or replaced as a whole, not patched")
        else:
            self._patch(where, stored, item["patch"])

    @functools.cached_property
    def _others(self) -> frozenset[str]:
        """The UUIDs of the built-in and of the legacy rules."""
        return frozenset(self._stored.legacy.uuids()).union(rule.uuid for rule in self._settings.built_in)

    def _patch(self, where: str, stored: Rule, operations: JSON) -> None:
        try:
            result = rule_set.patched(
                stored, patch.operations(patch.BODY.load(operations)), self._settings.default_scope)
        except Invalid as error:
            placed = [Problem(f"{where}/patch{problem.where}", problem.text) for problem in error.problems]
            self._problems += placed or [Problem(f"{where}/patch", str(error))]
            return
        self._add(where, {"uuid": stored.uuid, **{name: result[name] for name in _PATCHABLE}})

    def _add(self, where: str, given: JSON) -> None:
        self._tick()
        if not isinstance(given, Mapping):
            self._complain(where, "a rule is an object")
            return
        written = rules.from_wire(given, default_scope=self._settings.default_scope)
        checked = rules.check(written, limits=self._settings.limits, known_paths=self._known_paths)
        self._problems += [Problem(where + problem.where, problem.text) for problem in checked.problems]
        if checked.problems:
            return
        if len(self._warnings) < _MANY_WARNINGS:
            self._warnings += [replace(warning, where=where + warning.where) for warning in checked.warnings]
        uuid = written.get("uuid") or uuidutils.generate_uuid()
        stored = self._named.get(uuid)
        if stored is None and any(rule.uuid == uuid for rule in self._settings.built_in):
            self._complain(f"{where}/uuid", "is that of a built-in rule, which can be left out, but not replaced")
            return
        if not self._remove(where, uuid):
            return
        position = stored.position if stored is not None else _LAST + len(self._added)
        self._added.append(replace(Rule.of({**written, "uuid": uuid}), position=position))

    def _remove(self, where: str, uuid: str) -> bool:
        """Note that the request says something about a rule; return whether it is for the first time."""
        if uuid in self._removed:
            self._complain(f"{where}/uuid", "is given more than once")
            return False
        self._removed.add(uuid)
        self._uuids[where] = uuid
        return True

    def _complain(self, where: str, text: str) -> None:
        self._problems.append(Problem(where, text))

