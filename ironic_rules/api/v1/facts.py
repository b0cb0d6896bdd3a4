"""``/v1/facts``: named values that templates find in inventories; and what nodes have of them.

``/v1/fact_changes``: values that inspections have changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import sqlalchemy as sa

from ironic_rules import facts as compiled_facts
from ironic_rules import policy
from ironic_rules.api import etags, filters, links, pagination, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1.fact_counts import FactsValuesController, FactValuesController, FactVocabularyController
from ironic_rules.db import facts, inspection_rules
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import nodes
from ironic_rules.exceptions import Invalid, Problem, fact_in_use, fact_is_built_in
from ironic_rules.inspection import fact_sets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.facts import BUILT_IN, DEFINITION, FACT, SUMMARY, Fact
from ironic_rules.policies import nodes as nodes_policies
from ironic_rules.policies import rules as policies
from ironic_rules.rules import reads
from ironic_rules.text import enumeration

COLLECTION = "facts"
_LIST = filters.Listing(sort_keys=FACT.sort_keys, fields=FACT.shown, marker=filters.text, **filters.of(FACT))
_ONE = filters.Query(fields=filters.names)
_CHANGES = filters.Query(
    limit=filters.positive, marker=filters.uuid, sort_dir=filters.one_of("asc", "desc"), since=filters.moment,
    fact=filters.text, node=filters.text)
#: Rules that an error names.
_NAMED = 20


class NodeFactsController(Resource):
    """``/v1/nodes/{node}/facts``."""

    @expose(since=versions.INSPECTION_RULES, policy=nodes_policies.GET_FACTS)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return ``{"facts": {name: value}, "problems": {name: text}}``, by the last successful inspection.

        A value is a text, a number, true or false, or a list of these; facts that are absent are missing. A problem
        says why a fact is absent, or why not all of its values are there.

        :raises NodeNotFound: 404
        """
        with request.db.reader() as conn:
            values, problems = facts.of_node(conn, node_access.find(request, conn, node).id)
        return {"facts": values, "problems": problems}


class FactChangesController(Resource):
    """``/v1/fact_changes``, since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_LIST, query=_CHANGES)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List values that inspections have changed, the newest first, unless ``sort_dir`` is ``asc``.

        ``since`` (a time), ``fact`` (a name) and ``node`` (a UUID or name) filter them. ``before`` and ``after`` are
        values or lists; null: the node did not have the fact. The first values of a node are no change, and neither
        are values by another definition. They are kept for ``[facts]change_days``.

        :raises MarkerNotFound, fact_not_found, NodeNotFound: 404
        """
        page = pagination.page(request, {**query, "sort_dir": query.get("sort_dir", "desc")})
        with request.db.reader() as conn:
            node = query.get("node")
            node_id = None if node is None else node_access.find(request, conn, node).id
            rows = facts.list_changes(conn, page, since=query.get("since"), fact=query.get("fact"), node_id=node_id,
                                      conditions=_visible(request))
        return pagination.collection(request, "fact_changes", rows, page,
                                     lambda shown: [_change(row) for row in shown])


class FactsController(Resource):
    """``/v1/facts``, since API 1.96. Facts are identified by name."""

    below: ClassVar = {"values": FactsValuesController(), "vocabulary": FactVocabularyController()}
    below_item: ClassVar = {"values": FactValuesController()}

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List facts, with a few fields, those of ``fields``, or all (``detail``); ``problems`` is a number of nodes.

        ``bundle``, ``origin``, ``type`` and ``watched`` filter them. The ``ETag`` is that of the whole set.

        :raises MarkerNotFound: 404, ``marker`` is not the name of a fact
        """
        fields = query.get("fields") or (tuple(FACT.shown) if query.get("detail") else (*SUMMARY, "problems"))
        page = pagination.page(request, query)
        conditions = _visible(request)
        with request.db.reader() as conn:
            request.reply.headers.append(("ETag", _set_tag(facts.revision(conn))))
            rows = facts.list_facts(conn, pagination.filters(query), page)
            names = [row.name for row in rows] if "problems" in fields else []
            problems = facts.count_problems(conn, names, conditions)
        return pagination.collection(request, COLLECTION, rows, page, lambda shown: [
            _view(request, row, fields, problems.get(row.name, 0)) for row in shown], marker="name")

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_LIST, query=_ONE)
    def get_one(self, request: Request, fact: str, query: QueryValues,
                conditions: etags.Preconditions) -> JSONObject | None:
        """Return one fact, with its ``ETag``. ``problems`` has nodes and reasons, at most ``[api]max_limit`` of them.

        :raises fact_not_found: 404
        """
        filters.check_fields(query.get("fields", ()), FACT.shown)
        visible = _visible(request)
        with request.db.reader() as conn:
            definition = facts.get(conn, fact)
            problems = [{"node_uuid": row.node_uuid, "problem": row.problem}
                        for row in facts.problems(conn, definition.id, request.conf.api.max_limit, *visible)]
        conditions.check_match(_tag(definition))
        request.reply.headers.append(("ETag", _tag(definition)))
        return _view(request, definition, query.get("fields") or tuple(FACT.shown), problems)

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_CREATE, body=schemas.FACT, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a fact and return it, with its ``ETag``.

        It is found in the stored inventories of all nodes in the background: by the ``operation``.

        :raises Invalid: 400, with every problem;  duplicate_fact_name, too_many_facts: 409
        """
        fields = {name: value for name, value in body.items() if value is not None}
        _check(request, fields)
        values = {**_DEFAULTS, **fields}

        def write(conn: sa.Connection) -> tuple[Fact, Row | None]:
            created = facts.create(conn, values, most=request.conf.facts.max_facts)
            return created, _begin(request, conn, created)

        created, operation = request.db.write(write)
        request.reply.headers.append(("Location", links.url(request.base, COLLECTION, created.name)))
        return _written(request, created, operation)

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_CREATE, body=schemas.FACT_SET)
    def put(self, request: Request, body: JSONObject, conditions: etags.Preconditions) -> JSONObject:
        """Make the facts of a bundle those of the request, in one transaction or not at all.

        Facts are matched by name; null is the bundle of those without one. With ``prune`` the other facts of the bundle
        are deleted. With ``dry_run`` nothing is written. Needs the policy for changing facts, too, with ``prune`` also
        that for deleting them. ``If-Match`` is compared with the tag of the list of facts.

        The answer has the names ``created``, ``changed``, ``unchanged`` and ``removed``, and the ``operation`` that
        finds new definitions in stored inventories, null if there are none.

        :raises Invalid: 400, with every problem of every fact, below ``/facts/N``
        :raises fact_in_use, too_many_facts: 409;  PreconditionFailed: 412, by ``If-Match``
        """
        prune, dry_run, bundle = body.get("prune", False), body.get("dry_run", False), body.get("bundle")
        for name in (policies.FACT_UPDATE, policies.FACT_DELETE)[:1 + prune]:
            policy.authorize(request.conf, name, request.context)
        requested = [{**fact, "bundle": bundle} if isinstance(fact, dict) else fact for fact in body["facts"]]
        _check_all(request, requested)

        def write(conn: sa.Connection) -> JSONObject:
            inspection_rules.lock(conn)
            conditions.check(_set_tag(facts.lock(conn)))
            return _Application(request, conn, bundle, dry_run=dry_run).run(requested, prune=prune)

        with conditions.guard():
            reply = request.db.write(write)
        with request.db.reader() as conn:
            request.reply.headers.append(("ETag", _set_tag(facts.revision(conn))))
        return reply

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_UPDATE, body=patch.BODY)
    def patch(self, request: Request, fact: str, body: list[JSONObject], conditions: etags.Preconditions) -> JSONObject:
        """Change an operator's fact by a JSON patch (RFC 6902) and return it, with its new ``ETag``.

        Another definition is found in the stored inventories, as that of a new fact; until then, nodes have the values
        that they had.

        :raises fact_not_found: 404;  Invalid: 400, with every problem;  fact_is_built_in: 409
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        operations = patch.operations(body)

        def write(conn: sa.Connection) -> tuple[Fact, Row | None]:
            old = _operators(conn, fact)
            conditions.check(_tag(old))
            document = {name: getattr(old, name) for name in FACT.patchable}
            new = patch.apply(document, operations, defaults=_DEFAULTS, required=FACT.required)
            _check(request, {"name": old.name, **{name: value for name, value in new.items() if value is not None}})
            changed = facts.update(conn, fact, new, revision=old.revision)
            return changed, _begin(request, conn, changed) if changed.defined != old.defined else None

        with conditions.guard():
            changed, operation = request.db.write(write)
        return _written(request, changed, operation)

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_DELETE, status=204)
    def delete(self, request: Request, fact: str, conditions: etags.Preconditions) -> None:
        """Delete an operator's fact, with its values and their changes.

        :raises fact_not_found: 404;  fact_is_built_in, fact_in_use: 409, rules read it
        :raises PreconditionFailed: 412, by ``If-Match``
        """

        def write(conn: sa.Connection) -> None:
            # No rule that reads it can be created until the transaction ends.
            inspection_rules.lock(conn)
            old = _operators(conn, fact)
            conditions.check(_tag(old))
            _refuse_used(request, conn, [fact])
            facts.destroy(conn, fact, revision=old.revision if conditions.given else None)

        with conditions.guard():
            request.db.write(write)


class _Application:
    """Makes the facts of a bundle those of a request."""

    def __init__(self, request: Request, conn: sa.Connection, bundle: str | None, *, dry_run: bool) -> None:
        self._request, self._conn, self._bundle, self._dry_run = request, conn, bundle, dry_run
        self._stored = {fact.name: fact for fact in facts.all_facts(conn)}

    def run(self, requested: Sequence[JSONObject], *, prune: bool) -> JSONObject:
        """Write what differs, and return what that was."""
        self._refuse_others(requested)
        result: dict[str, Any] = {"bundle": self._bundle, "dry_run": self._dry_run, "created": [], "changed": [],
                                  "unchanged": [], "removed": []}
        created: list[JSONObject] = []
        new: list[Fact] = []
        for fact in requested:
            values = {**_EMPTY, **_DEFAULTS, **{name: value for name, value in fact.items() if value is not None}}
            old = self._stored.get(values["name"])
            if old is not None and all(getattr(old, name) == value for name, value in values.items()):
                result["unchanged"].append(old.name)
                continue
            result["created" if old is None else "changed"].append(values["name"])
            if self._dry_run:
                continue
            if old is None:
                created.append(values)
            elif (changed := facts.update(self._conn, old.name, values)).defined != old.defined:
                new.append(changed)
        new += facts.create_all(self._conn, created, most=self._request.conf.facts.max_facts)
        if prune:
            names = {fact["name"] for fact in requested}
            result["removed"] = [fact.name for fact in self._stored.values() if fact.origin != BUILT_IN
                                 and fact.bundle == self._bundle and fact.name not in names]
            _refuse_used(self._request, self._conn, result["removed"])
            if not self._dry_run:
                facts.destroy_all(self._conn, result["removed"])
        begun = fact_sets.begin(self._conn, new, self._request.context.user_id) if new else None
        return {**result, "operation": begun and begun.uuid}

    def _refuse_others(self, requested: Sequence[JSONObject]) -> None:
        problems = []
        for place, fact in enumerate(requested):
            old = self._stored.get(fact["name"])
            if old is not None and (old.origin == BUILT_IN or old.bundle != self._bundle):
                whose = "of a built-in fact" if old.origin == BUILT_IN else (
                    "of a fact without a bundle" if old.bundle is None else f"of a fact of bundle {old.bundle}")
                problems.append(Problem(f"/facts/{place}/name", f"is that {whose}"))
        if problems:
            raise Invalid(problems=problems)


def _check_all(request: Request, requested: Sequence[Any]) -> None:
    """Check facts as a POST would, and that each name is there once.

    :raises Invalid: 400, with every problem
    """
    problems: list[Problem] = []
    first: dict[object, int] = {}
    for place, fact in enumerate(requested):
        values = {name: value for name, value in fact.items() if value is not None} if isinstance(fact, dict) else fact
        problems += [Problem(f"/facts/{place}{problem.where}", problem.text)
                     for problem in compiled_facts.check(values, limits=request.rules.limits).problems]
        name = values.get("name") if isinstance(values, dict) else None
        if isinstance(name, str) and first.setdefault(name, place) != place:
            problems.append(Problem(f"/facts/{place}/name", f"is that of /facts/{first[name]}"))
    if problems:
        raise Invalid(problems=problems)


#: Fields that a fact need not have, as they are without a value.
_EMPTY: Mapping[str, Any] = dict.fromkeys(name for name in FACT.patchable if name not in FACT.required)
_DEFAULTS: Mapping[str, Any] = {"watched": False, "conditions": []}


def _check(request: Request, fact: JSONObject) -> None:
    problems = compiled_facts.check(fact, limits=request.rules.limits).problems
    if problems:
        raise Invalid(problems=problems)


def _begin(request: Request, conn: sa.Connection, fact: Fact) -> Row | None:
    return fact_sets.begin(conn, [fact], request.context.user_id)


def _operators(conn: sa.Connection, name: str) -> Fact:
    """Return a fact that may be changed.

    :raises fact_not_found: 404;  fact_is_built_in: 409
    """
    row = facts.get(conn, name)
    if row.origin == BUILT_IN:
        raise fact_is_built_in(fact=name)
    return row


def _refuse_used(request: Request, conn: sa.Connection, names: Sequence[str]) -> None:
    """Check that no rule reads one of these facts.

    :raises fact_in_use: 409, names the rules that read the first of them
    """
    if not names:
        return
    users: dict[str, list[str]] = {}
    for rule in (*inspection_rules.all_rules(conn), *request.rules.built_in):
        for name in reads.facts_of(rule):
            users.setdefault(name, []).append(rule.name or rule.uuid)
    for name in names:
        if name in users:
            raise fact_in_use(fact=name, rules=enumeration(users[name], _NAMED))


def _visible(request: Request) -> Sequence[sa.ColumnElement[bool]]:
    """Return the conditions for nodes whose facts the caller may see: as for inventories, not those that it leases."""
    filters: JSONObject = {}
    node_access.confine(request, filters)
    return [nodes.c.owner == filters["project"]] if filters else ()


def _tag(fact: Fact) -> str:
    return etags.tag(fact.name, fact.revision)


def _set_tag(revision: int) -> str:
    return etags.tag(COLLECTION, revision)


def _view(request: Request, fact: Any, fields: Sequence[str], problems: object) -> JSONObject:
    shown = {name: getattr(fact, name) for name in FACT.columns if name in fields}
    if "problems" in fields:
        shown["problems"] = problems
    if "links" in fields or "name" in fields:
        shown["links"] = links.resource(request.base, COLLECTION, fact.name)
    return shown


def _written(request: Request, fact: Fact, operation: Row | None) -> JSONObject:
    request.reply.headers.append(("ETag", _tag(fact)))
    return {**_view(request, fact, (*FACT.columns, "links"), ()), "operation": operation and operation.uuid}


def _change(row: Any) -> JSONObject:
    return {name: getattr(row, name) for name in (
        "uuid", "fact", "unit", "node_uuid", "before", "after", "created_at", "inspection_uuid")}


assert set(DEFINITION) <= FACT.patchable
