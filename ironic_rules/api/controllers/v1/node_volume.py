"""``/v1/nodes/{node}/volume``, since API 1.32: the target of a node's links; the collections are always empty."""

from __future__ import annotations

from typing import Any, ClassVar

import pecan

from ironic_rules.api import links, versions
from ironic_rules.api.controllers.v1 import node_access, volume
from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.policies import volume as policies


class NodeTargetsController(Resource):
    """``/v1/nodes/{node}/volume/targets``."""

    @expose(since=versions.VOLUME, policy=policies.LIST, query=volume.TARGETS_BELOW)
    def get_all(self, node: str) -> dict[str, Any]:
        """Return an empty list.

        :raises NodeNotFound: 404
        """
        _uuid(node)
        return {"targets": []}


class NodeConnectorsController(Resource):
    """``/v1/nodes/{node}/volume/connectors``."""

    @expose(since=versions.VOLUME, policy=policies.LIST, query=volume.CONNECTORS_BELOW)
    def get_all(self, node: str) -> dict[str, Any]:
        """Return an empty list.

        :raises NodeNotFound: 404
        """
        _uuid(node)
        return {"connectors": []}


class NodeVolumeController(Resource):
    """``/v1/nodes/{node}/volume``."""

    below: ClassVar = {"connectors": NodeConnectorsController(), "targets": NodeTargetsController()}

    @expose(since=versions.VOLUME, policy=policies.LIST)
    def get_all(self, node: str) -> dict[str, Any]:
        """Return links to the two collections.

        :raises NodeNotFound: 404
        """
        uuid = _uuid(node)
        return {"links": links.resource("nodes", uuid, "volume"),
                **{name: links.resource("nodes", uuid, "volume", name) for name in self.below}}


def _uuid(node: str) -> str:
    with pecan.request.db.reader() as conn:
        uuid: str = node_access.find(conn, node).uuid
    return uuid
