"""``/v1/volume`` and ``/v1/nodes/{node}/volume``, since API 1.32: volume connectors and targets.

They belong to a node, and change while that is powered off. They are stored for Nova: nothing here connects a volume.
"""

from __future__ import annotations

from typing import Any, ClassVar

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.api import filters, links, pagination, patch, schema, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1.served import Served
from ironic_rules.db import collection
from ironic_rules.exceptions import (
    InvalidParameterValue,
    invalid_state,
    volume_connector_not_found,
    volume_target_not_found,
)
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.resources import VOLUME_CONNECTOR, VOLUME_TARGET
from ironic_rules.policies import nodes

ONE_ROW = filters.Query(fields=filters.names)
#: As in Ironic: in these states no one uses a node, so that its power state does not matter.
_UNUSED = frozenset({states.ENROLL, states.MANAGEABLE, states.ADOPTFAIL})


class VolumeRows:
    """The connectors, or the targets."""

    def __init__(self, kind: str, served: Served, patched: schema.Object) -> None:
        """Describe them.

        :param kind: what one of them is called in errors
        :param patched: the schema of the fields that a PATCH may write
        """
        self._kind, self.served, self._patched = kind, served, patched
        self.listing = filters.Listing.of(served.table, checked=False)
        self.listing_below = filters.Listing.of(served.table, checked=False, without=("node",))

    def list_page(self, request: Request, query: QueryValues, node: str | None = None) -> JSONObject:
        """Return a page; only of a node if one is given, by the URL or by the filter ``node``.

        :raises NodeNotFound: 404
        """
        filters = pagination.filters(query)
        node_access.confine(request, filters)
        ident = node or filters.pop("node", None)
        if ident is not None:
            with request.db.reader() as conn:
                filters["node_id"] = node_access.find(request, conn, ident).id
        return self.served.list_page(request, query, filters)

    def create(self, request: Request, body: JSONObject) -> JSONObject:
        """Store a new one and return it."""
        values = self.served.given(request, body)
        node_uuid = values.pop("node_uuid")

        def create(conn: sa.Connection) -> Any:
            with node_access.named_by("/node_uuid"):
                node = node_access.hold(request, conn, node_uuid)
            return self.served.rows.create(conn, {**values, "node_id": node.id})

        return self.served.show_new(request, request.db.write(create))

    def get_one(self, request: Request, uuid: str, query: QueryValues) -> JSONObject:
        """Return one."""
        return self.served.get_one(request, self._checked(uuid), query)

    def patch(self, request: Request, uuid: str, body: list[JSONObject]) -> JSONObject:
        """Change one, and return it. Both nodes must be powered off if it moves to another one."""
        operations = self.served.operations(request, body)
        node_id = self._node_id(request, uuid)

        def change(conn: sa.Connection) -> Any:
            node = node_access.hold_by_id(request, conn, node_id)
            row = self.served.rows.get(conn, uuid)
            changes = self.served.changes(row, operations, self._patched)
            self._check_power(node, "update")
            if "node_uuid" in changes:
                with node_access.named_by("/node_uuid"):
                    new_node = node_access.hold(request, conn, changes.pop("node_uuid"))
                self._check_power(new_node, "update")
                changes["node_id"] = new_node.id
            return self.served.update(conn, row, changes)

        return self.served.show(request, request.db.write(change))

    def delete(self, request: Request, uuid: str) -> None:
        """Delete one."""
        node_id = self._node_id(request, uuid)

        def destroy(conn: sa.Connection) -> None:
            node = node_access.hold_by_id(request, conn, node_id)
            if node.provision_state not in _UNUSED:
                self._check_power(node, "deletion")
            self.served.rows.destroy(conn, self.served.rows.get(conn, uuid).id)

        request.db.write(destroy)

    def _node_id(self, request: Request, uuid: str) -> int:
        with request.db.reader() as conn:
            node_id: int = self.served.find(request, conn, self._checked(uuid)).node_id
        return node_id

    def _checked(self, uuid: str) -> str:
        """Return ``uuid``; there are no names.

        :raises InvalidParameterValue: 400, it is no UUID
        """
        if not uuidutils.is_uuid_like(uuid.removesuffix(".json")):
            raise InvalidParameterValue(f"Expected the UUID of a {self._kind}.")
        return uuid

    def _check_power(self, node: Node, change: str) -> None:
        if node.power_state != states.POWER_OFF:
            raise invalid_state(action=f"{self._kind} {change}", node=node.uuid, state=node.power_state)


# Unlike older lists, these have had ``detail`` since there are volumes.
CONNECTORS = VolumeRows(
    "volume connector",
    Served("volume/connectors", VOLUME_CONNECTOR, collection.CONNECTORS, detail_since=versions.VOLUME,
           check_access=lambda request, conn, row, ident: node_access.check_access(
               request, conn, row.node_id, volume_connector_not_found(connector=ident))),
    schemas.PATCHED_CONNECTOR)
TARGETS = VolumeRows(
    "volume target", Served("volume/targets", VOLUME_TARGET, collection.TARGETS, detail_since=versions.VOLUME,
                             check_access=lambda request, conn, row, ident: node_access.check_access(
                                 request, conn, row.node_id, volume_target_not_found(target=ident))),
    schemas.PATCHED_TARGET)


def _collection(volumes: VolumeRows, name: str, created: schema.Object) -> Resource:
    """Return the resource of the connectors, or of the targets.

    :param name: what routes call one of them
    :param created: the schema of the body of a POST
    """
    class Volumes(Resource):
        """Since API 1.32; the ident is a UUID."""

        @expose(since=versions.VOLUME, policy=nodes.VOLUME_LIST, query=volumes.listing)
        def get_all(self, request: Request, query: QueryValues) -> JSONObject:
            """List volume connectors or targets, of all nodes or of one.

            :raises NodeNotFound: 404, the node of the filter
            """
            return volumes.list_page(request, query)

        @expose(since=versions.VOLUME, policy=nodes.VOLUME_GET, query=ONE_ROW, ident=name)
        def get_one(self, request: Request, uuid: str, query: QueryValues) -> JSONObject:
            """Return one volume connector or target.

            :raises volume_connector_not_found, volume_target_not_found: 404
            """
            return volumes.get_one(request, uuid, query)

        @expose(since=versions.VOLUME, policy=nodes.VOLUME_CREATE, body=created, status=201, hidden=True)
        def post(self, request: Request, body: JSONObject) -> JSONObject:
            """Create a volume connector or target of the node ``node_uuid``.

            :raises Invalid: 400, also if the node does not exist
            :raises NodeLocked, volume_connector_already_exists, volume_target_already_exists: 409
            :raises duplicate_volume_connector, duplicate_boot_index: 409
            """
            return volumes.create(request, body)

        @expose(since=versions.VOLUME, policy=nodes.VOLUME_UPDATE, body=patch.BODY, hidden=True, ident=name)
        def patch(self, request: Request, uuid: str, body: list[JSONObject]) -> JSONObject:
            """Change a volume connector or target by a JSON patch (RFC 6902).

            :raises volume_connector_not_found, volume_target_not_found: 404;  Invalid, Invalid: 400
            :raises invalid_state: 400, the node is not powered off
            :raises NodeLocked, duplicate_volume_connector, duplicate_boot_index: 409
            """
            return volumes.patch(request, uuid, body)

        @expose(since=versions.VOLUME, policy=nodes.VOLUME_DELETE, status=204, hidden=True, ident=name)
        def delete(self, request: Request, uuid: str) -> None:
            """Delete a volume connector or target.

            :raises volume_connector_not_found, volume_target_not_found: 404;  NodeLocked: 409
            :raises invalid_state: 400, the node is in use and not powered off
            """
            volumes.delete(request, uuid)

    return Volumes()


def _collection_of_node(volumes: VolumeRows) -> Resource:
    """Return the resource of the connectors, or of the targets, of one node."""
    class VolumesOfNode(Resource):
        """Since API 1.32."""

        @expose(since=versions.VOLUME, policy=nodes.VOLUME_LIST, query=volumes.listing_below)
        def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
            """List the volume connectors or targets of a node.

            :raises NodeNotFound: 404
            """
            return volumes.list_page(request, query, node)

    return VolumesOfNode()


class VolumeController(Resource):
    """``/v1/volume``, since API 1.32."""

    below: ClassVar = {"targets": _collection(TARGETS, "target", schemas.CREATE_TARGET),
                       "connectors": _collection(CONNECTORS, "connector", schemas.CREATE_CONNECTOR)}

    @expose(since=versions.VOLUME, policy=nodes.VOLUME_LIST)
    def get_all(self, request: Request) -> JSONObject:
        """Return links to the two collections."""
        node_access.confine(request, {})  # The links are the same for everybody.
        return {"links": links.resource(request.base, "volume", ""),
                "targets": links.resource(request.base, "volume", "targets"),
                "connectors": links.resource(request.base, "volume", "connectors")}


class NodeVolumeController(Resource):
    """``/v1/nodes/{node}/volume``."""

    below: ClassVar = {"connectors": _collection_of_node(CONNECTORS), "targets": _collection_of_node(TARGETS)}

    @expose(since=versions.VOLUME, policy=nodes.VOLUME_LIST)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return links to the two collections.

        :raises NodeNotFound: 404
        """
        uuid = _uuid(request, node)
        return {"links": links.resource(request.base, "nodes", uuid, "volume"),
                **{name: links.resource(request.base, "nodes", uuid, "volume", name) for name in self.below}}


def _uuid(request: Request, node: str) -> str:
    with request.db.reader() as conn:
        uuid: str = node_access.find(request, conn, node).uuid
    return uuid
