"""The records of a node: history, inspections, inventories, values of legacy rules and origins of traits.

======================================  ==================================================================
``history``, since API 1.78             its events
``inspections``                         its inspections that have ended
``inventory``, since API 1.81           its data; their versions and differences, since 1.96
``legacy_values``                       the values that legacy rules have written on it
``trait_origins``                       the rules that gave it its traits
======================================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import orjson
import sqlalchemy as sa

from ironic_rules.api import filters, links, pagination, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1.trials import ReapplyController
from ironic_rules.db import inventory, legacy_values, node_records, node_sets
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import InvalidParameterValue, NotFound, inventory_not_found
from ironic_rules.models import inspections as inspections_models
from ironic_rules.models import inventories, secrets
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.inspections import InspectionEntry, rules
from ironic_rules.models.inventories import InspectionData, StoredInventory
from ironic_rules.models.nodes import HistoryEntry, Node
from ironic_rules.policies import nodes as policies


class _Record(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def uuid(self) -> str: ...


R = TypeVar("R", bound=_Record)


def listed(request: Request, node: str, query: QueryValues, name: str,
           list_for: Callable[[sa.Connection, int, Page], Sequence[R]],
           view: Callable[[str, R], JSONObject]) -> JSONObject:
    """Return a page of the records of a node.

    :param name: of the collection
    :param list_for: reads a page of the records of the node with that id
    :param view: returns a record of the node with that UUID
    :raises NodeNotFound: 404
    """
    page = pagination.page(request, query)
    with request.db.reader() as conn:
        row = node_access.find(request, conn, node)
        records = list_for(conn, row.id, page)
    return pagination.collection(request, name, records, page,
                                 lambda shown: [view(row.uuid, record) for record in shown])


def one(request: Request, node: str, ident: str, kind: str, get: Callable[[sa.Connection, Node, str], R],
        view: Callable[[str, R], JSONObject]) -> JSONObject:
    """Return one record of a node.

    :param kind: what ``ident`` is of, in words
    :param get: reads the record of the node, and raises NotFound
    :raises NotFound: 404
    """
    with request.db.reader() as conn:
        row = node_access.find(request, conn, node)
        record = get(conn, row, node_access.check_ident(ident, kind))
    return view(row.uuid, record)


_SHORT_HISTORY = ("uuid", "created_at", "severity", "event")
_FULL_HISTORY = (*_SHORT_HISTORY, "event_type", "conductor", "user", "request_id")
#: A list without ``detail`` and ``fields`` truncates longer texts.
_MAX_EVENT = 255
_HISTORY_KEYS = ("id", "uuid", "created_at", "severity", "event_type", "conductor", "user")
_LIST_HISTORY = filters.Listing(sort_keys=_HISTORY_KEYS, fields=(*_FULL_HISTORY, "links"))


class HistoryController(Resource):
    """The history of a node."""

    @expose(since=versions.HISTORY, policy=policies.GET_HISTORY, query=_LIST_HISTORY)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the entries, oldest first; with ``detail`` all their fields, or those of ``fields``, in full.

        :raises NodeNotFound: 404
        """
        fields = query.get("fields") or (_FULL_HISTORY if query.get("detail") else None)
        return listed(
            request, node, query, "history", node_records.list_history, lambda uuid,
            entry: _history_entry(request, uuid, entry, fields))

    @expose(since=versions.HISTORY, policy=policies.GET_HISTORY)
    def get_one(self, request: Request, node: str, event: str) -> JSONObject:
        """Return one entry.

        :raises NodeNotFound, history_not_found: 404
        """
        return one(
            request, node, event, "history entry", node_records.get_history, lambda uuid,
            entry: _history_entry(request, uuid, entry, _FULL_HISTORY))


def _history_entry(request: Request, node: str, entry: HistoryEntry, fields: tuple[str, ...] | None) -> JSONObject:
    """Return an entry with ``fields``; None: the fields of a short list, with the text truncated."""
    shown = {name: getattr(entry, name) for name in _FULL_HISTORY if name in (fields or _SHORT_HISTORY)}
    if fields is None and shown["event"] and len(shown["event"]) > _MAX_EVENT:
        shown["event"] = shown["event"][:_MAX_EVENT - 3] + "..."
    if fields == _FULL_HISTORY and entry.inspection_uuid is not None:
        shown["inspection"] = entry.inspection_uuid
    shown["links"] = links.resource(request.base, "nodes", node, "history", entry.uuid)[:1]
    return shown


_SHORT_INSPECTION = ("uuid", "created_at", "started_at", "kind", "outcome")
#: Fields of the row, and those within ``details``.
_COLUMNS = (*_SHORT_INSPECTION, "user", "source", "conductor", "request_id", "inventory_id")
_DETAILS = ("seconds", "rules", "messages", "failure")
_FULL_INSPECTION = (*_COLUMNS, *_DETAILS)
_LIST_INSPECTIONS = filters.Listing(sort_keys=("id", *_COLUMNS), fields=(*_FULL_INSPECTION, "links"))


class InspectionsController(Resource):
    """Since API 1.96. ``[inspection_history]max_entries`` of each node are kept."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INSPECTIONS, query=_LIST_INSPECTIONS)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the inspections of a node, oldest first; with ``detail`` all their fields, or those of ``fields``.

        ``seconds`` has how long the stages took: ``wait`` for the ramdisk's data, ``queue``, ``receive``, ``hooks``,
        ``rules`` and ``finish``. ``rules`` are those that matched, each with ``changes``: patches (RFC 6902) of
        ``node`` and of ``ports``, with secrets masked, and null for a sensitive rule; only those of an inspection
        that has ``finished`` are saved. ``inventory_id`` is the ``version`` of the data.

        :raises NodeNotFound: 404
        """
        fields = query.get("fields") or (_FULL_INSPECTION if query.get("detail") else _SHORT_INSPECTION)
        return listed(
            request, node, query, "inspections", node_records.list_inspections,
            lambda uuid, entry: _inspection(request, uuid, entry, fields))

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INSPECTIONS)
    def get_one(self, request: Request, node: str, inspection: str) -> JSONObject:
        """Return one inspection.

        :raises NodeNotFound, inspection_not_found: 404
        """
        return one(
            request, node, inspection, "inspection", node_records.get_inspection,
            lambda uuid, entry: _inspection(request, uuid, entry, _FULL_INSPECTION))


def _inspection(request: Request, node: str, entry: InspectionEntry, fields: tuple[str, ...]) -> JSONObject:
    shown = {name: getattr(entry, name) for name in _COLUMNS if name in fields}
    shown |= {name: rules(entry.details) if name == "rules" else entry.details.get(name)
              for name in _DETAILS if name in fields}
    shown["links"] = links.resource(request.base, "nodes", node, "inspections", entry.uuid)[:1]
    return shown


#: The values of ``status`` in requests and replies, and those in the table.
_STATUSES = {"processed": inventory.PROCESSED, "failed": inventory.FAILED, "pending": inventory.RECEIVED,
             "waiting": inventory.WAITING}
_WORDS = {stored: word for word, stored in _STATUSES.items()}
_QUERY = filters.Query(status=filters.one_of(*_STATUSES), version=filters.positive)
_SHOWN = ("version", "status", "created_at", "updated_at", "request_id")
_LIST_INVENTORIES = filters.Listing(sort_keys=inventory.VERSION, fields=_SHOWN, marker=filters.positive)
_DIFF = filters.Query(**{"from": filters.positive, "to": filters.positive})


class VersionsController(Resource):
    """``/v1/nodes/{node}/inventory/versions``: the inspections of a node whose data are kept."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INVENTORY, query=_LIST_INVENTORIES)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the versions of a node's inventory, oldest first, without the data.

        ``[inventory]max_versions`` of each node are kept, and always the last one that was successful.

        :raises NodeNotFound: 404;  MarkerNotFound: 404, there is no such version
        """
        page = pagination.page(request, query)
        fields = query.get("fields") or _SHOWN
        with request.db.reader() as conn:
            rows = inventory.versions(conn, node_access.find(request, conn, node).id, page)
        return pagination.collection(
            request, "versions", rows, page, lambda shown: [_version(row, fields) for row in shown], marker="id")


class DiffController(Resource):
    """``/v1/nodes/{node}/inventory/diff``: what has changed between two inspections of a node."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INVENTORY, query=_DIFF)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """Return how the inventory ``to`` differs from the inventory ``from``, which are versions of the node.

        By default ``to`` is the last successful inspection, and ``from`` the last successful one before it. ``disks``
        (by serial number), ``interfaces`` (by MAC address), ``pci_devices`` and ``firmware_components`` have what was
        ``added``, ``removed`` and ``changed``; ``memory`` and ``firmware`` the fields that have changed; ``patch``
        (RFC 6902) is that of the whole inventory. Secrets are masked before the comparison.

        :raises NodeNotFound, inventory_not_found: 404
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            after = _wanted(conn, row, query.get("to"))
            before = _wanted(conn, row, query.get("from"), after)
        return {"from": _version(before, _SHOWN), "to": _version(after, _SHOWN),
                **inventories.difference(_data(before), _data(after))}


class InventoryController(Resource):
    """The data of an inspection of a node."""

    below: ClassVar = {"versions": VersionsController(), "diff": DiffController(), "reapply": ReapplyController()}

    @expose(since=versions.INVENTORY, policy=policies.GET_INVENTORY, query=_QUERY)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """Return ``{"inventory": as the ramdisk sent it, "plugin_data": the rest}``; secrets in them are masked.

        With a parameter, the reply also contains ``status``: how far the inspection came. If values of the report could
        not be used as they came, it contains ``warnings``, a list.

        ``version`` selects one inspection, ``status`` the newest one with this status. Without both, the reply contains
        the data of the last successful inspection, or if there is none, of the newest one. Plug-in data are as hooks
        and rules have changed them, or, unless ``processed``, as the ramdisk sent them.

        :raises NodeNotFound, inventory_not_found: 404
        """
        status, version = query.get("status"), query.get("version")
        if status is not None and version is not None:
            raise InvalidParameterValue("status and version cannot be used in one request.")
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            if version is not None:
                stored: StoredInventory | None = _wanted(conn, row, version)
            else:
                stored = inventory.latest(conn, row.id, status and _STATUSES[status], raw_json=True)
        if stored is None:
            raise inventory_not_found(node=row.uuid) if status is None else NotFound(
                f"Node {row.uuid} has no inspection inventory that is {status}.")
        plugin_data = stored.plugin_data if stored.status == inventory.PROCESSED else stored.received_plugin_data
        # Clients of Ironic expect the two keys alone.
        shown = {"inventory": _masked(stored.inventory_data), **({"status": _WORDS[stored.status]} if query else {})}
        if inventories.WARNINGS not in (plugin_data or ""):
            return {**shown, "plugin_data": _masked(plugin_data or "{}")}
        rest = _loaded(plugin_data)
        return {**shown, "warnings": rest.pop(inventories.WARNINGS, []), "plugin_data": rest}


def _wanted(conn: sa.Connection, node: Node, version: int | None,
            after: StoredInventory | None = None) -> StoredInventory:
    """Return a version of a node's data, with JSON as text.

    :param version: None: the last successful one
    :param after: before which it is, if no version is given
    :raises NotFound: 404
    """
    if version is not None:
        stored, wording = inventory.get(conn, node.id, version, raw_json=True), f"version {version}"
    elif after is None:
        stored = inventory.latest(conn, node.id, inventory.PROCESSED, raw_json=True)
        wording = "of a successful inspection"
    else:
        stored = inventory.successful_before(conn, node.id, after.id, raw_json=True)
        wording = f"of a successful inspection before version {after.id}"
    if stored is None:
        raise NotFound(f"Node {node.uuid} has no inspection inventory {wording}.")
    return stored


def _version(row: Any, fields: Collection[str]) -> JSONObject:
    shown = {"version": row.id, "status": _WORDS[row.status], "created_at": row.created_at,
             "updated_at": row.updated_at, "request_id": row.request_id}
    return {name: value for name, value in shown.items() if name in fields}


def _data(row: StoredInventory) -> InspectionData:
    return InspectionData(_loaded(row.inventory_data), _loaded(row.received_plugin_data))


def _loaded(text: Any) -> JSONObject:
    value: JSONObject = orjson.loads(text)
    return value if secrets.json_has_none(text) else secrets.mask(value)


def _masked(text: Any) -> Any:
    return orjson.Fragment(text) if secrets.json_has_none(text) else secrets.mask(orjson.loads(text))


_LIST_LEGACY = filters.Query(limit=filters.positive, marker=filters.positive)


class LegacyValuesController(Resource):
    """In every version of the API."""

    @expose(policy=policies.LIST_LEGACY_VALUES, query=_LIST_LEGACY)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the values in the order in which rules wrote them; they are reverted in the reverse order.

        ``place`` is a path below the node, or the name of a capability or trait. ``written`` is the value that the rule
        wrote, unless it removed the value (``is_set`` false). ``before`` is the previous value, if ``had_before``. If
        ``made`` is -1, ``before`` contains all capabilities as they were written. Secrets are shown as ``******``.
        ``marker`` is the ``id`` of the last value of a page.

        :raises NodeNotFound: 404
        """
        page = pagination.page(request, query)
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            values = legacy_values.list_values(conn, row.id, page.limit, query.get("marker"))
        return pagination.collection(request, "legacy_values", values, page,
                                     lambda shown: list(map(_legacy_value, shown)),
                                     marker="id")


def _legacy_value(row: Row) -> JSONObject:
    is_secret = any(secrets.is_secret_key(token) for token in row.place.split("/"))

    def masked(value: JSON) -> Any:
        return secrets.MASK if is_secret and value is not None else secrets.mask(value)

    # Names of columns that are words of SQL are not plain texts.
    shown = {str(name): value for name, value in row._asdict().items()}
    return {**shown, "written": masked(row.written), "before": masked(row.before)}


#: Inspections that are looked at, the newest first.
_MOST = 100


class TraitOriginsController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INSPECTIONS)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """List the traits of a node, each with the ``rule`` that gave it last, in which ``inspection``, and when.

        Found in the node's last 100 inspections that are kept. Where no rule of them gave the trait, or a sensitive
        one, the other fields are null.

        :raises NodeNotFound: 404
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            names = node_sets.list_traits(conn, [row.id])[row.id]
            entries = node_records.list_inspections(conn, row.id, Page(_MOST, sort_dir="desc")) if names else ()
        origins = inspections_models.trait_origins(entries)
        return {"trait_origins": [_trait_origin(name, origins.get(name)) for name in names]}


def _trait_origin(trait: str, origin: inspections_models.TraitOrigin | None) -> JSONObject:
    if origin is None:
        return {"trait": trait, "rule": None, "inspection": None, "given_at": None}
    return {"trait": trait, "rule": origin.rule, "inspection": origin.inspection.uuid,
            "given_at": origin.inspection.created_at}
