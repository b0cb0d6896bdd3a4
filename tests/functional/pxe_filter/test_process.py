"""``ironic-pxe-filter`` as operators run it: life cycle, notifications to systemd, and behaviour on failures."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import ports
from ironic_rules.models import states
from tests.functional import forking
from tests.functional.processes import Process, free_port, wait_for
from tests.functional.pxe_filter import site as sites
from tests.functional.pxe_filter.network import lines
from tests.functional.pxe_filter.site import Site


@contextlib.contextmanager
def running(site: Site, name: str = "filter", sections: str = "", environment: dict[str, str] | None = None,
            **options: object) -> Iterator[Process]:
    """Run a filter with a periodic synchronization every second."""
    file = site.config_file(name, sections, **{"sync_period": 1, **options})
    process = Process("ironic_rules.cmd.pxe_filter", ["--config-file", str(file)], site.path, name, environment)
    try:
        process.printed("is running")
        yield process
    finally:
        process.close()


def command(site: Site, *arguments: str, **options: object) -> forking.Done:
    """Run a filter's command until it exits."""
    file = site.config_file("command", **options)
    return forking.run("ironic_rules.cmd.pxe_filter", ["--config-file", str(file), *arguments], site.path)


def shows(site: Site, expected: dict[str, bool]) -> None:
    wait_for(f"the files to say {expected}", lambda: site.verdicts() == expected)


def test_it_follows_the_database_and_ends_at_once(site):
    node, mac = site.machine()
    with running(site) as process:
        assert site.verdicts() == {mac: False, "*": False}
        site.move(node, states.INSPECTWAIT)
        shows(site, {mac: True, "*": True})

        process.printed(rf"node {site.uuid(node)} \('inspect wait'\): {mac} is allowed")
        process.terminate()
        assert process.status == 0


def test_once(site):
    _, mac = site.machine(states.INSPECTWAIT)

    done = command(site, "--once")

    assert (done.returncode, done.stdout) == (0, "1 addresses are in the files; 2 files were written\n")
    assert site.verdicts() == {mac: True, "*": True}


def test_status_tells_what_and_why_and_writes_nothing(site):
    allowed, _ = site.machine(states.INSPECTWAIT)
    denied, _ = site.machine()
    other = site.node(states.INSPECTING, "52:54:00:00:01:03", interface="redfish")
    site.add_port(denied, "52:54:00:00:01:04")
    with site.db.writer() as conn:
        conn.execute(sa.update(ports).where(ports.c.address == "52:54:00:00:01:04").values(address="../../x\n"))

    done = command(site, "--status")

    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "*:*:*:*:*:*\tallow\t1 nodes are on inspection",
        f"52:54:00:00:00:01\tallow\tnode {site.uuid(allowed)} is in 'inspect wait'",
        f"52:54:00:00:00:02\tdeny\tnode {site.uuid(denied)} is in 'active'",
        f"52:54:00:00:01:03\tdeny\tnode {site.uuid(other)} is in 'inspecting', but its inspect interface 'redfish' is "
        "not in [pxe_filter]supported_inspect_interfaces",
        "../../x\\n\trefused\tnot a unicast MAC address",
        f"{site.folder}\tunknown: no filter is running"]
    assert lines(site.folder) == {}


def test_status_tells_of_addresses_that_are_only_in_the_files(site):
    busy, mac = site.machine(states.ACTIVE)
    site.close(site.synced())
    site.drop_node(busy)
    with running(site, sync_period=3600):
        before = lines(site.folder)
        done = command(site, "--status")

        assert done.stdout.splitlines() == [
            "*:*:*:*:*:*\tdeny\t0 nodes are on inspection",
            f"{mac}\tdeny\tin an old file, but no port has it (any more): treated as unknown",
            f"{site.folder}\tunknown: [pxe_filter]dnsmasq_pid_file is not set"]
        assert lines(site.folder) == before


def test_status_ends_quietly_when_its_reader_does(site):
    site.node(states.ACTIVE, *(site.mac() for _ in range(5000)))
    file = site.config_file("command")
    command_line = f"{sys.executable} -m ironic_rules.cmd.pxe_filter --config-file {file} --status | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command_line], cwd=site.path, capture_output=True, text=True,
                          timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (0, "*:*:*:*:*:*\tdeny\t0 nodes are on inspection\n", "")


@pytest.mark.parametrize(("options", "complaint"), [
    ({"dhcp_hostsdir": ""}, r"\[pxe_filter\]dhcp_hostsdir is not set"),
    ({"dhcp_hostsdir": "/no/such/folder"}, r"\[pxe_filter\]dhcp_hostsdir cannot be used: .*No such file"),
    ({"dhcp_hostsdir": "/etc/passwd"}, r"cannot be used: .*Not a directory"),
    ({"dhcp_hostsdir": "/a,/a"}, "names a folder twice"),
    ({"dhcp_hostsdir": "/tmp,/tmp/"}, "names a folder twice"),
    ({"dnsmasq_pid_file": "/a,/b"}, "must name one file for each folder"),
])
def test_a_wrong_configuration_is_told_in_one_line(site, options, complaint):
    done = command(site, "--once", **options)

    assert done.returncode == 2
    assert re.search(complaint, done.stderr)
    assert "Traceback" not in done.stderr


def test_a_second_filter_for_a_folder_is_refused(site):
    with running(site):
        done = command(site, "--once")

    assert done.returncode == 2
    assert "Another ironic-pxe-filter uses" in done.stderr


def test_systemd_is_told_of_readiness_life_and_end(site, tmp_path):
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(60)
        # A process that does not consider the limit its own need not notify systemd: WATCHDOG_PID is not set.
        with running(site, environment={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"},
                     sync_period=3600) as process:
            told = [manager.recv(100) for _ in range(6)]
            process.terminate()
            with contextlib.suppress(TimeoutError):
                while told[-1] != b"STOPPING=1":
                    told.append(manager.recv(100))

    assert b"READY=1" in told[:3]
    assert told.count(b"WATCHDOG=1") >= 4
    assert told[-1] == b"STOPPING=1"


def metrics_of(port: int) -> dict[str, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
        text = reply.read().decode()
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_metrics(site):
    site.machine(states.INSPECTWAIT)
    site.machine()
    port = free_port()
    with running(site, metrics_port=port):
        metrics = metrics_of(port)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthcheck/live", timeout=60) as reply:
            assert reply.read() == b'{"status":"OK"}'

    assert metrics['ironic_pxe_filter_syncs_total{kind="full"}'] == "1.0"
    assert metrics["ironic_pxe_filter_addresses"] == "2.0"
    assert metrics["ironic_pxe_filter_nodes_on_inspection"] == "1.0"
    assert metrics["ironic_pxe_filter_unknown_allowed"] == "1.0"
    assert float(metrics["ironic_pxe_filter_last_sync_timestamp_seconds"]) > time.time() - 60


def test_a_taken_port_for_metrics_is_told(site):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file = site.config_file("filter", metrics_port=taken.getsockname()[1])
        done = forking.run("ironic_rules.cmd.pxe_filter", ["--config-file", str(file)], site.path)

    assert done.returncode == 75  # the port may be free later
    assert "The metrics cannot be served at" in done.stderr


def test_files_that_others_change_are_healed_and_named(site):
    _, mac = site.machine()
    _, allowed = site.machine(states.INSPECTWAIT)
    with running(site, hosts_files=8) as process:
        expected = lines(site.folder)
        name, = [name for name, text in expected.items() if mac in text]
        unknown = site.folder / "unknown_hosts_filter"
        before = unknown.stat().st_mtime_ns
        (site.folder / name).write_text(f"{mac}\n52:54:00:77:77:77\n")
        shows(site, {mac: False, allowed: True, "52:54:00:77:77:77": True, "*": True})
        # The last file that is written again; it must not be repaired by the pass that is in progress.
        wait_for("the end of the pass", lambda: unknown.stat().st_mtime_ns != before)
        unknown.unlink()
        (site.folder / "52:54:00:77:77:78").write_text("52:54:00:77:77:78\n")
        shows(site, {mac: False, allowed: True, "52:54:00:77:77:77": True, "52:54:00:77:77:78": True, "*": True})
        wait_for("the extra file to go", lambda: not (site.folder / "52:54:00:77:77:78").exists())

        process.printed(f"File {name} of {site.folder} was changed by another process")
        process.printed("File unknown_hosts_filter of")


def test_a_folder_that_is_made_anew_is_filled_again(site):
    _, mac = site.machine(states.INSPECTWAIT)
    with running(site) as process:
        site.folder.rename(site.path / "old")
        process.printed("Cannot read")
        site.folder.mkdir()
        shows(site, {mac: True, "*": True})
        process.printed("was replaced by another folder")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system of 64 KiB at ``folder``; skip the test where that is not permitted."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=200", "tmpfs", folder],
                          capture_output=True, text=True)
    if done.returncode:
        if os.environ.get("IRONIC_RULES_TEST_REQUIRE_SERVERS") == "1" and os.geteuid() == 0:
            raise AssertionError(done.stderr)
        pytest.skip(f"mounting needs root: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_told_retried_and_leaves_no_half_file(site):
    with small_disk(site.folder):
        ballast = site.folder / ".ballast"
        machines = [site.machine() for _ in range(40)]
        with running(site, hosts_files=8) as process:
            before = lines(site.folder)
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while file.write(b"x" * 4096):
                    pass
            site.move(machines[0][0], states.INSPECTWAIT)
            process.printed(r"Cannot write into .*No space left on device")
            assert lines(site.folder) == before
            assert not list(site.folder.glob(".ironic-pxe-filter.new"))

            ballast.unlink()
            shows(site, {mac: node == machines[0][0] for node, mac in machines} | {"*": True})
            process.printed("can be written again")


def fill(folder: Path) -> Path:
    """Fill the disk of a folder; return the file that takes the space."""
    ballast = folder / ".ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    return ballast


@pytest.mark.parametrize("hosts_files", [0, 8, 1024])
def test_a_denial_that_cannot_be_written_closes_the_door(site, hosts_files):
    """With the open policy: a machine that is enrolled on a full disk would be served as an unknown one."""
    with small_disk(site.folder):
        _, mac = site.machine(states.INSPECTWAIT)
        with running(site, hosts_files=hosts_files, metrics_port=(port := free_port())) as process:
            assert site.verdicts() == {mac: True, "*": True}
            ballast = fill(site.folder)

            _, enrolled = site.machine()

            process.printed(r"Unknown addresses are denied by .* until it can be written")
            # The written files remain: the machine on inspection is served.
            assert site.verdicts() == {mac: True, "*": False}
            assert metrics_of(port)["ironic_pxe_filter_unknown_closed"] == "1.0"
            wait_for("the state", lambda: "files cannot be written" in command(site, "--status").stdout)
            site.machine()  # another one changes nothing
            ballast.unlink()
            wait_for("the open door", lambda: site.verdicts()["*"], 20)
            assert site.verdicts()[enrolled] is False
            process.printed("has all addresses that are to be denied again; unknown ones are allowed")
            assert metrics_of(port)["ironic_pxe_filter_unknown_closed"] == "0.0"
            assert process.text().count("until it can be written") == 1


def test_what_needs_no_denial_does_not_close_the_door(site):
    with small_disk(site.folder):
        node, mac = site.machine()
        _, on_inspection = site.machine(states.INSPECTWAIT)
        with running(site, hosts_files=0) as process:
            ballast = fill(site.folder)

            site.move(node, states.INSPECTWAIT)

            process.printed("Cannot write into")
            assert site.verdicts() == {mac: False, on_inspection: True, "*": True}
            ballast.unlink()
            shows(site, {mac: True, on_inspection: True, "*": True})


def test_the_end_of_an_inspection_closes_the_door_of_a_full_disk(site):
    with small_disk(site.folder):
        node, mac = site.machine(states.INSPECTWAIT)
        with running(site) as process:
            ballast = fill(site.folder)

            site.move(node, states.MANAGEABLE)

            process.printed("Cannot write into")
            wait_for("the closed door", lambda: not site.verdicts()["*"], 20)
            ballast.unlink()
            shows(site, {mac: False, "*": False})


def test_a_door_that_cannot_be_closed_is_told_as_critical(site):
    with small_disk(site.folder):
        site.machine(states.INSPECTWAIT)
        with running(site) as process:
            subprocess.run(["mount", "-o", "remount,ro", site.folder], check=True)
            _, enrolled = site.machine()
            process.printed(r"CRITICAL .* allows unknown addresses, and that cannot be changed")

            subprocess.run(["mount", "-o", "remount,rw", site.folder], check=True)
            wait_for("the denial", lambda: site.verdicts().get(enrolled) is False, 20)
            process.printed("has all addresses that are to be denied again")
            assert process.text().count("that cannot be changed") == 1


def test_a_read_only_folder_is_told_and_retried(site):
    with small_disk(site.folder):
        node, mac = site.machine()
        with running(site) as process:
            subprocess.run(["mount", "-o", "remount,ro", site.folder], check=True)
            site.move(node, states.INSPECTWAIT)
            process.printed(r"Cannot write into .*Read-only file system")
            assert site.verdicts() == {mac: False, "*": False}

            subprocess.run(["mount", "-o", "remount,rw", site.folder], check=True)
            shows(site, {mac: True, "*": True})


def test_old_files_that_can_not_be_removed_are_told_and_go_later(site, caplog):
    _, mac = site.machine()
    with small_disk(site.folder):
        site.close(site.synced(hosts_files=4))
        old = site.folder / mac
        old.write_text(f"{mac},ignore\n")
        keeper = site.keeper(hosts_files=4)
        subprocess.run(["mount", "-o", "remount,ro", site.folder], check=True)
        keeper.sync(periodic=True)
        assert "Read-only file system" in caplog.text
        assert keeper.is_behind

        subprocess.run(["mount", "-o", "remount,rw", site.folder], check=True)
        keeper.write()
        assert not old.exists()
        assert not keeper.is_behind
        site.close(keeper)


def test_one_broken_folder_does_not_keep_the_other_back(tmp_path):
    with sites.site(tmp_path, folders=2) as site, small_disk(site.folders[0]):
        node, mac = site.machine()
        with running(site) as process:
            subprocess.run(["mount", "-o", "remount,ro", site.folder], check=True)
            site.move(node, states.INSPECTWAIT)
            process.printed("Cannot write into")
            wait_for("the other folder", lambda: sites.verdicts(site.folders[1]) == {mac: True, "*": True})


def test_a_filter_that_is_killed_while_it_writes_leaves_whole_files(site):
    machines = [site.machine() for _ in range(60)]
    whole = re.compile(r"(?:[0-9a-f*:]{11,17}(?:,ignore)?\n)*")
    file = str(site.config_file(hosts_files=0))
    for round_ in range(4):
        for number, (node, _) in enumerate(machines):
            site.move(node, states.INSPECTWAIT if (number + round_) % 2 else states.ACTIVE)
        before = {path.name: path.stat().st_ino for path in site.folder.iterdir()}
        process = Process("ironic_rules.cmd.pxe_filter", ["--config-file", file], site.path, f"killed-{round_}")

        def writes(before: dict[str, int] = before) -> bool:
            return sum(before.get(path.name) != path.stat().st_ino for path in site.folder.glob("52*")) >= 5

        wait_for("some files to be written", writes, interval_s=0.0001)
        process.kill()
        assert all(whole.fullmatch(text) for text in lines(site.folder).values())
        process.close()

    assert command(site, "--once", hosts_files=0).returncode == 0
    assert site.verdicts() == {mac: number % 2 == 0 for number, (_, mac) in enumerate(machines)} | {"*": True}


def test_sighup_ends_nothing(site):
    _, mac = site.machine()
    with running(site) as process:
        os.kill(process.pid, signal.SIGHUP)
        time.sleep(0.2)
        assert process.is_running()
        assert site.verdicts() == {mac: False, "*": False}
