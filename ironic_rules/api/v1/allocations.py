"""``/v1/allocations``, and the allocation of a node."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.api import filters, pagination, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1.served import Served
from ironic_rules.db import allocations
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.exceptions import Conflict, Invalid, Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.resources import ALLOCATING, ALLOCATION, Allocation
from ironic_rules.policies import nodes

LOG = logging.getLogger(__name__)

_ALLOCATIONS = Served("allocations", ALLOCATION, allocations.ALLOCATIONS, summary=False)
_LIST = filters.Listing.of(ALLOCATION, checked=False)
_ONE = filters.Query(fields=filters.names)


class NodeAllocationController(Resource):
    """``/v1/nodes/{node}/allocation``, since API 1.52."""

    @expose(since=versions.ALLOCATIONS, policy=nodes.ALLOCATION_GET, query=_ONE)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """Return the allocation that has the node.

        :raises Invalid: 400, the node does not exist, as in Ironic;  allocation_not_found: 404
        """
        with request.db.reader() as conn:
            with node_access.named_by("node"):
                row = node_access.find(request, conn, node)
            uuid = allocations.of_node(conn, row).uuid
        return _ALLOCATIONS.get_one(request, uuid, query)

    @expose(since=versions.ALLOCATIONS, policy=nodes.ALLOCATION_DELETE, status=204, hidden=True)
    def delete(self, request: Request, node: str) -> None:
        """Delete the allocation that has the node, which is free afterwards.

        :raises NodeNotFound, allocation_not_found: 404;  NodeLocked, Conflict: 409
        """
        uuid = _of_node(request, node)
        request.db.write(lambda conn: allocations.destroy(conn, uuid))


class AllocationsController(Resource):
    """``/v1/allocations``, since API 1.52; the ident is a UUID or a name."""

    @expose(since=versions.ALLOCATIONS, policy=nodes.ALLOCATION_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List allocations, with all fields or with those of ``fields``.

        :raises Invalid: 400, also if the node of the filter does not exist
        """
        filters = pagination.filters(query)
        if "node" in filters:
            with request.db.reader() as conn, node_access.named_by("node"):
                filters["node_id"] = node_access.find(request, conn, filters.pop("node")).id
        return _ALLOCATIONS.list_page(request, query, filters)

    @expose(since=versions.ALLOCATIONS, policy=nodes.ALLOCATION_GET, query=_ONE)
    def get_one(self, request: Request, allocation: str, query: QueryValues) -> JSONObject:
        """Return one allocation.

        :raises allocation_not_found: 404
        """
        return _ALLOCATIONS.get_one(request, node_access.check_ident(allocation, "allocation"), query)

    @expose(since=versions.ALLOCATIONS, policy=nodes.ALLOCATION_CREATE, body=schemas.ALLOCATION_CREATE, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create an allocation. It is in state ``allocating``, and soon afterwards in ``active`` or ``error``.

        With ``node`` (1.58) it is that of a node which is deployed already, and in state ``active``.

        :raises Invalid: 400, also if a node does not exist;  NotAcceptable: 406, a field that is too new
        :raises allocation_already_exists, duplicate_allocation_name: 409
        :raises NodeLocked, node_associated, Conflict: 409, ``node`` cannot be that of the allocation
        """
        values = _ALLOCATIONS.given(request, body)
        node = values.pop("node", None)
        if node is None and "resource_class" not in values:
            raise Invalid(problems=[Problem("/resource_class", "is required without node")])

        def create(conn: sa.Connection) -> Allocation:
            new = {**values, "candidate_nodes": _uuids(request, conn, values.get("candidate_nodes", ()))}
            if node is None:
                created: Allocation = allocations.ALLOCATIONS.create(conn, {**new, "state": ALLOCATING})
                return created
            with node_access.named_by("/node"):
                held = node_access.hold(request, conn, node)
            return allocations.backfill(conn, new, held)

        row = request.db.write(create)
        reply = _ALLOCATIONS.show_new(request, row)
        if row.state == ALLOCATING:
            _begin(request, row.uuid)
        return reply

    @expose(since=versions.ALLOCATION_UPDATE, policy=nodes.ALLOCATION_UPDATE, body=patch.BODY)
    def patch(self, request: Request, allocation: str, body: list[JSONObject]) -> JSONObject:
        """Change ``name`` or ``extra`` by a JSON patch (RFC 6902).

        :raises allocation_not_found: 404;  Invalid: 400;  duplicate_allocation_name: 409
        """
        operations = _ALLOCATIONS.operations(request, body)
        ident = node_access.check_ident(allocation, "allocation")

        def change(conn: sa.Connection) -> Allocation:
            row = allocations.ALLOCATIONS.get(conn, ident, for_update=True)
            changed: Allocation = _ALLOCATIONS.update(
                conn, row, _ALLOCATIONS.changes(row, operations, schemas.ALLOCATION_PATCHED))
            return changed

        return _ALLOCATIONS.show(request, request.db.write(change))

    @expose(since=versions.ALLOCATIONS, policy=nodes.ALLOCATION_DELETE, status=204)
    def delete(self, request: Request, allocation: str) -> None:
        """Delete an allocation; its node is free afterwards.

        :raises allocation_not_found: 404
        :raises NodeLocked: 409;  Conflict: 409, the node is deployed, or changing its state, and not in maintenance
        """
        ident = node_access.check_ident(allocation, "allocation")
        request.db.write(lambda conn: allocations.destroy(conn, ident))


def _begin(request: Request, uuid: str) -> None:
    """Look for a node at once. Conductors continue an allocation that fails here, or ends with this process."""
    try:
        request.db.write(lambda conn: allocations.settle(conn, uuid))
    except (*DATABASE_AWAY, Conflict) as error:
        LOG.warning("Allocation %s has no result yet, a conductor will look for a node: %s", uuid, error)


def _of_node(request: Request, ident: str) -> str:
    with request.db.reader() as conn:
        uuid: str = allocations.of_node(conn, node_access.find(request, conn, ident)).uuid
    return uuid


def _uuids(request: Request, conn: sa.Connection, idents: Any) -> list[str]:
    uuids = []
    for index, ident in enumerate(idents):
        with node_access.named_by(f"/candidate_nodes/{index}"):
            uuids.append(node_access.find(request, conn, ident).uuid)
    return uuids
