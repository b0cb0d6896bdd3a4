"""``/v1/nodes/{node}/traits``, since API 1.37, and ``/v1/nodes/{node}/vifs``, since API 1.28.

A virtual interface (VIF) is attached to a port or port group: it is a key in the ``internal_info`` of that, under the
name that Nova reads.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from ironic_rules.api import links, schemas, versions
from ironic_rules.api.expose import RAW, expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.db import node_sets, outbox, portgroups, ports
from ironic_rules.db.node_sets import VIF_KEY
from ironic_rules.exceptions import Invalid, InvalidParameterValue, Problem, vif_conflict
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.traits import MAX_PER_NODE, is_trait
from ironic_rules.policies import nodes as policies


class TraitsController(Resource):
    """The traits of a node."""

    @expose(since=versions.TRAITS, policy=policies.LIST_TRAITS, unacceptable=True)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return ``{"traits": [names, sorted]}``.

        :raises NodeNotFound: 404
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            return {"traits": node_sets.list_traits(conn, [row.id])[row.id]}

    @expose(since=versions.TRAITS, policy=policies.SET_TRAITS, body=RAW, status=204)
    def put(self, request: Request, node: str, trait: str | None = None, *, body: JSON) -> None:
        """Add one trait (no body), or replace all by those of the body (``{"traits": [names]}``).

        :raises InvalidParameterValue: 400, a name that is not a trait, or more than 50
        :raises NodeNotFound: 404;  NodeLocked: 409
        """
        if trait is not None:
            self._add(request, node, trait, body)
            return
        names = sorted(set(schemas.TRAITS.load(body)["traits"]))

        def replace(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            _check_number(row.uuid, len(names))
            node_sets.set_traits(conn, row.id, names)
            outbox.note(conn, "node", "update", row, row)

        request.db.write(replace)

    def _add(self, request: Request, node: str, trait: str, body: JSON) -> None:
        if body:
            raise Invalid("This request takes no body.")
        if not is_trait(trait):
            raise InvalidParameterValue(problems=[Problem("trait", "must be a standard trait (os-traits), or CUSTOM_ "
                                                                   "followed by A-Z, 0-9 and _")])

        def add(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            _check_number(row.uuid, len({*node_sets.list_traits(conn, [row.id])[row.id], trait}))
            node_sets.add_trait(conn, row.id, trait)
            outbox.note(conn, "node", "update", row, row)

        request.db.write(add)
        request.reply.headers.append(("Location", links.url(request.base, "nodes", node, "traits", trait)))

    @expose(since=versions.TRAITS, policy=policies.DELETE_TRAITS, status=204, hidden=True)
    def delete(self, request: Request, node: str, trait: str | None = None) -> None:
        """Remove one trait, or all.

        :raises NodeNotFound, trait_not_found: 404;  NodeLocked: 409
        """
        def remove(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            if trait is None:
                node_sets.remove_all_traits(conn, row.id)
            else:
                node_sets.remove_trait(conn, row.id, trait)
            outbox.note(conn, "node", "update", row, row)

        request.db.write(remove)


def _check_number(node: str, count: int) -> None:
    if count > MAX_PER_NODE:
        raise InvalidParameterValue(f"Could not modify traits for node {node} as it would exceed the maximum number of "
                                    f"traits per node ({count} vs. {MAX_PER_NODE})")


class VifsController(Resource):
    """The VIFs of a node."""

    @expose(since=versions.VIFS, policy=policies.LIST_VIFS)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return ``{"vifs": [{"id": …}]}``.

        :raises NodeNotFound: 404
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            attached = [place.internal_info[VIF_KEY] for _, place in _places(conn, row.id)
                        if VIF_KEY in place.internal_info]
            return {"vifs": [{"id": vif} for vif in (*attached, *node_sets.vifs_without_port(row))]}

    @expose(since=versions.VIFS, policy=policies.ATTACH_VIF, body=schemas.VIF, status=204, hidden=True)
    def post(self, request: Request, node: str, body: JSONObject) -> None:
        """Attach the VIF ``id`` to the port that the body names, or to a free port, preferably with ``pxe_enabled``.

        Without a free port it belongs to the node only: the network interface ``noop`` takes any number of VIFs.

        :raises NodeNotFound: 404;  Invalid: 400, no such port, or it is not free
        :raises vif_conflict: 409, the VIF is already attached;  NodeLocked: 409
        """
        chosen = {name: body[name] for name in ("port_uuid", "portgroup_uuid") if body.get(name)}
        if chosen and request.version < versions.VIF_PORT:
            raise versions.too_new(", ".join(chosen), versions.VIF_PORT)
        if len(chosen) > 1:
            raise InvalidParameterValue("Cannot specify both port_uuid and portgroup_uuid.")

        def attach(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            without = node_sets.vifs_without_port(row)
            if body["id"] in without:
                raise vif_conflict(vif=body["id"], node=row.uuid, reason="it is attached already")
            free = _free(_places(conn, row.id), row.uuid, body["id"], chosen)
            if free is None:
                node_sets.set_vifs_without_port(conn, row, [*without, body["id"]])
                return
            table, place = free
            table.update(conn, place.id, {"internal_info": {**place.internal_info, VIF_KEY: body["id"]}})

        request.db.write(attach)

    @expose(since=versions.VIFS, policy=policies.DETACH_VIF, status=204, hidden=True)
    def delete(self, request: Request, node: str, vif: str) -> None:
        """Detach a VIF.

        :raises NodeNotFound: 404;  NodeLocked: 409
        :raises Invalid: 400, it is not attached (clients interpret exactly this status as "already detached")
        """
        def detach(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            for table, place in _places(conn, row.id):
                if place.internal_info.get(VIF_KEY) == vif:
                    internal_info = {name: value for name, value in place.internal_info.items() if name != VIF_KEY}
                    table.update(conn, place.id, {"internal_info": internal_info})
                    return
            without = node_sets.vifs_without_port(row)
            if vif in without:
                node_sets.set_vifs_without_port(conn, row, [name for name in without if name != vif])
                return
            raise Invalid(f"The given VIF is not attached to node {row.uuid}.")

        request.db.write(detach)


def _places(conn: sa.Connection, node_id: int) -> list[tuple[Any, Any]]:
    """Return ``(repository, row)`` of the port groups and ports of a node, in the order in which VIFs are attached."""
    by_use = sorted(ports.for_node(conn, node_id), key=lambda port: (not port.pxe_enabled, port.id))
    return [*((portgroups, group) for group in portgroups.for_node(conn, node_id)), *((ports, port) for port in by_use)]


def _free(places: list[tuple[Any, Any]], node: str, vif: str, chosen: dict[str, str]) -> tuple[Any, Any] | None:
    """Return repository and row of the port or group for a VIF, None if none is free and the request names none."""
    if any(place.internal_info.get(VIF_KEY) == vif for _, place in places):
        raise vif_conflict(vif=vif, node=node, reason="it is attached already")
    # No VIF can be attached to a port group without ports, nor to the members of one without standalone ports.
    used = {place.portgroup_id for table, place in places if table is ports}
    closed = {place.id for table, place in places if table is portgroups and not place.standalone_ports_supported}
    places = [(table, place) for table, place in places
              if (place.portgroup_id not in closed if table is ports else place.id in used)]
    for name, uuid in chosen.items():
        repository = ports if name == "port_uuid" else portgroups
        places = [(table, place) for table, place in places if table is repository and place.uuid == uuid]
        if not places:
            raise Invalid(problems=[Problem(f"/{name}", f"node {node} has no such port")])
    for table, place in places:
        if VIF_KEY not in place.internal_info:
            return table, place
    if chosen:
        # Nova interprets a 409 as "already attached", and would start the instance without this network.
        raise Invalid(f"Unable to attach VIF {vif} to node {node}: the port is not free.")
    return None
