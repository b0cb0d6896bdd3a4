"""Only a dnsmasq gets the signal; processes of other names are real ones of this test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from ironic_rules.pxe_filter import hostsdir
from tests.functional.processes import wait_for


@pytest.fixture
def pid_file(tmp_path):
    return tmp_path / "pid"


def sleeper(folder: Path, name: str) -> subprocess.Popen[bytes]:
    """Start a process with that name."""
    program = folder / name
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    process = subprocess.Popen([str(program), "60"])
    # The kernel sets the name a moment after subprocess knows that the program was started.
    wait_for("the name", lambda: Path(f"/proc/{process.pid}/comm").read_text().strip() == name)
    return process


def test_a_dnsmasq_gets_it(tmp_path, pid_file):
    process = sleeper(tmp_path, "dnsmasq")
    pid_file.write_text(f"{process.pid}\n")

    hostsdir.signal_dnsmasq(str(pid_file), signal.SIGHUP)

    assert process.wait(60) == -signal.SIGHUP


def test_another_process_with_that_id_does_not(tmp_path, pid_file):
    process = sleeper(tmp_path, "dnsmasq2")
    pid_file.write_text(str(process.pid))
    try:
        with pytest.raises(ProcessLookupError, match="no dnsmasq runs"):
            hostsdir.signal_dnsmasq(str(pid_file), signal.SIGHUP)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.parametrize("text", ["", "x", "0", "1", "-1", "99999999", "9" * 30])
def test_a_file_without_the_id_of_a_process_is_told(pid_file, text):
    pid_file.write_text(text)

    with pytest.raises(ProcessLookupError, match="no dnsmasq runs"):
        hostsdir.signal_dnsmasq(str(pid_file), signal.SIGHUP)


def test_a_missing_file_is_told(pid_file):
    with pytest.raises(FileNotFoundError):
        hostsdir.signal_dnsmasq(str(pid_file), signal.SIGHUP)


def test_a_process_that_is_replaced_after_the_check_does_not_get_the_signal(tmp_path, pid_file, monkeypatch):
    """The process ends between the check and the signal: with an id alone, another one could get the signal."""
    process = sleeper(tmp_path, "dnsmasq")
    pid_file.write_text(str(process.pid))

    def ends_after(pid: int) -> bool:
        process.kill()
        process.wait(60)
        monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("signalled by its id"))
        return True

    monkeypatch.setattr(hostsdir, "is_dnsmasq", ends_after)

    with pytest.raises(ProcessLookupError):
        hostsdir.signal_dnsmasq(str(pid_file), signal.SIGHUP)
