"""The time for timestamps in rows, and by which processes decide what is overdue and which conductors are dead.

Processes of one database must agree on it, even if the clocks of their hosts differ: they read the database server's
clock whenever they open a connection to it, and conductors with each heartbeat, and add the time elapsed since, by the
monotonic clock. That one stands still while a machine sleeps, so conditions on heartbeats have the server's clock in
the query itself: :func:`current` and :func:`ago`. A process that has no connection to a server uses its host's clock.

With SQLite there is one process, and the host's clock is the database's. If it jumps, what waits must not be overdue at
once, or never: the process adds the time elapsed to the time of its start, and approaches the host's clock slowly, or
at once when nothing waits. While a machine sleeps, that time stands still, as for everything else in the process.
"""

from __future__ import annotations

import datetime
import threading
import time
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.db.types import UTCDateTime

LOG = logging.getLogger(__name__)

#: Seconds by which clocks may differ without a warning.
TOLERATED_S = 5.0
#: The share of the time that passes by which a process approaches its host's clock.
_PACE = 0.1
#: A database that is not listed is a file of this host.
TIME_OF_SERVER = {"mysql": "UTC_TIMESTAMP(6)", "postgresql": "(clock_timestamp() AT TIME ZONE 'UTC')"}
#: Expressions for which the server puts in its current time.
CURRENT: dict[str, sa.ColumnElement[Any]] = {
    name: sa.literal_column(text, UTCDateTime()) for name, text in TIME_OF_SERVER.items()}
#: The time ``age_s`` seconds ago.
AGO: dict[str, sa.TextClause] = {
    "mysql": sa.text("UTC_TIMESTAMP(6) - INTERVAL :age_s SECOND"),
    "postgresql": sa.text("(clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => :age_s)"),
}


class _Known(NamedTuple):
    """A time, the value of the monotonic clock at that time, and the seconds by which it was behind the host's."""

    moment: datetime.datetime
    shown: float
    behind_s: float = 0.0

    def corrected_s(self, elapsed_s: float) -> float:
        """Return by how many seconds the host's clock has been approached after ``elapsed_s``."""
        most = elapsed_s * _PACE
        return min(max(self.behind_s, -most), most)

    def after(self, elapsed_s: float) -> datetime.datetime:
        return self.moment + datetime.timedelta(seconds=elapsed_s + self.corrected_s(elapsed_s))


_known: _Known | None = None
_following = threading.Lock()


def now() -> datetime.datetime:
    """Return the current time, aware (UTC), to the microsecond."""
    clock = _known  # once: another thread may set it at any time
    return wall() if clock is None else clock.after(time.monotonic() - clock.shown)


def wall() -> datetime.datetime:
    """Return the time of this host's clock, aware (UTC)."""
    return datetime.datetime.now(datetime.UTC)


def follow(conn: sa.Connection) -> float:
    """Set :func:`now` by the clock of the database server; return by how many seconds this host's clock is ahead of it.

    With SQLite, as :func:`follow_host`; 0.
    """
    expression = TIME_OF_SERVER.get(conn.dialect.name)
    if expression is None:
        follow_host()
        return 0.0
    began = time.monotonic()
    set_to(conn.exec_driver_sql(f"SELECT {expression}").scalar_one(), began)
    return (wall() - now()).total_seconds()


def follow_host() -> None:
    """Let :func:`now` approach the clock of this host, and log a jump of it; the first time, set it."""
    global _known
    with _following:
        if _known is None:
            catch_up()
            return
        shown, moment = time.monotonic(), wall()
        elapsed_s = shown - _known.shown
        ours = _known.after(elapsed_s)
        behind_s = (moment - ours).total_seconds()
        jumped_s = behind_s - (_known.behind_s - _known.corrected_s(elapsed_s))
        if abs(jumped_s) > TOLERATED_S:
            LOG.warning("The clock of this host has jumped by %+.0f s, or the host has slept. Waits become neither "
                        "shorter nor longer by that. New timestamps have the host's time again when nothing is in "
                        "progress, or when this process is restarted.", jumped_s)
        _known = _Known(ours, shown, behind_s)


def is_off() -> bool:
    """Return whether :func:`now` differs from the clock of this host since that has jumped."""
    clock = _known
    return clock is not None and abs(clock.behind_s) > TOLERATED_S


def catch_up() -> None:
    """Set :func:`now` to the clock of this host, at once."""
    global _known
    _known = _Known(wall(), time.monotonic())


def read(conn: sa.Connection) -> datetime.datetime:
    """Return the time of the database server when it executes this, aware (UTC)."""
    expression = TIME_OF_SERVER.get(conn.dialect.name)
    if expression is None:
        return now()
    moment: datetime.datetime = conn.exec_driver_sql(f"SELECT {expression}").scalar_one()
    return moment.replace(tzinfo=datetime.UTC)


def set_to(moment: datetime.datetime, began: float) -> None:
    """Set :func:`now` to ``moment``, UTC, with which a server has replied.

    :param began: the value of the monotonic clock when it was asked
    """
    global _known
    # Assume that the reply took half of the round trip.
    read = _Known(moment.replace(tzinfo=datetime.UTC), (began + time.monotonic()) / 2)
    before = _known  # as in now()
    if before is not None:
        jumped_s = (read.moment - before.after(read.shown - before.shown)).total_seconds()
        if abs(jumped_s) > TOLERATED_S:
            LOG.warning("The clock of the database server has jumped by %+.0f s, or this host has slept. Waits end if "
                        "their time-out has passed by that clock.", jumped_s)
    _known = read


def current(conn: sa.Connection) -> sa.ColumnElement[Any] | datetime.datetime:
    """Return what a statement writes as the current time: the server's own, when it executes the statement."""
    return CURRENT[conn.dialect.name] if conn.dialect.name in CURRENT else now()


def ago(conn: sa.Connection, age_s: float) -> sa.TextClause | datetime.datetime:
    """Return the time ``age_s`` seconds ago, for a condition; see :func:`current`."""
    if (text := AGO.get(conn.dialect.name)) is None:
        return now() - datetime.timedelta(seconds=age_s)
    return text.bindparams(age_s=age_s)
