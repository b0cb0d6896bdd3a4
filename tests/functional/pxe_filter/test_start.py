"""A filter whose database or disk refuses while it starts: it waits, says so, and is ready when the files are right."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from ironic_rules import service
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import states
from ironic_rules.pxe_filter import service as service_pxe_filter
from ironic_rules.pxe_filter.service import FilterService
from tests.functional.processes import Process, wait_for
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.site import Site
from tests.functional.pxe_filter.test_process import small_disk
from tests.functional.relay import Relay


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_pxe_filter, "RETRY_S", 0.05)


@contextlib.contextmanager
def starting(site: Site) -> Iterator[tuple[FilterService, threading.Thread]]:
    """Yield a filter that is connected to the database, and a thread in which it starts."""
    made = service.make_pxe_filter(site.conf())
    thread = threading.Thread(target=made.start, daemon=True)
    try:
        yield made, thread
    finally:
        made.stop()
        made.wait(60)
        made._keeper.close()
        made._keeper._db.dispose()


def remount(folder: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", folder], check=True)


def test_a_full_disk_is_waited_for(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    _, mac = site.machine(states.INSPECTWAIT)
    with small_disk(site.folder):
        ballast = site.folder / ".ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        with starting(site) as (_, thread):
            thread.start()
            wait_for("the report", lambda: "No space left on device" in caplog.text)
            assert thread.is_alive()  # not ready
            assert site.verdicts() == {}

            ballast.unlink()
            thread.join(60)
            assert not thread.is_alive()
            assert site.verdicts() == {mac: True, "*": True}


def test_a_read_only_disk_without_any_file_is_waited_for(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    _, mac = site.machine(states.INSPECTWAIT)
    with small_disk(site.folder), starting(site) as (_, thread):
        remount(site.folder, "ro")
        thread.start()
        wait_for("the report", lambda: "The disk cannot be written; the filter waits for it" in caplog.text)
        assert "Read-only file system" in caplog.text
        assert thread.is_alive()

        remount(site.folder, "rw")
        thread.join(60)
        assert not thread.is_alive()
        assert site.verdicts() == {mac: True, "*": True}
        assert caplog.text.count("The disk cannot be written") == 1


def test_one_of_two_folders_is_waited_for_with_the_other_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with sites.site(tmp_path, folders=2) as site, small_disk(site.folders[1]), starting(site) as (_, thread):
        remount(site.folders[1], "ro")
        thread.start()
        wait_for("the report", lambda: "the filter waits for it" in caplog.text)
        remount(site.folders[1], "rw")
        thread.join(60)
        assert [sites.verdicts(folder) for folder in site.folders] == [{"*": False}] * 2


def test_a_missing_folder_is_refused_at_once(site: Site) -> None:
    made = service.make_pxe_filter(site.conf(dhcp_hostsdir=site.path / "nowhere"))

    with pytest.raises(ConfigurationError, match="No such file or directory"):
        made.start()
    made._keeper._db.dispose()


@contextlib.contextmanager
def relayed(path: Path, kind: str) -> Iterator[tuple[Site, Relay]]:
    """Yield a site whose filters reach the database through a relay."""
    with sites.site(path, kind) as site:
        url = sa.make_url(site.url)
        relay = Relay(url.host or "127.0.0.1", url.port or {"mysql": 3306, "postgresql": 5432}[kind])
        site.url = url.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
        try:
            yield site, relay
        finally:
            relay.cut()


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_a_database_that_is_lost_before_the_first_reading_is_waited_for(
        tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    with relayed(tmp_path, kind) as (site, relay):
        _, mac = site.machine(states.INSPECTWAIT)
        with starting(site) as (_, thread):
            relay.cut()
            thread.start()
            wait_for("the report", lambda: "The database cannot be reached; the filter waits for it" in caplog.text)
            assert thread.is_alive()
            assert site.verdicts() == {}

            relay.mend()
            thread.join(60)
            assert not thread.is_alive()
            assert site.verdicts() == {mac: True, "*": True}


@pytest.mark.servers
@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("mysql", marks=pytest.mark.long), "postgresql"])
def test_a_silent_database_is_reported_soon_and_waited_for(tmp_path: Path, kind: str) -> None:
    with relayed(tmp_path, kind) as (site, relay):
        relay.is_silent = True
        _, mac = site.machine(states.INSPECTWAIT)
        file = site.config_file("late", "[database]\nconnect_timeout = 6\n")
        process = Process("ironic_rules.cmd.pxe_filter", ["--config-file", str(file)], site.path, "late")
        try:
            process.printed("The database has not replied for 4 seconds; the filter waits for it")
            assert "cannot be reached" not in process.text()
            relay.is_silent = False
            process.printed("is running")
            assert site.verdicts() == {mac: True, "*": True}
        finally:
            process.close()
