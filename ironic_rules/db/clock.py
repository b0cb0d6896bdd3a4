"""The time for timestamps in rows, and by which conductors decide what is overdue and which conductors are dead.

Conductors of one database must agree on it, even if the clocks of their hosts differ: they read the database server's
clock and add the time elapsed since, by the monotonic clock. A process that does not call :func:`follow` uses its
host's clock.
"""

from __future__ import annotations

import datetime
import time

import sqlalchemy as sa

#: A database that is not listed is a file of this host.
_TIME_OF_SERVER = {
    "mysql": sa.text("SELECT UTC_TIMESTAMP(6)"),
    "postgresql": sa.text("SELECT clock_timestamp() AT TIME ZONE 'UTC'"),
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
    global _known
    query = _TIME_OF_SERVER.get(conn.dialect.name)
    shown = time.monotonic()
    moment = wall() if query is None else conn.scalar(query).replace(tzinfo=datetime.UTC)
    # Assume that the reply took half of the round trip.
    shown = (shown + time.monotonic()) / 2
    _known = (moment, shown)
    return (wall() - now()).total_seconds()
