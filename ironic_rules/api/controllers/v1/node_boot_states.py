"""``/v1/nodes/{node}/states/boot_mode`` and ``…/secure_boot``, since API 1.76."""

from __future__ import annotations

from ironic_rules.api import links, schemas, versions
from ironic_rules.api.controllers.v1 import hardware_request
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies


class BootModeController(Resource):
    """``/v1/nodes/{node}/states/boot_mode``."""

    @expose(since=versions.SET_BOOT_MODE, policy=policies.SET_BOOT_MODE, body=schemas.BOOT_MODE, status=202,
            hidden=True, policy_first=True)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Start changing the boot mode to ``target``; the node's ``boot_mode`` or ``last_error`` shows the result.

        :raises NodeNotFound: 404;  Invalid: 400, not supported;  NodeLocked: 409
        :raises NoValidHost, NoFreeWorker, RPCTimeout: 503
        """
        hardware_request.change(request, node, "set_boot_mode", mode=body["target"])
        _locate_states(request, node)


class SecureBootController(Resource):
    """``/v1/nodes/{node}/states/secure_boot``."""

    @expose(since=versions.SET_BOOT_MODE, policy=policies.SET_SECURE_BOOT, body=schemas.SECURE_BOOT, status=202,
            hidden=True, policy_first=True)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Start switching secure boot on or off; the node's ``secure_boot`` or ``last_error`` shows the result.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NodeLocked: 409
        :raises NoValidHost, NoFreeWorker, RPCTimeout: 503
        """
        hardware_request.change(request, node, "set_secure_boot", is_on=body["target"])
        _locate_states(request, node)


def _locate_states(request: Request, node: str) -> None:
    request.reply.headers.append(("Location", links.url(request.base, "nodes", node, "states")))
