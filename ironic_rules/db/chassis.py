"""Chassis, which nodes refer to."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.db.collection import Collection
from ironic_rules.db.errors import references
from ironic_rules.db.tables import chassis, nodes
from ironic_rules.exceptions import ChassisAlreadyExists, ChassisNotEmpty, ChassisNotFound
from ironic_rules.models.resources import Chassis

CHASSIS = Collection(chassis, missing=lambda ident: ChassisNotFound(chassis=ident),
                     taken={"uuid": lambda values: ChassisAlreadyExists(uuid=values.get("uuid"))})


def destroy(conn: sa.Connection, uuid: str) -> None:
    """Delete a chassis without nodes.

    :raises ChassisNotFound: 404;  ChassisNotEmpty: 400
    """
    row: Chassis = CHASSIS.get(conn, uuid, for_update=True)
    # SQLite checks references only at the end of a statement, and MariaDB names no row: ask before.
    if conn.scalar(sa.select(sa.exists().where(nodes.c.chassis_uuid == row.uuid))):
        raise ChassisNotEmpty(chassis=row.uuid)
    with references(lambda key: ChassisNotEmpty(chassis=row.uuid)):
        CHASSIS.destroy(conn, row.id)
