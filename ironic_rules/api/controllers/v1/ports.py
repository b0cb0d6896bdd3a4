"""``/v1/ports``, and the ports of a node or a port group."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.api import links, pagination, patch, schemas, versions
from ironic_rules.api.controllers.v1 import port_lists, port_update
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.views import ports as views
from ironic_rules.db import node_sets, portgroups, ports
from ironic_rules.exceptions import Conflict
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.ports import PORT, Port
from ironic_rules.policies import ports as policies


class PortsDetailController(Resource):
    """``/v1/ports/detail``."""

    @expose(policy=policies.LIST, query=port_lists.PORTS)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List ports with all their fields."""
        return port_lists.list_ports(request, query, detail=True)


class NodePortsDetailController(Resource):
    """``/v1/nodes/{node}/ports/detail``."""

    @expose(policy=policies.LIST, query=port_lists.PORTS_BELOW)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the ports of a node with all their fields."""
        return port_lists.list_ports(request, query, detail=True, node=node)


class NodePortsController(Resource):
    """``/v1/nodes/{node}/ports``."""

    below = {"detail": NodePortsDetailController()}

    @expose(policy=policies.LIST, query=port_lists.PORTS_BELOW)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the ports of a node."""
        return port_lists.list_ports(request, query, node=node)


class PortgroupPortsDetailController(Resource):
    """``/v1/portgroups/{portgroup}/ports/detail``, since API 1.24."""

    @expose(since=versions.PORTGROUPS + 1, policy=policies.LIST, query=port_lists.PORTS_BELOW)
    def get_all(self, request: Request, portgroup: str, query: QueryValues) -> JSONObject:
        """List the ports of a port group with all their fields."""
        return port_lists.list_ports(request, query, detail=True, portgroup=portgroup)


class PortgroupPortsController(Resource):
    """``/v1/portgroups/{portgroup}/ports``, since API 1.24."""

    below = {"detail": PortgroupPortsDetailController()}

    @expose(since=versions.PORTGROUPS + 1, policy=policies.LIST, query=port_lists.PORTS_BELOW)
    def get_all(self, request: Request, portgroup: str, query: QueryValues) -> JSONObject:
        """List the ports of a port group."""
        return port_lists.list_ports(request, query, portgroup=portgroup)


class PortsController(Resource):
    """``/v1/ports`` and ``/v1/ports/{port}``; the ident is a UUID or, since 1.88, a name."""

    below = {"detail": PortsDetailController()}

    @expose(policy=policies.LIST, query=port_lists.PORTS)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List ports, with a few fields, those of ``fields``, or all (``detail``).

        :raises NodeNotFound, PortgroupNotFound: 404, the node or port group of a filter
        """
        return port_lists.list_ports(request, query)

    @expose(policy=policies.GET, query=port_lists.ONE)
    def get_one(self, request: Request, port: str, query: QueryValues) -> JSONObject:
        """Return one port.

        :raises PortNotFound: 404
        """
        fields = pagination.requested_fields(request, query, PORT)
        with request.db.reader() as conn:
            return _show(request, port_update.find(request, conn, port), fields)

    @expose(policy=policies.CREATE, body=schemas.PORT_CREATE, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a port of the node ``node_uuid`` (or ``node_ident``, since 1.94).

        :raises Invalid: 400, also if the node or the port group does not exist
        :raises NotAcceptable: 406, a field that the version does not support
        :raises NodeLocked, MACAlreadyExists, PortAlreadyExists, Conflict: 409
        """
        def create(conn: sa.Connection) -> Port:
            return ports.create(conn, port_update.new_port(request, conn, body))

        row = request.db.write(create)
        # Whether the address is allowed depends on its node and on the filters' settings: they decide.
        request.pxe_filter.update_pxe_filters(request.context)
        request.reply.headers.append(("Location", links.url(request.base, "ports", row.uuid)))
        return _show(request, row)

    @expose(policy=policies.UPDATE, body=patch.BODY)
    def patch(self, request: Request, port: str, body: list[JSONObject]) -> JSONObject:
        """Change a port by a JSON patch (RFC 6902).

        :raises PortNotFound: 404;  InvalidPatch, Invalid: 400;  NotAcceptable: 406
        :raises NodeLocked, MACAlreadyExists, Conflict: 409, the last also if the node's state forbids the change
        """
        operations = patch.operations(body)
        update = port_update.PortUpdate(request, operations)
        node_id = _node_id(request, port)

        def change(conn: sa.Connection) -> Port:
            row, node = port_update.hold(request, conn, port, node_id)
            changes = update.changes(conn, row, node)
            return ports.update(conn, row.id, changes) if changes else row

        changed = request.db.write(change)
        if not {operation.path[0] for operation in operations}.isdisjoint(("address", "node_uuid")):
            request.pxe_filter.update_pxe_filters(request.context)
        return _show(request, changed)

    @expose(policy=policies.DELETE, status=204)
    def delete(self, request: Request, port: str) -> None:
        """Delete a port.

        :raises PortNotFound: 404;  NodeLocked: 409;  Conflict: 409, a VIF is attached to it or to its port group
        """
        node_id = _node_id(request, port)

        def destroy(conn: sa.Connection) -> None:
            row, node = port_update.hold(request, conn, port, node_id)
            if not node.maintenance:
                _check_unused(conn, row)
            ports.destroy(conn, row.id)

        request.db.write(destroy)
        request.pxe_filter.update_pxe_filters(request.context)


def _check_unused(conn: sa.Connection, row: Port) -> None:
    if node_sets.VIF_KEY in row.internal_info:
        raise Conflict(f"Port {row.uuid} has a VIF attached and cannot be deleted.")
    if row.portgroup_uuid is not None and node_sets.VIF_KEY in portgroups.get(conn, row.portgroup_uuid).internal_info:
        raise Conflict(f"Port {row.uuid} is a member of port group {row.portgroup_uuid}, which has a VIF attached, and "
                       "cannot be deleted.")


def _node_id(request: Request, port: str) -> int:
    with request.db.reader() as conn:
        node_id: int = port_update.find(request, conn, port).node_id
    return node_id


def _show(request: Request, row: Port, fields: tuple[str, ...] | None = None) -> JSONObject:
    return views.view(request.version, fields).render([row], request.base)[0]
