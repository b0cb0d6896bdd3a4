"""The time for timestamps in rows, and by which processes decide what is overdue and which conductors are dead.

Processes of one database must agree on it, even if the clocks of their hosts differ: they read the database server's
clock whenever they open a connection to it, and conductors with each heartbeat, and add the time elapsed since, by the
monotonic clock. That one stands still while a machine sleeps, so conditions on heartbeats have the server's clock in
the query itself: :func:`current` and :func:`ago`. A process that has no connection to a server uses its host's clock.
"""

from __future__ import annotations

import datetime
import time
from typing import Any

import sqlalchemy as sa

from ironic_rules.db.types import UTCDateTime

#: A database that is not listed is a file of this host.
TIME_OF_SERVER = {"mysql": "UTC_TIMESTAMP(6)", "postgresql": "(clock_timestamp() AT TIME ZONE 'UTC')"}
#: What a statement has the server put in as the current time.
CURRENT: dict[str, sa.ColumnElement[Any]] = {
    name: sa.literal_column(text, UTCDateTime()) for name, text in TIME_OF_SERVER.items()}
#: The time ``age_s`` seconds ago.
AGO: dict[str, sa.TextClause] = {
    "mysql": sa.text("UTC_TIMESTAMP(6) - INTERVAL :age_s SECOND"),
    "postgresql": sa.text("(clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => :age_s)"),
}
#: a time, and the value of the monotonic clock at that time
_known: tuple[datetime.datetime, float] | None = None


def now() -> datetime.datetime:
    """Return the current time, aware (UTC), to the microsecond."""
    if _known is None:
        return wall()
    moment, shown = _known
    return moment + datetime.timedelta(seconds=time.monotonic() - shown)


def wall() -> datetime.datetime:
    """Return the time of this host's clock, aware (UTC)."""
    return datetime.datetime.now(datetime.UTC)


def follow(conn: sa.Connection) -> float:
    """Set :func:`now` by the clock of the database server; return by how many seconds this host's clock is ahead."""
    expression = TIME_OF_SERVER.get(conn.dialect.name)
    asked = time.monotonic()
    set_to(wall() if expression is None else conn.exec_driver_sql(f"SELECT {expression}").scalar_one(), asked)
    return (wall() - now()).total_seconds()


def read(conn: sa.Connection) -> datetime.datetime:
    """Return the time of the database server when it executes this, aware (UTC)."""
    expression = TIME_OF_SERVER.get(conn.dialect.name)
    if expression is None:
        return now()
    moment: datetime.datetime = conn.exec_driver_sql(f"SELECT {expression}").scalar_one()
    return moment.replace(tzinfo=datetime.UTC)


def set_to(moment: datetime.datetime, asked: float) -> None:
    """Set :func:`now` to ``moment``, UTC, with which a server has replied.

    :param asked: the value of the monotonic clock when it was asked
    """
    global _known
    # Assume that the reply took half of the round trip.
    _known = (moment.replace(tzinfo=datetime.UTC), (asked + time.monotonic()) / 2)


def current(conn: sa.Connection) -> sa.ColumnElement[Any] | datetime.datetime:
    """Return what a statement writes as the current time: the server's own, when it executes the statement."""
    return CURRENT[conn.dialect.name] if conn.dialect.name in CURRENT else now()


def ago(conn: sa.Connection, age_s: float) -> sa.TextClause | datetime.datetime:
    """Return the time ``age_s`` seconds ago, for a condition; see :func:`current`."""
    if (text := AGO.get(conn.dialect.name)) is None:
        return now() - datetime.timedelta(seconds=age_s)
    return text.bindparams(age_s=age_s)
