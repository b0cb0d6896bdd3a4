"""``/v1/ports``, and the ports of a node or a port group; lists and addresses of port groups too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_log import log as logging
from oslo_utils import uuidutils

from ironic_rules.api import filters, links, pagination, patch, schema, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.schemas import check_host_name
from ironic_rules.api.v1 import node_access
from ironic_rules.api.views import resources
from ironic_rules.api.views.resources import PortgroupView, PortView
from ironic_rules.db import node_sets, outbox, portgroups, ports
from ironic_rules.exceptions import (
    Conflict,
    Invalid,
    InvalidParameterValue,
    Problem,
    node_changed,
    port_not_found,
    portgroup_not_found,
)
from ironic_rules.models import addresses, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields
from ironic_rules.models.nodes import Node
from ironic_rules.models.ports import PORT, PORT_GROUP, Port, PortGroup
from ironic_rules.policies import nodes

#: Filters that do not apply below a node or a port group.
_OF_NODE = ("node", "node_uuid", "portgroup", "shard", "conductor_groups")

PORTS = filters.Listing.of(PORT, checked=False)
PORTS_BELOW = filters.Listing.of(PORT, checked=False, without=_OF_NODE)
PORTGROUPS = filters.Listing.of(PORT_GROUP, checked=False)
PORTGROUPS_BELOW = filters.Listing.of(PORT_GROUP, checked=False, without=_OF_NODE)
ONE_PORT = filters.Query(fields=filters.names)


def list_ports(request: Request, query: QueryValues, *, detail: bool | None = None, node: str | None = None,
               portgroup: str | None = None) -> JSONObject:
    """Return a page of ports.

    :param detail: True: all fields, for the ``detail`` URLs; None: according to ``query``
    :param node: only the ports of this node;  portgroup: only those of this port group
    :raises NodeNotFound, portgroup_not_found: 404;  Invalid: 400;  NotAcceptable: 406
    """
    def narrow(conn: sa.Connection, filters: JSONObject) -> None:
        if portgroup is not None or "portgroup" in filters:
            ident = node_access.check_ident(portgroup or filters.pop("portgroup"), "portgroup")
            group = portgroups.get(conn, ident)
            node_access.check_access(request, conn, group.node_id, portgroup_not_found(portgroup=ident))
            filters["portgroup_id"] = group.id

    return _list(request, query, _PORTS_LISTED, detail, node, narrow)


def list_portgroups(request: Request, query: QueryValues, *, detail: bool | None = None,
                    node: str | None = None) -> JSONObject:
    """Return a page of port groups; arguments and errors as those of :func:`list_ports`."""
    return _list(request, query, _PORTGROUPS_LISTED, detail, node)


class _Listed(NamedTuple):
    name: str
    table: Fields
    view: Callable[[int, tuple[str, ...] | None], PortView | PortgroupView]
    rows: Callable[..., Any]


_PORTS_LISTED = _Listed("ports", PORT, resources.port_view, ports.list_ports)
_PORTGROUPS_LISTED = _Listed("portgroups", PORT_GROUP, resources.portgroup_view, portgroups.list_portgroups)


def _list(request: Request, query: QueryValues, listed: _Listed, detail: bool | None, node: str | None,
          narrow: Callable[[sa.Connection, JSONObject], None] = lambda conn, filters: None) -> JSONObject:
    """Return a page.

    :param narrow: replaces filters of the request by those of the database
    """
    minor = request.version
    fields = pagination.shown_fields(request, query, detail, listed.table, listed.table.summary)
    versions.refuse_filters(listed.table, query, minor)
    versions.refuse_fields(listed.table, [query.get("sort_key", "id")], minor)
    page = pagination.page(request, query)
    filters = pagination.filters(query)
    node_access.confine(request, filters)
    view = listed.view(minor, fields)
    with request.db.reader() as conn:
        _of_node(request, conn, filters, node)
        narrow(conn, filters)
        rows = listed.rows(conn, filters, page, view.columns, raw_json=True)
    return pagination.collection(request, listed.name, rows, page, lambda shown: view.render(shown, request.base))


def _of_node(request: Request, conn: Any, filters: JSONObject, node: str | None) -> None:
    """Replace the different ways to name a node by the filter ``node_id``; a node that does not exist is 404."""
    idents = [ident for ident in (node, filters.pop("node", None), filters.pop("node_uuid", None)) if ident is not None]
    ids = {node_access.find(request, conn, ident).id for ident in idents}
    if len(ids) > 1:
        raise InvalidParameterValue("node and node_uuid name different nodes.")
    if ids:
        filters["node_id"] = ids.pop()


def check_addresses(request: Request, values: JSONObject) -> None:
    """Replace an InfiniBand address in ``values["address"]`` by the MAC address that stands for it.

    :raises InvalidParameterValue: 400, ``[DEFAULT]infiniband_addresses`` is off
    """
    if (address := addresses.mac_of_infiniband(values.get("address"))) is None:
        return
    if not request.conf.infiniband_addresses:
        raise InvalidParameterValue(problems=[Problem("/address", (
            "expected a MAC address of the form xx:xx:xx:xx:xx:xx; addresses of InfiniBand are accepted if the option "
            "infiniband_addresses is on"))])
    values["address"] = address


LOG = logging.getLogger(__name__)

#: Columns, with their fields, that change only in the states ``_UNUSED``, or in maintenance, because the network
#: depends on them.
_CONNECTIVITY = {
    "node_id": "/node_uuid", "portgroup_id": "/portgroup_uuid", "pxe_enabled": "/pxe_enabled",
    "local_link_connection": "/local_link_connection", "physical_network": "/physical_network",
}
_UNUSED = (states.ENROLL, states.INSPECTING, states.INSPECTWAIT, states.MANAGEABLE)

_PATCHED = schema.Object(schemas.PORT_FIELDS)


def find_port(request: Request, conn: sa.Connection, ident: str) -> Port:
    """Return the port that a URL names by its UUID or, since API 1.88, its name.

    :raises port_not_found: 404;  InvalidParameterValue: 400, e.g. for a MAC address, for which lists have a filter
    """
    node_access.check_ident(ident, "port")
    if request.version < versions.PORT_NAME and not uuidutils.is_uuid_like(ident.removesuffix(".json")):
        raise InvalidParameterValue("Expected the UUID of a port; lists of ports have the filter address.")
    row = ports.get(conn, ident)
    node_access.check_access(request, conn, row.node_id, port_not_found(port=ident))
    return row


def hold_port(request: Request, conn: sa.Connection, ident: str, node_id: int) -> tuple[Port, Node]:
    """Return the port that a URL names, and its node, and lock both until the transaction ends.

    :param node_id: the port's node, read in an earlier transaction
    :raises port_not_found: 404;  NodeLocked: 409;  node_changed: 409, it now belongs to another node
    """
    node = node_access.hold_by_id(request, conn, node_id)
    row = find_port(request, conn, ident)
    if row.node_id != node_id:
        raise node_changed(node=node.uuid)
    return row, node


def new_port(request: Request, conn: sa.Connection, body: JSONObject) -> JSONObject:
    """Return the values of the port to be created by a POST; the row of its node is locked.

    :param body: valid against ``schemas.CREATE``
    :raises NotAcceptable: 406;  Invalid: 400;  Conflict, NodeLocked: 409
    """
    values = {name: value for name, value in body.items() if value is not None}
    versions.refuse_fields(PORT, values, request.version)
    patch.refuse_masks(values)
    check_addresses(request, values)
    if ("node_uuid" in values) == ("node_ident" in values):
        problem = "give one of node_uuid and node_ident" if "node_ident" in values else "is required"
        raise InvalidParameterValue(problems=[Problem("/node_uuid", problem)])
    where = "node_uuid" if "node_uuid" in values else "node_ident"
    with node_access.named_by(f"/{where}"):
        values["node_id"] = node_access.hold(request, conn, values.pop(where)).id
    if request.version < versions.ANY_NAME:
        check_host_name(values.get("name"))
    group = _group(request, conn, values.pop("portgroup_uuid", None), values["node_id"])
    if group is not None:
        values["portgroup_id"] = group.id
        # As in Ironic, whose clients need not send pxe_enabled: only one that a request sets is refused.
        _check_member(group, values.get("pxe_enabled", False), {})
    _check_physical_network(conn, values.get("portgroup_id"), values.get("physical_network"))
    _warn_of(values["address"], values["node_id"])
    _check_smart_nic(values.get("is_smartnic", False), values.get("local_link_connection", {}))
    return values


class PortUpdate:
    """A PATCH: checked once, then applied to the port."""

    def __init__(self, request: Request, operations: Sequence[patch.PatchOperation]) -> None:
        """Check what does not depend on the port.

        :raises Invalid: 400;  NotAcceptable: 406
        """
        self._request, self._operations = request, operations
        versions.refuse_fields(PORT, {operation.path[0] for operation in operations}, request.version)

    def changes(self, conn: sa.Connection, row: Port, node: Node) -> JSONObject:
        """Return the columns of the port ``row`` of ``node`` that change.

        :raises Invalid: 400;  Conflict, NodeLocked: 409
        """
        document = {name: getattr(row, name) for name in schemas.PORT_FIELDS}
        result = patch.apply(document, self._operations, defaults=PORT.defaults(), required=PORT.required)
        patch.refuse_masks(result, document)
        values = _PATCHED.load({name: result[name] for name in patch.touched(self._operations)})
        check_addresses(self._request, values)
        defaults = PORT.defaults()
        values = {name: defaults.get(name) if value is None else value for name, value in values.items()}
        node_id = row.node_id
        if "node_uuid" in values:
            with node_access.named_by("/node_uuid"):
                node_id = node_access.hold(self._request, conn, values.pop("node_uuid")).id
            if node_id != row.node_id:
                values["node_id"] = node_id
        group = _group(self._request, conn, values.pop("portgroup_uuid", row.portgroup_uuid), node_id)
        values["portgroup_id"] = None if group is None else group.id
        _check_smart_nic(values.get("is_smartnic", row.is_smartnic),
                         values.get("local_link_connection", row.local_link_connection))
        changes = {name: value for name, value in values.items() if patch.differs(getattr(row, name), value)}
        _check_state(self._request, row, node, changes)
        if "node_id" in changes and node_sets.VIF_KEY in row.internal_info:
            raise Conflict(f"/node_uuid: port {row.uuid} has a VIF attached and cannot be moved to another node.")
        if group is not None and not changes.keys().isdisjoint(("portgroup_id", "pxe_enabled")):
            _check_member(group, changes.get("pxe_enabled", row.pxe_enabled), row.internal_info)
        if not changes.keys().isdisjoint(("portgroup_id", "physical_network")):
            _check_physical_network(conn, changes.get("portgroup_id", row.portgroup_id),
                                    changes.get("physical_network", row.physical_network), row.id)
        if "address" in changes:
            _warn_of(changes["address"], node.uuid)
        return changes


def standalone_uses(pxe_enabled: bool, internal_info: Mapping[str, object]) -> list[str]:
    """Return what a port has that no member of a port group without ``standalone_ports_supported`` may have."""
    return [*(["pxe_enabled"] if pxe_enabled else []),
            *(["a VIF attached"] if node_sets.VIF_KEY in internal_info else [])]


def _check_member(group: PortGroup, pxe_enabled: bool, internal_info: Mapping[str, object]) -> None:
    """Check that a port may be a member of ``group``.

    :raises Conflict: 409
    """
    if not group.standalone_ports_supported and (uses := standalone_uses(pxe_enabled, internal_info)):
        raise Conflict(f"Port group {group.uuid} doesn't support standalone ports, so a port that has "
                       f"{' and '.join(uses)} cannot be one of its members.")


def _group(request: Request, conn: sa.Connection, uuid: str | None, node_id: int) -> PortGroup | None:
    """Return the port group with this UUID, which must be one of the node; None for None.

    :raises Invalid: 400;  Forbidden: 403, it is one of a node that the caller sees, but may not change
    """
    if uuid is None:
        return None
    with node_access.named_by("/portgroup_uuid"):
        group = portgroups.get(conn, uuid)
        if group.node_id != node_id:
            node_access.check_access(request, conn, group.node_id, portgroup_not_found(portgroup=uuid))
            raise Invalid(problems=[Problem("/portgroup_uuid", "the port group belongs to another node")])
    return group


def _check_physical_network(conn: sa.Connection, portgroup_id: int | None, physical_network: str | None,
                            port_id: int | None = None) -> None:
    """Check that all ports of a port group are in the same physical network.

    :param port_id: the port that changes; None: a new one
    :raises Conflict: 409
    """
    if portgroup_id is None:
        return
    networks = ports.physical_networks(conn, portgroup_id, but=port_id)
    if networks and networks != {physical_network}:
        raise Conflict(f"The port would be in the physical network {physical_network}, but other ports of its port "
                       f"group are in {', '.join(sorted(str(name) for name in networks))}.")


def _warn_of(address: str, node: int | str) -> None:
    if not addresses.is_mac(address):
        LOG.warning("The port %s of node %s has no unicast address: no machine boots with it", address, node)


def _check_smart_nic(is_smartnic: bool, local_link_connection: JSONObject) -> None:
    if is_smartnic and not {"port_id", "hostname"} <= local_link_connection.keys():
        raise Invalid(problems=[Problem("/local_link_connection", "a smart NIC's port needs port_id and hostname")])


def _check_state(request: Request, row: Port, node: Node, changes: JSONObject) -> None:
    if node.provision_state == states.INSPECTING and request.version >= versions.INSPECT_WAIT:
        raise Conflict(f'Cannot update port "{row.uuid}" on "{node.uuid}" while it is in state '
                       f'"{node.provision_state}".')
    if node.maintenance:
        return
    if "address" in changes and (node.provision_state == states.ACTIVE or node.instance_uuid):
        raise Conflict(f"Cannot update the address of port {row.uuid}: node {node.uuid} is in use and not in "
                       "maintenance.")
    network = sorted(_CONNECTIVITY[name] for name in _CONNECTIVITY.keys() & changes.keys())
    if network and node.provision_state not in _UNUSED:
        raise Conflict(f"Cannot update {', '.join(network)} of port {row.uuid}: node {node.uuid} must be in one of the "
                       f'states {", ".join(_UNUSED)}, or in maintenance. Its state is "{node.provision_state}".')


class PortsDetailController(Resource):
    """``/v1/ports/detail``."""

    @expose(policy=nodes.PORT_LIST, query=PORTS)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List ports with all their fields."""
        return list_ports(request, query, detail=True)


class NodePortsDetailController(Resource):
    """``/v1/nodes/{node}/ports/detail``."""

    @expose(policy=nodes.PORT_LIST, query=PORTS_BELOW)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the ports of a node with all their fields."""
        return list_ports(request, query, detail=True, node=node)


class NodePortsController(Resource):
    """``/v1/nodes/{node}/ports``."""

    below = {"detail": NodePortsDetailController()}

    @expose(policy=nodes.PORT_LIST, query=PORTS_BELOW)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the ports of a node."""
        return list_ports(request, query, node=node)


class PortgroupPortsDetailController(Resource):
    """``/v1/portgroups/{portgroup}/ports/detail``, since API 1.24."""

    @expose(since=versions.PORTGROUPS + 1, policy=nodes.PORT_LIST, query=PORTS_BELOW)
    def get_all(self, request: Request, portgroup: str, query: QueryValues) -> JSONObject:
        """List the ports of a port group with all their fields."""
        return list_ports(request, query, detail=True, portgroup=portgroup)


class PortgroupPortsController(Resource):
    """``/v1/portgroups/{portgroup}/ports``, since API 1.24."""

    below = {"detail": PortgroupPortsDetailController()}

    @expose(since=versions.PORTGROUPS + 1, policy=nodes.PORT_LIST, query=PORTS_BELOW)
    def get_all(self, request: Request, portgroup: str, query: QueryValues) -> JSONObject:
        """List the ports of a port group."""
        return list_ports(request, query, portgroup=portgroup)


class PortsController(Resource):
    """``/v1/ports`` and ``/v1/ports/{port}``; the ident is a UUID or, since 1.88, a name."""

    below = {"detail": PortsDetailController()}

    @expose(policy=nodes.PORT_LIST, query=PORTS)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List ports, with a few fields, those of ``fields``, or all (``detail``).

        :raises NodeNotFound, portgroup_not_found: 404, the node or port group of a filter
        """
        return list_ports(request, query)

    @expose(policy=nodes.PORT_GET, query=ONE_PORT)
    def get_one(self, request: Request, port: str, query: QueryValues) -> JSONObject:
        """Return one port.

        :raises port_not_found: 404
        """
        fields = pagination.requested_fields(request, query, PORT)
        with request.db.reader() as conn:
            return _show(request, find_port(request, conn, port), fields)

    @expose(policy=nodes.PORT_CREATE, body=schemas.PORT_CREATE, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a port of the node ``node_uuid`` (or ``node_ident``, since 1.94).

        :raises Invalid: 400, also if the node or the port group does not exist
        :raises NotAcceptable: 406, a field that the version does not support
        :raises NodeLocked, MACAlreadyExists, port_already_exists, Conflict: 409
        """
        def create(conn: sa.Connection) -> Port:
            row = ports.create(conn, new_port(request, conn, body))
            outbox.note(conn, "port", "create", row)
            return row

        row = request.db.write(create)
        # The filters decide whether the address is allowed: that depends on its node and on their settings.
        request.pxe_filter.update_pxe_filters(request.context)
        request.reply.headers.append(("Location", links.url(request.base, "ports", row.uuid)))
        return _show(request, row)

    @expose(policy=nodes.PORT_UPDATE, body=patch.BODY)
    def patch(self, request: Request, port: str, body: list[JSONObject]) -> JSONObject:
        """Change a port by a JSON patch (RFC 6902).

        :raises port_not_found: 404;  Invalid: 400;  NotAcceptable: 406
        :raises NodeLocked, MACAlreadyExists, Conflict: 409, the last also if the node's state forbids the change
        """
        operations = patch.operations(body)
        update = PortUpdate(request, operations)
        node_id = _node_id(request, port)

        def change(conn: sa.Connection) -> Port:
            row, node = hold_port(request, conn, port, node_id)
            values = update.changes(conn, row, node)
            changed = ports.update(conn, row.id, values) if values else row
            outbox.note(conn, "port", "update", changed, row)
            return changed

        changed = request.db.write(change)
        if not {operation.path[0] for operation in operations}.isdisjoint(("address", "node_uuid")):
            request.pxe_filter.update_pxe_filters(request.context)
        return _show(request, changed)

    @expose(policy=nodes.PORT_DELETE, status=204)
    def delete(self, request: Request, port: str) -> None:
        """Delete a port.

        :raises port_not_found: 404;  NodeLocked: 409;  Conflict: 409, a VIF is attached to it or to its port group
        """
        node_id = _node_id(request, port)

        def destroy(conn: sa.Connection) -> None:
            row, node = hold_port(request, conn, port, node_id)
            if not node.maintenance:
                _check_unused(conn, row)
            outbox.note(conn, "port", "delete", row)
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
        node_id: int = find_port(request, conn, port).node_id
    return node_id


def _show(request: Request, row: Port, fields: tuple[str, ...] | None = None) -> JSONObject:
    return resources.port_view(request.version, fields).render([row], request.base)[0]
