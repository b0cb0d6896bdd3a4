"""The HTTP server for metrics, and clients that mean no good."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator

import pytest

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.metrics import exporter
from ironic_rules.metrics.exporter import Exporter
from tests.functional.processes import wait_for


@pytest.fixture(params=["127.0.0.1", "::1"])
def served(request: pytest.FixtureRequest) -> Iterator[Exporter]:
    if request.param == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6")
    made = exporter.serve(lambda accept: ("text/x; for=" + accept, b"numbers 1\n"), request.param, 0)
    yield made
    made.shutdown()
    made.server_close()


def ask(served: Exporter, method: str = "GET", path: str = "/metrics") -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection(*served.server_address[:2], timeout=60)
    connection.request(method, path, headers={"Accept": "me"})
    reply = connection.getresponse()
    return reply.status, reply.getheader("Content-Type"), reply.read()


def test_the_page_is_served(served):
    assert ask(served) == (200, "text/x; for=me", b"numbers 1\n")
    assert ask(served, path="/metrics?name=a") == (200, "text/x; for=me", b"numbers 1\n")
    assert ask(served, "HEAD") == (200, "text/x; for=me", b"")
    assert ask(served, path="/v1/nodes")[0] == 404
    assert ask(served, "POST")[0] == 501


def test_the_process_says_whether_it_works(served):
    assert ask(served, path="/healthcheck/live")[0] == 404
    well = [True, False]
    served.is_well = lambda: well.pop(0)

    assert ask(served, path="/healthcheck/live") == (200, "application/json", b'{"status":"OK"}')
    assert ask(served, path="/healthcheck/live") == (503, "application/json", b'{"status":"STUCK"}')


@pytest.mark.parametrize("start", [b"", b"GET /metr", b"\x16\x03\x01\x02", b"GET / HTTP/1.1\r\nX: " + b"x" * 20000])
def test_connections_without_a_request_keep_nobody_from_the_metrics(served, start):
    idle = [socket.create_connection(served.server_address[:2], 10) for _ in range(100)]
    for connection in idle:
        try:
            connection.sendall(start)
        except OSError:
            continue  # it has made room for others already

    assert ask(served) == (200, "text/x; for=me", b"numbers 1\n")
    assert len(served._open) <= exporter._MOST
    for connection in idle:
        connection.close()


def test_a_connection_has_a_limited_life(served, monkeypatch):
    monkeypatch.setattr(exporter, "_LIFETIME_S", 0.2)
    with socket.create_connection(served.server_address[:2], 10) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert connection.recv(100) == b""
    wait_for("the end of its thread", lambda: not served._open)


def test_a_page_that_cannot_be_made_is_logged(caplog):
    made = exporter.serve(lambda accept: ("", b"%d" % (1 // 0)), "127.0.0.1", 0)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(made)
    wait_for("the log line", lambda: "The metrics cannot be served" in caplog.text)
    made.shutdown()
    made.server_close()


def test_an_address_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigurationError, match="cannot be served"):
        exporter.serve(lambda accept: ("", b""), "127.0.0.1", taken.getsockname()[1])
