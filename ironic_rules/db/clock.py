"""The time that rows get, and by which conductors judge what is overdue and who is dead.

Conductors of one database must agree on it, whatever the clocks of their hosts say: they follow the database server's
clock, and count on from there with a clock that never jumps. A process that does not call :func:`follow` has its host's
time.
"""

from __future__ import annotations

import datetime
import time

import sqlalchemy as sa

#: Where nothing stands here, the database is a file of this host.
_TIME_OF_SERVER = {
    "mysql": sa.text("SELECT UTC_TIMESTAMP(6)"),
    "postgresql": sa.text("SELECT clock_timestamp() AT TIME ZONE 'UTC'"),
}
#: a time, and what the monotonic clock showed then
_known: tuple[datetime.datetime, float] | None = None


def now() -> datetime.datetime:
    """Return the current time, aware (UTC), to the microsecond."""
    if _known is None:
        return wall()
    moment, shown = _known
    return moment + datetime.timedelta(seconds=time.monotonic() - shown)


def wall() -> datetime.datetime:
    """Return what the clock of this host shows, aware (UTC)."""
    return datetime.datetime.now(datetime.UTC)


def follow(conn: sa.Connection) -> float:
    """Set :func:`now` by the clock of the database server; return by how many seconds this host's clock is ahead."""
    global _known
    query = _TIME_OF_SERVER.get(conn.dialect.name)
    shown = time.monotonic()
    moment = wall() if query is None else conn.scalar(query).replace(tzinfo=datetime.UTC)
    # The answer was on its way for half of the time, as far as one can know.
    shown = (shown + time.monotonic()) / 2
    _known = (moment, shown)
    return (wall() - now()).total_seconds()
