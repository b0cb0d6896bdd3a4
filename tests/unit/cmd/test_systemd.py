"""The messages of processes to systemd, over a socket as systemd has it."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from ironic_rules.cmd import systemd


@pytest.fixture
def manager(tmp_path, monkeypatch):
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        yield listener


@pytest.mark.parametrize(("limit", "pid", "interval"), [
    (None, None, None), ("0", None, None), ("x", None, None), ("30000000", None, 15.0), ("30000000", "1", None),
    ("30000000", "own", 15.0)])
def test_how_often_systemd_wants_a_sign_of_life(monkeypatch, limit, pid, interval):
    for name, value in (("WATCHDOG_USEC", limit), ("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)

    assert systemd.watchdog_interval_s() == interval


def test_without_systemd_nobody_is_told(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)

    systemd.notify("READY=1")


def test_a_service_manager_that_no_longer_listens_ends_nothing(manager):
    manager.close()

    systemd.tell("READY=1")
    with pytest.raises(OSError):
        systemd.notify("READY=1")


def test_readiness_comes_first_and_signs_of_life_follow(manager, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    answers = [True, False, True]

    # The last question is never answered: the thread is a daemon.
    systemd.ready(lambda: answers.pop(0) if answers else threading.Event().wait())

    assert [manager.recv(64) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
    assert answers == []


def test_without_a_watchdog_only_readiness_is_told(manager, monkeypatch):
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)

    systemd.ready(lambda: pytest.fail("there is no watchdog"))

    assert manager.recv(64) == b"READY=1"
