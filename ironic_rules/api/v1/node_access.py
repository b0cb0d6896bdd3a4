"""The nodes that a request may use: found by the ident of a URL or by filters, listed, and locked."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules import policy
from ironic_rules.api import filters as api_filters
from ironic_rules.api import pagination, versions
from ironic_rules.api.authorization import target
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.v1 import asking, node_replies
from ironic_rules.api.v1.asking import Questions
from ironic_rules.api.views import nodes as views
from ironic_rules.db import collection, node_queries, nodes
from ironic_rules.db.paging import Page
from ironic_rules.db.questions import Asking
from ironic_rules.db.tables import nodes as nodes_table
from ironic_rules.exceptions import Invalid, InvalidParameterValue, NodeLocked, NodeNotFound, NotFound, Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import NODE, Node
from ironic_rules.models.questions import Question, StoredFact

_NAME = re.compile(r"[A-Za-z0-9\-._~]{1,255}")


def check_ident(ident: str, kind: str = "node") -> str:
    """Return ``ident`` if it can be a UUID or a name.

    :raises InvalidParameterValue: 400
    """
    if not uuidutils.is_uuid_like(ident) and not _NAME.fullmatch(ident):
        raise InvalidParameterValue(f"Expected the UUID or the name of a {kind}.")
    return ident


def _node_ident(request: Request, ident: str) -> str:
    check_ident(ident)
    if request.version < versions.NAME and not uuidutils.is_uuid_like(ident):
        # Nodes have no names in these versions, so none has this name.
        raise NodeNotFound(node=ident)
    return ident


def find(request: Request, conn: sa.Connection, ident: str, *, for_update: bool = False) -> Node:
    """Return the node that a URL names.

    :param for_update: lock its row until the transaction ends, whatever a conductor does with the node
    :raises NodeNotFound: 404;  InvalidParameterValue: 400
    """
    return _accessible(request, nodes.get(conn, _node_ident(request, ident), for_update=for_update), ident)


def _accessible(request: Request, row: Node, ident: str | int, policies: tuple[str, ...] = ()) -> Node:
    """Return ``row`` if the caller has access to it: the one place where access to a node is decided."""
    confinement = request.confinement
    if confinement is not None:
        confinement.check_node(row, NodeNotFound(node=ident), policies)
    else:
        for name in policies:
            policy.authorize(request.conf, name, request.context, target(row))
    return row


def check_access(request: Request, conn: sa.Connection, node_id: int, missing: NotFound) -> None:
    """Check the access to what belongs to a node.

    :raises NotFound: 404, ``missing``: the caller may not see the node;  Forbidden: 403
    """
    confinement = request.confinement
    if confinement is not None:
        confinement.check_node(nodes.get_by_id(conn, node_id), missing)


def confine(request: Request, filters: JSONObject) -> None:
    """Add the filter ``project`` to those of a list, if the caller is confined to one.

    :raises Forbidden: 403, the request names another project
    """
    if request.confinement is not None:
        request.confinement.confine(filters)


def filters(request: Request, query: Mapping[str, object]) -> JSONObject:
    """Return the filters of a request for a list of nodes; :func:`resolve` makes conditions of them.

    :raises NotAcceptable: 406, one that the version does not support
    :raises Forbidden: 403, another project than that of the caller
    """
    selection = pagination.filters(query)
    versions.refuse_filters(NODE, selection, request.version)
    if "parent_node" not in selection:
        # As in Ironic: child nodes are listed only on request.
        selection.setdefault("include_children", False)
    confine(request, selection)
    return selection


_FILTERS = api_filters.Query(**api_filters.of(NODE))


def filters_of_body(body: JSONObject) -> QueryValues:
    """Return the filters of a list of nodes that a body has, as those of a URL are returned.

    :raises InvalidParameterValue: 400
    """
    texts = {name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
             for name, value in body.items()}
    return _FILTERS.load(urlencode(texts))


def resolve(request: Request, conn: sa.Connection, filters: JSONObject) -> None:
    """Replace what filters name by what the database has.

    :raises NodeNotFound, chassis_not_found: 404;  InvalidParameterValue: 400
    """
    if "parent_node" in filters:
        filters["parent_node"] = find(request, conn, filters["parent_node"]).uuid
    if "chassis_uuid" in filters:
        filters["chassis_uuid"] = collection.CHASSIS.get(conn, filters["chassis_uuid"]).uuid
    if "conductor" in filters:
        filters["conductor"] = filters["conductor"], node_replies.turns_of(request, conn, filters["conductor"])
    if "failure" in filters:
        filters["failure"] = request.node_failures.find(conn, filters["failure"])
    if "where" in filters:
        questions = Questions(request, conn)
        question = questions.read(filters["where"])
        filters["where"] = questions.condition(question, Asking(conn, questions.known))


def list_nodes(request: Request, query: QueryValues, *, detail: bool,
               conditions: Sequence[object] | None = None) -> JSONObject:
    """Return a page of nodes.

    :param query: as ``filters.Listing.of(NODE)`` has it, with ``facts``, which are columns
    :param conditions: of a rule
    :raises InvalidParameterValue: 400;  NotAcceptable: 406;  NotFound: 404, what a filter names
    """
    minor = request.version
    fields = pagination.requested_fields(request, query, NODE)
    if "detail" in query and minor < versions.DETAIL:
        raise InvalidParameterValue(f"detail needs at least API version 1.{versions.DETAIL}.")
    if fields is None and not detail:
        fields = views.default_fields(minor)
    selection = filters(request, query)
    page = pagination.page(request, query)
    columns, order = query.get("facts", ()), page.sort_key.removeprefix(asking.SORTED)
    is_by_fact = order != page.sort_key
    asking.check_version(request, (*columns, *([order] if is_by_fact else [])))
    if not is_by_fact:
        versions.refuse_fields(NODE, [page.sort_key], minor)
    with request.db.reader() as conn:
        questions = Questions(request, conn)
        clause = selection.pop("where", None)
        question = None if clause is None and conditions is None else questions.read(clause, conditions)
        resolve(request, conn, selection)
        names = node_replies.node_columns(request, fields)
        names = tuple(dict.fromkeys((*names, "id"))) if columns or is_by_fact else names
        questions.facts(columns)
        if is_by_fact:
            fact = questions.facts([order], "sort_key")[order]
            rows = _in_order(questions, conn, page, fact, selection, question, names)
        else:
            if question is not None:
                selection["where"] = questions.condition(question, Asking(conn, questions.known))
            rows = nodes.list_nodes(conn, selection, page, names, raw_json=True)

        def show(page_rows: Sequence[Any]) -> Iterator[JSONObject]:
            shown = node_replies.show_nodes(request, conn, page_rows, fields)
            return questions.add_columns(columns, page_rows, shown) if columns else shown

        return pagination.collection(request, "nodes", rows, page, show)


def _in_order(questions: Questions, conn: sa.Connection, page: Page, fact: StoredFact, filters: JSONObject,
              question: Question | None, columns: tuple[str, ...]) -> list[Any]:
    """Return the rows of a page of nodes in the order of a fact."""
    own = node_queries.of_caller(filters, nodes_table)
    ids = questions.page(fact, page, questions.conditions(filters, question), own)
    rows = {row.id: row for row in nodes.list_nodes(conn, {"id_in": ids}, Page(len(ids)), columns, raw_json=True)}
    # A node may have been deleted since.
    return [rows[node_id] for node_id in ids if node_id in rows]


def list_all_fields(request: Request, query: QueryValues) -> JSONObject:
    """Return a page of nodes with all their fields, for a ``detail`` URL; errors as those of :func:`list_nodes`."""
    if "fields" in query:
        raise InvalidParameterValue("fields cannot be used with a detailed list.")
    query.pop("detail", None)
    return list_nodes(request, query, detail=True)


def hold(request: Request, conn: sa.Connection, ident: str, policies: tuple[str, ...] = ()) -> Node:
    """Return the node that a URL names, and lock its row until the transaction ends.

    The objects of a node (traits, ports, ...) change only while its row is locked, so that they never change while a
    conductor has reserved the node. Must come first in the transaction: what is read before may be outdated.

    :param policies: those that depend on what is to change; callers who are confined must pass them in the place of
        that of the route
    :raises NodeNotFound: 404;  InvalidParameterValue: 400;  NodeLocked: 409;  Forbidden: 403
    """
    return _unlocked(_accessible(request, nodes.get(conn, _node_ident(request, ident), for_update=True), ident,
                                 policies))


def hold_by_id(request: Request, conn: sa.Connection, node_id: int) -> Node:
    """Return the node with this database id; otherwise as :func:`hold`."""
    return _unlocked(_accessible(request, nodes.get_by_id(conn, node_id, for_update=True), node_id))


@contextlib.contextmanager
def named_by(where: str) -> Iterator[None]:
    """Turn NotFound into an error about the body, which names the missing resource at the pointer ``where``.

    :raises Invalid: 400, in place of NotFound
    """
    try:
        yield
    except NotFound as error:
        raise Invalid(problems=[Problem(where, str(error))]) from error


def _unlocked(node: Node) -> Node:
    if node.reservation is not None:
        raise NodeLocked(node=node.uuid, host=node.reservation)
    return node
