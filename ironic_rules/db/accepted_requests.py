"""Requests and reports that conductors have accepted in the last minutes, so that their repetitions are recognized.

A caller that got no answer repeats what it has sent, although it may have been accepted.
"""

from __future__ import annotations

import datetime
import secrets
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc
from sqlalchemy.dialects import mysql, postgresql, sqlite

from ironic_rules.context import Mark
from ironic_rules.db import clock
from ironic_rules.db.errors import duplicates, references
from ironic_rules.db.prepared import PreparedChange
from ironic_rules.db.session import Database
from ironic_rules.db.tables import accepted_requests as table
from ironic_rules.db.tables import digest_keys
from ironic_rules.exceptions import NodeNotFound, RequestRepeated

#: Seconds for which a repetition is recognized.
KEPT_S = 600
_FORGET = sa.delete(table).where(table.c.node_id == sa.bindparam("of_node"))
_NEWEST = sa.select(table).where(table.c.digest == sa.bindparam("of_digest")).order_by(
    table.c.created_at.desc(), table.c.id.desc()).limit(1)
_KEY = sa.select(digest_keys.c.value).where(digest_keys.c.name == sa.bindparam("name_is"))


def _insertions() -> dict[tuple[str, bool], sa.Insert]:
    """Return what inserts a row, by dialect and whether it replaces the one of the same node with the same digest.

    The database server's clock gives the row its time where the statement can return it; see :func:`note`.
    """
    names, key = ("content", "answer", "created_at"), [table.c.node_id, table.c.digest]
    of_mysql, of_postgresql, of_sqlite = mysql.insert(table), postgresql.insert(table), sqlite.insert(table)
    insertions: dict[tuple[str, bool], sa.Insert] = {
        ("mysql", True): of_mysql.on_duplicate_key_update({name: of_mysql.inserted[name] for name in names}),
        ("postgresql", True): of_postgresql.on_conflict_do_update(
            index_elements=key, set_={name: of_postgresql.excluded[name] for name in names}),
        ("sqlite", True): of_sqlite.on_conflict_do_update(
            index_elements=key, set_={name: of_sqlite.excluded[name] for name in names}),
    }
    return insertions | {(dialect, False): sa.insert(table) for dialect, _ in insertions}


_INSERTIONS = _insertions()
_PREPARED = {kind: PreparedChange(insertion) for kind, insertion in _INSERTIONS.items()}
_TIMED = {
    (dialect, renew): insertion.values(created_at=clock.CURRENT[dialect]).returning(table.c.created_at)
    for (dialect, renew), insertion in _INSERTIONS.items() if dialect in clock.CURRENT}


def note(conn: sa.Connection, node_id: int, mark: Mark, *, renew: bool = False) -> datetime.datetime:
    """Remember a request that is accepted by this transaction; return the time of the database.

    :param renew: in place of an earlier one with the same digest. Old ones are left to the node's next request: a
        report, for which this is, comes after the request to inspect
    :raises RequestRepeated: it was accepted before;  NodeNotFound: 404
    """
    kind, row = (conn.dialect.name, renew), {"node_id": node_id, **mark._asdict()}
    if not renew:
        conn.execute(_FORGET.where(table.c.created_at < clock.ago(conn, KEPT_S)), {"of_node": node_id})
    with duplicates(other=lambda _: RequestRepeated()), references(lambda _: NodeNotFound(node=node_id)):
        # MariaDB's dialect has the name of MySQL's, whose INSERT returns nothing.
        if kind in _TIMED and conn.dialect.insert_returning:
            noted: datetime.datetime = conn.execute(_TIMED[kind], row).scalar_one()
        else:
            noted = clock.read(conn)
            _PREPARED[kind].matched(conn, {**row, "created_at": noted})
    return noted


def find(conn: sa.Connection, digest: str, node_id: int | None = None) -> Mark | None:
    """Return the request with that digest, the newest one, if it was accepted in the last ``KEPT_S`` seconds.

    :param node_id: only of this node
    """
    query = _NEWEST.where(table.c.created_at >= clock.ago(conn, KEPT_S))
    if node_id is not None:
        query = query.where(table.c.node_id == node_id)
    row: Any = conn.execute(query, {"of_digest": digest}).one_or_none()
    return None if row is None else Mark(row.digest, row.content, row.answer)


def digest_key(db: Database, name: str) -> bytes:
    """Return the key that all processes use for digests of that name; the first one that asks creates it."""
    with db.reader() as conn:
        key = conn.scalar(_KEY, {"name_is": name})
    if key is None:
        key = secrets.token_hex(32)
        try:
            db.write(lambda conn: conn.execute(sa.insert(digest_keys).values(name=name, value=key)))
        except db_exc.DBDuplicateEntry:
            with db.reader() as conn:
                key = conn.execute(_KEY, {"name_is": name}).scalar_one()
    return bytes.fromhex(key)
