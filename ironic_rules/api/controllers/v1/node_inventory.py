"""``/v1/nodes/{node}/inventory``, since API 1.81; its versions and their differences, since 1.96."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import orjson
import sqlalchemy as sa

from ironic_rules.api import filters, pagination, versions
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.controllers.v1.node_reapply import ReapplyController
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import inventory
from ironic_rules.exceptions import InvalidParameterValue, InventoryNotFound
from ironic_rules.models import inventories, secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import InspectionData, StoredInventory
from ironic_rules.models.nodes import Node
from ironic_rules.policies import nodes as policies

#: The values of ``status`` in requests and replies, and those in the table.
_STATUSES = {"processed": inventory.PROCESSED, "failed": inventory.FAILED, "pending": inventory.RECEIVED,
             "waiting": inventory.WAITING}
_WORDS = {stored: word for word, stored in _STATUSES.items()}
_QUERY = filters.Query(status=filters.one_of(*_STATUSES), version=filters.positive)
_SHOWN = ("version", "status", "created_at", "updated_at", "request_id")
_LIST = filters.Listing(sort_keys=inventory.VERSION, fields=_SHOWN, marker=filters.positive)
_DIFF = filters.Query(**{"from": filters.positive, "to": filters.positive})


class VersionsController(Resource):
    """``/v1/nodes/{node}/inventory/versions``: the inspections of a node whose data are kept."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INVENTORY, query=_LIST)
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

        :raises NodeNotFound, InventoryNotFound: 404
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
        """Return ``{"inventory": as the ramdisk sent it, "plugin_data": the rest, "status": how far it came}``.

        Secrets in them are masked.

        These are the data with the requested ``version``, or the newest ones with the requested ``status``. If neither
        is requested, they are those of the last successful inspection, and without one the newest. Plug-in data are as
        hooks and rules have changed them, or, unless ``processed``, as they were received.

        :raises NodeNotFound, InventoryNotFound: 404
        """
        wanted, version = query.get("status"), query.get("version")
        if wanted is not None and version is not None:
            raise InvalidParameterValue("status and version cannot be used in one request.")
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            if version is not None:
                found: StoredInventory | None = _wanted(conn, row, version)
            else:
                found = inventory.latest(conn, row.id, wanted and _STATUSES[wanted], raw_json=True)
        if found is None:
            raise InventoryNotFound(wanted and f"Node {row.uuid} has no inspection inventory that is {wanted}.",
                                    node=row.uuid)
        plugin_data = found.plugin_data if found.status == inventory.PROCESSED else found.received_plugin_data
        return {"inventory": _masked(found.inventory_data), "plugin_data": _masked(plugin_data or "{}"),
                "status": _WORDS[found.status]}


def _wanted(conn: sa.Connection, node: Node, version: int | None,
            after: StoredInventory | None = None) -> StoredInventory:
    """Return a version of a node's data, with JSON as text.

    :param version: None: the last successful one
    :param after: before which it is, if no version is given
    :raises InventoryNotFound: 404
    """
    if version is not None:
        found, what = inventory.get(conn, node.id, version, raw_json=True), f"version {version}"
    elif after is None:
        found, what = inventory.latest(conn, node.id, inventory.PROCESSED, raw_json=True), "of a successful inspection"
    else:
        found = inventory.successful_before(conn, node.id, after.id, raw_json=True)
        what = f"of a successful inspection before version {after.id}"
    if found is None:
        raise InventoryNotFound(f"Node {node.uuid} has no inspection inventory {what}.", node=node.uuid)
    return found


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
