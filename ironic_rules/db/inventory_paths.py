"""The catalogue of the paths that inventories have, added to by the transaction that stores an inventory.

Each process remembers what it has read. So only a path that it does not know costs a query, and only one that no
process has seen is written. Writers wait for each other, by the lock of the catalogue's row in ``revisions``.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ironic_rules.db.tables import inventory_paths as table
from ironic_rules.db.tables import revisions
from ironic_rules.models.inventories import MAX_PATHS, OPEN_KEY, Catalogue, shipped_catalogue, shipped_paths

#: The catalogue's row in ``revisions``, created by its migration.
CATALOGUE = "inventory_paths"

_PATHS = sa.select(table.c.path)
_LOCK = sa.update(revisions).where(revisions.c.name == CATALOGUE).values(revision=revisions.c.revision + 1)
_INSERT = sa.insert(table)
#: What this process has read, for each database.
_read: weakref.WeakKeyDictionary[sa.Engine, Catalogue] = weakref.WeakKeyDictionary()


def known(conn: sa.Connection) -> Catalogue:
    """Return the paths of all inventories that were ever stored, and those that ramdisks are known to send."""
    return Catalogue(paths(conn))


def paths(conn: sa.Connection) -> list[str]:
    """Return the paths of the catalogue, sorted."""
    return sorted({*shipped_paths(), *conn.scalars(_PATHS)})


def learn(conn: sa.Connection, inventory: Mapping[str, Any]) -> None:
    """Add the paths of an inventory to the catalogue; a transaction does this once."""
    if _read.get(conn.engine, shipped_catalogue()).has_all(inventory) or _reread(conn).has_all(inventory):
        return
    conn.execute(_LOCK)
    new = _reread(conn).new(inventory)
    if new:
        count = conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        # One more path says that there are too many: then nothing is known, and nothing is added.
        conn.execute(_INSERT, [{"path": path} for path in (new if count + len(new) < MAX_PATHS else [f"/{OPEN_KEY}"])])


def _reread(conn: sa.Connection) -> Catalogue:
    # A transaction writes its own paths after the last reading: if it is rolled back, they are not remembered.
    found = _read[conn.engine] = known(conn)
    return found
