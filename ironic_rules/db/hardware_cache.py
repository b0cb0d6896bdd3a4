"""BIOS settings and firmware components of nodes, as their BMCs reported them last.

They are written by the conductor that holds the node's lock. Only rows that differ are written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import bios_settings, firmware_components
from ironic_rules.exceptions import BIOSSettingNotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import BIOSSetting, FirmwareComponent, StoredComponent, StoredSetting

_OF_NODE: sa.BindParameter[int] = sa.bindparam("of_node")
_SETTINGS = sa.select(bios_settings).where(bios_settings.c.node_id == _OF_NODE).order_by(bios_settings.c.name)
_COMPONENTS = sa.select(firmware_components).where(
    firmware_components.c.node_id == _OF_NODE).order_by(firmware_components.c.component)


def list_settings(conn: sa.Connection, node_id: int) -> Sequence[StoredSetting]:
    """Return the BIOS settings of a node by their names."""
    return conn.execute(_SETTINGS, {"of_node": node_id}).all()


def get_setting(conn: sa.Connection, node_id: int, name: str) -> StoredSetting:
    """Return one BIOS setting of a node.

    :raises BIOSSettingNotFound: 404
    """
    row = conn.execute(_SETTINGS.where(bios_settings.c.name == name), {"of_node": node_id}).one_or_none()
    if row is None:
        raise BIOSSettingNotFound(node=node_id, name=name)
    return row


def list_components(conn: sa.Connection, node_id: int) -> Sequence[StoredComponent]:
    """Return the firmware components of a node by their names."""
    return conn.execute(_COMPONENTS, {"of_node": node_id}).all()


def save_settings(conn: sa.Connection, node_id: int, settings: Iterable[BIOSSetting]) -> None:
    """Make ``settings`` the BIOS settings of a node. The first of two with one name counts."""
    reported: dict[str, JSONObject] = {}
    for setting in settings:
        values = dataclasses.asdict(setting)
        allowed = values["allowable_values"]
        reported.setdefault(setting.name, {**values, "allowable_values": None if allowed is None else list(allowed)})
    _save(conn, bios_settings.c.name, node_id, conn.execute(_SETTINGS, {"of_node": node_id}), reported)


def save_components(conn: sa.Connection, node_id: int, components: Iterable[FirmwareComponent]) -> None:
    """Make ``components`` the firmware components of a node. Each keeps its initial version."""
    present = {row.component: row for row in conn.execute(_COMPONENTS, {"of_node": node_id}).all()}
    reported = {}
    for component in components:
        version, row = component.current_version, present.get(component.component)
        flashed = None if row is None else row.last_version_flashed
        if row is not None and row.current_version is not None and version not in (None, row.current_version):
            flashed = version
        reported[component.component] = {
            "component": component.component, "current_version": version, "last_version_flashed": flashed,
            "initial_version": version if row is None or row.initial_version is None else row.initial_version}
    _save(conn, firmware_components.c.component, node_id, present.values(), reported)


def _save(conn: sa.Connection, key: sa.Column[Any], node_id: int, present: Iterable[Row],
          reported: Mapping[str, JSONObject]) -> None:
    """Make ``reported`` the rows of a node, by the column ``key``."""
    table, now = key.table, clock.now()
    of_node = table.c.node_id == node_id
    stored = {getattr(row, key.name): row for row in present}
    if gone := sorted(stored.keys() - reported.keys()):
        for start in range(0, len(gone), _BATCH):
            conn.execute(sa.delete(table).where(of_node, key.in_(gone[start:start + _BATCH])))
    if new := [{**values, "node_id": node_id, "created_at": now} for name, values in reported.items()
               if name not in stored]:
        conn.execute(sa.insert(table), new)  # type: ignore[arg-type]
    for name, values in reported.items():
        if name in stored and any(getattr(stored[name], column) != value for column, value in values.items()):
            conn.execute(sa.update(table).where(of_node, key == name).values(  # type: ignore[arg-type]
                **values, updated_at=now))


#: SQLite limits the number of parameters of a statement.
_BATCH = 500
