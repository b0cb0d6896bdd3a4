"""``/v1/nodes/{node}/inspections``: the inspections of a node that have ended."""

from __future__ import annotations

from ironic_rules.api import filters, links, versions
from ironic_rules.api.controllers.v1 import node_records
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import node_records as node_records_db
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inspections import InspectionEntry, rules
from ironic_rules.policies import nodes as policies

_SHORT = ("uuid", "created_at", "started_at", "kind", "outcome")
#: Fields of the row, and those within ``details``.
_COLUMNS = (*_SHORT, "user", "source", "conductor", "request_id", "inventory_id")
_DETAILS = ("seconds", "rules", "messages", "failure")
_FULL = (*_COLUMNS, *_DETAILS)
_LIST = filters.Listing(sort_keys=("id", *_COLUMNS), fields=(*_FULL, "links"))


class InspectionsController(Resource):
    """Since API 1.96. ``[inspection_history]max_entries`` of each node are kept."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INSPECTIONS, query=_LIST)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the inspections of a node, oldest first; with ``detail`` all their fields, or those of ``fields``.

        ``seconds`` has how long the stages took: ``wait`` for the ramdisk's data, ``queue``, ``receive``, ``hooks``,
        ``rules`` and ``finish``.
        ``rules`` are those that matched, each with ``changes``: patches (RFC 6902) of ``node`` and of ``ports``, with
        secrets masked, and null for a sensitive rule. ``inventory_id`` is the ``version`` of the data.

        :raises NodeNotFound: 404
        """
        fields = query.get("fields") or (_FULL if query.get("detail") else _SHORT)
        return node_records.listed(
            request, node, query, "inspections", node_records_db.list_inspections,
            lambda uuid, entry: _view(request, uuid, entry, fields))

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INSPECTIONS)
    def get_one(self, request: Request, node: str, inspection: str) -> JSONObject:
        """Return one inspection.

        :raises NodeNotFound, InspectionNotFound: 404
        """
        return node_records.one(
            request, node, inspection, "inspection", node_records_db.get_inspection,
            lambda uuid, entry: _view(request, uuid, entry, _FULL))


def _view(request: Request, node: str, entry: InspectionEntry, fields: tuple[str, ...]) -> JSONObject:
    shown = {name: getattr(entry, name) for name in _COLUMNS if name in fields}
    shown |= {name: rules(entry.details) if name == "rules" else entry.details.get(name)
              for name in _DETAILS if name in fields}
    shown["links"] = links.resource(request.base, "nodes", node, "inspections", entry.uuid)[:1]
    return shown
