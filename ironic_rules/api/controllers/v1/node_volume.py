"""``/v1/nodes/{node}/volume``, since API 1.32: the volume connectors and targets of a node."""

from __future__ import annotations

from typing import ClassVar

from ironic_rules.api import links, versions
from ironic_rules.api.controllers.v1.volume_rows import CONNECTORS, TARGETS
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import volume as policies


class NodeTargetsController(Resource):
    """``/v1/nodes/{node}/volume/targets``."""

    @expose(since=versions.VOLUME, policy=policies.LIST, query=TARGETS.listing_below)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the volume targets of a node.

        :raises NodeNotFound: 404
        """
        return TARGETS.list_page(request, query, node)


class NodeConnectorsController(Resource):
    """``/v1/nodes/{node}/volume/connectors``."""

    @expose(since=versions.VOLUME, policy=policies.LIST, query=CONNECTORS.listing_below)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the volume connectors of a node.

        :raises NodeNotFound: 404
        """
        return CONNECTORS.list_page(request, query, node)


class NodeVolumeController(Resource):
    """``/v1/nodes/{node}/volume``."""

    below: ClassVar = {"connectors": NodeConnectorsController(), "targets": NodeTargetsController()}

    @expose(since=versions.VOLUME, policy=policies.LIST)
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
