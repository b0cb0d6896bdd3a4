"""``/v1/operations``: work on many nodes that one request has begun, and the reply to such a request."""

from __future__ import annotations

from typing import ClassVar

import sqlalchemy as sa

from ironic_rules.api import filters, links, pagination, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import many_nodes, rule_lists
from ironic_rules.api.views import resources
from ironic_rules.db import operations
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import Invalid
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.resources import OPERATION
from ironic_rules.policies import rules
from ironic_rules.text import is_uuid

_LISTED = OPERATION.shown - {"errors"}
_LIST = filters.Listing(sort_keys=OPERATION.sort_keys, fields=_LISTED)

_NODES = filters.Query(
    limit=filters.positive, marker=filters.uuid, group=filters.text,
    status=filters.one_of(operations.LEFT, operations.CHANGED, operations.UNCHANGED, operations.FAILED))


class OperationNodesController(Resource):
    """``/v1/operations/{operation}/nodes``."""

    @expose(policy=rules.OPERATION_GET, query=_NODES)
    def get_all(self, request: Request, operation: str, query: QueryValues) -> JSONObject:
        """List the nodes of an operation, each with its ``status`` and ``error``, and with the ``result`` of a dry run.

        They are in the order of their creation; ``marker`` is the UUID of a node. ``status`` and ``group`` filter them.
        ``would`` in a result is null for callers who may not see conditions and actions of rules.

        :raises operation_not_found, MarkerNotFound: 404
        """
        details = rule_lists.are_shown(request, rules.INSPECTION_GET_DETAILS)
        limit = pagination.page(request, query).limit
        with request.db.reader() as conn:
            row = operations.get(conn, _uuid(operation))
            items = operations.list_items(
                conn, row.id, query.get("status"), query.get("marker"), limit, result_hash=query.get("group"))
        return pagination.collection(request, "nodes", items, Page(limit), lambda shown: [
            resources.operation_item(item, details=details) for item in shown], marker="node_uuid")


class OperationGroupsController(Resource):
    """``/v1/operations/{operation}/groups``."""

    @expose(policy=rules.OPERATION_GET)
    def get_all(self, request: Request, operation: str) -> JSONObject:
        """List the different results of a dry run, each with the ``number`` of nodes that have it, the largest first.

        ``group`` filters the nodes of the operation. At most ``[api]max_limit`` groups are shown. ``would`` in a result
        is null as in the list of nodes.

        :raises operation_not_found: 404
        """
        with request.db.reader() as conn:
            row = operations.get(conn, _uuid(operation))
            groups = operations.groups(conn, row.id, request.conf.api.max_limit)
        details = rule_lists.are_shown(request, rules.INSPECTION_GET_DETAILS)
        return {"groups": [resources.operation_group(group, details=details) for group in groups]}


class OperationsController(Resource):
    """In every version of the API. Operations are identified by UUID."""

    below_item: ClassVar = {"nodes": OperationNodesController(), "groups": OperationGroupsController()}

    @expose(policy=rules.OPERATION_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List operations in the order of their creation, those that have ended, too.

        ``progress`` counts the nodes of an operation: all of them, those that are done, of these the ones that were
        changed and the ones that failed, and those that are left.
        """
        fields = query.get("fields") or (
            _LISTED if query.get("detail") else frozenset({*OPERATION.summary, "progress"}))
        page = pagination.page(request, query)
        with request.db.reader() as conn:
            rows = operations.list_operations(conn, page)
            counts = operations.counts(conn, rows) if "progress" in fields else {}
        return pagination.collection(request, resources.OPERATIONS, rows, page, lambda shown: [
            resources.operation(request.base, row, counts.get(row.id, {}), fields=fields) for row in shown])

    @expose(policy=rules.OPERATION_GET)
    def get_one(self, request: Request, uuid: str) -> JSONObject:
        """Show an operation, with the nodes on which it failed, at most ``[api]max_limit`` of them.

        :raises operation_not_found: 404
        """
        with request.db.reader() as conn:
            row = operations.get(conn, _uuid(uuid))
            counted = operations.counts(conn, [row])[row.id]
            failed = operations.errors(conn, row.id, request.conf.api.max_limit)
        return resources.operation(request.base, row, counted, failed)

    @expose(since=versions.INSPECTION_RULES, policy=rules.OPERATION_CREATE, body=schemas.OPERATION_CREATE, status=202)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Act on many nodes: on those of ``uuids``, or on those that pass the filters of a list in ``nodes``.

        ``action`` is ``inspect``, ``manage``, ``provide`` or ``abort``, as a target of ``states/provision``;
        ``set-maintenance`` (with an optional ``reason``), ``clear-maintenance``, ``delete``, or ``reapply``, which runs
        hooks and rules again. The operation has the nodes on which the action is possible now; ``impossible`` has the
        ``number`` of the others for each ``reason``, and the first ten of them as ``nodes``. If an interface of a node
        does not support the action, the operation finds this later and names the node. The operation tries a locked
        node again after the others, three times.

        With ``dry_run`` nothing is done: 200, with the ``total`` of nodes, on how many the action is ``possible``, and
        ``impossible``.

        :raises Invalid, InvalidParameterValue: 400;  Forbidden: 403, also by the policy of the action
        :raises Conflict: 409, it is possible on none of the nodes
        """
        if body.get("dry_run"):
            request.reply.status = 200
            return many_nodes.preview(request, body)
        created, impossible = many_nodes.create(request, body)
        return begun(request, created) | {"impossible": impossible}

    @expose(policy=rules.OPERATION_CANCEL, status=204)
    def delete(self, request: Request, uuid: str) -> None:
        """Cancel an operation: nodes that are left stay as they are, those that are done stay done.

        :raises operation_not_found: 404
        """
        ident = _uuid(uuid)

        def write(conn: sa.Connection) -> None:
            operations.cancel(conn, operations.get(conn, ident).id)

        request.db.write(write)


def _uuid(ident: str) -> str:
    if not is_uuid(ident):
        raise Invalid("An operation is identified by its UUID.")
    return ident.lower()


def begun(request: Request, operation: Row) -> JSONObject:
    """Return the operation for a reply with the status 202, and add its address to the headers."""
    request.reply.status = 202
    request.reply.headers.append(("Location", links.url(request.base, resources.OPERATIONS, operation.uuid)))
    with request.db.reader() as conn:
        return resources.operation(request.base, operation, operations.counts(conn, [operation])[operation.id], ())
