"""``/v1/nodes/{node}/inventory``, since API 1.81."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson
import pecan

from ironic_rules.api import filters, versions
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.controllers.v1.node_reapply import ReapplyController
from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.db import inventory
from ironic_rules.exceptions import InventoryNotFound
from ironic_rules.models import secrets
from ironic_rules.policies import nodes as policies

#: The values of ``status`` in requests and replies, and those in the table.
_STATUSES = {"processed": inventory.PROCESSED, "failed": inventory.FAILED, "pending": inventory.RECEIVED,
             "waiting": inventory.WAITING}
_WORDS = {stored: word for word, stored in _STATUSES.items()}
_QUERY = filters.Query(status=filters.one_of(*_STATUSES))


class InventoryController(Resource):
    """The data of an inspection of a node."""

    below: ClassVar = {"reapply": ReapplyController()}

    @expose(since=versions.INVENTORY, policy=policies.GET_INVENTORY, query=_QUERY)
    def get_all(self, node: str, query: dict[str, Any]) -> dict[str, Any]:
        """Return ``{"inventory": as the ramdisk sent it, "plugin_data": the rest, "status": how far it came}``.

        Secrets in them are masked.

        These are the newest data with the requested ``status``; if none is requested, those of the last successful
        inspection, and without one the newest. Plug-in data are as hooks and rules have changed them, or, unless
        ``processed``, as they were received.

        :raises NodeNotFound, InventoryNotFound: 404
        """
        wanted = query.get("status")
        with pecan.request.db.reader() as conn:
            row = node_access.find(conn, node)
            found = inventory.latest(conn, row.id, wanted and _STATUSES[wanted], raw_json=True)
        if found is None:
            raise InventoryNotFound(wanted and f"Node {row.uuid} has no inspection inventory that is {wanted}.",
                                    node=row.uuid)
        plugin_data = found.plugin_data if found.status == inventory.PROCESSED else found.received_plugin_data
        return {"inventory": _masked(found.inventory_data), "plugin_data": _masked(plugin_data or "{}"),
                "status": _WORDS[found.status]}


def _masked(text: Any) -> Any:
    return orjson.Fragment(text) if secrets.json_has_none(text) else secrets.mask(orjson.loads(text))
