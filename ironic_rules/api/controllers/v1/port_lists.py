"""Lists of ports and port groups: all of them, or those of a node or a port group."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import filters, pagination, versions
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.views import portgroups as portgroup_views
from ironic_rules.api.views import ports as port_views
from ironic_rules.db import portgroups, ports
from ironic_rules.exceptions import InvalidParameterValue, PortgroupNotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.ports import PORT, PORT_GROUP

#: Filters that do not apply below a node or a port group.
_OF_NODE = ("node", "node_uuid", "portgroup", "shard")

PORTS = filters.Listing.of(PORT, checked=False)
PORTS_BELOW = filters.Listing.of(PORT, checked=False, without=_OF_NODE)
PORTGROUPS = filters.Listing.of(PORT_GROUP, checked=False)
PORTGROUPS_BELOW = filters.Listing.of(PORT_GROUP, checked=False, without=_OF_NODE)
ONE = filters.Query(fields=filters.names)


def list_ports(request: Request, query: QueryValues, *, detail: bool | None = None, node: str | None = None,
               portgroup: str | None = None) -> JSONObject:
    """Return a page of ports.

    :param detail: True: all fields, for the ``detail`` URLs; None: according to ``query``
    :param node: only the ports of this node;  portgroup: only those of this port group
    :raises NodeNotFound, PortgroupNotFound: 404;  Invalid: 400;  NotAcceptable: 406
    """
    minor = request.version
    fields = pagination.shown_fields(request, query, detail, PORT, PORT.summary)
    versions.refuse_filters(PORT, query, minor)
    versions.refuse_fields(PORT, [query.get("sort_key", "id")], minor)
    page = pagination.page(request, query)
    wanted = pagination.filters(query)
    node_access.confine(request, wanted)
    view = port_views.view(minor, fields)
    with request.db.reader() as conn:
        _of_node(request, conn, wanted, node)
        if portgroup is not None or "portgroup" in wanted:
            ident = node_access.check_ident(portgroup or wanted.pop("portgroup"), "portgroup")
            group = portgroups.get(conn, ident)
            node_access.check_access(request, conn, group.node_id, PortgroupNotFound(portgroup=ident))
            wanted["portgroup_id"] = group.id
        rows = ports.list_ports(conn, wanted, page, view.columns, raw_json=True)
    return pagination.collection(request, "ports", rows, page, lambda shown: view.render(shown, request.base))


def list_portgroups(request: Request, query: QueryValues, *, detail: bool | None = None,
                    node: str | None = None) -> JSONObject:
    """Return a page of port groups; arguments and errors as those of :func:`list_ports`."""
    minor = request.version
    fields = pagination.shown_fields(request, query, detail, PORT_GROUP, PORT_GROUP.summary)
    versions.refuse_filters(PORT_GROUP, query, minor)
    versions.refuse_fields(PORT_GROUP, [query.get("sort_key", "id")], minor)
    page = pagination.page(request, query)
    wanted = pagination.filters(query)
    node_access.confine(request, wanted)
    view = portgroup_views.view(minor, fields)
    with request.db.reader() as conn:
        _of_node(request, conn, wanted, node)
        rows = portgroups.list_portgroups(conn, wanted, page, view.columns, raw_json=True)
    return pagination.collection(request, "portgroups", rows, page, lambda shown: view.render(shown, request.base))


def _of_node(request: Request, conn: Any, wanted: dict[str, Any], node: str | None) -> None:
    """Replace the different ways to name a node by the filter ``node_id``; a node that does not exist is 404."""
    idents = [ident for ident in (node, wanted.pop("node", None), wanted.pop("node_uuid", None)) if ident is not None]
    ids = {node_access.find(request, conn, ident).id for ident in idents}
    if len(ids) > 1:
        raise InvalidParameterValue("node and node_uuid name different nodes.")
    if ids:
        wanted["node_id"] = ids.pop()
