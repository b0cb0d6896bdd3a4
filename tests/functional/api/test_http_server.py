"""The API's own HTTP server with clients that send too much, or requests that a proxy would interpret differently."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ironic_rules.api.app import make_app
from ironic_rules.db import nodes
from ironic_rules.httpd import connections
from ironic_rules.httpd.server import ApiServer
from tests.functional.processes import wait_for

MIB = 2**20
LIMIT = 64 * 1024
HEAD = b"POST /v1/continue_inspection HTTP/1.1\r\nHost: x\r\n"
#: The body of this request is never read: the version is refused before.
UNREAD = HEAD + b"X-OpenStack-Ironic-API-Version: 1.9999\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def server(conf, db, rpc) -> Iterator[ApiServer]:
    conf.set_override("port", 0, group="api")
    conf.set_override("max_json_body_size", LIMIT, group="api")
    made = ApiServer(conf, make_app(conf, db, rpc))
    made.start()
    yield made
    made.stop()


def converse(server: ApiServer, start: bytes, more_mib: int = 0) -> tuple[bytes, int]:
    """Send ``start``, then up to so many MiB until they are refused; return the reply and the accepted MiB."""
    host, port = server.url.removeprefix("http://").split(":")
    replies, taken = b"", 0
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(start)
            for taken in range(more_mib):  # noqa: B007
                connection.sendall(b"x" * MIB)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                replies += piece
    return replies, taken


@pytest.mark.parametrize("start", [
    b"GET /v1 HTTP/1.1\r\nX-Long: ", b"GET /", HEAD + CHUNKED + b"%x\r\n" % (64 * MIB), HEAD + CHUNKED + b"5;",
    UNREAD + b"Content-Length: %d\r\n\r\n" % (64 * MIB),
], ids=["header", "path", "chunk", "line before a chunk", "unread body"])
def test_nothing_of_any_length_is_read_as_a_whole(server, start):
    _, taken = converse(server, start, more_mib=64)

    # The sockets' buffers accept some; then the connection is closed.
    assert taken < 32


def test_the_rest_of_a_chunked_body_is_no_request(server):
    smuggled = b"\r\nGET /v1 HTTP/1.1\r\nHost: y\r\n\r\n"
    body = b"%x;a /v1 HTTP/1.1\r\n%b\r\n0\r\n\r\n" % (len(smuggled), smuggled)

    replies, _ = converse(server, UNREAD + CHUNKED + body)

    assert replies.count(b"HTTP/1.1 ") == 1
    assert replies.startswith(b"HTTP/1.1 406 ")


@pytest.mark.parametrize(("size", "status"), [(LIMIT - 100, 404), (LIMIT + 1, 413)])
def test_a_body_in_small_chunks_is_read_up_to_the_limit(server, size, status):
    body = b'{"inventory": {"interfaces": [{"mac_address": "52:54:00:00:00:01"}]}}'.ljust(size)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part)
                      for part in (body[start:start + 1000] for start in range(0, size, 1000)))

    replies, _ = converse(server, HEAD + CHUNKED + chunks + b"0\r\n\r\n")

    assert replies.startswith(b"HTTP/1.1 %d " % status)


def test_a_connection_is_kept_over_requests_with_a_length(server):
    replies, _ = converse(server, (HEAD + b"Content-Length: 2\r\n\r\n{}") * 2)

    assert replies.count(b"HTTP/1.1 400 ") == 2


@pytest.mark.parametrize(("header", "wanted"), [(b"X: y", b"close"), (b"Connection: Keep-Alive", b"Keep-Alive")])
@pytest.mark.parametrize("path", [b"/v1/drivers", b"/healthcheck/live", b"/v1/nodes/%01"])
def test_the_reply_to_http_1_0_says_whether_the_connection_is_kept(server, path, header, wanted):
    request = b"GET %b HTTP/1.0\r\n%b\r\n\r\n" % (path, header)

    replies, _ = converse(server, request * 2)

    # The second request is a request only if the connection is kept.
    assert replies.count(b"HTTP/1.1 ") == replies.count(b"\r\nConnection: %b\r\n" % wanted)
    assert replies.count(b"HTTP/1.1 ") == (1 if wanted == b"close" else 2)


@pytest.mark.parametrize(("version", "headers", "kept"), [
    (b"1.1", [], True), (b"1.1", [b"close"], False), (b"1.1", [b"Close"], False), (b"1.1", [b"CLOSE"], False),
    (b"1.1", [b"x, Close ,y"], False), (b"1.1", [b",,\tclose"], False), (b"1.1", [b"x", b"Close"], False),
    (b"1.1", [b"close", b"x"], False), (b"1.1", [b"keep-alive, close"], False), (b"1.1", [b"keep-alive"], True),
    (b"1.1", [b"not-close"], True), (b"1.1", [b"upgrade"], True),
    (b"1.0", [], False), (b"1.0", [b"keep-alive"], True), (b"1.0", [b"KEEP-ALIVE"], True),
    (b"1.0", [b"x", b"Keep-alive , y"], True), (b"1.0", [b"keep-alive", b"Close"], False), (b"1.0", [b"x"], False),
])
@pytest.mark.parametrize("path", [b"/v1/drivers", b"/healthcheck/live"])
def test_the_client_says_in_letters_of_any_case_whether_the_connection_is_kept(server, version, headers, kept, path):
    lines = b"".join(b"Connection: %b\r\n" % value for value in headers)
    request = b"GET %b HTTP/%b\r\nHost: x\r\n%b\r\n" % (path, version, lines)

    replies, _ = converse(server, request * 2)

    assert replies.count(b"HTTP/1.1 200 ") == 1 + kept
    assert (b"\r\nConnection: close\r\n" in replies) is not kept


@pytest.mark.parametrize(("path", "header"), [
    (b"/v1/nodes/%01", b"X: y"), (b"/v1/nodes/%ff", b"X: y"), (b"/v1", b"X-OpenStack-Ironic-API-Version: 1.9999"),
    (b"/v1/rules", b"X-OpenStack-Ironic-Inspector-API-Version: 2.0"),
])
def test_a_refused_head_request_has_no_body_that_the_next_reply_would_begin_with(server, path, header):
    replies, _ = converse(server, b"HEAD %b HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n" % (path, header)
                          + b"GET /healthcheck/live HTTP/1.1\r\nHost: x\r\n\r\n")

    first, _, rest = replies.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 40")
    assert rest.startswith(b"HTTP/1.1 200 ")


GET = b"GET /v1/drivers HTTP/1.1\r\nHost: x\r\n\r\n"
PROBE = b"GET /healthcheck/live HTTP/1.1\r\nHost: x\r\n\r\n"
POST = HEAD + b"Content-Length: 2\r\n\r\n"
#: Requests of a client, in pieces; and the status of each reply. The next piece follows when these are there.
CONVERSATION = (
    ([GET], [200]), ([GET], [200]), ([POST, b"{}"], [400]), ([POST + b"{}"], [400]), ([GET[:20], GET[20:]], [200]),
    ([GET[:9], GET[9:20], GET[20:]], [200]), ([PROBE], [200]), ([PROBE], [200]), ([GET], [200]),
    ([GET + PROBE + GET], [200, 200, 200]), ([HEAD + CHUNKED + b"2\r\n{}\r\n", b"0\r\n\r\n"], [400]),
    ([HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"], [100]), ([b"{}"], [400]),
    ([GET], [200]), ([HEAD + b"X: " + b"x" * 60000 + b"\r\nContent-Length: 2\r\n\r\n{}"], [400]),
    ([HEAD + b"Content-Length: %d\r\n\r\n" % (LIMIT + 1) + b" " * (LIMIT + 1)], [413]),
)


@pytest.mark.parametrize("patience", [0, 1, 1000])
def test_requests_of_any_form_on_one_connection_are_the_same_to_a_worker_that_waits_for_them(
        server, monkeypatch, patience):
    monkeypatch.setattr(connections, "_NEXT_MS", patience)
    served = []
    handle = server._server.process_conn
    monkeypatch.setattr(server._server, "process_conn", lambda connection: served.append(handle(connection)))
    host, port = server.url.removeprefix("http://").split(":")

    found = []
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for pieces, statuses in CONVERSATION:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.01)
            found.append([_status(connection) for _ in statuses])
        assert connection.recv(1) == b""

    assert found == [statuses for _, statuses in CONVERSATION]
    assert len(served) < 14 if patience == 1000 else len(served) > 8


def _status(connection: socket.socket) -> int:
    """Read one reply; return its status."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    length = re.search(rb"Content-Length: (\d+)", head)
    missing = int(length[1]) if length else 0
    while missing:
        missing -= len(connection.recv(missing))
    return int(head.split()[1])


def test_a_head_that_is_too_long_is_refused_also_by_a_worker_that_waits_for_it(server, monkeypatch):
    monkeypatch.setattr(connections, "_NEXT_MS", 1000)
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(GET)
        assert _status(connection) == 200
        connection.sendall(b"GET /v1/drivers HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"x" * 70000 + b"\r\n\r\n")
        assert _status(connection) == 400


@pytest.mark.parametrize("request_", [GET, PROBE], ids=["worker", "probe"])
def test_busy_connections_leave_the_threads_to_others(server, conf, monkeypatch, request_):
    monkeypatch.setattr(connections, "_NEXT_MS", 200)
    host, port = server.url.removeprefix("http://").split(":")
    ended, failed = threading.Event(), []

    def talk() -> None:
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            while not ended.is_set():
                connection.sendall(request_)
                if _status(connection) != 200:
                    failed.append(request_)

    # More than there are threads: each would keep one.
    busy = [threading.Thread(target=talk) for _ in range(2 * conf.api.threads)]
    for thread in busy:
        thread.start()
    try:
        with socket.create_connection((host, int(port)), timeout=60) as other:
            for _ in range(3):
                other.sendall(request_)
                assert _status(other) == 200
    finally:
        ended.set()
        for thread in busy:
            thread.join()
    assert not failed


def test_health_checks_and_version_documents_are_answered_while_all_threads_wait_for_conductors(
        server, conf, db, rpc, monkeypatch):
    released, waiting = threading.Event(), threading.Semaphore(0)

    def validate(*arguments: Any, **named: Any) -> dict[str, Any]:
        waiting.release()
        released.wait(60)
        return {}

    monkeypatch.setattr(rpc, "validate_interfaces", validate)
    node = db.write(lambda conn: nodes.create(conn, {"driver": "fake-hardware"}))
    with httpx.Client(base_url=server.url, trust_env=False, limits=httpx.Limits(max_connections=None)) as client:
        asked = [threading.Thread(target=client.get, args=(f"/v1/nodes/{node.uuid}/validate",))
                 for _ in range(2 * conf.api.threads)]
        for thread in asked:
            thread.start()
        for _ in range(conf.api.threads):
            assert waiting.acquire(timeout=60)

        replies = [client.get(path).status_code for path in ("/healthcheck/live", "/", "/v1", "/v1/")]
        wait_for("the health check", lambda: client.get("/healthcheck").json()["conductors"] == 1)

        released.set()
        for thread in asked:
            thread.join()
    assert replies == [200] * 4
