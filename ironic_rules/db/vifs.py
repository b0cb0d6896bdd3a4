"""Virtual interfaces (VIFs): each is a key in the ``internal_info`` of the port or port group it is attached to."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.db import portgroups, ports

#: The name that Nova reads.
KEY = "tenant_vif_port_id"


def detach_all(conn: sa.Connection, node_id: int) -> None:
    """Detach every VIF of the node."""
    for table in (portgroups, ports):
        for place in table.for_node(conn, node_id):
            if KEY in place.internal_info:
                kept = {name: value for name, value in place.internal_info.items() if name != KEY}
                table.update(conn, place.id, {"internal_info": kept})
