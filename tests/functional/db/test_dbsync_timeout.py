"""``ironic-rules-dbsync --timeout``: a database server that cannot be reached is waited for, but not longer."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.functional import forking
from tests.functional.databases import temporary_database
from tests.functional.processes import Process, free_port
from tests.functional.relay import Relay


def configuration(folder: Path, url: str) -> str:
    file = folder / "service.conf"
    file.write_text(f"[database]\nconnection = {url}\n")
    return str(file)


@pytest.mark.slow
def test_a_server_that_is_never_reached_is_told_in_one_line_with_file_and_option(tmp_path: Path) -> None:
    file = configuration(tmp_path, f"mysql+pymysql://ironic@127.0.0.1:{free_port()}/none")
    done = forking.run("ironic_rules.cmd.dbsync", ["--config-file", file, "--timeout", "1", "upgrade"], tmp_path)

    assert done.returncode == 2
    line, = done.stderr.splitlines()
    assert f"{file}: [database]connection: the server cannot be reached, for 1 seconds (--timeout): " in line
    assert "Connection refused" in line


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_a_server_that_comes_in_time_is_used(tmp_path: Path, kind: str) -> None:
    with temporary_database(kind) as text:
        url = sa.make_url(text)
        relay = Relay(url.host or "127.0.0.1", url.port or {"mysql": 3306, "postgresql": 5432}[kind])
        relay.cut()
        url = url.set(host="127.0.0.1", port=relay.port)
        file = configuration(tmp_path, url.render_as_string(hide_password=False))
        process = Process("ironic_rules.cmd.dbsync", ["--config-file", file, "upgrade"], tmp_path, "dbsync")
        try:
            process.printed("The database cannot be reached; waiting for it")
            relay.mend()
            process.printed("The database is at revision")
        finally:
            process.close()
            relay.cut()


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_a_silent_server_is_not_waited_for_longer(tmp_path: Path, kind: str) -> None:
    with temporary_database(kind) as text:
        url = sa.make_url(text)
        relay = Relay(url.host or "127.0.0.1", url.port or {"mysql": 3306, "postgresql": 5432}[kind])
        relay.is_silent = True
        url = url.set(host="127.0.0.1", port=relay.port)
        file = configuration(tmp_path, url.render_as_string(hide_password=False))
        try:
            done = forking.run("ironic_rules.cmd.dbsync", ["--config-file", file, "--timeout", "2", "version"],
                               tmp_path)
        finally:
            relay.cut()

    assert done.returncode == 2
    assert "the server cannot be reached, for 2 seconds (--timeout)" in done.stderr
