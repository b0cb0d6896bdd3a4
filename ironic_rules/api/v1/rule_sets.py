"""Changes of the whole rule set by one request, and ``/v1/inspection_rules/revisions``: its history, and the way back.

A change is one revision, in one transaction, or nothing. The difference is computed without a lock, because checking
rules takes time. If another request has changed the set since, the difference is computed again under the set's lock.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import sqlalchemy as sa

from ironic_rules import policy, rules
from ironic_rules.api import etags, filters, links, pagination, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import rule_lists
from ironic_rules.api.views import resources
from ironic_rules.api.views import rules as rules_views
from ironic_rules.db import clock, conductors, facts, inspection_rules, inventory, rule_revisions
from ironic_rules.db.inspection_rules import RULE_SET, RevisionChanges
from ironic_rules.db.projection import Row
from ironic_rules.db.rule_revisions import Author
from ironic_rules.exceptions import Invalid, InvalidRule, Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import Catalogue
from ironic_rules.models.rules import RULE, SUMMARY, Rule
from ironic_rules.policies import rules as rules_policies
from ironic_rules.rules import Checked, RuleWarning, comparison
from ironic_rules.rules.comparison import Comparison, Entry
from ironic_rules.text import is_uuid

_READ_ONLY = RULE.where(lambda entry: entry.shown and not entry.patch)
#: Maximum number of warnings of one reply.
_MAX_WARNINGS = 1000


@dataclass(frozen=True, slots=True)
class Result:
    """The changes of a request to the rule set, made or planned.

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


def known_names(request: Request) -> Mapping[str, Collection[str]]:
    """Return the drivers and interfaces that live conductors offer, by the field of a node that names one."""
    with request.db.reader() as conn:
        return offered_names(conn, request.conf.conductor.heartbeat_timeout)


def offered_names(conn: sa.Connection, timeout_s: float) -> Mapping[str, Collection[str]]:
    """Return the same.

    :param timeout_s: as of ``conductors.alive``
    """
    offered = resources.collect(conductors.alive(conn, timeout_s))
    names: dict[str, set[str]] = {"driver": set(offered)}
    for entry in offered.values():
        for kind, offer in entry.kinds.items():
            names.setdefault(f"{kind}_interface", set()).update(offer["enabled"])
    return names


def known_facts(request: Request) -> set[str]:
    """Return the names of all facts."""
    with request.db.reader() as conn:
        return facts.names(conn)


def tag(revision: int) -> str:
    """Return the entity tag of the rule set."""
    return etags.tag(RULE_SET, revision)


def patched(stored: Rule, operations: Sequence[patch.PatchOperation], default_scope: str | None) -> JSONObject:
    """Return the columns of a stored rule after a patch.

    :param default_scope: what a scope that is removed becomes, unless the rule is one of phase early afterwards
    :raises Invalid: 400
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


def apply(request: Request, rules: Sequence[object], bundle: str | None, conditions: etags.Preconditions, *,
          prune: bool, dry_run: bool) -> Result:
    """Make the rules of a bundle those that are given; without ``prune`` others stay.

    :raises InvalidRule: 400, with every problem of every rule
    :raises PreconditionFailed: 412
    """
    bundle_rules = _Given(request, rules, bundle, prune)
    group = "" if bundle is None else f" of bundle {bundle}"
    result = _make(request, bundle_rules.compare, conditions, dry_run, lambda compared: compared.summary() + group,
                   bundle_rules.keep)
    return replace(result, warnings=bundle_rules.warnings(result.compared))


def rollback(request: Request, revision: int, conditions: etags.Preconditions, *, dry_run: bool) -> Result:
    """Make the rules those of a revision.

    :raises rule_revision_not_found: 404, it is not kept
    :raises InvalidRule: 400, with every problem of enabled rules that are no longer valid
    :raises PreconditionFailed: 412
    """
    checked: dict[str, Checked] = {}

    def compare(conn: sa.Connection) -> Comparison:
        then = rule_revisions.rules_at(conn, revision)
        rule_revisions.get(conn, revision)
        compared = comparison.rollback(then, inspection_rules.all_rules(conn))
        problems = [problem for entry in compared.written for problem in _problems_of_version(request, entry, checked)]
        if problems:
            raise InvalidRule(problems=problems)
        return compared

    def keep(entry: Entry, uuid: str, revision: int) -> None:
        if uuid in checked:
            request.rules.keep(uuid, revision, checked[uuid])

    return _make(request, compare, conditions, dry_run,
                 lambda compared: f"rolled back to {revision}: {compared.summary()}", keep)


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
        planned = compare(conn)
    if dry_run or not planned:
        return Result(planned, revision)

    def write(conn: sa.Connection) -> Result:
        current, present = inspection_rules.lock(conn), planned
        if current != revision:
            conditions.check(tag(current))
            present = compare(conn)
        if not present:
            return Result(present, current)
        revised = inspection_rules.change(conn, _changes(present), summary(present), author=author(request))
        return Result(present, *revised)

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

    def __init__(self, request: Request, requested: Sequence[object], bundle: str | None, prune: bool) -> None:
        self._request, self._bundle, self._prune = request, bundle, prune
        self._problems = comparison.request_problems(requested, bundle)
        self._rules: dict[int, JSONObject] = {}
        self._checked: dict[int, Checked] = {}
        self._refused: dict[int, list[Problem]] = {}
        self._known_paths = functools.cache(functools.partial(known_paths, request))
        self._known_names = functools.cache(functools.partial(known_names, request))
        self._known_facts = functools.cache(functools.partial(known_facts, request))
        scope = request.rules.default_scope
        for place, rule in enumerate(requested):
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
        compared, problems = comparison.apply(
            self._rules, stored, prune=self._prune, elsewhere=self._elsewhere(conn, stored))
        problems = [*self._problems, *problems]
        for entry in compared.written:
            problems += self._check(entry)
        running = [entry for entry in compared.unchanged if entry.old and entry.old.enabled]
        invalid = self._request.rule_problems.invalid(entry.old for entry in running if entry.old)
        for entry in running:
            problems += _placed(entry, invalid.get(entry.old.uuid, ()) if entry.old else ())
        if problems:
            raise InvalidRule(problems=problems)
        return compared

    def _may_match(self, row: Row) -> bool:
        return row.uuid in self._uuids or row.name in self._names

    def _elsewhere(self, conn: sa.Connection, stored: Sequence[Rule]) -> dict[str, str]:
        """Return why UUIDs of the request that are not in the bundle cannot be used."""
        bundles = inspection_rules.bundles_of(conn, sorted(self._uuids - {rule.uuid for rule in stored}))
        reasons = {uuid: "is that of a rule " + ("without a bundle" if bundle is None else f"of bundle {bundle}")
                   for uuid, bundle in bundles.items()}
        return reasons | {uuid: "is that of a built-in rule" for uuid in self._uuids
                          if rule_lists.find_built_in(self._request, uuid)}

    def _check(self, entry: Entry) -> list[Problem]:
        place = entry.place
        assert place is not None
        if place not in self._checked:
            checked = self._checked[place] = rules.check(
                entry.new, limits=self._request.rules.limits, known_paths=self._known_paths,
                known_names=self._known_names, known_facts=self._known_facts)
            # A sensitive rule with the same problems would reveal its content.
            accepted = () if entry.old and entry.old.sensitive else tolerated(
                self._request, entry.old, self._rules[place]["enabled"])
            self._refused[place] = _placed(entry, (problem for problem in checked.problems if problem not in accepted))
        return self._refused[place]

    def keep(self, entry: Entry, uuid: str, revision: int) -> None:
        """Keep what was compiled of a rule that was written."""
        checked = None if entry.place is None else self._checked.get(entry.place)
        if checked is not None and not checked.problems:
            self._request.rules.keep(uuid, revision, checked)

    def warnings(self, compared: Comparison) -> list[RuleWarning]:
        """Return the warnings about the rules that are written, at most ``_MAX_WARNINGS`` of them."""
        places = sorted(entry.place for entry in compared.written if entry.place is not None)
        warnings = [replace(warning, where=f"/rules/{place}{warning.where}")
                    for place in places if place in self._checked for warning in self._checked[place].warnings]
        return warnings[:_MAX_WARNINGS]


def _placed(entry: Entry, problems: Iterable[Problem]) -> list[Problem]:
    return [Problem(f"/rules/{entry.place}{problem.where}", problem.text) for problem in problems]


def _problems_of_version(request: Request, entry: Entry, checked: dict[str, Checked]) -> list[Problem]:
    """Return why a version of a rule cannot be stored again; of a sensitive rule only that it cannot.

    :param checked: gets what was compiled to check an enabled rule, by UUID
    """
    version, new = entry.version, entry.new
    assert version is not None and new is not None
    where = f"/rules/{version.uuid}"
    if rule_lists.find_built_in(request, version.uuid):
        return [Problem(where, "this is now the UUID of a built-in rule")]
    if not new["enabled"]:
        return []
    checked[version.uuid] = rules.check(new, limits=request.rules.limits, warn_of=())
    problems = checked[version.uuid].problems
    if problems and new["sensitive"]:
        return [Problem(where, "the rule is no longer valid")]
    return [Problem(where + problem.where, problem.text) for problem in problems]


def _changes(compared: Comparison) -> RevisionChanges:
    return RevisionChanges(
        created=[_row(entry) for entry in compared.created],
        changed={entry.old.uuid: _row(entry) for entry in (*compared.changed, *compared.replaced)
                 if entry.old is not None},
        removed=[entry.old.uuid for entry in compared.removed if entry.old is not None])


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


#: Fields of the rules of a revision, with and without details: nodes are counted for the rule, not for its versions.
_OF_VERSION = {True: RULE.shown - {"nodes_counted"}, False: SUMMARY}


def result_view(result: Result, bundle: str | None, *, dry_run: bool) -> JSONObject:
    """Return what a request has changed, or would change: every rule in one of five lists; and the warnings."""
    compared = result.compared
    return {
        "revision": result.revision, "dry_run": dry_run, "bundle": bundle,
        "created": [_entry(entry, uuid) for entry, uuid in zip(compared.created, _uuids(result), strict=True)],
        "changed": [_entry(entry) | {"patch": entry.patch()} for entry in compared.changed],
        "replaced": _entries(compared.replaced),
        "unchanged": _entries(compared.unchanged),
        "removed": _entries(compared.removed),
        "warnings": rules_views.warnings(result.warnings),
    }


def revision_views(base: str, rows: Iterable[Row]) -> list[JSONObject]:
    """Return revisions without their rules."""
    return [revision_view(base, row) for row in rows]


def revision_view(base: str, row: Row, rules: Iterable[Rule] | None = None,
                  problems: Mapping[str, Sequence[Problem]] | None = None, *, details: bool = False) -> JSONObject:
    """Return one revision, with its rules if they are given.

    :param problems: of those that are invalid, by UUID
    :param details: whether conditions and actions are shown
    """
    shown: JSONObject = {name: getattr(row, name) for name in ("revision", "created_at", "user", "summary")}
    shown["links"] = links.resource(base, "inspection_rules", "revisions", str(row.revision))
    if rules is not None:
        shown["rules"] = [
            rules_views.rule(base, rule, _OF_VERSION[details], (problems or {}).get(rule.uuid, ())) for rule in rules]
    return shown


def _uuids(result: Result) -> Iterable[str | None]:
    """Return the UUIDs of created rules; in a dry run those that are already known."""
    if result.uuids:
        return result.uuids
    return [entry.version.uuid if entry.version else (entry.new or {}).get("uuid") for entry in result.compared.created]


def _entries(entries: Iterable[Entry]) -> list[JSONObject]:
    return [_entry(entry) for entry in entries]


def _entry(entry: Entry, uuid: str | None = None) -> JSONObject:
    """Return which rule it is: by its new name and description, if they are written, and its place in the request."""
    old, new = entry.old, entry.new
    pointer = None if entry.place is None else f"/rules/{entry.place}"
    if new is not None:
        return {"uuid": uuid if old is None else old.uuid, "name": new["name"], "description": new["description"],
                "pointer": pointer}
    assert old is not None
    return {"uuid": old.uuid, "name": old.name, "description": old.description, "pointer": pointer}


_LIST = filters.Query(limit=filters.positive, marker=filters.positive, sort_dir=filters.one_of("asc", "desc"))


class RollbackController(Resource):
    """``POST`` makes a revision the current one again."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_UPDATE, body=schemas.ROLLBACK)
    def post(self, request: Request, revision: str, body: JSONObject | None,
             conditions: etags.Preconditions) -> JSONObject:
        """Make the rules those of a revision, as a new revision.

        Rules that were deleted exist again, with the same UUID; rules that were created since are deleted. Rules that
        are sensitive stay sensitive. Needs the policies for creating, changing and deleting rules. The answer is that
        of ``PUT /v1/inspection_rules``.

        :raises rule_revision_not_found: 404, it is not kept
        :raises InvalidRule: 400, rules of the revision that are enabled are no longer valid
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        for name in (rules_policies.INSPECTION_CREATE, rules_policies.INSPECTION_DELETE):
            policy.authorize(request.conf, name, request.context)
        dry_run = (body or {}).get("dry_run", False)
        result = rollback(request, _number(revision), conditions, dry_run=dry_run)
        request.reply.headers.append(("ETag", tag(result.revision)))
        return result_view(result, None, dry_run=dry_run)


class RuleRevisionsController(Resource):
    """Every change of the rules is a revision; ``[inspection_rules]keep_revisions`` of them are kept."""

    below_item: ClassVar = {"rollback": RollbackController()}

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_REVISIONS, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List the revisions that are kept, the newest first.

        ``marker`` is the number of a revision.
        """
        page = pagination.page(request, {"sort_dir": "desc", **query})
        with request.db.reader() as conn:
            rows = rule_revisions.list_revisions(
                conn, page.limit, query.get("marker"), ascending=page.sort_dir == "asc")
        return pagination.collection(request, "revisions", rows, page,
                                     lambda shown: revision_views(request.base, shown), marker="revision")

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_REVISIONS)
    def get_one(self, request: Request, revision: str) -> JSONObject:
        """Show a revision with its rules, in the order of their creation.

        Conditions and actions are null for rules that are or became sensitive. A caller who may not see those of any
        rule gets the fields of a list of rules.

        :raises rule_revision_not_found: 404, it is not kept
        """
        number = _number(revision)
        with request.db.reader() as conn:
            rules = rule_revisions.rules_at(conn, number)
            row = rule_revisions.get(conn, number)
        return revision_view(request.base, row, rules, request.rule_problems.invalid(rules),
                             details=rule_lists.are_shown(request, rules_policies.INSPECTION_GET_DETAILS))


def _number(revision: str) -> int:
    # Columns have 32 bits.
    if not (revision.isascii() and revision.isdecimal() and len(revision) < 10):
        raise Invalid("A revision is identified by its number.")
    return int(revision)
