"""Notifications of systemd about the state of the process (sd_notify(3)). Without systemd they do nothing."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable


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


def tell(state: str) -> None:
    """Send ``state`` if the service manager listens: while it is being restarted, it does not."""
    with contextlib.suppress(OSError):
        notify(state)


def watchdog_interval_s() -> float | None:
    """Return the interval in seconds for watchdog notifications: half the service manager's limit; None if unset."""
    limit_us = os.environ.get("WATCHDOG_USEC", "")
    pid = os.environ.get("WATCHDOG_PID", "")
    if not limit_us.isdigit() or int(limit_us) == 0 or (pid and pid != str(os.getpid())):
        return None
    return int(limit_us) / 2e6


def ready(is_well: Callable[[], bool] = lambda: True) -> None:
    """Tell the service manager that the process serves, and notify its watchdog from now on, if it has one.

    :param is_well: called before each notification, which is only sent if it returns true; without notifications, the
        service manager restarts the process
    """
    tell("READY=1")
    interval_s = watchdog_interval_s()
    if interval_s is not None:
        threading.Thread(target=_stay_alive, args=(interval_s, is_well), name="systemd-watchdog", daemon=True).start()


def _stay_alive(interval_s: float, is_well: Callable[[], bool]) -> None:
    never = threading.Event()
    while True:
        if is_well():
            tell("WATCHDOG=1")
        never.wait(interval_s)
