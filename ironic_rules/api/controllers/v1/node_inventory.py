"""``/v1/nodes/{node}/inventory``, since API 1.81."""

from __future__ import annotations

from typing import Any

import orjson
import pecan

from ironic_rules.api import versions
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.db import inventory
from ironic_rules.exceptions import InventoryNotFound
from ironic_rules.policies import nodes as policies


class InventoryController(Resource):
    """The result of the last successful inspection of a node."""

    @expose(since=versions.INVENTORY, policy=policies.GET_INVENTORY)
    def get_all(self, node: str) -> dict[str, Any]:
        """Return ``{"inventory": as the ramdisk sent it, "plugin_data": the rest, processed by hooks and rules}``.

        :raises NodeNotFound, InventoryNotFound: 404
        """
        with pecan.request.db.reader() as conn:
            row = node_access.find(conn, node)
            found = inventory.latest(conn, row.id, raw_json=True)
        if found is None:
            raise InventoryNotFound(node=row.uuid)
        return {"inventory": orjson.Fragment(found.inventory_data),
                "plugin_data": orjson.Fragment(found.plugin_data or "{}")}
