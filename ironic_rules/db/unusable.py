"""Reasons why a database cannot be used, for the operator who has set ``[database]connection``, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from ironic_rules.models import secrets
from ironic_rules.text import printable

#: Drivers that the service is tested with.
_DRIVERS = "sqlite://, mysql+pymysql:// or postgresql+psycopg:// is required"
_BACKENDS = frozenset({"sqlite", "mysql", "mariadb", "postgresql"})
#: Modules of drivers; those that are missing are installed with an extra, whose name the command knows.
_MODULES = frozenset({"pymysql", "psycopg"})
#: Parameters of URLs that are files, of PyMySQL and psycopg.
_FILES = frozenset({"ssl_ca", "ssl_cert", "ssl_key", "sslrootcert", "sslcert", "sslkey"})
_LOGIN = "the server refuses the login: correct user and password, or the rights of the user on the server"
_AWAY = "the server cannot be reached: start it, or correct host and port"
_TLS = "the server and the connection do not agree on TLS: correct the parameters of the URL that begin with ssl"
#: Numbers of MariaDB's errors -> the reason and what to do.
_MARIADB = {
    1040: "the server has too many connections: raise its max_connections, or lower [database]max_pool_size",
    1044: "the user may not use this database: grant the user all privileges on it",
    1045: _LOGIN,
    1049: "the server has no database of this name: create the database, or correct the name",
    1130: "the server refuses this host: let the user connect from here (CREATE USER 'NAME'@'HOST')",
    1142: "the user may not do that in this database: grant the user all privileges on it",
    1698: _LOGIN,
    2003: _AWAY,
    2006: _AWAY,
    2013: "what listens there does not reply like MariaDB: correct host and port, or the TLS parameters of the URL",
    2026: _TLS,
}
#: Parts of PostgreSQL's errors, most of which have no number when a connection fails.
_POSTGRESQL = (
    ("password authentication failed", _LOGIN),
    ("no password supplied", _LOGIN),
    ("role \"", "the server has no such user: create the user, or correct the name"),
    ("database \"", "the server has no database of this name: create the database, or correct the name"),
    ("pg_hba.conf", "the server refuses this host, user or database: add a line for it to the server's pg_hba.conf"),
    ("permission denied", "the user may not do that in this database: grant the user all privileges on its schema"),
    ("does not support SSL", _TLS),
    ("SSL error", _TLS),
    ("certificate", _TLS),
    ("too many", "the server has too many connections: raise its max_connections, or lower [database]max_pool_size"),
    ("remaining connection slots", "the server has too many connections: raise its max_connections, or lower "
                                   "[database]max_pool_size"),
    ("connection failed", _AWAY),
    ("connection timeout", _AWAY),
    ("could not translate host name", _AWAY),
    ("failed to resolve host", _AWAY),
    ("server closed the connection", "what listens there does not reply like PostgreSQL: correct host and port"),
)
_SQLITE = (
    ("file is not a database", "the file is no SQLite database: correct the path, or move the file away"),
    ("database is locked", "another program has locked the file: end the program, such as a backup or a shell"),
    ("readonly database", "the file, or its folder, cannot be written: give it to the user of this process"),
    ("disk is full", "the disk is full: free space on it"),
)


def problem_of(url: str) -> str | None:
    """Return why a URL can be no connection, before anything is connected; None if it can be one."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return ("no URL of a database; DRIVER://USER:PASSWORD@HOST:PORT/DATABASE is required, with %40 for @, %2F for "
                "/ and %25 for % in a password")
    for parameter in _FILES & parsed.query.keys():
        file = str(parsed.query[parameter])
        if file != "system" and not os.access(file, os.R_OK):  # which libpq takes for the certificates of the system
            return f"the file of {parameter}, {printable(file)}, cannot be read; the user of this process must read it"
    name = printable(parsed.drivername, 64)
    try:
        dialect = parsed.get_dialect()
    except sa.exc.NoSuchModuleError:
        return f"there is no driver {name}; {_DRIVERS}"
    if parsed.get_backend_name() not in _BACKENDS or getattr(dialect, "is_async", False):
        return f"the driver {name} is not supported; {_DRIVERS}"
    try:
        dialect.import_dbapi()
    except ModuleNotFoundError as exc:
        return None if exc.name in _MODULES else f"the driver {name} is not installed; {_DRIVERS}"
    return None


def explained(error: BaseException, url: str | None) -> str:
    """Return a text about an error of the database: option, URL without password, the reason and what to do.

    :param error: of oslo.db, SQLAlchemy or a driver
    :param url: ``[database]connection``
    """
    message = printable(str(error).partition("\n")[0])
    original = next((cause for cause in _causes(error) if type(cause).__module__.partition(".")[0] in (
        "pymysql", "psycopg", "sqlite3")), None)
    reason = None if original is None else _reason(original, url)
    if reason is None:
        return message
    shown = printable(secrets.mask_text(str(url)), 200)
    return f"[database]connection = {shown}: {reason}. The error is: {message.rstrip('.')}."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = getattr(error, "inner_exception", None) or getattr(error, "orig", None) or error.__cause__


def _reason(original: Any, url: str | None) -> str | None:
    kind = type(original).__module__.partition(".")[0]
    if kind == "pymysql":
        return _MARIADB.get(original.args[0] if original.args else 0)
    if kind == "sqlite3" and "unable to open database file" in str(original):
        return _of_file(sa.make_url(url).database if url else None)
    reasons = _SQLITE if kind == "sqlite3" else _POSTGRESQL
    return next((reason for part, reason in reasons if part in str(original)), None)


def _of_file(path: str | None) -> str:
    """Return why SQLite cannot open a file."""
    if not path:
        return "the URL has no path"
    folder = os.path.dirname(os.path.abspath(path))
    shown = printable(path), printable(folder)
    if os.path.isdir(path):
        return f"{shown[0]} is a folder: add the name of a file"
    if not os.path.isdir(folder):
        return f"there is no folder {shown[1]}: make the folder, or correct the path (an absolute one has four slashes)"
    return f"this user may not read and write {shown[0]} and its folder: give them to the user of this process"
