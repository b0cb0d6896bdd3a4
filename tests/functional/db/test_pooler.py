"""PgBouncer with ``pool_mode = transaction``, which may give each transaction another session."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db import nodes
from ironic_rules.db.session import Database
from tests.functional import databases
from tests.functional.processes import free_port, wait_for

pytestmark = [pytest.mark.servers, pytest.mark.slow]


@pytest.fixture
def pooled() -> Iterator[str]:
    """The URL of a database with the schema, behind PgBouncer with four sessions."""
    if shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("PgBouncer is not installed")
    port = free_port()
    with databases.migrated_database("postgresql") as text, tempfile.TemporaryDirectory() as name:
        url, folder = sa.make_url(text), Path(name)
        folder.chmod(0o755)
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n{url.database} = host={url.host} port={url.port} user={url.username}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\nunix_socket_dir =\n"
            "pool_mode = transaction\ndefault_pool_size = 4\n")
        (folder / "pgbouncer.ini").chmod(0o644)
        user = "postgres" if os.geteuid() == 0 else None  # it does not run as root
        process = subprocess.Popen([shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", folder / "pgbouncer.ini"],
                                   user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def listens() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 10):
                return True
            return False

        try:
            wait_for("PgBouncer", listens)
            yield url.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        finally:
            process.terminate()
            process.wait(60)


def use(db: Database) -> int:
    """Read and write from many threads, each statement often enough to be prepared; return the number of nodes."""
    def work(number: int) -> None:
        for _ in range(10):
            uuid = db.write(lambda conn: nodes.get_by_id(conn, databases.insert_node(conn)).uuid)
            with db.reader() as conn:
                assert nodes.get(conn, uuid).uuid == uuid

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    with db.reader() as conn:
        return int(conn.scalar(sa.text("SELECT count(*) FROM nodes")) or 0)


def test_nothing_is_prepared_or_set_in_a_session(pooled: str) -> None:
    db = databases.open_database(pooled, transaction_pooling=True, max_retries=0)
    try:
        assert use(db) == 80
        with db.reader() as conn:
            assert conn.scalar(sa.text("SHOW application_name")) == ""
            assert conn.scalar(sa.text("SELECT count(*) FROM pg_prepared_statements")) == 0
    finally:
        db.dispose()


def test_without_the_option_the_pooler_refuses_prepared_statements(pooled: str) -> None:
    with pytest.raises(db_exc.DBError, match="prepared statement"):
        db = databases.open_database(pooled, max_retries=0)
        try:
            use(db)
        finally:
            db.dispose()
