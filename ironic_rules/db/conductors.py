"""Conductors: which are registered, and which had a recent heartbeat (``updated_at``); the work that dead ones leave.

``timeout_s`` is the time in seconds after which a conductor without heartbeat is dead, by the database server's clock
in every process; ``now`` is another time (for tests).

A periodic task runs on one conductor at a time, and on another one when that one stops.

Sessions of PostgreSQL that wait without end for the rest of a message are ended. A statement is several messages, and
large ones several packets. If the network loses the client when only a part has arrived, the server waits for the rest:
neither ``statement_timeout`` nor ``idle_in_transaction_session_timeout`` counts then, and the transaction keeps
its locks. MariaDB counts that time as idle.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db import clock
from ironic_rules.db.errors import duplicates
from ironic_rules.db.prepared import Prepared
from ironic_rules.db.projection import Row
from ironic_rules.db.session import Database
from ironic_rules.db.tables import conductors, nodes, periodic_tasks
from ironic_rules.exceptions import conductor_already_registered, conductor_not_found
from ironic_rules.models.resources import RegisteredConductor

_ALL = sa.select(conductors).order_by(conductors.c.hostname)
# Built once: the API runs this in most requests, and building a statement takes longer than running it.
_HOSTS = sa.select(*(conductors.c[name] for name in ("hostname", "conductor_group", "instance", "updated_at"))).where(
    conductors.c.online.is_(True)).order_by(conductors.c.hostname)
_HOSTS_SINCE = Prepared(_HOSTS.where(conductors.c.updated_at >= sa.bindparam("since")))
_HOSTS_BY_SERVER = {name: _HOSTS.where(conductors.c.updated_at >= ago) for name, ago in clock.AGO.items()}


def register(conn: sa.Connection, hostname: str, group: str, hardware_types: Mapping[str, object], instance: str, *,
             pinned_release: str | None = None, now: datetime.datetime | None = None) -> RegisteredConductor:
    """Register a conductor; the registration belongs to the latest process with the host name.

    A process that was killed is restarted at once, so an earlier registration is taken over even if it is recent. If
    its process is still alive, :func:`touch` reports it.

    :param hardware_types: what the conductor supports, as described by ``hardware.registry``
    :param instance: identifies this run of the process
    :raises conductor_already_registered: 409, another process is registering the same new name concurrently
    """
    moment = now or clock.current(conn)
    values = {"conductor_group": group, "hardware_types": hardware_types, "instance": instance, "online": True,
              "pinned_release": pinned_release, "updated_at": moment}
    statement = sa.update(conductors).where(conductors.c.hostname == hostname)
    if conn.execute(statement.values(values)).rowcount == 0:
        with duplicates(other=lambda value: conductor_already_registered(conductor=hostname)):
            conn.execute(sa.insert(conductors).values({**values, "hostname": hostname, "created_at": moment}))
    return get(conn, hostname)


def touch(conn: sa.Connection, hostname: str, instance: str, *, now: datetime.datetime | None = None) -> bool:
    """Record a heartbeat; return False if the registration belongs to another instance or was deleted."""
    statement = sa.update(conductors).where(conductors.c.hostname == hostname, conductors.c.instance == instance)
    return conn.execute(statement.values(updated_at=now or clock.current(conn), online=True)).rowcount == 1


def unregister(conn: sa.Connection, hostname: str, instance: str) -> bool:
    """Set a conductor offline at shutdown; return False if the registration is another instance's or was deleted."""
    statement = sa.update(conductors).where(conductors.c.hostname == hostname, conductors.c.instance == instance)
    return conn.execute(statement.values(online=False)).rowcount == 1


def is_registered(conn: sa.Connection, hostname: str, instance: str) -> bool:
    """Return whether the registration with that host name is still that of ``instance``."""
    query = sa.select(conductors.c.instance).where(conductors.c.hostname == hostname)
    return bool(conn.scalar(query) == instance)


def get(conn: sa.Connection, hostname: str) -> RegisteredConductor:
    """Return one conductor, online or not.

    :raises conductor_not_found: 404
    """
    row = conn.execute(sa.select(conductors).where(conductors.c.hostname == hostname)).one_or_none()
    if row is None:
        raise conductor_not_found(conductor=hostname)
    return row


def list_conductors(conn: sa.Connection) -> Sequence[RegisteredConductor]:
    """Return every conductor that ever registered, by host name."""
    return conn.execute(_ALL).all()


def alive(conn: sa.Connection, timeout_s: float, *,
          now: datetime.datetime | None = None) -> Sequence[RegisteredConductor]:
    """Return the conductors that are online and had a heartbeat within ``timeout_s``, by host name."""
    return conn.execute(_ALL.where(conductors.c.online.is_(True), ~_silent(conn, timeout_s, now))).all()


def living_hosts(conn: sa.Connection, timeout_s: float, *, now: datetime.datetime | None = None) -> list[Row]:
    """Return the same conductors as :func:`alive`, without their hardware types, which are long.

    :returns: rows of ``hostname``, ``conductor_group``, ``instance``, ``updated_at``
    """
    by_server = None if now else _HOSTS_BY_SERVER.get(conn.dialect.name)
    if by_server is not None:
        return list(conn.execute(by_server, {"age_s": timeout_s}).all())
    since = (now or clock.now()) - datetime.timedelta(seconds=timeout_s)
    return list(_HOSTS_SINCE.all(conn, {"since": since}))


def pins(conn: sa.Connection, timeout_s: float, *, now: datetime.datetime | None = None) -> dict[str, str]:
    """Return the ``pinned_release`` of the same conductors as :func:`alive`, by host name, as far as it is known."""
    columns = conductors.c.hostname, conductors.c.pinned_release
    living = conductors.c.online.is_(True), ~_silent(conn, timeout_s, now)
    is_pinned = conductors.c.pinned_release.is_not(None)
    return {row.hostname: row.pinned_release for row in conn.execute(sa.select(*columns).where(*living, is_pinned))}


def serves(conn: sa.Connection, group: str, timeout_s: float, *, now: datetime.datetime | None = None) -> bool:
    """Return whether a conductor of the group is alive."""
    living = sa.exists().where(
        conductors.c.conductor_group == group, conductors.c.online.is_(True), ~_silent(conn, timeout_s, now))
    return bool(conn.scalar(sa.select(living)))


def is_any_alive(conn: sa.Connection, timeout_s: float, *, now: datetime.datetime | None = None) -> bool:
    """Return whether a conductor of any group is alive."""
    return bool(living_hosts(conn, timeout_s, now=now))


def dead(conn: sa.Connection, timeout_s: float, *,
         now: datetime.datetime | None = None) -> Sequence[RegisteredConductor]:
    """Return the conductors whose nodes another one must take over, by host name.

    They had no heartbeat within ``timeout_s``, and are still online or hold the lock of a node: the latter if the
    conductor that marked them as dead died before it had taken over all their nodes.
    """
    holds_a_lock = sa.exists().where(nodes.c.reservation == conductors.c.hostname)
    query = _ALL.where(_silent(conn, timeout_s, now), sa.or_(conductors.c.online.is_(True), holds_a_lock))
    return conn.execute(query).all()


def mark_dead(conn: sa.Connection, hostname: str, timeout_s: float, *, now: datetime.datetime | None = None) -> bool:
    """Set a conductor offline that has had no heartbeat within ``timeout_s``; return False if it has had one.

    It is not waited for a transaction that has locked the row: it may be the last heartbeat, whose process was lost.
    """
    query = sa.select(conductors.c.id).where(conductors.c.hostname == hostname).with_for_update(skip_locked=True)
    if conn.scalar(query) is None:
        return False
    statement = sa.update(conductors).where(conductors.c.hostname == hostname, _silent(conn, timeout_s, now))
    return conn.execute(statement.values(online=False)).rowcount == 1


def _silent(conn: sa.Connection, timeout_s: float, now: datetime.datetime | None) -> sa.ColumnElement[bool]:
    since = clock.ago(conn, timeout_s) if now is None else now - datetime.timedelta(seconds=timeout_s)
    return conductors.c.updated_at < since


def claim_periodic_task(db: Database, name: str, hostname: str, interval_s: float, *,
                        now: datetime.datetime | None = None) -> bool:
    """Return whether ``hostname`` is to run the task now; then no conductor runs it for ``interval_s`` seconds.

    :param now: the time (for tests)
    """
    now = now or clock.now()
    interval = datetime.timedelta(seconds=interval_s)
    table = periodic_tasks.c
    # A start in the future was written by a clock that has been corrected since.
    is_due = sa.or_(table.started_at <= now - interval, table.started_at > now + interval)
    with db.reader() as conn:
        row = conn.execute(sa.select(periodic_tasks, is_due.label("is_due")).where(table.name == name)).one_or_none()
    if row is not None and not row.is_due:
        return False
    values = {"hostname": hostname, "started_at": now}
    if row is not None:
        return db.write(lambda conn: conn.execute(
            sa.update(periodic_tasks).where(table.name == name, is_due).values(values)).rowcount == 1)
    try:
        db.write(lambda conn: conn.execute(sa.insert(periodic_tasks).values(name=name, **values)))
    except db_exc.DBDuplicateEntry:
        return False
    return True


# With a part of a batch, the state is still that between two statements, but its time-out does not count any more.
_END = sa.text("""
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user
    AND application_name = current_setting('application_name')
    AND state IN ('active', 'idle in transaction', 'idle in transaction (aborted)') AND wait_event = 'ClientRead'
    AND state_change < clock_timestamp() - make_interval(secs => :silent_s)""")


def end_stalled_sessions(db: Database, silent_s: float) -> int:
    """End the sessions, of any process of this service, in such a state for ``silent_s`` seconds; return how many.

    The service's sessions have its ``application_name``: migrations, and users of the same role, are left alone.

    :param silent_s: 0: none
    """
    if db.dialect != "postgresql" or not silent_s:
        return 0
    with db.reader() as conn:
        return int(conn.scalar(_END, {"silent_s": silent_s}) or 0)
