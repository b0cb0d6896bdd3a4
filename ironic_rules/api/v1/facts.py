"""``/v1/facts``: named values that templates find in inventories; and what nodes have of them.

``/v1/fact_changes``: values that inspections have changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import sqlalchemy as sa

from ironic_rules import facts as compiled_facts
from ironic_rules.api import etags, filters, links, pagination, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.db import facts, inspection_rules
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import nodes
from ironic_rules.exceptions import Invalid, fact_in_use, fact_is_built_in
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
        asked = pagination.page(request, {**query, "sort_dir": query.get("sort_dir", "desc")})
        with request.db.reader() as conn:
            node = query.get("node")
            node_id = None if node is None else node_access.find(request, conn, node).id
            rows = facts.list_changes(conn, asked, since=query.get("since"), fact=query.get("fact"), node_id=node_id,
                                      conditions=_visible(request))
        return pagination.collection(request, "fact_changes", rows, asked,
                                     lambda shown: [_change(row) for row in shown])


class FactsController(Resource):
    """``/v1/facts``, since API 1.96. Facts are identified by name."""

    below_item: ClassVar[dict[str, Any]] = {}

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List facts, with a few fields, those of ``fields``, or all (``detail``); ``problems`` is a number of nodes.

        ``bundle``, ``origin``, ``type`` and ``watched`` filter them. The ``ETag`` is that of the whole set.

        :raises MarkerNotFound: 404, ``marker`` is not the name of a fact
        """
        fields = query.get("fields") or (tuple(FACT.shown) if query.get("detail") else (*SUMMARY, "problems"))
        asked = pagination.page(request, query)
        conditions = _visible(request)
        with request.db.reader() as conn:
            request.reply.headers.append(("ETag", _set_tag(facts.revision(conn))))
            rows = facts.list_facts(conn, pagination.filters(query), asked)
            names = [row.name for row in rows] if "problems" in fields else []
            problems = facts.count_problems(conn, names, conditions)
        return pagination.collection(request, COLLECTION, rows, asked, lambda shown: [
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
            found = facts.get(conn, fact)
            problems = [{"node_uuid": row.node_uuid, "problem": row.problem}
                        for row in facts.problems(conn, found.id, request.conf.api.max_limit, *visible)]
        conditions.check_match(_tag(found))
        request.reply.headers.append(("ETag", _tag(found)))
        return _view(request, found, query.get("fields") or tuple(FACT.shown), problems)

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_CREATE, body=schemas.FACT, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a fact and return it, with its ``ETag``.

        It is found in the stored inventories of all nodes in the background: by the ``operation``.

        :raises Invalid: 400, with every problem;  duplicate_fact_name, too_many_facts: 409
        """
        given = {name: value for name, value in body.items() if value is not None}
        _check(request, given)
        values = {**_DEFAULTS, **given}

        def write(conn: sa.Connection) -> tuple[Fact, Row | None]:
            made = facts.create(conn, values, most=request.conf.facts.max_facts)
            return made, _begin(request, conn, made)

        made, operation = request.db.write(write)
        request.reply.headers.append(("Location", links.url(request.base, COLLECTION, made.name)))
        return _written(request, made, operation)

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_UPDATE, body=patch.BODY)
    def patch(self, request: Request, fact: str, body: list[JSONObject],
              conditions: etags.Preconditions) -> JSONObject:
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
            # No rule that reads it can be created meanwhile.
            inspection_rules.lock(conn)
            old = _operators(conn, fact)
            conditions.check(_tag(old))
            _refuse_used(request, conn, fact)
            facts.destroy(conn, fact, revision=old.revision if conditions.given else None)

        with conditions.guard():
            request.db.write(write)


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
    found = facts.get(conn, name)
    if found.origin == BUILT_IN:
        raise fact_is_built_in(fact=name)
    return found


def _refuse_used(request: Request, conn: sa.Connection, name: str) -> None:
    stored = [rule for rule in (*inspection_rules.all_rules(conn), *request.rules.built_in)
              if name in reads.facts_of(rule)]
    if stored:
        raise fact_in_use(fact=name, rules=enumeration([rule.name or rule.uuid for rule in stored], _NAMED))


def _visible(request: Request) -> Sequence[sa.ColumnElement[bool]]:
    """Return the conditions for nodes whose facts the caller may see: as for inventories, not those that it leases."""
    wanted: JSONObject = {}
    node_access.confine(request, wanted)
    return [nodes.c.owner == wanted["project"]] if wanted else ()


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
