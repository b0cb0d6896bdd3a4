"""``/v1/conductors``: the registered conductors, and whether each is alive."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import filters, pagination, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.views import conductors as views
from ironic_rules.db import conductors
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import conductors as policies

_SORT_KEYS = ("hostname", "conductor_group", "created_at", "updated_at")
_LINKS = (*views.FIELDS, "links")


class ConductorsController(Resource):
    """Since API 1.49. The marker is the host name."""

    @expose(since=versions.CONDUCTORS, policy=policies.GET,
            query=filters.Listing(sort_keys=_SORT_KEYS, fields=_LINKS, marker=filters.text))
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List conductors by host name; with ``detail`` also ``drivers``, ``created_at`` and ``updated_at``."""
        asked = pagination.page(request, {"sort_key": "hostname", **query})
        with request.db.reader() as conn:
            rows = conductors.list_conductors(conn)
            alive = _alive(request, conn)
        fields = query.get("fields") or (views.FIELDS if query.get("detail") else views.SUMMARY)
        return pagination.collection(
            request, "conductors", pagination.of_few(rows, asked, "hostname"), asked,
            lambda shown: [views.conductor(request.base, row, alive, fields) for row in shown], marker="hostname")

    @expose(since=versions.CONDUCTORS, policy=policies.GET, query=filters.Query(fields=filters.names))
    def get_one(self, request: Request, hostname: str, query: QueryValues) -> JSONObject:
        """Show one conductor.

        :raises ConductorNotFound: 404
        """
        filters.check_fields(query.get("fields", ()), _LINKS)
        with request.db.reader() as conn:
            return views.conductor(request.base, conductors.get(conn, hostname), _alive(request, conn),
                                   query.get("fields") or views.FIELDS)


def _alive(request: Request, conn: Any) -> set[str]:
    return {row.hostname for row in conductors.alive(conn, request.conf.conductor.heartbeat_timeout)}
