"""The nodes whose hardware is polled: those that wait in a procedure for a step that it carries out by itself."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from ironic_rules.db.projection import Row
from ironic_rules.db.session import Database
from ironic_rules.db.tables import nodes
from ironic_rules.models import states

_STATES = (states.DEPLOYWAIT, states.CLEANWAIT, states.SERVICEWAIT)
#: What an interface may read of a node while it polls.
_COLUMNS = ("id", "uuid", "name", "driver", "driver_info", "driver_internal_info", "provision_state",
            "target_provision_state", "power_state", "disable_power_off", "conductor_group")
_INTERFACES = tuple(column for column in nodes.c if column.name.endswith("_interface"))
#: A node in maintenance is left alone, as with other time-outs.
_FREE = sa.and_(nodes.c.provision_state.in_(_STATES), nodes.c.reservation.is_(None), nodes.c.maintenance.is_(False))
_FOUND = sa.select(*(nodes.c[name] for name in _COLUMNS), *_INTERFACES).where(_FREE)
_BY_ID = _FOUND.where(nodes.c.id == sa.bindparam("node_id"))
_PAGE = 200


def pages(db: Database, conductor_group: str, key: str) -> Iterator[list[Row]]:
    """Yield the nodes of a group that have ``key`` in ``driver_internal_info``, a page at a time: what polls need.

    Not those that are locked or in maintenance.
    """
    internal = sa.type_coerce(nodes.c.driver_internal_info, sa.Text)
    query = _FOUND.where(nodes.c.conductor_group == conductor_group, internal.contains(f'"{key}"', autoescape=True))
    last = 0
    while True:
        with db.reader() as conn:
            page = list(conn.execute(query.where(nodes.c.id > last).order_by(nodes.c.id).limit(_PAGE)).all())
        if not page:
            return
        yield page
        last = page[-1].id


def get(db: Database, node_id: int) -> Row | None:
    """Return a node as :func:`pages` does, if it waits; else None."""
    with db.reader() as conn:
        return conn.execute(_BY_ID, {"node_id": node_id}).one_or_none()
