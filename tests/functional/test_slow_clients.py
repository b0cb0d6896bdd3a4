"""A fleet is inspected while hostile clients hold connections: idle ones, dripping ones, and bodies that do not end.

And others are served while clients send many requests and receive no reply, small or large.

``IRONIC_RULES_TEST_CONNECTIONS=1000 IRONIC_RULES_TEST_NODES=200`` is the full size; ``-s`` shows the figures.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import httpx
import pytest

from tests.functional import processes

CONNECTIONS = int(os.environ.get("IRONIC_RULES_TEST_CONNECTIONS", "90"))
NODES = int(os.environ.get("IRONIC_RULES_TEST_NODES", "12"))
#: Parts of a request: sent at first, and then byte by byte.
STARTS = [(b"", b""), (b"GET /v1/nodes HTTP/1.1\r\nHost: a\r\nX-Long: ", b"x"),
          (b"POST /v1/continue_inspection HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n{", b" " * 100)]


class Hostile:
    """Keeps a number of connections open: a new one for each that the server closes."""

    def __init__(self, url: str, number: int) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._address = (host, int(port))
        self._kinds: dict[socket.socket, int] = {}
        self._number = number
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.closed = 0

    @property
    def are_there(self) -> bool:
        return len(self._kinds) == self._number

    def __enter__(self) -> Hostile:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stops.set()
        self._thread.join()
        for connection in self._kinds:
            connection.close()

    def _run(self) -> None:
        opened = 0
        while not self._stops.wait(0.05 if len(self._kinds) < self._number else 0.5):
            for connection, kind in list(self._kinds.items()):
                try:
                    connection.send(STARTS[kind][1])
                    with contextlib.suppress(BlockingIOError):
                        if not connection.recv(4096):
                            raise ConnectionResetError
                except OSError:
                    connection.close()
                    del self._kinds[connection]
                    self.closed += 1
            for _ in range(min(100, self._number - len(self._kinds))):
                connection = socket.create_connection(self._address, 20)
                kind = opened % len(STARTS)
                opened += 1
                with contextlib.suppress(OSError):
                    connection.sendall(STARTS[kind][0])
                connection.setblocking(False)
                self._kinds[connection] = kind


def percentile_ms(seconds: list[float], percent: int) -> float:
    return sorted(seconds)[len(seconds) * percent // 100] * 1000


@pytest.mark.slow
def test_a_fleet_is_inspected_while_hostile_clients_hold_connections(tmp_path):
    with processes.standalone(tmp_path) as (service, url), Hostile(url, CONNECTIONS) as hostile:
        processes.wait_for("the hostile connections", lambda: hostile.are_there)
        processes.wait_for("the health check", lambda: processes.answers(f"{url}/healthcheck"))
        seconds: list[float] = []
        for _ in range(100):
            begin = time.perf_counter()
            with urllib.request.urlopen(f"{url}/healthcheck", timeout=processes.PATIENCE_S) as reply:
                assert reply.status == 200
            seconds.append(time.perf_counter() - begin)
        done = subprocess.run(
            [sys.executable, "-m", "ironic_rules.cmd.simulate", "--endpoint", url, "--nodes", str(NODES), "--json"],
            capture_output=True, text=True, timeout=600, check=False)

        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["as_expected"], report["failures"]) == (NODES, [])
        assert service.is_running()
    print(f"{CONNECTIONS} connections, {hostile.closed} were closed; {NODES} of {NODES} nodes; /healthcheck p50 "
          f"{percentile_ms(seconds, 50):.1f} ms, p95 {percentile_ms(seconds, 95):.1f} ms; reports {report['post']}")


@contextlib.contextmanager
def greedy(url: str, request: bytes, number: int, source: str) -> Iterator[list[socket.socket]]:
    """Send ``request`` on many connections from one address, and receive nothing."""
    host, port = url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as opened:
        made = [opened.enter_context(socket.socket()) for _ in range(number)]
        for connection in made:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the system receives little, too
            connection.bind((source, 0))
            connection.connect((host, int(port)))
            with contextlib.suppress(ConnectionError):  # the service may close any of them
                connection.sendall(request)
        yield made


def get(url: str) -> bytes:
    """Return what a new client gets, of status 200."""
    with urllib.request.urlopen(url, timeout=60) as reply:
        body: bytes = reply.read()
        assert reply.status == 200
        return body


@pytest.mark.parametrize("path", ["/v1/nodes", "/healthcheck"])
def test_clients_that_send_many_requests_at_once_and_receive_nothing_keep_no_one_out(tmp_path, path):
    limits = f"[api]\nmax_connections = {2 * CONNECTIONS}\nmax_connections_per_source = {6 * CONNECTIONS // 5}\n"
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 200
    with processes.standalone(tmp_path, config=limits, imports_itself=True) as (service, url):
        # Together, more than there may be.
        with greedy(url, request, CONNECTIONS + 5, "127.0.0.2"), greedy(url, request, CONNECTIONS + 5, "127.0.0.3"):
            for _ in range(30):
                assert "status" in json.loads(get(f"{url}/healthcheck"))
                assert json.loads(get(f"{url}/v1/nodes")) == {"nodes": []}
        assert service.is_running()


@pytest.mark.slow
def test_large_replies_that_no_one_receives_do_not_fill_the_memory(tmp_path):
    # No client is too slow here: the sum of what is kept is the limit.
    limits = "[api]\nmax_replies_size = 16777216\nhead_timeout = 600\n"
    with processes.standalone(tmp_path, config=limits, imports_itself=True) as (service, url):
        for number in range(30):
            httpx.post(f"{url}/v1/nodes", headers={"X-OpenStack-Ironic-API-Version": "1.80"}, json={
                "driver": "fake-hardware", "name": f"n{number}", "extra": {"x": "y" * 100_000}}).raise_for_status()
        path = "/v1/nodes/detail"
        whole = len(get(url + path))
        assert whole > 3_000_000
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        with greedy(url, request, 2 * CONNECTIONS, "127.0.0.2") as connections:
            waiting = {connection.fileno() for connection in connections}
            poll = select.poll()
            for number in waiting:
                poll.register(number, select.POLLIN)
            while waiting:  # each has a part of its reply, or was closed
                assert len(get(url + path)) == whole
                for number, _ in poll.poll(0):
                    poll.unregister(number)
                    waiting.remove(number)
            peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{service.pid}/status").read_text())
        assert peak
        # The replies are more than 500 MiB.
        assert int(peak[1]) < 300 * 1024


def test_a_client_that_receives_nothing_of_its_reply_is_disconnected(tmp_path):
    with processes.standalone(tmp_path, config="[api]\nhead_timeout = 1\n") as (_, url):
        httpx.post(f"{url}/v1/chassis", json={"description": "large", "extra": {"x": "y" * 900_000}}).raise_for_status()
        request = b"GET /v1/chassis/detail HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50
        with greedy(url, request, 1, "127.0.0.2") as [connection]:
            poll = select.poll()
            poll.register(connection, 0)  # POLLERR and POLLHUP: the end, whatever was received before
            assert poll.poll(processes.PATIENCE_S * 1000)
        assert b"large" in get(f"{url}/v1/chassis/detail")
