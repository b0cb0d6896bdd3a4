"""Inventories: the data that ramdisks sent, stored before they are processed, and the result of their processing.

A row is ``received`` until the inspection that it belongs to has ended, and ``processed`` or ``failed`` then. Data
after which the inspect interface waits for more are ``waiting`` until then.

The transaction that stores an inventory also adds its paths to a catalogue of those that inventories have. Each process
remembers what it has read: only a path that it does not know costs a query, and only one that no process has seen is
written. Writers wait for each other, by the lock of the catalogue's row in ``revisions``.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock
from ironic_rules.db.errors import references
from ironic_rules.db.paging import Page, paginate
from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.projection import Row, columns_of
from ironic_rules.db.tables import inventory_paths, node_inventory, revisions
from ironic_rules.exceptions import MarkerNotFound, NodeNotFound, NotFound
from ironic_rules.models.inventories import (
    MAX_PATHS,
    OPEN_KEY,
    Catalogue,
    Inventory,
    StoredInventory,
    shipped_catalogue,
    shipped_paths,
)

#: The catalogue's row in ``revisions``, created by its migration.
CATALOGUE = "inventory_paths"

_PATHS = sa.select(inventory_paths.c.path)
_LOCK = sa.update(revisions).where(revisions.c.name == CATALOGUE).values(revision=revisions.c.revision + 1)
_INSERT_PATH = sa.insert(inventory_paths)
#: The catalogue as this process has read it, for each database.
_catalogues: weakref.WeakKeyDictionary[sa.Engine, Catalogue] = weakref.WeakKeyDictionary()


def known_paths(conn: sa.Connection) -> Catalogue:
    """Return the paths of all inventories that were ever stored, and those that ramdisks are known to send."""
    return Catalogue(list_paths(conn))


def list_paths(conn: sa.Connection) -> list[str]:
    """Return the paths of the catalogue, sorted."""
    return sorted({*shipped_paths(), *conn.scalars(_PATHS)})


def learn_paths(conn: sa.Connection, inventory: Mapping[str, Any]) -> None:
    """Add the paths of an inventory to the catalogue; a transaction does this once."""
    if _catalogues.get(conn.engine, shipped_catalogue()).has_all(inventory) or _reread(conn).has_all(inventory):
        return
    conn.execute(_LOCK)
    new = _reread(conn).new(inventory)
    if new:
        count = conn.execute(sa.select(sa.func.count()).select_from(inventory_paths)).scalar_one()
        # One more path says that there are too many: then nothing is known, and nothing is added.
        conn.execute(_INSERT_PATH,
                     [{"path": path} for path in (new if count + len(new) < MAX_PATHS else [f"/{OPEN_KEY}"])])


def _reread(conn: sa.Connection) -> Catalogue:
    # A transaction writes its own paths after the last reading: if it is rolled back, they are not remembered.
    paths = _catalogues[conn.engine] = known_paths(conn)
    return paths


RECEIVED = "received"
PROCESSED = "processed"
FAILED = "failed"
WAITING = "waiting"
_UNFINISHED = (RECEIVED, WAITING)
#: The columns of a version in a list.
VERSION = ("id", "status", "created_at", "updated_at", "request_id")
#: The columns with the data themselves.
_DATA = ("inventory_data", "received_plugin_data", "plugin_data")
#: The largest number that the column can have.
_MAX_ID = 2**31 - 1


def _newest_of(*, raw_json: bool) -> sa.Select[Any]:
    query = sa.select(*columns_of(node_inventory, raw_json=raw_json)).where(
        node_inventory.c.node_id == sa.bindparam("node_id"), node_inventory.c.status == sa.bindparam("status"))
    return query.order_by(node_inventory.c.id.desc()).limit(1)


def _latest_of(*, raw_json: bool) -> sa.Select[Any]:
    is_other = sa.case((node_inventory.c.status == PROCESSED, 0), else_=1)
    of_node = sa.select(node_inventory.c.id).where(node_inventory.c.node_id == sa.bindparam("node_id"))
    # Only ids are sorted: a database would copy the data to sort them.
    chosen = of_node.order_by(is_other, node_inventory.c.id.desc()).limit(1).scalar_subquery()
    return sa.select(*columns_of(node_inventory, raw_json=raw_json)).where(node_inventory.c.id == chosen)


_INSERT = PreparedChange(sa.insert(node_inventory))
# The values to set are passed on execution, as parameters with the names of the columns.
_OF_NODE = sa.update(node_inventory).where(node_inventory.c.node_id == sa.bindparam("of_node"))
_END = PreparedChange(_OF_NODE.where(node_inventory.c.status == sa.bindparam("status_is")))
_SUPERSEDE = _OF_NODE.where(node_inventory.c.status.in_(_UNFINISHED))
_FINISH = PreparedChange(sa.update(node_inventory).where(node_inventory.c.id == sa.bindparam("inventory_id")))
_FINISHED = (node_inventory.c.node_id == sa.bindparam("of_node"), node_inventory.c.status.not_in(_UNFINISHED))
_NEWEST_FINISHED = sa.select(node_inventory.c.id).where(*_FINISHED).order_by(node_inventory.c.id.desc())
_TOO_OLD = Prepared(_NEWEST_FINISHED.offset(sa.bindparam("keep", type_=sa.Integer)).limit(1))
_SUCCESSFUL = _NEWEST_FINISHED.where(node_inventory.c.status == PROCESSED).limit(1)
_NEWEST = _newest_of(raw_json=False)
_NEWEST_RAW = _newest_of(raw_json=True)
_LATEST = _latest_of(raw_json=False)
_NEWEST_REPORT = sa.select(node_inventory).where(node_inventory.c.id == _NEWEST_FINISHED.where(
    node_inventory.c.refusal.is_(None)).limit(1).scalar_subquery())
_LATEST_RAW = _latest_of(raw_json=True)


def receive(conn: sa.Connection, node_id: int, inventory: Mapping[str, object],
            plugin_data: Mapping[str, object] | None, request_id: str | None, refusal: str | None = None) -> int:
    """Store what a ramdisk sent and return its id. Unprocessed data of the node is superseded.

    The paths of the inventory are added to the catalogue.

    :param refusal: why the inspection has to fail
    :raises NodeNotFound: 404
    """
    _end(conn, node_id, RECEIVED, FAILED)
    row = {"node_id": node_id, "inventory_data": inventory, "received_plugin_data": plugin_data or {},
           "status": RECEIVED, "refusal": refusal, "request_id": request_id, "created_at": clock.now()}
    with references(lambda key: NodeNotFound(node=node_id)):
        inserted = _INSERT.inserted(conn, row)
    learn_paths(conn, inventory)
    return inserted


def supersede(conn: sa.Connection, node_id: int) -> None:
    """Discard unprocessed data of the node: it must not be resumed once newer data was received or requested."""
    conn.execute(_SUPERSEDE, {"of_node": node_id, "status": FAILED, "updated_at": clock.now()})


def waiting(conn: sa.Connection, node_id: int) -> StoredInventory | None:
    """Return the newest data of the node that wait for more, None if there are none."""
    return _newest(conn, node_id, WAITING)


def end_wait(conn: sa.Connection, node_id: int) -> None:
    """Record that the inspection whose data waited for more has succeeded."""
    _end(conn, node_id, WAITING, PROCESSED)


def _end(conn: sa.Connection, node_id: int, status: str, new_status: str) -> None:
    _END.matched(conn, {"of_node": node_id, "status_is": status, "status": new_status, "updated_at": clock.now()})


def pending(conn: sa.Connection, node_id: int) -> StoredInventory | None:
    """Return the data of the node that is waiting to be processed, None if there is none."""
    return _newest(conn, node_id, RECEIVED)


def latest(conn: sa.Connection, node_id: int, status: str | None = None, *,
           raw_json: bool = False) -> StoredInventory | None:
    """Return the newest data of the node with that status, None if there are none.

    :param status: None: the data of the last successful inspection; without one the newest, failed or not processed yet
    :param raw_json: leave JSON columns as text
    """
    if status is not None:
        return _newest(conn, node_id, status, raw_json=raw_json)
    return conn.execute(_LATEST_RAW if raw_json else _LATEST, {"node_id": node_id}).one_or_none()


def get(conn: sa.Connection, node_id: int, inventory_id: int, *, raw_json: bool = False) -> StoredInventory | None:
    """Return the data of the node with that id, None if they are not kept.

    :param raw_json: leave JSON columns as text
    """
    if inventory_id > _MAX_ID:
        return None
    query = sa.select(*columns_of(node_inventory, raw_json=raw_json))
    return conn.execute(query.where(node_inventory.c.node_id == node_id,
                                    node_inventory.c.id == inventory_id)).one_or_none()


def newest_report(conn: sa.Connection, node_id: int) -> StoredInventory | None:
    """Return what was received last and is not being processed, whether it was a success or not; None: nothing was.

    Data whose inspection had to fail are left out.
    """
    return conn.execute(_NEWEST_REPORT, {"of_node": node_id}).one_or_none()


def newest_reports(conn: sa.Connection, node_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return what :func:`newest_report` would find for each of these nodes: its id, and its characters as JSON."""
    chosen = sa.select(sa.func.max(node_inventory.c.id)).where(
        node_inventory.c.node_id.in_(node_ids), node_inventory.c.status.not_in(_UNFINISHED),
        node_inventory.c.refusal.is_(None)).group_by(
            node_inventory.c.node_id)
    size = sum((sa.func.coalesce(sa.func.length(sa.type_coerce(node_inventory.c[name], sa.Text)), 0) for name in _DATA),
               sa.literal(0))
    query = sa.select(node_inventory.c.node_id, node_inventory.c.id,
                      size).where(node_inventory.c.id.in_(list(conn.scalars(chosen))))
    return {node_id: (inventory_id, length) for node_id, inventory_id, length in conn.execute(query).all()}


def has_processed(conn: sa.Connection) -> bool:
    """Return whether there are data of any successful inspection."""
    query = sa.select(node_inventory.c.id).where(node_inventory.c.status == PROCESSED).limit(1)
    return conn.scalar(query) is not None


def newest_processed(conn: sa.Connection, node_ids: Collection[int]) -> dict[int, int]:
    """Return the ids of the data of the last successful inspection of each of these nodes."""
    query = sa.select(node_inventory.c.node_id, sa.func.max(node_inventory.c.id)).where(
        node_inventory.c.node_id.in_(node_ids), node_inventory.c.status == PROCESSED).group_by(node_inventory.c.node_id)
    return {row[0]: row[1] for row in conn.execute(query).all()} if node_ids else {}


def texts(conn: sa.Connection, inventory_ids: Collection[int]) -> Sequence[Row]:
    """Return data by their ids, the JSON columns as text."""
    query = sa.select(*columns_of(node_inventory, ("id", "node_id", *_DATA), raw_json=True))
    return conn.execute(query.where(node_inventory.c.id.in_(inventory_ids))).all()


def inventories_before(conn: sa.Connection, reports: Mapping[int, int | None]) -> dict[int, str]:
    """Return what :func:`latest_inventory` would, as JSON text, for several nodes.

    :param reports: the id of the node -> before the data with which id; None: of all data
    """
    query = sa.select(node_inventory.c.node_id, node_inventory.c.id).where(
        node_inventory.c.node_id.in_(list(reports)), node_inventory.c.status == PROCESSED).order_by(node_inventory.c.id)
    chosen = {node_id: inventory_id for node_id, inventory_id in conn.execute(query).all()
              if (before := reports[node_id]) is None or inventory_id < before}
    query = sa.select(*columns_of(node_inventory, ("node_id", "inventory_data"), raw_json=True))
    rows = conn.execute(query.where(node_inventory.c.id.in_(list(chosen.values())))).all()
    return {row.node_id: row.inventory_data for row in rows}


def successful_before(conn: sa.Connection, node_id: int, inventory_id: int, *,
                      raw_json: bool = False) -> StoredInventory | None:
    """Return the newest data of a successful inspection of the node before those with that id, None if there are none.

    :param raw_json: leave JSON columns as text
    """
    query = sa.select(*columns_of(node_inventory, raw_json=raw_json)).where(
        node_inventory.c.node_id == node_id, node_inventory.c.status == PROCESSED, node_inventory.c.id < inventory_id)
    return conn.execute(query.order_by(node_inventory.c.id.desc()).limit(1)).one_or_none()


def versions(conn: sa.Connection, node_id: int, page: Page) -> Sequence[Row]:
    """Return at most ``page.limit`` of the node's stored data, without the data themselves.

    :param page: its sort key is one of ``VERSION``
    :raises MarkerNotFound: 404, there are none with the id ``page.marker``
    """
    marker = None
    if page.marker is not None:
        place = sa.select(node_inventory.c[page.sort_key].label("value"), node_inventory.c.id.label("unique"))
        number = min(int(page.marker), _MAX_ID)
        marker = conn.execute(place.where(node_inventory.c.node_id == node_id,
                                          node_inventory.c.id == number)).one_or_none()
        if marker is None:
            raise MarkerNotFound(marker=page.marker)
    query = sa.select(*columns_of(node_inventory, VERSION)).where(node_inventory.c.node_id == node_id)
    return conn.execute(paginate(query, node_inventory, page, marker)).all()


def latest_inventory(conn: sa.Connection, node_id: int, before: int | None = None) -> Inventory | None:
    """Return only the inventory of the node's last successful inspection, None if there was none.

    :param before: of those before the data with this id
    """
    query = sa.select(node_inventory.c.inventory_data).where(node_inventory.c.node_id == node_id,
                                                             node_inventory.c.status == PROCESSED)
    if before is not None:
        query = query.where(node_inventory.c.id < before)
    latest: Inventory | None = conn.scalar(query.order_by(node_inventory.c.id.desc()).limit(1))
    return latest


def finish(conn: sa.Connection, inventory_id: int, plugin_data: Mapping[str, object] | None, status: str) -> None:
    """Record how the inspection ended (``processed`` or ``failed``), and the plugin data that hooks and rules produced.

    :param status: ``waiting`` if it has not ended, and waits for more data

    :raises NotFound: 404, e.g. the node was deleted since
    """
    parameters = {
        "inventory_id": inventory_id, "plugin_data": plugin_data, "status": status, "updated_at": clock.now()}
    if _FINISH.matched(conn, parameters) == 0:
        raise NotFound(f"Inspection inventory {inventory_id} could not be found.")


def prune(conn: sa.Connection, node_id: int, keep: int) -> None:
    """Delete all but the newest ``keep`` finished inventories of the node.

    Inventories that are waiting to be processed are kept, as is the last successful one, even after many failures.
    """
    node = {"of_node": node_id}
    too_old = _TOO_OLD.one_or_none(conn, {**node, "keep": keep})
    if too_old is None:
        return
    successful = conn.scalar(_SUCCESSFUL, node)
    conn.execute(sa.delete(node_inventory).where(*_FINISHED, node_inventory.c.id <= too_old.id,
                                                 node_inventory.c.id != (successful or 0)), node)


def discard(conn: sa.Connection, inventory_id: int) -> None:
    """Delete one inventory, if it exists."""
    conn.execute(sa.delete(node_inventory).where(node_inventory.c.id == inventory_id))


def _newest(conn: sa.Connection, node_id: int, status: str, *, raw_json: bool = False) -> StoredInventory | None:
    return conn.execute(_NEWEST_RAW if raw_json else _NEWEST, {"node_id": node_id, "status": status}).one_or_none()
