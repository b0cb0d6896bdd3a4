"""Virtual interfaces (VIFs): each is a key in the ``internal_info`` of the port or port group it is attached to.

The network interface ``noop`` takes any number of them. Those for which the node has no port are a list in its
``driver_internal_info``.
"""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.db import nodes, portgroups, ports
from ironic_rules.models.internal_keys import VIFS_WITHOUT_PORT
from ironic_rules.models.nodes import Node
from ironic_rules.models.ports import VIF

#: Key of ``internal_info``.
KEY = VIF


def without_port(node: Node) -> list[str]:
    """Return the VIFs of a node for which it has no port."""
    return list(node.driver_internal_info.get(VIFS_WITHOUT_PORT, ()))


def set_without_port(conn: sa.Connection, node: Node, vifs: list[str]) -> None:
    """Write the VIFs for which the node has no port."""
    kept = {name: value for name, value in node.driver_internal_info.items() if name != VIFS_WITHOUT_PORT}
    nodes.update(conn, node.id, {"driver_internal_info": {**kept, VIFS_WITHOUT_PORT: vifs} if vifs else kept})


def detach_all(conn: sa.Connection, node_id: int) -> None:
    """Detach every VIF from the node's ports."""
    for table in (portgroups, ports):
        for place in table.for_node(conn, node_id):
            if KEY in place.internal_info:
                kept = {name: value for name, value in place.internal_info.items() if name != KEY}
                table.update(conn, place.id, {"internal_info": kept})
