"""``/v1/nodes/{node}/history``, since API 1.78."""

from __future__ import annotations

from ironic_rules.api import filters, links, versions
from ironic_rules.api.controllers.v1 import node_records
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import node_records as node_records_db
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import HistoryEntry
from ironic_rules.policies import nodes as policies

_SHORT = ("uuid", "created_at", "severity", "event")
_FULL = (*_SHORT, "event_type", "conductor", "user", "request_id")
#: A list without ``detail`` and ``fields`` truncates longer texts.
_MAX_EVENT = 255
_SORT_KEYS = ("id", "uuid", "created_at", "severity", "event_type", "conductor", "user")
_LIST = filters.Listing(sort_keys=_SORT_KEYS, fields=(*_FULL, "links"))


class HistoryController(Resource):
    """The history of a node."""

    @expose(since=versions.HISTORY, policy=policies.GET_HISTORY, query=_LIST)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the entries, oldest first; with ``detail`` all their fields, or those of ``fields``, in full.

        :raises NodeNotFound: 404
        """
        fields = query.get("fields") or (_FULL if query.get("detail") else None)
        return node_records.listed(
            request, node, query, "history", node_records_db.list_history, lambda uuid,
            entry: _view(request, uuid, entry, fields))

    @expose(since=versions.HISTORY, policy=policies.GET_HISTORY)
    def get_one(self, request: Request, node: str, event: str) -> JSONObject:
        """Return one entry.

        :raises NodeNotFound, HistoryNotFound: 404
        """
        return node_records.one(
            request, node, event, "history entry", node_records_db.get_history, lambda uuid,
            entry: _view(request, uuid, entry, _FULL))


def _view(request: Request, node: str, entry: HistoryEntry, fields: tuple[str, ...] | None) -> JSONObject:
    """Return an entry with ``fields``; None: the fields of a short list, with the text truncated."""
    shown = {name: getattr(entry, name) for name in _FULL if name in (fields or _SHORT)}
    if fields is None and shown["event"] and len(shown["event"]) > _MAX_EVENT:
        shown["event"] = shown["event"][:_MAX_EVENT - 3] + "..."
    if fields == _FULL and entry.inspection_uuid is not None:
        shown["inspection"] = entry.inspection_uuid
    shown["links"] = links.resource(request.base, "nodes", node, "history", entry.uuid)[:1]
    return shown
