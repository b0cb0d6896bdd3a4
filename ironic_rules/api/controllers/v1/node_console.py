"""``/v1/nodes/{node}/states/console``: access to the serial console."""

from __future__ import annotations

from ironic_rules.api import links, schemas
from ironic_rules.api.controllers.v1 import hardware_request, node_access
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies


class ConsoleController(Resource):
    """The console of a node."""

    @expose(policy=policies.GET_CONSOLE)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return ``{"console_enabled": bool, "console_info": how to reach it}``; null while it is not started.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NoValidHost, RPCTimeout: 503
        """
        with request.db.reader() as conn:
            enabled = node_access.find(request, conn, node).console_enabled
        return {"console_enabled": enabled,
                "console_info": hardware_request.read(request, node, "get_console") if enabled else None}

    @expose(policy=policies.SET_CONSOLE, body=schemas.CONSOLE, status=202)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Start or stop the console; the node's ``console_enabled`` or ``last_error`` shows the result.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NodeLocked: 409
        :raises NoValidHost, NoFreeWorker, RPCTimeout: 503
        """
        hardware_request.change(request, node, "set_console", enabled=body["enabled"])
        request.reply.headers.append(("Location", links.url(request.base, "nodes", node, "states", "console")))
