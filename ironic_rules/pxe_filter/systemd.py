"""Telling systemd how the process is (sd_notify(3)). Without systemd nothing happens."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Send ``state``, such as ``READY=1``, to the service manager if one listens.

    :raises OSError: it listens no longer
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # the abstract namespace
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
        connection.sendto(state.encode(), address)


def watchdog_interval_s() -> float | None:
    """Return how often the service manager wants a sign of life, in seconds: half its limit; None if it wants none."""
    limit_us = os.environ.get("WATCHDOG_USEC", "")
    pid = os.environ.get("WATCHDOG_PID", "")
    if not limit_us.isdigit() or int(limit_us) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(limit_us) / 2e6
