"""Rows of one table that clients name by UUID or name: runbooks, chassis, volume connectors and targets.

Rows of volumes have ``node_uuid`` in addition to the columns of the tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from ironic_rules import context
from ironic_rules.db import clock, identity, node_queries, outbox
from ironic_rules.db.errors import duplicates, references
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.projection import Row, columns_of, rows_of
from ironic_rules.db.tables import chassis, nodes, runbooks, volume_connectors, volume_targets
from ironic_rules.exceptions import (
    IronicRulesError,
    NotFound,
    RunbookNotFound,
    chassis_already_exists,
    chassis_not_empty,
    chassis_not_found,
    duplicate_boot_index,
    duplicate_runbook_name,
    duplicate_volume_connector,
    runbook_already_exists,
    volume_connector_already_exists,
    volume_connector_not_found,
    volume_target_already_exists,
    volume_target_not_found,
)
from ironic_rules.models.resources import Chassis

#: Conditions by the name of a filter, made from its value.
Conditions = Mapping[str, Callable[[Any], sa.ColumnElement[bool]]]
#: By column of a unique key: the error, made from the values that were to be written.
Taken = Mapping[str, Callable[[Mapping[str, Any]], IronicRulesError]]
_NODE_UUID = nodes.c.uuid.label("node_uuid")


class Collection:
    """The rows of a table. Where that has ``node_id``, rows have ``node_uuid``, too."""

    def __init__(self, table: sa.Table, kind: str, *, missing: Callable[[Any], NotFound], taken: Taken,
                 filters: Conditions | None = None) -> None:
        """Describe the table.

        :param kind: of its rows, for their events and the audit log
        :param missing: makes the error for an ident that no row has
        :param filters: the filters of lists except ``node_id``
        """
        self._table, self._kind = table, kind
        self._missing = missing
        self._taken = taken
        self._of_node = "node_id" in table.c
        self._filters: Conditions = {
            **({"node_id": lambda value: table.c.node_id == value} if self._of_node else {}), **(filters or {})}

    def get(self, conn: sa.Connection, ident: str, *, for_update: bool = False, shared: bool = False) -> Any:
        """Return the row with the UUID or name ``ident``.

        :param for_update: lock the row until the transaction ends;  shared: so that it only cannot change
        :raises NotFound: 404
        """
        is_named = "name" in self._table.c
        condition = identity.is_called(self._table, ident) if is_named else identity.has_uuid(self._table, ident)
        query = self._select().where(condition)
        if for_update or shared:
            query = query.with_for_update(read=shared, of=self._table)
        return self._one(conn, query, ident)

    def list_rows(self, conn: sa.Connection, filters: Mapping[str, object], page: Page,
                  columns: Iterable[str] | None = None, *, raw_json: bool = False) -> list[Row]:
        """Return at most ``page.limit`` rows that pass all ``filters``.

        :param columns: names of the columns of the rows; None: all columns
        :param raw_json: leave JSON columns as text
        :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
        """
        conditions = (self._filters[name](value) for name, value in filters.items())
        query = self._select(columns, raw_json=raw_json).where(*conditions)
        among = node_queries.of_caller(filters, self._table, self._filters.get("project", node_queries.of_project))
        marker = marker_row(conn, self._table, page, among=among)
        return rows_of(conn, paginate(query, self._table, page, marker))

    def create(self, conn: sa.Connection, values: Mapping[str, object]) -> Any:
        """Store a new row and return it; ``uuid`` and ``created_at`` have defaults.

        :raises Conflict: 409, a value of it must be unique
        """
        row = {"created_at": clock.now(), **values, "uuid": identity.assigned(values)}
        with self._unique(row):
            inserted = conn.execute(sa.insert(self._table).values(row)).inserted_primary_key
        created = self.get_by_id(conn, inserted[0])  # type: ignore[index]
        outbox.note(conn, self._kind, "create", created)
        return created

    def update(self, conn: sa.Connection, row_id: int, values: Mapping[str, object]) -> Any:
        """Write ``values`` and return the row.

        :raises NotFound: 404;  Conflict: 409, a value must be unique
        """
        old = self.get_by_id(conn, row_id) if context.notes_changes() else None
        with self._unique(values):
            conn.execute(sa.update(self._table).where(self._table.c.id == row_id).values(
                {**values, "updated_at": clock.now()}))
        changed = self.get_by_id(conn, row_id)
        outbox.note(conn, self._kind, "update", changed, old)
        return changed

    def destroy(self, conn: sa.Connection, row_id: int) -> None:
        """Delete the row, if it is still there."""
        self.note_end(conn, row_id)
        conn.execute(sa.delete(self._table).where(self._table.c.id == row_id))

    def note_end(self, conn: sa.Connection, row_id: int) -> None:
        """Store the events of a row that is deleted, if it is still there."""
        if context.notes_changes() or outbox.wanted(conn) is not None:
            with contextlib.suppress(NotFound):
                outbox.note(conn, self._kind, "delete", self.get_by_id(conn, row_id))

    def get_by_id(self, conn: sa.Connection, row_id: int) -> Any:
        """Return the row with that database id.

        :raises NotFound: 404
        """
        return self._one(conn, self._select().where(self._table.c.id == row_id), row_id)

    def _one(self, conn: sa.Connection, query: sa.Select[Any], ident: str | int) -> Any:
        row = conn.execute(query).one_or_none()
        if row is None:
            raise self._missing(ident)
        return row

    def _select(self, columns: Iterable[str] | None = None, *, raw_json: bool = False) -> sa.Select[Any]:
        names = None if columns is None else [name for name in columns if name != "node_uuid"]
        own = columns_of(self._table, names, raw_json=raw_json)
        if not self._of_node:
            return sa.select(*own)
        owner = self._table.c.node_id
        joined = self._table.join(nodes, owner == nodes.c.id, isouter=bool(owner.nullable))
        return sa.select(*own, _NODE_UUID).select_from(joined)

    def _unique(self, values: Mapping[str, object]) -> Any:
        return duplicates(**{
            column: lambda value, make=make: make(values) for column,
            make in self._taken.items()})  # type: ignore[misc]


#: ``project``: those that it may see.
_FILTERS = {"project": lambda project: sa.or_(runbooks.c.owner == project, runbooks.c.public.is_(True))}
RUNBOOKS = Collection(
    runbooks, "runbook", filters=_FILTERS, missing=lambda ident: RunbookNotFound(runbook=ident), taken={
    "uuid": lambda values: runbook_already_exists(uuid=values.get("uuid")),
    "name": lambda values: duplicate_runbook_name(name=values.get("name"))})


_OF_PROJECT = {"project": node_queries.of_project}
CONNECTORS = Collection(
    volume_connectors, "volume connector", filters=_OF_PROJECT,
    missing=lambda ident: volume_connector_not_found(connector=ident), taken={
        "uuid": lambda values: volume_connector_already_exists(uuid=values.get("uuid")),
        "connector_id": lambda values: duplicate_volume_connector(
            type=values.get("type"), connector_id=values.get("connector_id"))})
TARGETS = Collection(
    volume_targets, "volume target", filters=_OF_PROJECT,
    missing=lambda ident: volume_target_not_found(target=ident), taken={
        "uuid": lambda values: volume_target_already_exists(uuid=values.get("uuid")),
        "boot_index": lambda values: duplicate_boot_index(boot_index=values.get("boot_index"))})


CHASSIS = Collection(chassis, "chassis", missing=lambda ident: chassis_not_found(chassis=ident),
                     taken={"uuid": lambda values: chassis_already_exists(uuid=values.get("uuid"))})


def destroy_chassis(conn: sa.Connection, uuid: str) -> None:
    """Delete a chassis without nodes.

    :raises chassis_not_found: 404;  chassis_not_empty: 400
    """
    row: Chassis = CHASSIS.get(conn, uuid, for_update=True)
    # SQLite checks references only at the end of a statement, and MariaDB names no row: ask before.
    if conn.scalar(sa.select(sa.exists().where(nodes.c.chassis_uuid == row.uuid))):
        raise chassis_not_empty(chassis=row.uuid)
    with references(lambda key: chassis_not_empty(chassis=row.uuid)):
        CHASSIS.destroy(conn, row.id)
