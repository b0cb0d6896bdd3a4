"""Messages to systemd, here a socket as systemd has it; under systemd itself: pxe_filter/test_systemd.py."""

from __future__ import annotations

import contextlib
import socket

from tests.functional.processes import Process


def test_the_one_process_service_tells_of_readiness_life_and_end(tmp_path):
    address = str(tmp_path / "notify")
    arguments = ["--config-dir", str(tmp_path), "--state-dir", str(tmp_path / "state"), "--port", "0"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(60)
        process = Process("ironic_rules.cmd.standalone", arguments, tmp_path, "ironic-rules",
                          {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "400000"})
        try:
            told = [manager.recv(100) for _ in range(4)]
            assert "listens on" in process.text()
            process.terminate()
            with contextlib.suppress(TimeoutError):
                while told[-1] != b"STOPPING=1":
                    told.append(manager.recv(100))
        finally:
            process.close()

    assert told[0] == b"READY=1"
    assert told[1:4] == [b"WATCHDOG=1"] * 3
    assert told[-1] == b"STOPPING=1"
