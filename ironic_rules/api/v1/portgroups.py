"""``/v1/portgroups``, and the port groups of a node."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.api import links, pagination, patch, schema, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1 import ports as ports_v1
from ironic_rules.api.v1.ports import PortgroupPortsController
from ironic_rules.api.views import resources
from ironic_rules.db import node_sets, outbox, portgroups, ports
from ironic_rules.exceptions import Conflict, portgroup_not_found
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.ports import PORT_GROUP, PortGroup
from ironic_rules.policies import nodes

_PATCHED = schema.Object(schemas.PORTGROUP_FIELDS)
_UNUSED = (states.ENROLL, states.INSPECTING, states.INSPECTWAIT, states.MANAGEABLE)


class PortgroupsDetailController(Resource):
    """``/v1/portgroups/detail``, since API 1.23."""

    @expose(since=versions.PORTGROUPS, policy=nodes.PORTGROUP_LIST, query=ports_v1.PORTGROUPS)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List port groups with all their fields."""
        return ports_v1.list_portgroups(request, query, detail=True)


class NodePortgroupsDetailController(Resource):
    """``/v1/nodes/{node}/portgroups/detail``, since API 1.24."""

    @expose(since=versions.PORTGROUPS + 1, policy=nodes.PORTGROUP_LIST, query=ports_v1.PORTGROUPS_BELOW)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the port groups of a node with all their fields."""
        return ports_v1.list_portgroups(request, query, detail=True, node=node)


class NodePortgroupsController(Resource):
    """``/v1/nodes/{node}/portgroups``, since API 1.24."""

    below = {"detail": NodePortgroupsDetailController()}

    @expose(since=versions.PORTGROUPS + 1, policy=nodes.PORTGROUP_LIST, query=ports_v1.PORTGROUPS_BELOW)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the port groups of a node."""
        return ports_v1.list_portgroups(request, query, node=node)


class PortgroupsController(Resource):
    """``/v1/portgroups`` and ``/v1/portgroups/{portgroup}``, since API 1.23; the ident is a UUID or a name."""

    below = {"detail": PortgroupsDetailController()}
    below_item = {"ports": PortgroupPortsController()}

    @expose(since=versions.PORTGROUPS, policy=nodes.PORTGROUP_LIST, query=ports_v1.PORTGROUPS)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List port groups, with a few fields, those of ``fields``, or all (``detail``).

        :raises NodeNotFound: 404, the node of a filter
        """
        return ports_v1.list_portgroups(request, query)

    @expose(since=versions.PORTGROUPS, policy=nodes.PORTGROUP_GET, query=ports_v1.ONE_PORT)
    def get_one(self, request: Request, portgroup: str, query: QueryValues) -> JSONObject:
        """Return one port group.

        :raises portgroup_not_found: 404
        """
        fields = pagination.requested_fields(request, query, PORT_GROUP)
        with request.db.reader() as conn:
            return _show(request, _find(request, conn, portgroup), fields)

    @expose(since=versions.PORTGROUPS, policy=nodes.PORTGROUP_CREATE, body=schemas.PORTGROUP_CREATE, status=201,
            hidden=True)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a port group of the node ``node_uuid``.

        :raises Invalid: 400, also if the node does not exist;  NotAcceptable: 406, a field that is too new
        :raises NodeLocked, portgroup_already_exists, duplicate_portgroup_name, portgroup_mac_already_exists: 409
        """
        values = {name: value for name, value in body.items() if value is not None}
        versions.refuse_fields(PORT_GROUP, values, request.version)
        patch.refuse_masks(values)
        ports_v1.check_addresses(request, values)
        node_uuid = values.pop("node_uuid")

        def create(conn: sa.Connection) -> PortGroup:
            with node_access.named_by("/node_uuid"):
                node = node_access.hold(request, conn, node_uuid)
            created = portgroups.create(conn, {**values, "node_id": node.id})
            outbox.note(conn, "port group", "create", created)
            return created

        row = request.db.write(create)
        request.reply.headers.append(("Location", links.url(request.base, "portgroups", row.uuid)))
        return _show(request, row)

    @expose(since=versions.PORTGROUPS, policy=nodes.PORTGROUP_UPDATE, body=patch.BODY, hidden=True)
    def patch(self, request: Request, portgroup: str, body: list[JSONObject]) -> JSONObject:
        """Change a port group by a JSON patch (RFC 6902).

        :raises portgroup_not_found: 404;  Invalid: 400;  NotAcceptable: 406
        :raises NodeLocked, duplicate_portgroup_name, portgroup_mac_already_exists, Conflict: 409
        """
        operations = patch.operations(body)
        versions.refuse_fields(PORT_GROUP, {operation.path[0] for operation in operations}, request.version)
        node_id = _node_id(request, portgroup)

        def change(conn: sa.Connection) -> PortGroup:
            row, node = _hold(request, conn, portgroup, node_id)
            changes = _changes(request, conn, row, operations)
            if not node.maintenance and node.provision_state not in _UNUSED and changes.keys() & {"mode", "properties"}:
                raise Conflict(f"Cannot update port group {row.uuid}: node {node.uuid} must be in one of the states "
                               f'{", ".join(_UNUSED)}, or in maintenance. Its state is "{node.provision_state}".')
            if changes.get("standalone_ports_supported") is False:
                _check_members(conn, row)
            changed = portgroups.update(conn, row.id, changes) if changes else row
            outbox.note(conn, "port group", "update", changed, row)
            return changed

        return _show(request, request.db.write(change))

    @expose(since=versions.PORTGROUPS, policy=nodes.PORTGROUP_DELETE, status=204, hidden=True)
    def delete(self, request: Request, portgroup: str) -> None:
        """Delete a port group.

        :raises portgroup_not_found: 404;  portgroup_not_empty: 400
        :raises NodeLocked: 409;  Conflict: 409, a VIF is attached to it
        """
        node_id = _node_id(request, portgroup)

        def destroy(conn: sa.Connection) -> None:
            row, node = _hold(request, conn, portgroup, node_id)
            if node_sets.VIF_KEY in row.internal_info and not node.maintenance:
                raise Conflict(f"Port group {row.uuid} has a VIF attached and cannot be deleted.")
            outbox.note(conn, "port group", "delete", row)
            portgroups.destroy(conn, row.id)

        request.db.write(destroy)


def _find(request: Request, conn: sa.Connection, ident: str) -> PortGroup:
    row = portgroups.get(conn, node_access.check_ident(ident, "port group"))
    node_access.check_access(request, conn, row.node_id, portgroup_not_found(portgroup=ident))
    return row


def _node_id(request: Request, ident: str) -> int:
    with request.db.reader() as conn:
        node_id: int = _find(request, conn, ident).node_id
    return node_id


def _hold(request: Request, conn: sa.Connection, ident: str, node_id: int) -> tuple[PortGroup, Node]:
    """Return the port group and its node ``node_id``, and lock both until the transaction ends."""
    node = node_access.hold_by_id(request, conn, node_id)
    return _find(request, conn, ident), node


def _changes(request: Request, conn: sa.Connection, row: PortGroup,
             operations: list[patch.PatchOperation]) -> JSONObject:
    document = {name: getattr(row, name) for name in schemas.PORTGROUP_FIELDS}
    result = patch.apply(document, operations, defaults=PORT_GROUP.defaults(), required=PORT_GROUP.required)
    patch.refuse_masks(result, document)
    values = _PATCHED.load({name: result[name] for name in patch.touched(operations)})
    ports_v1.check_addresses(request, values)
    defaults = PORT_GROUP.defaults()
    values = {name: defaults.get(name) if value is None else value for name, value in values.items()}
    if "node_uuid" in values:
        with node_access.named_by("/node_uuid"):
            new_node = node_access.find(request, conn, values.pop("node_uuid"))
        if new_node.id != row.node_id:
            raise Conflict(f"Port group {row.uuid} cannot be moved to another node.")
    return {name: value for name, value in values.items() if patch.differs(getattr(row, name), value)}


def _check_members(conn: sa.Connection, row: PortGroup) -> None:
    """Check that none of the members is used as a standalone port.

    :raises Conflict: 409
    """
    for port in ports.for_node(conn, row.node_id):
        if port.portgroup_id == row.id and (
                uses := ports_v1.standalone_uses(port.pxe_enabled, port.internal_info)):
            raise Conflict(f"/standalone_ports_supported: port group {row.uuid} has the member {port.uuid}, which has "
                           f"{' and '.join(uses)}.")


def _show(request: Request, row: PortGroup, fields: tuple[str, ...] | None = None) -> JSONObject:
    return resources.portgroup_view(request.version, fields).render([row], request.base)[0]
