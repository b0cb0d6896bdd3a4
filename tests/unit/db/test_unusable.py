"""An error of a database is told with its option, the reason, and what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pymysql
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db import unusable
from tests.walking import walking

URL = "mysql+pymysql://ironic:s3cret@db.example.org/ironic"


@walking("url, reason", [
    ("text", "no URL of a database"), ("mysql+pymysql://u:p@ss@host:x/d", "%40 for @"), ("", "no URL of a database"),
    ("mysql+pymsql://host/d", "no driver mysql+pymsql"), ("mysqll://host/d", "no driver mysqll"),
    ("mysql://host/d", "the driver mysql is not installed"), ("oracle://host/d", "the driver oracle is not supported"),
    ("postgresql+asyncpg://host/d", "postgresql+asyncpg is not supported"),
    ("sqlite+aiosqlite:///d", "sqlite+aiosqlite is not supported")])
def test_what_can_be_no_connection_is_told_before_anything_is_connected(url: str, reason: str) -> None:
    assert reason in str(unusable.problem_of(url))


@walking("url", ["sqlite:///x", "sqlite://", URL, "mariadb+pymysql://host/d",
                                 "postgresql+psycopg://host/d"])
def test_what_can_be_a_connection_is_not_refused(url: str) -> None:
    assert unusable.problem_of(url) is None


def wrapped(original: Exception) -> Exception:
    """Return an error as oslo.db raises it."""
    return db_exc.DBError(sa.exc.OperationalError("SELECT 1", {}, original))


@walking("original, reason", [
    (pymysql.OperationalError(1045, "Access denied"), "refuses the login"),
    (pymysql.OperationalError(1049, "Unknown database"), "create the database"),
    (pymysql.OperationalError(1044, "Access denied"), "grant the user all privileges"),
    (pymysql.OperationalError(2003, "Can't connect"), "cannot be reached"),
    (pymysql.OperationalError(2026, "SSL"), "do not agree on TLS"),
    (psycopg.OperationalError('connection failed: FATAL:  password authentication failed for user "x"'), "the login"),
    (psycopg.OperationalError('connection failed: FATAL:  database "x" does not exist'), "create the database"),
    (psycopg.OperationalError('connection failed: FATAL:  role "x" does not exist'), "create the user"),
    (psycopg.OperationalError("connection failed: Connection refused"), "cannot be reached"),
    (psycopg.OperationalError("connection failed: server does not support SSL, but SSL was required"), "on TLS"),
    (sqlite3.DatabaseError("file is not a database"), "no SQLite database"),
    (sqlite3.OperationalError("database is locked"), "end the program"),
    (sqlite3.OperationalError("attempt to write a readonly database"), "cannot be written"),
])
def test_the_line_has_option_reason_and_advice_and_no_password(original: Exception, reason: str) -> None:
    told = unusable.explained(wrapped(original), URL)

    assert told.startswith("[database]connection = mysql+pymysql://ironic:******@db.example.org/ironic: ")
    assert reason in told
    assert "s3cret" not in told
    assert "SELECT" not in told


def test_a_file_that_cannot_be_opened_is_told_with_its_folder(tmp_path: Path) -> None:
    error = wrapped(sqlite3.OperationalError("unable to open database file"))

    assert f"no folder {tmp_path}/none" in unusable.explained(error, f"sqlite:///{tmp_path}/none/x")
    assert f"{tmp_path} is a folder" in unusable.explained(error, f"sqlite:///{tmp_path}")
    assert "give them to the user" in unusable.explained(error, f"sqlite:///{tmp_path}/x")


def test_other_errors_keep_their_first_line() -> None:
    assert unusable.explained(db_exc.DBError(ValueError("no way\nSELECT 1")), URL) == "no way"
    assert "Duplicate" in unusable.explained(wrapped(pymysql.IntegrityError(1062, "Duplicate entry")), URL)
