"""``/v1/drivers``: the hardware types that live conductors offer."""

from __future__ import annotations

from typing import ClassVar

from ironic_rules.api import filters, pagination, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1.node_hardware import method_of
from ironic_rules.api.views import resources
from ironic_rules.db import conductors
from ironic_rules.exceptions import InvalidParameterValue, NotFound, Unavailable, driver_name_not_found
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes
from ironic_rules.text import printable

_LIST = filters.Listing(sort_keys=("name",), marker=filters.text, type=filters.one_of("classic", "dynamic"))
_VENDOR = filters.Query(method=filters.text)
_ONE = filters.Query(fields=filters.names, detail=filters.boolean)


class PropertiesController(Resource):
    """``/v1/drivers/{driver}/properties``."""

    @expose(policy=nodes.DRIVER_GET_PROPERTIES)
    def get_all(self, request: Request, driver: str) -> dict[str, str]:
        """Return the ``driver_info`` keys that the driver reads, each with a description.

        :raises driver_name_not_found: 404
        """
        return _one(request, driver).properties


class LogicalDiskPropertiesController(Resource):
    """``/v1/drivers/{driver}/raid/logical_disk_properties``, since API 1.12."""

    @expose(since=versions.RAID, policy=nodes.DRIVER_GET_RAID, unacceptable=True)
    def get_all(self, request: Request, driver: str) -> dict[str, str]:
        """Return what a logical disk may have with the driver's default RAID interface, each with a description.

        :raises driver_name_not_found: 404;  NotFound: 404, that interface cannot create volumes
        :raises Unavailable: 503, the driver's conductors are not upgraded yet
        """
        entry = _one(request, driver)
        if entry.logical_disk_properties is None:
            raise Unavailable(f"No conductor of driver {driver} reports this yet; upgrade them.")
        properties = entry.logical_disk_properties.get(entry.kinds["raid"]["default"])
        if not properties:
            raise NotFound(f"Driver {driver} does not support RAID by default.")
        return properties


class DriverRAIDController(Resource):
    """``/v1/drivers/{driver}/raid``."""

    below: ClassVar = {"logical_disk_properties": LogicalDiskPropertiesController()}


class DriverMethodsController(Resource):
    """``/v1/drivers/{driver}/vendor_passthru/methods``."""

    @expose(policy=nodes.DRIVER_VENDOR_PASSTHRU)
    def get_all(self, request: Request, driver: str) -> JSONObject:
        """Return the methods that need no node: no driver of this service has any.

        :raises driver_name_not_found: 404
        """
        _one(request, driver)
        return {}


class DriverVendorController(Resource):
    """``/v1/drivers/{driver}/vendor_passthru``: methods that need no node, of which there are none."""

    below: ClassVar = {"methods": DriverMethodsController()}

    @expose(policy=nodes.DRIVER_VENDOR_PASSTHRU, query=_VENDOR, body=schemas.VENDOR_ARGUMENTS)
    def get_all(self, request: Request, driver: str, method: str = "", *, query: QueryValues) -> None:
        """Raise 400: the driver has no such method.

        :raises driver_name_not_found: 404
        """
        _refuse(request, driver, method, query)

    @expose(policy=nodes.DRIVER_VENDOR_PASSTHRU, query=_VENDOR, body=schemas.VENDOR_ARGUMENTS)
    def post(self, request: Request, driver: str, method: str = "", *, query: QueryValues) -> None:
        """Raise 400, as ``GET``."""
        _refuse(request, driver, method, query)

    put = patch = delete = post


class DriversController(Resource):
    """All drivers are hardware types; there are no classic ones."""

    below_item: ClassVar = {"properties": PropertiesController(), "raid": DriverRAIDController(),
                            "vendor_passthru": DriverVendorController()}

    @expose(policy=nodes.DRIVER_GET, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List drivers by name, which is the marker; their interfaces with ``detail``."""
        drivers = {} if query.get("type") == "classic" else _drivers(request)
        minor, detail = request.version, query.get("detail", False)
        page = pagination.page(request, {"sort_key": "name", **query})
        return pagination.collection(
            request, "drivers", pagination.of_few(list(drivers.values()), page, "name"), page,
            lambda shown: [_selected(resources.driver(request.base, entry, minor, detail=detail),
                                     query) for entry in shown],
            marker="name")

    @expose(policy=nodes.DRIVER_GET, query=_ONE)
    def get_one(self, request: Request, driver: str, query: QueryValues) -> JSONObject:
        """Show a driver with its interfaces.

        :raises driver_name_not_found: 404
        """
        return _selected(resources.driver(request.base, _one(request, driver), request.version, detail=True), query)


def _refuse(request: Request, driver: str, method: str, query: QueryValues) -> None:
    _one(request, driver)
    raise InvalidParameterValue(
        f"method: driver {driver} has no vendor method {printable(method_of(method, query))}. Valid: none.")


def _drivers(request: Request) -> dict[str, resources.Driver]:
    with request.db.reader() as conn:
        return resources.collect(conductors.alive(conn, request.conf.conductor.heartbeat_timeout))


def _one(request: Request, name: str) -> resources.Driver:
    try:
        return _drivers(request)[name]
    except KeyError:
        raise driver_name_not_found(driver=name) from None


def _selected(reply: JSONObject, query: QueryValues) -> JSONObject:
    fields = query.get("fields")
    if fields is None:
        return reply
    filters.check_fields(fields, reply)
    return {name: value for name, value in reply.items() if name in fields or name == "links"}
