"""Changes of the whole rule set by one request: as one revision, in one transaction, or not at all.

What has to be changed is found without a lock, because checking rules takes time, and found again under the lock of the
set if another request has changed it meanwhile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from ironic_rules import rules
from ironic_rules.api import built_in_rules, etags, patch
from ironic_rules.api.request import Request
from ironic_rules.db import clock, inspection_rules, inventory, rule_revisions
from ironic_rules.db.inspection_rules import RULE_SET, RevisionChanges
from ironic_rules.db.projection import Row
from ironic_rules.db.rule_revisions import Author
from ironic_rules.exceptions import InvalidRule, Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import Catalogue
from ironic_rules.models.rules import RULE, Rule
from ironic_rules.rules import Checked, RuleWarning, comparison
from ironic_rules.rules.comparison import Comparison, Entry
from ironic_rules.text import is_uuid

_READ_ONLY = RULE.where(lambda entry: entry.shown and not entry.patch)
#: Maximum number of warnings of one reply.
_MAX_WARNINGS = 1000


@dataclass(frozen=True, slots=True)
class Result:
    """What a request has changed, or would change.

    :ivar uuids: of the rules that were created, in the order of ``compared``; empty in a dry run
    :ivar warnings: about the rules that are written
    """

    compared: Comparison
    revision: int
    uuids: Sequence[str] = ()
    warnings: Sequence[RuleWarning] = ()


def author(request: Request) -> Author:
    """Return the author of what this request changes."""
    return Author(request.context.user_id, request.conf.inspection_rules.keep_revisions)


def known_paths(request: Request) -> Catalogue:
    """Return the paths that inventories have."""
    with request.db.reader() as conn:
        return inventory.known_paths(conn)


def tag(revision: int) -> str:
    """Return the entity tag of the rule set."""
    return etags.tag(RULE_SET, revision)


def patched(stored: Rule, operations: Sequence[patch.PatchOperation], default_scope: str | None) -> JSONObject:
    """Return the columns of a stored rule after a patch.

    :param default_scope: what a scope that is removed becomes, unless the rule is one of phase early afterwards
    :raises InvalidPatch: 400
    """
    document = {name: getattr(stored, name) for name in RULE.columns}

    def applied(scope: str | None) -> JSONObject:
        return patch.apply(document, operations, defaults={**RULE.defaults(), "scope": scope}, read_only=_READ_ONLY,
                           required=RULE.required)

    result = applied(default_scope)
    return applied(None) if result["phase"] == "early" else result


def tolerated(request: Request, old: Rule | None, enabled: object) -> Collection[Problem]:
    """Return the problems that a rule may keep: those of the stored one, if it is not to run any more.

    Otherwise a rule could not be disabled that is no longer valid.
    """
    if old is None or enabled is not False:
        return ()
    return rules.validate(old.said(), limits=request.rules.limits)


def apply(request: Request, given: Sequence[Any], bundle: str | None, conditions: etags.Preconditions, *, prune: bool,
          dry_run: bool) -> Result:
    """Make the rules of a bundle those that are given; without ``prune`` others stay.

    :raises InvalidRule: 400, with every problem of every rule
    :raises PreconditionFailed: 412
    """
    asked = _Given(request, given, bundle, prune)
    group = "" if bundle is None else f" of bundle {bundle}"
    made = _make(request, asked.compare, conditions, dry_run, lambda found: found.summary() + group, asked.keep)
    return replace(made, warnings=asked.warnings(made.compared))


def rollback(request: Request, revision: int, conditions: etags.Preconditions, *, dry_run: bool) -> Result:
    """Make the rules those of a revision.

    :raises RuleRevisionNotFound: 404, it is not kept
    :raises InvalidRule: 400, with every problem of enabled rules that are no longer valid
    :raises PreconditionFailed: 412
    """
    def compare(conn: sa.Connection) -> Comparison:
        then = rule_revisions.rules_at(conn, revision)
        rule_revisions.get(conn, revision)
        found = comparison.rollback(then, inspection_rules.all_rules(conn))
        problems = [problem for entry in found.written for problem in _problems_of_version(request, entry)]
        if problems:
            raise InvalidRule(problems=problems)
        return found

    return _make(request, compare, conditions, dry_run, lambda found: f"rolled back to {revision}: {found.summary()}")


def destroy(request: Request, conditions: etags.Preconditions) -> None:
    """Delete every rule.

    :raises PreconditionFailed: 412
    """
    def write(conn: sa.Connection) -> None:
        conditions.check(tag(inspection_rules.lock(conn)))
        inspection_rules.destroy_all(conn, author=author(request))

    request.db.write(write)


def _make(request: Request, compare: Callable[[sa.Connection], Comparison], conditions: etags.Preconditions,
          dry_run: bool, summary: Callable[[Comparison], str],
          written: Callable[[Entry, str, int], None] = lambda entry, uuid, revision: None) -> Result:
    """Write what has to be changed.

    :param written: called for each rule that was written, with its UUID and revision
    """
    db = request.db
    with db.reader() as conn:
        revision = inspection_rules.revision(conn)
        conditions.check(tag(revision))
        found = compare(conn)
    if dry_run or not found:
        return Result(found, revision)

    def write(conn: sa.Connection) -> Result:
        current, present = inspection_rules.lock(conn), found
        if current != revision:
            conditions.check(tag(current))
            present = compare(conn)
        if not present:
            return Result(present, current)
        made = inspection_rules.change(conn, _changes(present), summary(present), author=author(request))
        return Result(present, *made)

    result: Result = db.write(write)
    compared = result.compared
    entries = [*zip(compared.created, result.uuids, strict=False),
               *((entry, entry.old.uuid) for entry in compared.written if entry.old is not None)]
    for entry, uuid in entries:
        written(entry, uuid, result.revision)
    # One that is not enabled may be invalid.
    request.rule_problems.passed(
        (uuid, result.revision) for entry, uuid in entries if entry.new and entry.new["enabled"])
    return result


class _Given:
    """The rules of a request, checked once however often they are compared with the stored ones."""

    def __init__(self, request: Request, given: Sequence[Any], bundle: str | None, prune: bool) -> None:
        self._request, self._bundle, self._prune = request, bundle, prune
        self._problems = comparison.request_problems(given, bundle)
        self._rules: dict[int, JSONObject] = {}
        self._checked: dict[int, Checked] = {}
        self._refused: dict[int, list[Problem]] = {}
        self._known_paths = functools.cache(functools.partial(known_paths, request))
        scope = request.rules.default_scope
        for place, rule in enumerate(given):
            if isinstance(rule, Mapping):
                self._rules[place] = rules.from_wire({**rule, "bundle": bundle}, default_scope=scope)
            else:
                self._problems.append(Problem(f"/rules/{place}", "a rule is an object"))
        self._uuids = {rule["uuid"] for rule in self._rules.values() if is_uuid(rule.get("uuid"))}
        # None: rules with neither are compared with all that have no name.
        self._names = {rule["name"] for rule in self._rules.values()
                       if isinstance(rule["name"], str) or (rule["name"] is None and "uuid" not in rule)}

    def compare(self, conn: sa.Connection) -> Comparison:
        """Return what the request changes.

        :raises InvalidRule: 400, with every problem of every rule
        """
        stored = inspection_rules.rules_of_bundle(conn, self._bundle, self._may_match)
        found, problems = comparison.apply(
            self._rules, stored, prune=self._prune, elsewhere=self._elsewhere(conn, stored))
        problems = [*self._problems, *problems]
        for entry in found.written:
            problems += self._check(entry)
        running = [entry for entry in found.unchanged if entry.old and entry.old.enabled]
        invalid = self._request.rule_problems.invalid(entry.old for entry in running if entry.old)
        for entry in running:
            problems += _placed(entry, invalid.get(entry.old.uuid, ()) if entry.old else ())
        if problems:
            raise InvalidRule(problems=problems)
        return found

    def _may_match(self, row: Row) -> bool:
        return row.uuid in self._uuids or row.name in self._names

    def _elsewhere(self, conn: sa.Connection, stored: Sequence[Rule]) -> dict[str, str]:
        """Return why UUIDs of the request that are not in the bundle cannot be used."""
        others = inspection_rules.bundles_of(conn, sorted(self._uuids - {rule.uuid for rule in stored}))
        found = {uuid: "is that of a rule " + ("without a bundle" if bundle is None else f"of bundle {bundle}")
                 for uuid, bundle in others.items()}
        return found | {uuid: "is that of a built-in rule" for uuid in self._uuids
                        if built_in_rules.find(self._request, uuid)}

    def _check(self, entry: Entry) -> list[Problem]:
        place = entry.place
        assert place is not None
        if place not in self._checked:
            checked = self._checked[place] = rules.check(
                entry.new, limits=self._request.rules.limits, known_paths=self._known_paths)
            # That a sensitive rule has the same problems would tell what it contains.
            kept = () if entry.old and entry.old.sensitive else tolerated(
                self._request, entry.old, self._rules[place]["enabled"])
            self._refused[place] = _placed(entry, (each for each in checked.problems if each not in kept))
        return self._refused[place]

    def keep(self, entry: Entry, uuid: str, revision: int) -> None:
        """Keep what was compiled of a rule that was written."""
        checked = None if entry.place is None else self._checked.get(entry.place)
        if checked is not None and not checked.problems:
            self._request.rules.keep(uuid, revision, checked)

    def warnings(self, compared: Comparison) -> list[RuleWarning]:
        """Return the warnings about the rules that are written, at most ``_MAX_WARNINGS`` of them."""
        places = sorted(entry.place for entry in compared.written if entry.place is not None)
        found = [replace(warning, where=f"/rules/{place}{warning.where}")
                 for place in places if place in self._checked for warning in self._checked[place].warnings]
        return found[:_MAX_WARNINGS]


def _placed(entry: Entry, problems: Iterable[Problem]) -> list[Problem]:
    return [Problem(f"/rules/{entry.place}{problem.where}", problem.text) for problem in problems]


def _problems_of_version(request: Request, entry: Entry) -> list[Problem]:
    """Return why a version of a rule cannot be stored again; of a sensitive rule only that it cannot."""
    version, new = entry.version, entry.new
    assert version is not None and new is not None
    where = f"/rules/{version.uuid}"
    if built_in_rules.find(request, version.uuid):
        return [Problem(where, "this is now the UUID of a built-in rule")]
    if not new["enabled"]:
        return []
    problems = rules.validate(new, limits=request.rules.limits)
    if problems and new["sensitive"]:
        return [Problem(where, "the rule is no longer valid")]
    return [Problem(where + problem.where, problem.text) for problem in problems]


def _changes(found: Comparison) -> RevisionChanges:
    return RevisionChanges(
        created=[_row(entry) for entry in found.created],
        changed={entry.old.uuid: _row(entry) for entry in (*found.changed, *found.replaced) if entry.old is not None},
        removed=[entry.old.uuid for entry in found.removed if entry.old is not None])


def _row(entry: Entry) -> JSONObject:
    """Return what is written of a rule."""
    row = dict(entry.new or {})
    if entry.old is not None:
        row.pop("uuid", None)
    if entry.version is not None:
        row |= {"created_at": entry.version.created_at, "position": entry.version.position}
        if entry.old is None:
            row |= {"uuid": entry.version.uuid, "updated_at": clock.now()}
    return row
