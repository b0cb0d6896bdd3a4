"""``/v1/nodes/{node}/bios`` and ``…/firmware``: what the node's BMC reported last, from the database.

It is read when a node is managed, adopted or inspected, and after a step that changes it.
"""

from __future__ import annotations

from ironic_rules.api import filters, links, versions
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import hardware_cache
from ironic_rules.exceptions import BIOSSettingNotFound, InvalidParameterValue
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
            found = hardware_cache.list_settings(conn, row.id)
        return {"bios": [_setting(request, row.uuid, setting, fields) for setting in found]}

    @expose(since=versions.BIOS, policy=policies.GET_BIOS)
    def get_one(self, request: Request, node: str, setting: str) -> JSONObject:
        """Return one setting, by its name.

        :raises NodeNotFound, BIOSSettingNotFound: 404
        """
        fields = (*_SHORT, *_REGISTRY) if request.version >= versions.BIOS_REGISTRY else _SHORT
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            try:
                found = hardware_cache.get_setting(conn, row.id, setting)
            except BIOSSettingNotFound as error:
                raise BIOSSettingNotFound(node=row.uuid, name=setting) from error
        return {setting: _setting(request, row.uuid, found, fields)}


class FirmwareController(Resource):
    """The components of a node that have firmware."""

    @expose(since=versions.FIRMWARE, policy=policies.GET_FIRMWARE, query=_FIRMWARE)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the components with their versions.

        :raises NodeNotFound: 404
        """
        fields = {*_fields(query, _COMPONENT, _COMPONENT), *_TIMES}
        with request.db.reader() as conn:
            found = hardware_cache.list_components(conn, node_access.find(request, conn, node).id)
        return {"firmware": [{name: getattr(row, name) for name in _COMPONENT if name in fields} for row in found]}


def _fields(query: QueryValues, default: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    fields: tuple[str, ...] | None = query.get("fields")
    if fields is None:
        return default
    if query.get("detail"):
        raise InvalidParameterValue("detail and fields cannot be used in one request.")
    filters.check_fields(fields, known)
    return fields


def _setting(request: Request, node: str, setting: StoredSetting, fields: tuple[str, ...]) -> JSONObject:
    shown = {name: getattr(setting, name) for name in (*_SHORT, *_REGISTRY) if name in fields}
    if "value" in shown and setting.attribute_type == "Password":
        shown["value"] = None if setting.value is None else secrets.MASK
    return {**shown, **{name: getattr(setting, name) for name in _TIMES},
            "links": links.resource(request.base, "nodes", node, "bios", setting.name)}
