"""Violated constraints become errors of the service."""

from __future__ import annotations

import sqlite3

import psycopg
import pymysql
import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db.errors import DatabaseFull, duplicates, references, refusals
from ironic_rules.exceptions import Conflict, DuplicateNodeName, NodeNotFound, Wording, node_already_exists
from tests.walking import walking
from tests.wordings import refused


@walking("columns, expected", [(["uuid"], node_already_exists), (["name"], DuplicateNodeName)])
def test_the_column_decides(columns: list[str], expected: type[Conflict] | Wording[Conflict]) -> None:
    with refused(expected), duplicates(uuid=lambda value: node_already_exists(uuid="u"),
                                       name=lambda value: DuplicateNodeName(name=value)):
        raise db_exc.DBDuplicateEntry(columns, value="n")


@walking("columns", [["PRIMARY"], ["rules"], []])
def test_other_stands_for_the_columns_without_a_name(columns: list[str]) -> None:
    with pytest.raises(Conflict, match="taken"), duplicates(uuid=lambda value: Conflict("same UUID"),
                                                            other=lambda value: Conflict("taken")):
        raise db_exc.DBDuplicateEntry(columns)


def test_a_duplicate_that_nobody_expects_stays_what_it_is() -> None:
    with pytest.raises(db_exc.DBDuplicateEntry), duplicates(uuid=lambda value: Conflict()):
        raise db_exc.DBDuplicateEntry(["name"])


def test_the_cause_is_kept() -> None:
    with pytest.raises(NodeNotFound) as caught, references(lambda key: NodeNotFound(node=key)):
        raise db_exc.DBReferenceError("ports", "ports_node_id_fkey", "node_id", "nodes")
    assert isinstance(caught.value.__cause__, db_exc.DBReferenceError)
    assert "node_id" in str(caught.value)


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), duplicates(uuid=lambda value: Conflict()), references(lambda key: Conflict()):
        raise KeyError


class DiskFull(Exception):
    """As psycopg's error of that name."""

    sqlstate = "53100"


@walking("original", [
    sqlite3.OperationalError("database or disk is full"), sqlite3.OperationalError("disk I/O error"),
    pymysql.err.OperationalError(1114, "The table 'nodes' is full"),
    pymysql.err.OperationalError(1021, "Disk full", sqlstate="HY000"), DiskFull()])
def test_a_database_that_can_not_write_is_as_one_that_is_away(original: Exception) -> None:
    error = sa.exc.OperationalError("COMMIT", {}, original)
    for raised in (error, db_exc.DBError(error)):
        with pytest.raises(DatabaseFull), refusals():
            raise raised
    assert issubclass(DatabaseFull, db_exc.DBConnectionError)


@walking("said, raised", [
    ("connection failed: Connection refused", db_exc.DBConnectionError),
    ('FATAL:  the database system is starting up', db_exc.DBConnectionError),
    ('FATAL:  sorry, too many clients already', db_exc.DBConnectionError),
    ('FATAL:  password authentication failed for user "x"', sa.exc.OperationalError),
    ('FATAL:  database "x" does not exist', sa.exc.OperationalError)])
def test_a_connection_that_postgresql_refuses_for_good_is_not_waited_for(said: str, raised: type[Exception]) -> None:
    with pytest.raises(raised), refusals():
        raise sa.exc.OperationalError("SELECT", {}, psycopg.OperationalError(said))


@walking("error", [
    sa.exc.OperationalError("SELECT", {}, sqlite3.OperationalError("no such table: nodes")),
    sa.exc.OperationalError("SELECT", {}, pymysql.err.OperationalError(1146, "no such table")),
    db_exc.DBDuplicateEntry(["name"])])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, refusals():
        raise error
    assert caught.value is error
