"""``/v1/nodes/{node}/maintenance``."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import schemas
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import nodes
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies


class MaintenanceController(Resource):
    """The maintenance mode of a node."""

    @expose(policy=policies.SET_MAINTENANCE, body=schemas.MAINTENANCE, status=202)
    def put(self, request: Request, node: str, body: JSONObject | None) -> None:
        """Put the node into maintenance, with an optional ``reason``.

        :raises NodeNotFound: 404;  NodeLocked: 409
        """
        _set(request, node, {"maintenance": True, "maintenance_reason": (body or {}).get("reason")})

    @expose(policy=policies.CLEAR_MAINTENANCE, status=202)
    def delete(self, request: Request, node: str) -> None:
        """Take the node out of maintenance; its fault and the reason are cleared.

        :raises NodeNotFound: 404;  NodeLocked: 409
        """
        _set(request, node, {"maintenance": False, "maintenance_reason": None, "fault": None})


def _set(request: Request, node: str, values: dict[str, Any]) -> None:
    request.db.write(lambda conn: nodes.update(conn, node_access.hold(request, conn, node).id, values))
