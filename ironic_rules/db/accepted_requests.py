"""What conductors have accepted in the last minutes: requests and reports, so that their repetitions are recognised.

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
from ironic_rules.db.session import Database
from ironic_rules.db.tables import accepted_requests as table
from ironic_rules.db.tables import digest_keys
from ironic_rules.exceptions import NodeNotFound, RequestRepeated

#: Seconds for which a repetition is recognised.
KEPT_S = 600
_INSERT = sa.insert(table)
_FORGET = sa.delete(table).where(
    table.c.node_id == sa.bindparam("of_node"), table.c.created_at < sa.bindparam("before"))
_NEWEST = sa.select(table).where(table.c.digest == sa.bindparam("of_digest")).order_by(
    table.c.created_at.desc(), table.c.id.desc()).limit(1)
_KEY = sa.select(digest_keys.c.value).where(digest_keys.c.name == sa.bindparam("name_is"))


def _replacing() -> dict[str, sa.Insert]:
    """Return by dialect what inserts a row, or replaces the one of the same node with the same digest."""
    names, key = ("content", "answer", "created_at"), [table.c.node_id, table.c.digest]
    of_mysql, of_postgresql, of_sqlite = mysql.insert(table), postgresql.insert(table), sqlite.insert(table)
    return {
        "mysql": of_mysql.on_duplicate_key_update({name: of_mysql.inserted[name] for name in names}),
        "postgresql": of_postgresql.on_conflict_do_update(
            index_elements=key, set_={name: of_postgresql.excluded[name] for name in names}),
        "sqlite": of_sqlite.on_conflict_do_update(
            index_elements=key, set_={name: of_sqlite.excluded[name] for name in names}),
    }


_REPLACE = _replacing()


def note(conn: sa.Connection, node_id: int, mark: Mark, now: datetime.datetime, *, renew: bool = False) -> None:
    """Remember a request that is accepted by this transaction.

    :param now: the time of the database
    :param renew: in place of an earlier one with the same digest. Old ones are left to the node's next request: a
        report, for which this is, comes after the request to inspect
    :raises RequestRepeated: it was accepted before;  NodeNotFound: 404
    """
    row = {"node_id": node_id, **mark._asdict(), "created_at": now}
    if not renew:
        conn.execute(_FORGET, {"of_node": node_id, "before": now - datetime.timedelta(seconds=KEPT_S)})
    with duplicates(other=lambda _: RequestRepeated()), references(lambda _: NodeNotFound(node=node_id)):
        conn.execute(_REPLACE[conn.dialect.name] if renew else _INSERT, row)


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
        found = conn.scalar(_KEY, {"name_is": name})
    if found is None:
        found = secrets.token_hex(32)
        try:
            db.write(lambda conn: conn.execute(sa.insert(digest_keys).values(name=name, value=found)))
        except db_exc.DBDuplicateEntry:
            with db.reader() as conn:
                found = conn.execute(_KEY, {"name_is": name}).scalar_one()
    return bytes.fromhex(found)
