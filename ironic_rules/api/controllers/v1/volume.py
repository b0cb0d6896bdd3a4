"""``/v1/volume``: volume connectors and targets, which are stored for Nova: nothing here connects a volume."""

from __future__ import annotations

from typing import ClassVar

from ironic_rules.api import links, patch, schemas, versions
from ironic_rules.api.controllers.v1 import volume_rows
from ironic_rules.api.controllers.v1.volume_rows import CONNECTORS, TARGETS
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import volume as policies


class TargetsController(Resource):
    """``/v1/volume/targets``, since API 1.32; the ident is a UUID."""

    @expose(since=versions.VOLUME, policy=policies.LIST, query=TARGETS.listing)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List volume targets, of all nodes or of one.

        :raises NodeNotFound: 404, the node of the filter
        """
        return TARGETS.list_page(request, query)

    @expose(since=versions.VOLUME, policy=policies.GET, query=volume_rows.ONE)
    def get_one(self, request: Request, target: str, query: QueryValues) -> JSONObject:
        """Return one volume target.

        :raises VolumeTargetNotFound: 404
        """
        return TARGETS.get_one(request, target, query)

    @expose(since=versions.VOLUME, policy=policies.CREATE, body=schemas.CREATE_TARGET, status=201, hidden=True)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a volume target of the node ``node_uuid``.

        :raises Invalid: 400, also if the node does not exist
        :raises NodeLocked, VolumeTargetAlreadyExists, DuplicateBootIndex: 409
        """
        return TARGETS.create(request, body)

    @expose(since=versions.VOLUME, policy=policies.UPDATE, body=patch.BODY, hidden=True)
    def patch(self, request: Request, target: str, body: list[JSONObject]) -> JSONObject:
        """Change a volume target by a JSON patch (RFC 6902).

        :raises VolumeTargetNotFound: 404;  InvalidPatch, Invalid: 400
        :raises InvalidState: 400, the node is not powered off
        :raises NodeLocked, DuplicateBootIndex: 409
        """
        return TARGETS.patch(request, target, body)

    @expose(since=versions.VOLUME, policy=policies.DELETE, status=204, hidden=True)
    def delete(self, request: Request, target: str) -> None:
        """Delete a volume target.

        :raises VolumeTargetNotFound: 404;  NodeLocked: 409
        :raises InvalidState: 400, the node is in use and not powered off
        """
        TARGETS.delete(request, target)


class ConnectorsController(Resource):
    """``/v1/volume/connectors``, since API 1.32; the ident is a UUID."""

    @expose(since=versions.VOLUME, policy=policies.LIST, query=CONNECTORS.listing)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List volume connectors, of all nodes or of one.

        :raises NodeNotFound: 404, the node of the filter
        """
        return CONNECTORS.list_page(request, query)

    @expose(since=versions.VOLUME, policy=policies.GET, query=volume_rows.ONE)
    def get_one(self, request: Request, connector: str, query: QueryValues) -> JSONObject:
        """Return one volume connector.

        :raises VolumeConnectorNotFound: 404
        """
        return CONNECTORS.get_one(request, connector, query)

    @expose(since=versions.VOLUME, policy=policies.CREATE, body=schemas.CREATE_CONNECTOR, status=201, hidden=True)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a volume connector of the node ``node_uuid``.

        :raises Invalid: 400, also if the node does not exist
        :raises NodeLocked, VolumeConnectorAlreadyExists, DuplicateVolumeConnector: 409
        """
        return CONNECTORS.create(request, body)

    @expose(since=versions.VOLUME, policy=policies.UPDATE, body=patch.BODY, hidden=True)
    def patch(self, request: Request, connector: str, body: list[JSONObject]) -> JSONObject:
        """Change a volume connector by a JSON patch (RFC 6902).

        :raises VolumeConnectorNotFound: 404;  InvalidPatch, Invalid: 400
        :raises InvalidState: 400, the node is not powered off
        :raises NodeLocked, DuplicateVolumeConnector: 409
        """
        return CONNECTORS.patch(request, connector, body)

    @expose(since=versions.VOLUME, policy=policies.DELETE, status=204, hidden=True)
    def delete(self, request: Request, connector: str) -> None:
        """Delete a volume connector.

        :raises VolumeConnectorNotFound: 404;  NodeLocked: 409
        :raises InvalidState: 400, the node is in use and not powered off
        """
        CONNECTORS.delete(request, connector)


class VolumeController(Resource):
    """``/v1/volume``, since API 1.32."""

    below: ClassVar = {"targets": TargetsController(), "connectors": ConnectorsController()}

    @expose(since=versions.VOLUME, policy=policies.LIST)
    def get_all(self, request: Request) -> JSONObject:
        """Return links to the two collections."""
        node_access.confine(request, {})  # The links are the same for everybody.
        return {"links": links.resource(request.base, "volume", ""),
                "targets": links.resource(request.base, "volume", "targets"),
                "connectors": links.resource(request.base, "volume", "connectors")}
