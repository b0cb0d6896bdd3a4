"""The processes that use the database, and the revision of the schema that the code of each was written for.

A migration that removes something waits until no process is alive that may still use it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

import sqlalchemy as sa
from oslo_log import log as logging
from oslo_utils import uuidutils

from ironic_rules.db import clock
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.db.session import Database
from ironic_rules.db.tables import conductors, processes

LOG = logging.getLogger(__name__)

#: Seconds after which the row of a process that has died is deleted.
_FORGOTTEN_S = 24 * 3600.0
#: The kinds of processes that are conductors, too.
_CONDUCTORS = ("conductor", "ironic-rules")


def report(conn: sa.Connection, instance: str, kind: str, hostname: str, release: str, revision: str) -> None:
    """Record that a process is alive.

    :param instance: identifies this run of it
    :param kind: its command, such as ``api``
    :param revision: the newest that its code knows
    """
    now = clock.current(conn)
    mine = sa.update(processes).where(processes.c.instance == instance).values(updated_at=now)
    if conn.execute(mine).rowcount == 0:
        conn.execute(sa.insert(processes).values(
            instance=instance, kind=kind, hostname=hostname, release=release, schema_revision=revision, updated_at=now))
        conn.execute(sa.delete(processes).where(processes.c.updated_at < clock.ago(conn, _FORGOTTEN_S)))


def forget(conn: sa.Connection, instance: str) -> None:
    """Delete what is recorded of a process: it has ended."""
    conn.execute(sa.delete(processes).where(processes.c.instance == instance))


def written_for(conn: sa.Connection, revisions: Collection[str], timeout_s: float) -> list[str]:
    """Return texts about the processes that are alive, and whose code was written for one of these revisions.

    A conductor that reports no revision is one of before the first release that does.

    :param timeout_s: after this time without a report, a process is dead
    """
    since = clock.ago(conn, timeout_s)
    alive = conn.execute(sa.select(processes).where(processes.c.updated_at >= since).order_by(
        processes.c.hostname, processes.c.kind)).all()
    texts = [f"{row.kind} on {row.hostname} (release {row.release})" for row in alive
             if row.schema_revision in revisions]
    with_process = {row.hostname for row in alive if row.kind in _CONDUCTORS}
    hosts = conn.scalars(sa.select(conductors.c.hostname).where(
        conductors.c.online.is_(True), conductors.c.updated_at >= since).order_by(conductors.c.hostname))
    return texts + [f"conductor on {host} (release not known)" for host in hosts if host not in with_process]


class Presence:
    """Reports a process until it ends. A report that fails is made at the next time.

    :param interval_s: seconds between two reports
    """

    def __init__(self, db: Database, kind: str, hostname: str, release: str, revision: str, interval_s: float) -> None:
        self._db, self._interval_s = db, interval_s
        self._instance = uuidutils.generate_uuid()
        self._said = kind, hostname, release, revision
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def start(self) -> None:
        """Report, and continue in a thread."""
        self._report()
        self._thread.start()

    def stop(self) -> None:
        """Report that the process has ended."""
        self._ended.set()
        self._thread.join(self._interval_s)
        try:
            self._db.write(lambda conn: forget(conn, self._instance))
        except DATABASE_AWAY:
            LOG.info("The end of this process is not reported: the database is unavailable")

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            self._report()

    def _report(self) -> None:
        try:
            self._db.write(lambda conn: report(conn, self._instance, *self._said))
        except DATABASE_AWAY:
            LOG.info("This process is not reported: the database is unavailable")
        except Exception:  # the process works without
            LOG.exception("This process is not reported")
