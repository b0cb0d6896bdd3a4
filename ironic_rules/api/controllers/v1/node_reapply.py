"""``/v1/nodes/{node}/inventory/reapply`` and ``/v1/nodes/reapply``: hooks and rules run again, without a machine."""

from __future__ import annotations

import functools
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import filters, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1 import operations as operations_v1
from ironic_rules.db import inventory, nodes, operations
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import InventoryNotFound
from ironic_rules.inspection import reapplying
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import NODE
from ironic_rules.models.resources import REAPPLY
from ironic_rules.policies import nodes as policies

#: The filters of ``GET /v1/nodes``.
FILTERS = filters.Query(**filters.of(NODE))


class ReapplyController(Resource):
    """Since API 1.96. The provision state does not change."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.REAPPLY, body=schemas.REAPPLY, status=202)
    def post(self, request: Request, node: str, body: JSONObject | None) -> JSONObject:
        """Run hooks and rules again over the data of the last inspection, as they were received; return the operation.

        The node is in ``enroll``, ``manageable``, ``available`` or ``inspect failed``. If it has an instance,
        ``allow_deployed`` is required, and only rules change it, without adding or removing ports. With ``dry_run``
        the node may be in any state, and the operation's result is what would change.

        :raises NodeNotFound, InventoryNotFound: 404;  InvalidState: 400, by its provision state
        :raises NodeAssociated: 409, it has an instance
        """
        asked = body or {}

        def write(conn: sa.Connection) -> Row:
            row = node_access.find(request, conn, node)
            if not asked.get("dry_run"):
                reapplying.check(row, allow_deployed=asked.get("allow_deployed", False))
            if inventory.newest_report(conn, row.id) is None:
                raise InventoryNotFound(node=row.uuid)
            return create_operation(request, conn, {"id_in": [row.id]}, _said({"uuid": row.uuid}, asked))

        return operations_v1.begun(request, request.db.write(write))


class NodesReapplyController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.REAPPLY, query=FILTERS, body=schemas.REAPPLY, status=202)
    def post(self, request: Request, query: QueryValues, body: JSONObject | None) -> JSONObject:
        """Run hooks and rules again on all nodes, or on those that pass the filters of a list; return the operation.

        The operation names the nodes on which this is not possible. A node that is locked is tried again at the end.

        :raises InvalidParameterValue: 400;  NotAcceptable: 406, a filter that the version does not support
        """
        wanted, said = node_access.filters(request, query), _said(query, body or {})
        return operations_v1.begun(request, request.db.write(
            functools.partial(create_operation, request, wanted=wanted, said=said)))


def _said(shown: JSONObject, asked: JSONObject) -> JSONObject:
    return {"nodes": shown, **{name: asked.get(name, False) for name in ("dry_run", "allow_deployed")}}


def create_operation(request: Request, conn: sa.Connection, wanted: dict[str, Any], said: JSONObject) -> Row:
    """Store an operation in which hooks and rules run again, also one that is a dry run.

    :param wanted: filters of its nodes, as ``node_access.filters`` returns them
    :param said: the filters as they were requested, as ``nodes``, and the options of the operation
    """
    resolved = dict(wanted)
    node_access.resolve(request, conn, resolved)
    return operations.create(conn, REAPPLY, said, request.context.user_id, nodes.uuids(resolved))
