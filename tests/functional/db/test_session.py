"""Transactions of the service's database."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db import deadlines, errors, nodes, session
from ironic_rules.db.session import Database
from tests.functional import databases
from tests.functional.db.concurrency import at_once
from tests.functional.processes import wait_for
from tests.functional.relay import Relay


def test_a_failed_writer_leaves_nothing(db: Database) -> None:
    with pytest.raises(RuntimeError), db.writer() as conn:
        nodes.create(conn, {"driver": "d", "name": "n"})
        raise RuntimeError
    with db.writer() as conn:
        nodes.create(conn, {"driver": "d", "name": "n"})


def test_the_next_writer_waits_from_its_beginning(db: Database) -> None:
    """Data that were read before the first write are still current at the write, also with a reader in between."""
    node = db.write(lambda conn: nodes.create(conn, {"driver": "d", "extra": {"n": 0}}))

    def count(conn: sa.Connection) -> None:
        # SQLite has one writer from BEGIN on; the others lock the row.
        row = conn.execute(sa.select(nodes.nodes).where(nodes.nodes.c.id == node.id).with_for_update()).one()
        with db.reader() as other:
            nodes.get_by_id(other, node.id)
        nodes.update(conn, node.id, {"extra": {"n": row.extra["n"] + 1}})

    def work() -> None:
        for _ in range(5):
            with db.writer() as conn:
                count(conn)

    assert at_once([work] * 6) == [None] * 6
    with db.reader() as conn:
        assert nodes.get_by_id(conn, node.id).extra == {"n": 30}


def test_a_reader_does_not_wait_for_a_writer(db: Database) -> None:
    node = db.write(lambda conn: nodes.create(conn, {"driver": "d", "name": "old"}))
    seen: list[str] = []

    def read() -> None:
        with db.reader() as conn:
            seen.append(nodes.get_by_id(conn, node.id).name)

    with db.writer() as conn:
        nodes.update(conn, node.id, {"name": "new"})
        thread = threading.Thread(target=read)
        thread.start()
        thread.join(60)
        assert seen == ["old"]


_OTHERS = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()",
}
_END = {"postgresql": "SELECT pg_terminate_backend({})", "mysql": "KILL {}"}


def _end_connections(db: Database) -> None:
    """Close all connections of the service except the one that does this, as an administrator of the server would."""
    others = sa.text(_OTHERS[db.dialect])
    with db.reader() as conn:
        for number in conn.scalars(others).all():
            conn.execute(sa.text(_END[db.dialect].format(number)))
        # The server does this asynchronously.
        wait_for("the end of the connections", lambda: not conn.scalars(others).all())


def test_connections_that_the_server_has_ended_are_replaced(db: Database) -> None:
    if db.dialect == "sqlite":
        pytest.skip("there is no server")
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            conn = stack.enter_context(db.reader())
            conn.execute(sa.text("SELECT 1"))
    _end_connections(db)

    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(db.reader()).scalar(sa.text("SELECT 1")) for _ in range(4)]
    assert found == [1] * 4
    assert db.write(lambda conn: conn.scalar(sa.text("SELECT 1"))) == 1


@pytest.mark.parametrize("point", ["deadlines.prepare", "clock.set_to"])
def test_a_connection_that_is_ended_while_it_is_prepared_counts_as_lost(
        db: Database, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """At the first statement, and at the commit of what the first statements have set."""
    if db.dialect == "sqlite":
        pytest.skip("there is no server")
    db.dispose()
    module, name = point.split(".")
    original = getattr(getattr(session, module), name)
    with databases.engine(db.engine.url.render_as_string(hide_password=False)) as other:

        def ended(*arguments: Any) -> Any:
            with other.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
                wait_for("the end of the connection", lambda: _end(conn))
            return original(*arguments)

        def _end(conn: sa.Connection) -> bool:
            numbers = conn.scalars(sa.text(_OTHERS[db.dialect])).all()
            for number in numbers:
                conn.execute(sa.text(_END[db.dialect].format(number)))
            return not numbers

        monkeypatch.setattr(getattr(session, module), name, ended)
        for use in (lambda: db.write(lambda conn: None), lambda: db.reader().__enter__()):
            with pytest.raises(errors.DATABASE_AWAY):
                use()
    monkeypatch.undo()
    with db.reader() as conn:
        assert conn.scalar(sa.text("SELECT 1")) == 1


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_a_server_that_is_away_is_told_alike_and_waited_for_at_the_start(kind: str) -> None:
    with databases.temporary_database(kind) as url:
        server = sa.make_url(url)
        relay = Relay(server.host or "127.0.0.1", server.port or {"mysql": 3306, "postgresql": 5432}[kind])
        through = server.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
        database = databases.open_database(through, max_retries=0)
        relay.cut()
        with pytest.raises(db_exc.DBConnectionError), database.reader() as conn:
            conn.execute(sa.text("SELECT 1"))
        with pytest.raises(db_exc.DBConnectionError):
            database.write(lambda conn: conn.execute(sa.text("SELECT 1")))
        database.dispose()

        threading.Timer(1.5, relay.mend).start()
        late = databases.open_database(through, max_retries=30, retry_interval=1)
        with late.reader() as conn:
            assert conn.scalar(sa.text("SELECT 1")) == 1
        late.dispose()
        relay.cut()


def test_a_connection_that_rests_is_not_asked_whether_it_lives(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    if db.dialect == "sqlite":
        pytest.skip("there is no server")
    with db.reader() as conn:
        conn.execute(sa.text("SELECT 1"))
    asked: list[Any] = []
    monkeypatch.setattr(type(db.engine.dialect), "do_ping", lambda *arguments: asked.append(arguments) or True)
    with db.reader() as conn:
        driver_connection = conn.connection.dbapi_connection
        assert conn.scalar(sa.text("SELECT 1")) == 1
    assert deadlines._is_quiet(driver_connection)
    assert asked == []


def test_reads_leave_no_transaction_behind_and_writes_are_whole(db: Database) -> None:
    """PostgreSQL's connections are used alternately for reads without a transaction and for writes with one."""
    for _ in range(3):
        with db.reader() as conn:
            conn.execute(sa.text("SELECT 1"))
        with pytest.raises(RuntimeError), db.writer() as conn:
            nodes.create(conn, {"driver": "d", "name": "half"})
            raise RuntimeError
        with db.reader() as conn:
            assert conn.scalar(sa.select(sa.func.count()).select_from(nodes.nodes)) == 0


def test_a_database_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    database = databases.open_database(f"sqlite:///{path}")
    with database.engine.connect() as conn:
        conn.exec_driver_sql("CREATE TABLE t (x)")
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    database.dispose()


def test_every_connection_speaks_utf8_and_commits_are_seen_at_once(db: Database) -> None:
    if db.dialect != "mysql":
        pytest.skip("of MariaDB only")
    with db.reader() as conn, db.reader() as other:
        for connection in (conn, other):
            row = connection.execute(sa.text("select @@tx_isolation, @@character_set_connection")).one()
            assert tuple(row) == ("READ-COMMITTED", "utf8mb4")


#: Texts that a driver has to escape.
TEXTS = ["it's", "'", "''", "\\", "\\'", "'\\", "\\\\''\\", '"a\\n"', "%s %(x)s %%", "\\0\n\t\x1a", "\U0001f600'\\"]


def test_texts_come_back_as_they_were(db: Database) -> None:
    with db.writer() as conn:
        found = [nodes.create(conn, {"driver": "d", "description": text, "extra": {text: [text]}}).id for text in TEXTS]
    with db.reader() as conn:
        rows = [nodes.get_by_id(conn, ident) for ident in found]
        literal = [conn.scalar(sa.select(sa.literal(text))) for text in TEXTS]
    assert [(row.description, row.extra) for row in rows] == [(text, {text: [text]}) for text in TEXTS]
    assert literal == TEXTS


class _Unaware(pymysql.connections.Connection):  # type: ignore[misc]
    """A connection through a proxy that keeps to itself that backslashes are no escapes."""

    @property
    def server_status(self) -> int:
        return int(self.__dict__["status"])

    @server_status.setter
    def server_status(self, status: int) -> None:
        self.__dict__["status"] = status & ~session._HAS_PLAIN_TEXTS


@pytest.mark.parametrize("kind", [pymysql.connections.Connection, _Unaware])
def test_what_the_driver_doubles_the_server_reads_so(
        db: Database, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if db.dialect != "mysql":
        pytest.skip("of MariaDB only")
    monkeypatch.setattr(_Unaware, "__module__", pymysql.connections.__name__)
    url = db.engine.url
    with contextlib.closing(kind(host=url.host, port=url.port, user=url.username, password=url.password or "",
                                 charset="utf8mb4")) as connection, connection.cursor() as cursor:
        session._send_texts_plainly(connection, cursor)
        cursor.execute("SELECT @@SESSION.sql_mode")
        assert (session._PLAIN_TEXTS in cursor.fetchone()[0]) == (kind is not _Unaware)
        for text in TEXTS:
            cursor.execute("SELECT %s", (text,))
            assert cursor.fetchone() == (text,)


def test_postgresql_compresses_with_lz4_unless_somebody_has_chosen(db: Database) -> None:
    if db.dialect != "postgresql":
        pytest.skip("of PostgreSQL only")
    with db.writer() as conn:
        if "lz4" not in conn.scalar(sa.text(
                "SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'")):
            pytest.skip("this server was built without it")
        ident = nodes.create(conn, {"driver": "d", "extra": {"text": "an inventory, " * 500}}).id
    with db.reader() as conn:
        assert conn.scalar(
            sa.text("SELECT pg_column_compression(extra) FROM nodes WHERE id = :id"), {"id": ident}) == "lz4"
        assert nodes.get_by_id(conn, ident).extra == {"text": "an inventory, " * 500}
    chosen = db.engine.url.update_query_dict({"options": "-c default_toast_compression=pglz"})
    other = databases.open_database(chosen.render_as_string(hide_password=False))
    with contextlib.ExitStack() as stack:
        stack.callback(other.dispose)
        with other.reader() as conn:
            assert conn.scalar(sa.text("SHOW default_toast_compression")) == "pglz"


def test_a_commit_is_the_last_that_a_server_hears_and_a_failure_is_rolled_back(db: Database) -> None:
    if db.dialect == "sqlite":
        pytest.skip("there is no server")
    done: list[str] = []
    dialect: Any = type(db.engine.dialect)
    with pytest.MonkeyPatch.context() as patched, contextlib.ExitStack() as stack:
        for name in ("do_commit", "do_rollback"):
            call = getattr(dialect, name)
            patched.setattr(dialect, name, lambda self, conn, name=name, call=call: done.append(name) or call(
                self, conn))
        database = databases.open_database(db.engine.url.render_as_string(hide_password=False))
        stack.callback(database.dispose)
        database.write(lambda conn: nodes.create(conn, {"driver": "d"}))
        done.clear()
        database.write(lambda conn: nodes.create(conn, {"driver": "d"}))
        assert done == ["do_commit"]
        with pytest.raises(RuntimeError), database.writer() as conn:
            nodes.create(conn, {"driver": "d"})
            raise RuntimeError
        assert set(done[1:]) == {"do_rollback"}
        database.write(lambda conn: nodes.create(conn, {"driver": "d"}))
        done.clear()
        with database.engine.connect() as conn:  # the same connection
            nodes.create(conn, {"driver": "d"})
        assert done == ["do_rollback"]
    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(nodes.nodes)) == 3
