"""``/v1/drivers``: the hardware types that live conductors offer."""

from __future__ import annotations

from typing import Any, ClassVar

import pecan

from ironic_rules.api import filters, pagination
from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.api.views import drivers as views
from ironic_rules.db import conductors
from ironic_rules.exceptions import DriverNameNotFound
from ironic_rules.policies import drivers as policies

_LIST = filters.Listing(sort_keys=("name",), marker=filters.text, type=filters.one_of("classic", "dynamic"))
_ONE = filters.Query(fields=filters.names, detail=filters.boolean)


class PropertiesController(Resource):
    """``/v1/drivers/{driver}/properties``."""

    @expose(policy=policies.GET_PROPERTIES)
    def get_all(self, driver: str) -> dict[str, str]:
        """Return the ``driver_info`` keys that the driver reads, each with a description.

        :raises DriverNameNotFound: 404
        """
        return _one(driver).properties


class DriversController(Resource):
    """All drivers are hardware types; there are no classic ones."""

    below_item: ClassVar = {"properties": PropertiesController()}

    @expose(policy=policies.GET, query=_LIST)
    def get_all(self, query: dict[str, Any]) -> dict[str, Any]:
        """List drivers by name, which is the marker; their interfaces with ``detail``."""
        found = {} if query.get("type") == "classic" else _drivers()
        minor, detail = pecan.request.version, query.get("detail", False)
        asked = pagination.page({"sort_key": "name", **query})
        return pagination.collection(
            "drivers", pagination.of_few(list(found.values()), asked, "name"), asked,
            lambda shown: [_selected(views.driver(entry, minor, detail=detail), query) for entry in shown],
            marker="name")

    @expose(policy=policies.GET, query=_ONE)
    def get_one(self, driver: str, query: dict[str, Any]) -> dict[str, Any]:
        """Show a driver with its interfaces.

        :raises DriverNameNotFound: 404
        """
        return _selected(views.driver(_one(driver), pecan.request.version, detail=True), query)


def _drivers() -> dict[str, views.Driver]:
    with pecan.request.db.reader() as conn:
        return views.collect(conductors.alive(conn, pecan.request.conf.conductor.heartbeat_timeout))


def _one(name: str) -> views.Driver:
    try:
        return _drivers()[name]
    except KeyError:
        raise DriverNameNotFound(driver=name) from None


def _selected(reply: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    fields = query.get("fields")
    if fields is None:
        return reply
    filters.check_fields(fields, reply)
    return {name: value for name, value in reply.items() if name in fields or name == "links"}
