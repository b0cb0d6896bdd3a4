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
from ironic_rules.models.fields import Fields
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.ports import PORT, PORT_GROUP

#: Filters that do not apply below a node or a port group.
_OF_NODE = ("node", "node_uuid", "portgroup", "shard")

PORTS = filters.Listing.of(PORT, checked=False)
PORTS_BELOW = filters.Listing.of(PORT, checked=False, without=_OF_NODE)
PORTGROUPS = filters.Listing.of(PORT_GROUP, checked=False)
PORTGROUPS_BELOW = filters.Listing.of(PORT_GROUP, checked=False, without=_OF_NODE)
ONE = filters.Query(fields=filters.names)


def check_fields(request: Request, query: QueryValues, table: Fields) -> tuple[str, ...] | None:
    """Return the ``fields`` that a request names.

    :raises NotAcceptable: 406, its version lacks ``fields``, or one of those fields;  InvalidParameterValue: 400
    """
    fields: tuple[str, ...] | None = query.get("fields")
    minor = request.version
    if fields is not None:
        if minor < versions.FIELDS:
            raise versions.too_new("fields", versions.FIELDS)
        filters.check_fields(fields, table.shown)
        versions.refuse_fields(table, fields, minor)
    return fields


def list_ports(request: Request, query: QueryValues, *, detail: bool | None = None, node: str | None = None,
               portgroup: str | None = None) -> JSONObject:
    """Return a page of ports.

    :param detail: True: all fields, for the ``detail`` URLs; None: according to ``query``
    :param node: only the ports of this node;  portgroup: only those of this port group
    :raises NodeNotFound, PortgroupNotFound: 404;  Invalid: 400;  NotAcceptable: 406
    """
    minor = request.version
    fields = shown_fields(request, query, detail, check_fields(request, query, PORT), PORT.summary)
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
    fields = shown_fields(request, query, detail, check_fields(request, query, PORT_GROUP), PORT_GROUP.summary)
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


def shown_fields(request: Request, query: QueryValues, detail: bool | None, fields: tuple[str, ...] | None,
                 default: tuple[str, ...] | None, since: int = versions.DETAIL) -> tuple[str, ...] | None:
    """Return the fields that a list shows, None: all.

    :param detail: True: for a ``detail`` URL
    :param fields: those that the request names
    :param default: those of a list without ``detail`` and ``fields``
    :param since: the first version with ``detail``
    :raises InvalidParameterValue: 400, both are given, or the version does not have ``detail``
    """
    if detail:
        if fields is not None:
            raise InvalidParameterValue("fields cannot be used with a detailed list.")
        return None
    if "detail" in query and request.version < since:
        raise InvalidParameterValue(f"detail needs at least API version 1.{since}.")
    return None if query.get("detail") else fields or default


def _of_node(request: Request, conn: Any, wanted: dict[str, Any], node: str | None) -> None:
    """Replace the different ways to name a node by the filter ``node_id``; a node that does not exist is 404."""
    idents = [ident for ident in (node, wanted.pop("node", None), wanted.pop("node_uuid", None)) if ident is not None]
    ids = {node_access.find(request, conn, ident).id for ident in idents}
    if len(ids) > 1:
        raise InvalidParameterValue("node and node_uuid name different nodes.")
    if ids:
        wanted["node_id"] = ids.pop()
