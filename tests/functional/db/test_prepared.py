from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db import clock, nodes, ports
from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.session import Database
from ironic_rules.db.tables import node_history, pxe_filter_changes
from ironic_rules.db.tables import nodes as table
from tests.functional import databases
from tests.functional.api.test_statements import counted
from tests.functional.db.concurrency import at_once


def _macs(number: int) -> list[str]:
    return [f"52:54:00:00:{each >> 8:02x}:{each & 255:02x}" for each in range(number)]


@pytest.fixture
def node(db: Database) -> Any:
    """A node with values of all kinds, and two ports."""
    with db.writer() as conn:
        row = nodes.create(conn, {"driver": "fake", "name": "n", "properties": {"cpus": 4}, "protected": True,
                                  "provision_updated_at": clock.now()})
        for address in _macs(2):
            ports.create(conn, {"node_id": row.id, "address": address, "extra": {"a": [1]}})
    return row


def _directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what SQLAlchemy executes in this thread fail; services of other tests may still have threads."""
    execute, ours = sa.Connection.execute, threading.get_ident()

    def refuse(*arguments: Any, **options: Any) -> Any:
        if threading.get_ident() == ours:
            pytest.fail("not prepared")
        return execute(*arguments, **options)

    monkeypatch.setattr(sa.Connection, "execute", refuse)


def _same(db: Database, query: sa.Select[Any], parameters: dict[str, Any]) -> list[Any]:
    """Check that a query finds the same as without preparation, also the second time; return the rows."""
    prepared = Prepared(query)
    with db.reader() as conn, pytest.MonkeyPatch.context() as patched:
        expected = conn.execute(query, parameters).all()
        if all(len(value) <= 64 for value in parameters.values() if isinstance(value, list)):
            _directly(patched)
        for _ in range(2):
            found = prepared.all(conn, parameters)
            assert [tuple(row) for row in found] == [tuple(row) for row in expected]
            assert [row._asdict() for row in found] == [row._asdict() for row in expected]
    return list(expected)


def test_rows_are_those_of_sqlalchemy(db: Database, node: Any) -> None:
    assert len(_same(db, nodes._WITH_REVISIONS.query, {"node_id": node.id})) == 1
    assert len(_same(db, ports._OF_NODE.query, {"node_id": node.id})) == 2
    since = sa.select(table.c.name).where(table.c.provision_updated_at >= sa.bindparam("since"))
    assert len(_same(db, since, {"since": node.provision_updated_at})) == 1
    assert _same(db, since, {"since": clock.now()}) == []


@pytest.mark.parametrize("number", [0, 1, 3, 64, 65, 1024])
def test_lists_of_any_length(db: Database, node: Any, number: int) -> None:
    found = _same(db, ports._OWNERS.query, {"macs": _macs(number)})
    assert len(found) == min(number, 2)
    # A list that is part of the query, before and after one that is not.
    query = sa.select(table.c.id).where(table.c.driver.in_(["fake", "other"]), table.c.name.in_(
        sa.bindparam("names", expanding=True)), table.c.provision_state.not_in(["active"]))
    assert len(_same(db, query, {"names": ["n", *_macs(number)]})) == 1


def test_errors_of_queries_are_those_of_sqlalchemy(db: Database) -> None:
    missing = sa.select(sa.column("x")).select_from(sa.table("nowhere"))
    with pytest.raises(Exception, match="nowhere") as expected, db.reader() as conn:
        conn.execute(missing)
    with pytest.raises(type(expected.value), match="nowhere"), db.reader() as conn:
        Prepared(missing).all(conn, {})


def test_a_missing_parameter_is_an_error(db: Database, node: Any) -> None:
    with pytest.raises((KeyError, sa.exc.SQLAlchemyError, db_exc.DBError)), db.reader() as conn:
        Prepared(nodes._BY_ID.query).all(conn, {})


def test_what_listens_sees_all_statements(db: Database, node: Any) -> None:
    of_connection: list[str] = []
    with counted(db.engine) as seen, db.reader() as conn:
        nodes.get_by_id(conn, node.id)
    if db.dialect == "sqlite":
        db.engine._has_events = False
    with db.writer() as conn:
        sa.event.listen(conn, "before_cursor_execute", lambda *args: of_connection.append(args[2]))
        nodes.get_by_id(conn, node.id)
        PreparedChange(sa.insert(pxe_filter_changes)).inserted(conn, {"node_id": node.id})
    assert (len(seen), len(of_connection)) == (1, 2)


def _entry(node: Any, uuid: str, **more: Any) -> dict[str, Any]:
    return {"uuid": uuid, "node_id": node.id, "event_type": "t", "event": "e", "severity": "INFO",
            "created_at": clock.now(), **more}


def test_rows_are_inserted_and_updated(db: Database, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    insert, noted = PreparedChange(sa.insert(node_history)), PreparedChange(sa.insert(pxe_filter_changes))
    update = PreparedChange(sa.update(node_history).where(node_history.c.id == sa.bindparam("entry")).values(
        user="u", event=node_history.c.event + "!"))
    with monkeypatch.context() as patched, db.writer() as conn:
        _directly(patched)
        first = insert.inserted(conn, _entry(node, "1"))
        insert.insert_all(conn, [_entry(node, "2"), _entry(node, "3")])
        assert update.matched(conn, {"entry": first, "severity": "ERROR"}) == 1
        assert update.matched(conn, {"entry": first + 100, "severity": "ERROR"}) == 0
        assert noted.inserted(conn, {"node_id": node.id}) < noted.inserted(conn, {"node_id": node.id})
    columns = node_history.c
    with db.reader() as conn:
        found = conn.execute(sa.select(columns.uuid, columns.user, columns.event, columns.severity).order_by(
            columns.id)).all()
    assert [tuple(row) for row in found] == [
        ("1", "u", "e!", "ERROR"), ("2", None, "e", "INFO"), ("3", None, "e", "INFO")]


def test_defaults_are_inserted(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, db.writer() as conn:
        _directly(patched)
        row = nodes.get_by_id(conn, PreparedChange(sa.insert(table)).inserted(
            conn, {"uuid": "0b2b8f6e-0000-4000-8000-000000000000", "driver": "d", "provision_state": "enroll",
                   "created_at": clock.now()}))
    assert (row.extra, row.revision, row.protected) == ({}, 1, False)


def test_errors_of_changes_are_those_of_sqlalchemy(db: Database, node: Any) -> None:
    insert = PreparedChange(sa.insert(node_history))
    for wrong, error in (({"uuid": "1"}, db_exc.DBDuplicateEntry), ({"node_id": -1}, db_exc.DBReferenceError),
                         *([({"event": {1}}, db_exc.DBError)] if db.dialect == "sqlite" else [])):
        with pytest.raises(error), db.writer() as conn:
            insert.inserted(conn, _entry(node, "1"))
            insert.inserted(conn, _entry(node, "2") | wrong)
    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(node_history)) == 0


def test_of_several_rows_the_one_that_fails_is_the_error(db: Database, node: Any) -> None:
    with pytest.raises(db_exc.DBReferenceError), db.writer() as conn:
        PreparedChange(sa.insert(node_history)).insert_all(
            conn, [_entry(node, "1"), _entry(node, "2"), _entry(node, "3", node_id=-1), _entry(node, "4")])
    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(node_history)) == 0


def test_a_change_after_whose_failure_there_is_no_transaction_is_not_repeated(db: Database, node: Any) -> None:
    if db.dialect != "sqlite":
        pytest.skip("of SQLite only")
    insert = PreparedChange(sa.insert(node_history))
    with pytest.raises(sa.exc.OperationalError, match="UNIQUE"), db.writer() as conn:
        insert.inserted(conn, _entry(node, "1"))
        # As SQLite ends it if its disk is full.
        conn.exec_driver_sql("CREATE TEMP TRIGGER full BEFORE INSERT ON node_history BEGIN SELECT RAISE(ROLLBACK, "
                             "'UNIQUE'); END")
        insert.inserted(conn, _entry(node, "2"))
    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(node_history)) == 0


def test_a_query_after_whose_failure_there_is_no_transaction_is_not_repeated(db: Database, node: Any) -> None:
    if db.dialect != "sqlite":
        pytest.skip("of SQLite only")

    def rolls_back(value: Any) -> Any:
        ended.rollback()  # as SQLite does after an error of the disk
        raise ValueError

    query = Prepared(sa.select(table.c.id).where(table.c.id == sa.bindparam("node_id")))
    with pytest.raises(sa.exc.OperationalError), db.writer() as conn:
        ended: Any = conn.connection.dbapi_connection
        assert len(query.all(conn, {"node_id": node.id})) == 1
        (plan,) = query._plans
        query._plans = {plan: (query._plans[plan][0], [(0, rolls_back)])}
        query.all(conn, {"node_id": node.id})


def test_there_is_one_row(db: Database, node: Any) -> None:
    of_node = {"node_id": node.id}
    with db.reader() as conn:
        with pytest.raises(sa.exc.MultipleResultsFound):
            ports._OF_NODE.one_or_none(conn, of_node)
        with pytest.raises(sa.exc.NoResultFound):
            nodes._BY_ID.one(conn, {"node_id": node.id + 1000})
        assert nodes._BY_ID.one(conn, of_node).id == node.id


def test_statements_are_logged_if_that_is_configured(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "sqlalchemy.engine")
    with databases.migrated_database("sqlite") as url:
        logging_database = databases.open_database(url, connection_debug=50)
        caplog.clear()
        with logging_database.reader() as conn:
            assert nodes._BY_ID.one_or_none(conn, {"node_id": 1}) is None
        logging_database.dispose()
    assert "FROM nodes" in caplog.text


def test_after_a_deadlock_the_whole_transaction_is_repeated(db: Database, node: Any) -> None:
    if db.dialect == "sqlite":
        pytest.skip("one writer at a time")
    other = db.write(lambda conn: nodes.create(conn, {"driver": "fake"}))
    update = PreparedChange(sa.update(table).where(table.c.id == sa.bindparam("node_id")))
    both = threading.Barrier(2)

    def writing(name: str, first: int, second: int) -> Callable[[], int]:
        attempts = []

        def write(conn: sa.Connection) -> int:
            attempts.append(name)
            update.matched(conn, {"node_id": first, "description": name})
            if len(attempts) == 1:
                both.wait(60)
            update.matched(conn, {"node_id": second, "owner": name})
            return len(attempts)

        return lambda: db.write(write)

    attempts = at_once([writing("one", node.id, other.id), writing("two", other.id, node.id)])
    assert sorted(attempts) == [1, 2]
    with db.reader() as conn:
        found = [nodes.get_by_id(conn, each.id) for each in (node, other)]
    assert [(row.description, row.owner) for row in found] == [("one", "two"), ("two", "one")]


def test_a_connection_that_is_closed_is_an_unavailable_database(db: Database, node: Any) -> None:
    if db.dialect == "sqlite":
        pytest.skip("there is no server")
    for begin in (db.writer, db.reader):
        with pytest.raises(db_exc.DBConnectionError), begin() as conn:
            conn.connection.dbapi_connection.close()  # type: ignore[union-attr]
            nodes._BY_ID.one(conn, {"node_id": node.id})
    with db.reader() as conn:
        assert nodes._BY_ID.one(conn, {"node_id": node.id}).id == node.id
