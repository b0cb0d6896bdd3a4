"""The hardware of a node: its ``bios``, ``firmware``, ``management``, ``vmedia`` and ``vendor_passthru``.

``bios`` and ``firmware`` show what the BMC reported last, from the database: it is read when a node is managed, adopted
or inspected, and after a step that changes it. The others are operations of one interface of the node, which a
conductor carries out at once, or begins.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import orjson

from ironic_rules.api import filters, links, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.db import hardware_cache
from ironic_rules.exceptions import BIOSSettingNotFound, InvalidParameterValue, Problem
from ironic_rules.hardware.base import DEVICE_TYPES
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import StoredSetting
from ironic_rules.policies import nodes as policies

_SHORT = ("name", "value")
_REGISTRY = ("attribute_type", "allowable_values", "lower_bound", "max_length", "min_length", "read_only",
             "reset_required", "unique", "upper_bound")
_TIMES = ("created_at", "updated_at")
_COMPONENT = ("component", "initial_version", "current_version", "last_version_flashed", *_TIMES)
#: Names that only some versions of the API have are checked by the methods.
_BIOS = filters.Query(fields=filters.names, detail=filters.boolean)
_FIRMWARE = filters.Query(fields=filters.names, detail=filters.boolean)


class BIOSController(Resource):
    """The BIOS settings of a node."""

    @expose(since=versions.BIOS, policy=policies.GET_BIOS, query=_BIOS)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the settings; since 1.74 with what the BMC says about them (``detail``), or some fields of that.

        :raises NodeNotFound: 404;  NotAcceptable: 406, ``detail`` and ``fields`` below 1.74
        """
        if query and request.version < versions.BIOS_REGISTRY:
            raise versions.too_new(", ".join(sorted(query)), versions.BIOS_REGISTRY)
        fields = _fields(query, _SHORT, (*_SHORT, *_REGISTRY, *_TIMES, "links"))
        if query.get("detail"):
            fields = (*_SHORT, *_REGISTRY)
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            settings = hardware_cache.list_settings(conn, row.id)
        return {"bios": [_setting(request, row.uuid, setting, fields) for setting in settings]}

    @expose(since=versions.BIOS, policy=policies.GET_BIOS)
    def get_one(self, request: Request, node: str, setting: str) -> JSONObject:
        """Return one setting, by its name.

        :raises NodeNotFound, BIOSSettingNotFound: 404
        """
        fields = (*_SHORT, *_REGISTRY) if request.version >= versions.BIOS_REGISTRY else _SHORT
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            try:
                cached = hardware_cache.get_setting(conn, row.id, setting)
            except BIOSSettingNotFound as error:
                raise BIOSSettingNotFound(node=row.uuid, name=setting) from error
        return {setting: _setting(request, row.uuid, cached, fields)}


class FirmwareController(Resource):
    """The components of a node that have firmware."""

    @expose(since=versions.FIRMWARE, policy=policies.GET_FIRMWARE, query=_FIRMWARE)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the components with their versions.

        :raises NodeNotFound: 404
        """
        fields = {*_fields(query, _COMPONENT, _COMPONENT), *_TIMES}
        with request.db.reader() as conn:
            components = hardware_cache.list_components(conn, node_access.find(request, conn, node).id)
        return {"firmware": [{name: getattr(row, name) for name in _COMPONENT if name in fields} for row in components]}


def _fields(query: QueryValues, default: tuple[str, ...], selectable: tuple[str, ...]) -> tuple[str, ...]:
    fields: tuple[str, ...] | None = query.get("fields")
    if fields is None:
        return default
    if query.get("detail"):
        raise InvalidParameterValue("detail and fields cannot be used in one request.")
    filters.check_fields(fields, selectable)
    return fields


def _setting(request: Request, node: str, setting: StoredSetting, fields: tuple[str, ...]) -> JSONObject:
    shown = {name: getattr(setting, name) for name in (*_SHORT, *_REGISTRY) if name in fields}
    if "value" in shown and setting.attribute_type == "Password":
        shown["value"] = None if setting.value is None else secrets.MASK
    return {**shown, **{name: getattr(setting, name) for name in _TIMES},
            "links": links.resource(request.base, "nodes", node, "bios", setting.name)}


def read_hardware(request: Request, node: str, operation: str, **args: Any) -> Any:
    """Return what a conductor reads by ``operation`` (``conductor.hardware_calls``), with secrets masked.

    :raises NodeNotFound: 404;  Invalid: 400, the node's interface does not support it
    :raises BMCError: 502;  no_valid_host, too_many_calls, RPCTimeout: 503
    """
    with request.db.reader() as conn:
        row = node_access.find(request, conn, node)
    return _answer(request, row, operation, args)


def change_hardware(request: Request, node: str, operation: str, **args: Any) -> Any:
    """Let a conductor carry out an operation; return its result, if it has one.

    A repetition within ten minutes, with the same header ``Idempotency-Key``, changes nothing and has no result.

    :raises NodeNotFound: 404;  Invalid: 400, the node's interface does not support it, or bad arguments
    :raises NodeLocked: 409;  BMCError: 502
    :raises no_valid_host, NoFreeWorker, too_many_calls, still_running, RPCTimeout: 503
    """
    mark = request.mark(operation, args)
    with request.db.reader() as conn:
        row = node_access.find(request, conn, node)
        if request.was_accepted(conn, row.id, mark):
            return None
    request.context.mark = mark
    return _answer(request, row, operation, args)


def _answer(request: Request, row: Any, operation: str, args: JSONObject) -> Any:
    return secrets.mask(request.rpc.call_hardware(
        request.context, row.uuid, operation, group=row.conductor_group, **args))


_INDICATOR = re.compile(r"([\w.-]{1,255})@([\w.-]{1,255})")


class SupportedBootDevicesController(Resource):
    """``/v1/nodes/{node}/management/boot_device/supported``."""

    @expose(policy=policies.GET_BOOT_DEVICE)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return ``{"supported_boot_devices": [names]}``.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  no_valid_host, RPCTimeout: 503
        """
        return {"supported_boot_devices": read_hardware(request, node, "get_supported_boot_devices")}


class BootDeviceController(Resource):
    """``/v1/nodes/{node}/management/boot_device``."""

    below: ClassVar = {"supported": SupportedBootDevicesController()}

    @expose(policy=policies.GET_BOOT_DEVICE)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Read the boot device from the BMC: ``{"boot_device": name, "persistent": bool}``; null means unknown.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400
        :raises BMCError: 502;  no_valid_host, too_many_calls, RPCTimeout: 503
        """
        reply: JSONObject = read_hardware(request, node, "get_boot_device")
        return reply

    @expose(policy=policies.SET_BOOT_DEVICE, body=schemas.BOOT_DEVICE, status=204)
    def put(self, request: Request, node: str, body: JSONObject) -> None:
        """Make the node boot from ``boot_device`` next time, or always (``persistent``).

        :raises NodeNotFound: 404;  Invalid: 400, not supported;  NodeLocked: 409
        :raises BMCError: 502;  no_valid_host, NoFreeWorker, still_running, RPCTimeout: 503
        """
        change_hardware(
            request, node, "set_boot_device", device=body["boot_device"], persistent=bool(body.get("persistent")))


class InjectNMIController(Resource):
    """``/v1/nodes/{node}/management/inject_nmi``."""

    @expose(since=versions.INJECT_NMI, policy=policies.INJECT_NMI, body=schemas.NOTHING, status=204)
    def put(self, request: Request, node: str, body: JSONObject | None) -> None:
        """Send a non-maskable interrupt to the machine. The body is empty, or an empty object.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  NodeLocked: 409
        :raises BMCError: 502;  no_valid_host, NoFreeWorker, still_running, RPCTimeout: 503
        """
        change_hardware(request, node, "inject_nmi")


class IndicatorsController(Resource):
    """``/v1/nodes/{node}/management/indicators``, since API 1.63; an indicator is named ``name@component``."""

    @expose(since=versions.INDICATORS, policy=policies.GET_INDICATOR)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """List the indicators of the machine, such as LEDs.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400
        :raises BMCError: 502;  no_valid_host, too_many_calls, RPCTimeout: 503
        """
        supported: dict[str, dict[str, JSONObject]] = read_hardware(request, node, "get_supported_indicators")
        return {"indicators": [
            {"name": f"{name}@{component}", "component": component, **described,
             "links": links.resource(request.base, "nodes", node, "management", "indicators", f"{name}@{component}")}
            for component, names in supported.items() for name, described in names.items()]}

    @expose(since=versions.INDICATORS, policy=policies.GET_INDICATOR)
    def get_one(self, request: Request, node: str, indicator: str) -> JSONObject:
        """Read the state of an indicator: ``{"state": "ON"}``. Errors are those of the list."""
        name, component = _split(indicator)
        return {"state": read_hardware(request, node, "get_indicator_state", component=component,
                                       indicator=name)}

    @expose(since=versions.INDICATORS, policy=policies.SET_INDICATOR, body=schemas.INDICATOR, status=204)
    def put(self, request: Request, node: str, indicator: str, body: JSONObject) -> None:
        """Switch an indicator.

        :raises NodeNotFound: 404;  Invalid: 400, not supported;  NodeLocked: 409
        :raises BMCError: 502;  no_valid_host, NoFreeWorker, still_running, RPCTimeout: 503
        """
        name, component = _split(indicator)
        change_hardware(request, node, "set_indicator_state", component=component, indicator=name,
                        state=body["state"])


def _split(indicator: str) -> tuple[str, str]:
    """Return the name of an indicator and its component.

    :raises InvalidParameterValue: 400
    """
    match = _INDICATOR.fullmatch(indicator)
    if match is None:
        raise InvalidParameterValue("indicator: must be a name and a component with an @ between them: led@system.")
    return match[1], match[2]


class ManagementController(Resource):
    """Operations of the management interface of a node."""

    below: ClassVar = {"boot_device": BootDeviceController(), "inject_nmi": InjectNMIController(),
                       "indicators": IndicatorsController()}


def _types(value: str) -> tuple[str, ...]:
    """Comma-separated types of drives."""
    types = filters.names(value)
    if not types or not set(types) <= set(DEVICE_TYPES):
        raise ValueError(f"must be one or more of {', '.join(DEVICE_TYPES)}")
    return types


class VmediaController(Resource):
    """The virtual drives of a node."""

    @expose(since=versions.VMEDIA_GET, policy=policies.GET_VMEDIA)
    def get_all(self, request: Request, node: str) -> list[JSONObject]:
        """Read what is in the drives: a list of ``{"media_types": [names], "inserted": bool, "image": URL or null}``.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400
        :raises BMCError: 502;  no_valid_host, too_many_calls, RPCTimeout: 503
        """
        devices: list[JSONObject] = read_hardware(request, node, "get_virtual_media")
        return devices

    @expose(since=versions.VMEDIA, policy=policies.ATTACH_VMEDIA, body=schemas.VMEDIA, status=204, hidden=True)
    def post(self, request: Request, node: str, body: JSONObject) -> None:
        """Start inserting the image at ``image_url`` into an empty drive; the BMC loads it from there.

        ``GET`` shows when it is there; if it fails, ``last_error`` of the node says why.

        :raises NodeNotFound: 404;  Invalid: 400, not supported
        :raises Conflict: 409, the node waits for its ramdisk;  NodeLocked: 409
        :raises no_valid_host, NoFreeWorker, RPCTimeout: 503
        """
        if body.get("image_download_source") in ("local", "swift"):
            raise InvalidParameterValue(problems=[Problem(
                "/image_download_source", "must be http: the BMC loads the image itself")])
        change_hardware(
            request, node, "attach_virtual_media", device_type=body["device_type"], image_url=body["image_url"])

    @expose(since=versions.VMEDIA, policy=policies.DETACH_VMEDIA, status=204, body=schemas.VMEDIA_TYPES, hidden=True,
            query=filters.Query(device_types=_types))
    def delete(self, request: Request, node: str, query: QueryValues, body: JSONObject | None) -> None:
        """Start ejecting what is in the drives of the types ``device_types``, or in all of them.

        The types are in the query or, as openstacksdk sends them, in the body.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400
        :raises Conflict: 409, the node waits for its ramdisk;  NodeLocked: 409
        :raises no_valid_host, NoFreeWorker, RPCTimeout: 503
        """
        types = query.get("device_types", ())
        if body and "device_types" in body:
            try:
                types = _types(body["device_types"])
            except ValueError as error:
                raise InvalidParameterValue(problems=[Problem("/device_types", str(error))]) from error
        change_hardware(request, node, "detach_virtual_media", device_types=list(types))


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_QUERY = filters.Query(method=filters.text)


class MethodsController(Resource):
    """``/v1/nodes/{node}/vendor_passthru/methods``."""

    @expose(policy=policies.VENDOR_PASSTHRU)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return the methods by their names, with their HTTP methods and a description.

        :raises NodeNotFound: 404;  UnsupportedDriverExtension: 400;  no_valid_host, RPCTimeout: 503
        """
        methods: JSONObject = read_hardware(request, node, "vendor_methods")
        return methods


class VendorPassthruController(Resource):
    """Calls a method, named in the path or in the query, with the body, a JSON object, as its arguments."""

    below: ClassVar = {"methods": MethodsController()}

    @expose(policy=policies.VENDOR_PASSTHRU, query=_QUERY, body=schemas.VENDOR_ARGUMENTS)
    def get_all(self, request: Request, node: str, method: str = "", *, query: QueryValues,
                body: JSONObject | None) -> Any:
        """Call a method that reads; return its result.

        :raises NodeNotFound: 404;  Invalid: 400, no such method, or wrong arguments;  NodeLocked: 409
        :raises BMCError: 502;  no_valid_host, NoFreeWorker, too_many_calls, still_running, RPCTimeout: 503
        """
        return _call_method(request, node, "GET", method, query, body)

    @expose(policy=policies.VENDOR_PASSTHRU, query=_QUERY, body=schemas.VENDOR_ARGUMENTS)
    def post(self, request: Request, node: str, method: str = "", *, query: QueryValues,
             body: JSONObject | None) -> Any:
        """Call a method; return its result. Errors are those of ``GET``."""
        return _call_method(request, node, request.method, method, query, body)

    put = patch = delete = post


def _call_method(request: Request, node: str, http_method: str, method: str, query: QueryValues,
                 body: JSONObject | None) -> bytes:
    # Without a result, clients still read JSON.
    return orjson.dumps(change_hardware(
        request, node, "call_vendor_method", method=method_of(method, query), http_method=http_method, args=body or {}))


def method_of(in_path: str, query: QueryValues) -> str:
    """Return the vendor method that a request names, in its path or in its query.

    :raises InvalidParameterValue: 400, it names none, or two, or what cannot be a name
    """
    in_query: str = query.get("method", "")
    if bool(in_path) == bool(in_query):
        raise InvalidParameterValue("method: names the vendor method, in the query or as the last part of the path; it "
                                    "is required once.")
    name = in_path or in_query
    if not _NAME.fullmatch(name):
        raise InvalidParameterValue("method: must be the name of a method.")
    return name
