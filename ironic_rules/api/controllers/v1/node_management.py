"""``/v1/nodes/{node}/management``: boot device, indicators and NMI."""

from __future__ import annotations

import re
from typing import ClassVar

from ironic_rules.api import links, schemas, versions
from ironic_rules.api.controllers.v1 import hardware_request
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies

_INDICATOR = re.compile(r"([\w.-]{1,255})@([\w.-]{1,255})")


class SupportedBootDevicesController(Resource):
    """``/v1/nodes/{node}/management/boot_device/supported``."""

    @expose(policy=policies.GET_BOOT_DEVICE)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return ``{"supported_boot_devices": [names]}``.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NoValidHost, RPCTimeout: 503
        """
        return {"supported_boot_devices": hardware_request.read(request, node, "get_supported_boot_devices")}


class BootDeviceController(Resource):
    """``/v1/nodes/{node}/management/boot_device``."""

    below: ClassVar = {"supported": SupportedBootDevicesController()}

    @expose(policy=policies.GET_BOOT_DEVICE)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Read the boot device from the BMC: ``{"boot_device": name, "persistent": bool}``; null means unknown.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400
        :raises BMCError: 502;  NoValidHost, TooManyCalls, RPCTimeout: 503
        """
        found: JSONObject = hardware_request.read(request, node, "get_boot_device")
        return found

    @expose(policy=policies.SET_BOOT_DEVICE, body=schemas.BOOT_DEVICE, status=204)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Make the node boot from ``boot_device`` next time, or always (``persistent``).

        :raises NodeNotFound: 404;  Invalid: 400, not supported;  NodeLocked: 409
        :raises BMCError: 502;  NoValidHost, NoFreeWorker, StillRunning, RPCTimeout: 503
        """
        hardware_request.change(
            request, node, "set_boot_device", device=body["boot_device"], persistent=bool(body.get("persistent")))


class InjectNMIController(Resource):
    """``/v1/nodes/{node}/management/inject_nmi``."""

    @expose(since=versions.INJECT_NMI, policy=policies.INJECT_NMI, body=schemas.NOTHING, status=204)
    def put(self, request: Request, node: str, body: JSONObject | None) -> None:
        """Send a non-maskable interrupt to the machine. The body is empty, or an empty object.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NodeLocked: 409
        :raises BMCError: 502;  NoValidHost, NoFreeWorker, StillRunning, RPCTimeout: 503
        """
        hardware_request.change(request, node, "inject_nmi")


class IndicatorsController(Resource):
    """``/v1/nodes/{node}/management/indicators``, since API 1.63; an indicator is named ``name@component``."""

    @expose(since=versions.INDICATORS, policy=policies.GET_INDICATOR)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """List the indicators of the machine, such as LEDs.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400
        :raises BMCError: 502;  NoValidHost, TooManyCalls, RPCTimeout: 503
        """
        found: dict[str, dict[str, JSONObject]] = hardware_request.read(request, node, "get_supported_indicators")
        return {"indicators": [
            {"name": f"{name}@{component}", "component": component, **described,
             "links": links.resource(request.base, "nodes", node, "management", "indicators", f"{name}@{component}")}
            for component, names in found.items() for name, described in names.items()]}

    @expose(since=versions.INDICATORS, policy=policies.GET_INDICATOR)
    def get_one(self, request: Request, node: str, indicator: str) -> JSONObject:
        """Read the state of an indicator: ``{"state": "ON"}``. Errors are those of the list."""
        name, component = _split(indicator)
        return {"state": hardware_request.read(request, node, "get_indicator_state", component=component,
                                               indicator=name)}

    @expose(since=versions.INDICATORS, policy=policies.SET_INDICATOR, body=schemas.INDICATOR, status=204)
    def put(self, request: Request, node: str, indicator: str, body: JSONObject) -> None:
        """Switch an indicator.

        :raises NodeNotFound: 404;  Invalid: 400, not supported;  NodeLocked: 409
        :raises BMCError: 502;  NoValidHost, NoFreeWorker, StillRunning, RPCTimeout: 503
        """
        name, component = _split(indicator)
        hardware_request.change(request, node, "set_indicator_state", component=component, indicator=name,
                                state=body["state"])


def _split(indicator: str) -> tuple[str, str]:
    """Return the name of an indicator and its component.

    :raises InvalidParameterValue: 400
    """
    found = _INDICATOR.fullmatch(indicator)
    if found is None:
        raise InvalidParameterValue("indicator: must be a name and a component with an @ between them: led@system.")
    return found[1], found[2]


class ManagementController(Resource):
    """What the management interface of a node does on request."""

    below: ClassVar = {"boot_device": BootDeviceController(), "inject_nmi": InjectNMIController(),
                       "indicators": IndicatorsController()}
