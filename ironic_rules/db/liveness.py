"""Checks whether a pooled connection is still usable, without a query to the server.

SQLAlchemy runs a query each time that a connection leaves the pool. A server that stops, restarts or kills a connection
closes its socket, often after a message: then the socket is readable, unlike that of an idle connection. Only then is
the query worth its round trip.
"""

from __future__ import annotations

import select
from typing import Any

import sqlalchemy as sa


def watch(engine: sa.Engine) -> None:
    """Query the server of ``engine`` only if a connection may be broken."""
    ask = engine.dialect.do_ping

    def is_alive(dbapi_connection: Any) -> bool:
        return _is_quiet(dbapi_connection) or ask(dbapi_connection)

    engine.dialect.do_ping = is_alive  # type: ignore[method-assign]


def _is_quiet(dbapi_connection: Any) -> bool:
    """Return whether the connection's socket is open and has nothing to read."""
    try:
        number = descriptor(dbapi_connection)
    except (AttributeError, OSError, ValueError):  # already closed, or a driver that does not provide it
        return False
    poll = select.poll()
    poll.register(number, select.POLLIN | select.POLLPRI)
    return not poll.poll(0)  # errors and hang-ups are always reported


def descriptor(dbapi_connection: Any) -> int:
    """Return the number of a connection's socket."""
    connection = getattr(dbapi_connection, "driver_connection", dbapi_connection)
    # psycopg provides it itself, PyMySQL only in its socket.
    return int(connection.fileno() if hasattr(connection, "fileno") else connection._sock.fileno())
