"""Whether a pooled connection is still good, without asking the server.

SQLAlchemy asks with a query each time that a connection leaves the pool. A server that ends, restarts or kills a
connection closes its socket, and often says why before: the process sees that as something to read, where a resting
connection has nothing. Only then is the query worth its round trip.
"""

from __future__ import annotations

import select
from typing import Any

import sqlalchemy as sa


def watch(engine: sa.Engine) -> None:
    """Ask the server of ``engine`` only where a connection looks suspicious."""
    ask = engine.dialect.do_ping

    def is_alive(dbapi_connection: Any) -> bool:
        return _is_quiet(dbapi_connection) or ask(dbapi_connection)

    engine.dialect.do_ping = is_alive  # type: ignore[method-assign]


def _is_quiet(dbapi_connection: Any) -> bool:
    """Say whether the connection's socket is open and has nothing to read."""
    try:
        descriptor = _descriptor(dbapi_connection)
    except (AttributeError, OSError, ValueError):  # closed already, or a driver that does not say
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLPRI)
    return not poll.poll(0)  # errors and hang-ups are reported unasked


def _descriptor(dbapi_connection: Any) -> int:
    connection = getattr(dbapi_connection, "driver_connection", dbapi_connection)
    # psycopg offers it itself, PyMySQL only in its socket.
    return int(connection.fileno() if hasattr(connection, "fileno") else connection._sock.fileno())
