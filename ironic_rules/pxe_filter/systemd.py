"""Notifications of systemd about the state of the process (sd_notify(3)). Without systemd they do nothing."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Send ``state``, such as ``READY=1``, to the service manager if there is one.

    :raises OSError: it no longer listens
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # the abstract namespace
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
        connection.sendto(state.encode(), address)


def watchdog_interval_s() -> float | None:
    """Return the interval in seconds for watchdog notifications: half the service manager's limit; None if unset."""
    limit_us = os.environ.get("WATCHDOG_USEC", "")
    pid = os.environ.get("WATCHDOG_PID", "")
    if not limit_us.isdigit() or int(limit_us) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(limit_us) / 2e6
