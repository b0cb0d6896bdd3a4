"""Periodic tasks that run on one conductor at a time, and on another one when that one stops."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db import clock
from ironic_rules.db.session import Database
from ironic_rules.db.tables import periodic_tasks


def claim(db: Database, name: str, hostname: str, interval_s: float, *, now: datetime.datetime | None = None) -> bool:
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
