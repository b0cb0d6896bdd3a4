"""Connections that send slowly, nothing, or too much, to the front of the API's HTTP server."""

from __future__ import annotations

import collections
import contextlib
import socket
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ironic_rules.httpd import connections, request
from ironic_rules.httpd.connections import Front, Limits, Phase
from ironic_rules.httpd.probes import is_probe
from ironic_rules.httpd.server import _Server
from tests.functional.processes import wait_for
from tests.walking import walking

MIB = 2**20
POST = b"POST /x HTTP/1.1\r\nHost: a\r\n"
#: Bodies of 0 to 40,000 bytes each; more than are sent at once.
PIECES = [bytes([number % 251]) * (number * 37 % 40_000) for number in range(1500)]


class Application:
    """Replies with the size of the body; ``/wait`` waits for :attr:`go`, ``/large`` has a large reply."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.running = self.most = 0
        self.served: list[str] = []
        self._guard = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        with self._guard:
            self.running += 1
            self.served.append(environ["PATH_INFO"])
            self.most = max(self.most, self.running)
        size = len(environ["wsgi.input"].read())
        if environ["PATH_INFO"] == "/wait":
            self.go.wait(60)
        body = PIECES if environ["PATH_INFO"] == "/large" else [b"%d" % size]
        with self._guard:
            self.running -= 1
        start_response("200 OK", [("Content-Length", str(sum(map(len, body))))])
        return body


class Servers:
    """Starts servers, and opens connections to the last one."""

    def __init__(self) -> None:
        self.application = Application()
        self._servers: list[_Server] = []
        self._sockets: list[socket.socket] = []

    def start(self, **limits: Any) -> None:
        server = _Server(("127.0.0.1", 0), self.application, numthreads=2, request_queue_size=128)
        server.limits = Limits(**{"body": MIB, **limits})
        server.shutdown_timeout = 0.5
        server.prepare()
        threading.Thread(target=server.serve, daemon=True).start()
        self._servers.append(server)

    @property
    def front(self) -> Front:
        found: Front = self._servers[-1]._connections
        return found

    def connect(self, start: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        made = socket.create_connection(self._servers[-1].bind_addr, 60, (source, 0))
        self._sockets.append(made)
        made.sendall(start)
        return made

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a worker."""
        return self._servers[-1].turns.qsize()

    def ask(self, request: bytes = b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            source: str = "127.0.0.1") -> bytes:
        return received(self.connect(request, source))

    def stop(self) -> None:
        for server in self._servers:
            server.stop()

    def close(self) -> None:
        self.application.go.set()
        for made in self._sockets:
            made.close()
        self.stop()


def received(connection: socket.socket) -> bytes:
    """Return everything up to the end of the connection."""
    pieces: list[bytes] = []
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(2**20):
            pieces.append(piece)
    return b"".join(pieces)


@pytest.fixture
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


@pytest.mark.parametrize("start", [b"", b"GET /x HT", POST + b"Content-Length: 9\r\n\r\n{",
                                   POST + b"Content-Length: 9\r\n\r\n",
                                   POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nx"],
                         ids=["nothing", "part of a head", "part of a body", "no body", "part of a chunk"])
def test_connections_that_wait_for_their_request_hold_no_worker(servers, start):
    servers.start()
    for _ in range(30):
        servers.connect(start)

    assert servers.ask().startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1", b"GET /v1/ HTTP/1.1", b"GET /healthcheck HTTP/1.1",
                                  b"GET /healthcheck/live?a=b HTTP/1.1"])
def test_probes_are_answered_while_all_workers_wait(servers, line):
    servers.start()
    waiting = [servers.connect(b"GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") for _ in range(8)]
    while servers.application.running < 2:
        time.sleep(0.01)
    other = servers.connect(b"GET /v1/nodes HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    kept = servers.connect()
    for _ in range(3):
        kept.sendall(line + b"\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        assert b" 200 OK" in kept.recv(2000)

    assert servers.application.running == 2
    other.setblocking(False)
    with pytest.raises(BlockingIOError):
        other.recv(1)
    servers.application.go.set()
    assert all(received(connection).startswith(b"HTTP/1.1 200 OK") for connection in waiting)


@walking("head", [b"GET /v1/nodes HTTP/1.1", b"POST / HTTP/1.1", b"GET /healthcheckx HTTP/1.1",
                                  b"GET //evil/ HTTP/1.1", b"GET /v1/healthcheck HTTP/1.1"])
def test_what_is_no_probe_has_no_thread_of_its_own(head):
    assert is_probe(request.read(b"HEAD /healthcheck HTTP/1.0\r\n\r\n"))
    assert not is_probe(request.read(head + b"\r\nHost: a\r\n\r\n"))
    assert not is_probe(request.read(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"))


def test_a_client_that_reads_no_replies_holds_no_worker(servers):
    servers.start()
    for _ in range(3):
        servers.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n" * 2)

    assert servers.ask().startswith(b"HTTP/1.1 200 OK")


def test_a_large_reply_arrives_whole(servers):
    servers.start()

    reply = servers.ask(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    assert reply.partition(b"\r\n\r\n")[2] == b"".join(PIECES)


@pytest.mark.parametrize(("start", "status"), [
    (b"", b""), (b"GET /x HTTP/1.1\r\nHos", b"HTTP/1.1 408 "), (POST + b"Content-Length: 99\r\n\r\n", b"HTTP/1.1 408 "),
    (POST + b"Content-Length: 99\r\n\r\n{", b"HTTP/1.1 408 "),
    (POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nx", b"HTTP/1.1 408 "),
])
def test_a_request_that_does_not_come_has_a_deadline(servers, start, status):
    servers.start(head_s=0.2, bytes_per_s=1000)

    assert received(servers.connect(start)).startswith(status)


def test_bytes_that_drip_do_not_move_the_deadline_of_the_head(servers):
    servers.start(head_s=0.3)
    connection = servers.connect(b"GET /x HTTP/1.1\r\nHost: a\r\nX: ")

    with contextlib.suppress(ConnectionError):
        for _ in range(6000):
            connection.sendall(b"x")
            time.sleep(0.01)
        pytest.fail("a minute of dripping")


def test_a_kept_connection_may_wait_longer_than_a_new_one(servers):
    servers.start(head_s=1, keep_alive_s=600)
    connection = servers.connect(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
    assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK")
    time.sleep(2)
    connection.sendall(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")

    assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_new_connections_take_the_place_of_those_that_wait_longest(servers):
    servers.start(connections=1000, per_source=20)
    idle = [servers.connect() for _ in range(20)]

    assert servers.ask().startswith(b"HTTP/1.1 200 OK")
    assert received(idle[0]) == b""
    assert servers.ask().startswith(b"HTTP/1.1 200 OK")


def test_the_source_with_the_most_connections_makes_room_for_others(servers):
    servers.start(connections=12, per_source=100)
    modest = servers.connect(source="127.0.0.2")
    for _ in range(30):
        servers.connect()
    modest.sendall(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    assert received(modest).startswith(b"HTTP/1.1 200 OK")


def test_there_are_not_more_connections_than_permitted_when_all_have_their_request(servers):
    servers.start(connections=12, per_source=10)
    waiting = [servers.connect(b"GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") for _ in range(10)]
    wait_for("the requests", lambda: servers.front.phases()[Phase.WORK.value,] == 10)

    assert servers.ask() == b""
    servers.application.go.set()
    assert all(received(connection).startswith(b"HTTP/1.1 200 OK") for connection in waiting)


WAIT = b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"


def test_addresses_take_turns_and_so_do_the_connections_of_each(servers):
    servers.start()
    held = [servers.connect(WAIT) for _ in range(2)]
    wait_for("both workers", lambda: servers.application.running == 2)
    for number in range(10):
        servers.connect(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number * 50, "127.0.0.2")
    wait_for("the requests of one address", lambda: servers.waiting == 10)
    modest = servers.connect(b"GET /modest HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "127.0.0.3")
    wait_for("the request of another address", lambda: servers.waiting == 11)
    servers.application.go.set()

    assert received(modest).startswith(b"HTTP/1.1 200 OK")
    wait_for("the others", lambda: len(servers.application.served) == 2 + 500 + 1)
    served = servers.application.served[2:]
    # Two workers: what one of them begins first, the other one may note first.
    assert served.index("/modest") <= 2
    assert len(set(served[:11])) >= 10
    assert all(connection.recv(1000).startswith(b"HTTP/1.1 200 OK") for connection in held)


@pytest.mark.parametrize("path", [b"/x", b"/healthcheck"])
@pytest.mark.parametrize("start", [WAIT, WAIT * 50], ids=["one request each", "many requests each"])
def test_an_address_whose_requests_all_wait_for_the_service_makes_room_for_others(servers, start, path):
    servers.start(connections=50, per_source=40)
    greedy = [servers.connect(start, "127.0.0.2") for _ in range(40)]
    greedy += [servers.connect(start, "127.0.0.3") for _ in range(10)]
    wait_for("both workers and the requests", lambda: (servers.application.running, servers.waiting) == (2, 48))

    others = [servers.connect(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % path) for _ in range(5)]

    wait_for("the others", lambda: servers.front._sources["127.0.0.1"] == 5)
    servers.application.go.set()
    assert all(connection.recv(1000).startswith(b"HTTP/1.1 200 OK") for connection in others)
    # Each of the others took the place of one connection of the address with the most.
    replies = []
    for connection in greedy:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        replies.append(received(connection).count(b"HTTP/1.1 200 OK"))
    assert collections.Counter(replies) == {start.count(b"GET"): 45, 0: 5}
    assert 0 not in replies[40:]


def test_an_address_with_many_requests_on_each_connection_makes_room_for_its_own(servers):
    servers.start(connections=1000, per_source=20)
    for _ in range(20):
        servers.connect(WAIT * 50)
    wait_for("both workers and the requests", lambda: (servers.application.running, servers.waiting) == (2, 18))

    modest = servers.connect(b"GET /modest HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    servers.application.go.set()
    assert received(modest).startswith(b"HTTP/1.1 200 OK")


def test_what_clients_send_before_a_reply_is_bounded_in_sum(servers, monkeypatch):
    monkeypatch.setattr(connections, "_MOST_IN_MEMORY", 100_000)
    servers.start()
    more = b"GET /x HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40_000 + b"\r\n\r\n"
    greedy = [servers.connect(WAIT + more) for _ in range(5)]
    wait_for("both workers and the requests", lambda: (servers.application.running, servers.waiting) == (2, 3))
    servers.application.go.set()
    for connection in greedy:
        connection.shutdown(socket.SHUT_WR)

    replies = [received(connection) for connection in greedy]

    assert sorted(reply.count(b"HTTP/1.1 200 OK") for reply in replies) == [1, 1, 1, 2, 2]
    assert sorted(b"Connection: close" in reply for reply in replies) == [False, False, True, True, True]
    wait_for("the end", lambda: not servers.front.phases()[Phase.END.value,])
    assert servers.front._received == 0


LARGE = b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
LARGE_SIZE = sum(map(len, PIECES))


def test_replies_that_no_one_receives_are_bounded_in_sum_and_those_of_the_greediest_address_end(servers):
    servers.start(all_replies=5 * LARGE_SIZE // 2)
    modest = servers.connect(LARGE, "127.0.0.2")
    wait_for("the first reply", lambda: servers.front.phases()[Phase.REPLY.value,] == 1)
    greedy = [servers.connect(LARGE, "127.0.0.3") for _ in range(6)]

    wait_for("all replies", lambda: servers.application.served.count("/large") == 7 and not servers.application.running)
    wait_for("the end of some", lambda: (servers.front.phases()[Phase.REPLY.value,],
                                         servers.front.phases()[Phase.WORK.value,]) == (2, 0))
    assert len(received(modest)) > LARGE_SIZE
    assert [len(received(connection)) > LARGE_SIZE for connection in greedy].count(True) == 1


def test_a_single_reply_may_be_larger_than_the_sum(servers):
    servers.start(all_replies=MIB)

    assert len(servers.ask(LARGE)) > LARGE_SIZE


def test_a_reply_that_no_one_receives_has_a_deadline(servers):
    servers.start(head_s=0.2)
    connection = servers.connect(LARGE)
    wait_for("the reply", lambda: servers.application.served == ["/large"])
    wait_for("the end", lambda: not servers.front._open)

    assert len(received(connection)) < LARGE_SIZE


def test_the_oldest_body_makes_room_when_all_are_too_large(servers):
    servers.start(all_bodies=3 * MIB // 2)
    part = POST + b"Content-Length: %d\r\n\r\n" % MIB + b"x" * (MIB - 9)
    oldest = servers.connect(part)
    wait_for("the first body", lambda: servers.front.phases()[Phase.BODY.value,] == 1)
    other = servers.connect(part)

    assert received(oldest).startswith(b"HTTP/1.1 503 ")
    other.sendall(b"x" * 9)
    assert other.recv(1000).endswith(b"%d" % MIB)


@pytest.mark.parametrize(("in_memory", "size", "pieces"), [(MIB, MIB, 1), (MIB, MIB, 300), (-1, MIB, 300), (-1, 9, 1)],
                         ids=["whole", "in pieces", "no memory", "short"])
def test_a_body_that_the_disk_has_no_room_for_is_refused_and_not_counted(servers, monkeypatch, caplog, in_memory, size,
                                                                         pieces):
    monkeypatch.setattr(connections, "_MOST_IN_MEMORY", in_memory)
    servers.start()
    with monkeypatch.context() as full:
        full.setattr(request, "tempfile", types.SimpleNamespace(
            TemporaryFile=lambda **_: open("/dev/full", "w+b")))  # noqa: SIM115  (closed with the body)
        for start in (b"", b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n", b""):
            connection = servers.connect(start)
            if start:  # a worker waits for the next request
                assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % size)
            for _ in range(pieces):
                connection.sendall(b"x" * (size // pieces))
            connection.sendall(b"x" * (size % pieces))
            assert received(connection).startswith(b"HTTP/1.1 503 ")

    assert servers.ask().startswith(b"HTTP/1.1 200 OK")
    assert (servers.front._room._taken, servers.front._room._in_memory) == (0, 0)
    [line] = [record.getMessage() for record in caplog.records]
    assert "temporary file. This time 127.0.0.1: [Errno 28] No space left on device" in line


def test_few_large_bodies_are_processed_at_once_and_small_ones_beside_them(servers):
    servers.start(large_bodies=1)
    request = b"POST /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % MIB + b"x" * MIB
    waiting = [servers.connect(request) for _ in range(5)]

    assert servers.ask().startswith(b"HTTP/1.1 200 OK")
    servers.application.go.set()
    assert all(received(connection).endswith(b"%d" % MIB) for connection in waiting)
    assert servers.application.most <= 2


def test_a_client_that_expects_it_is_told_to_continue(servers):
    servers.start()
    connection = servers.connect(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(b"{}")

    assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_pipelined_requests_are_answered_in_order(servers):
    servers.start()
    requests = [POST + b"Content-Length: %d\r\n\r\n" % size + b"x" * size for size in (5, 0, 300_000, 7)]

    replies = servers.ask(b"".join(requests) + b"GET /x HTTP/1.0\r\n\r\n")

    assert [reply.rpartition(b"\r\n\r\n")[2] for reply in replies.split(b"HTTP/1.1 ")[1:]] == [
        b"5", b"0", b"300000", b"7", b"0"]


@pytest.mark.parametrize("size", [1, 1000, 70_000, 300_000])
def test_a_request_in_pieces_of_any_size_is_read(servers, size):
    servers.start()
    body = bytes(range(256)) * 1500
    chunks = b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in (
        body[start:start + 9999] for start in range(0, len(body), 9999)))
    request = b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + (
        b"0\r\nX-Trailer: y\r\n\r\n")
    start = request[:2000] if size == 1 else b""
    connection = servers.connect()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(len(start)):
        connection.sendall(start[at:at + 1])
    for at in range(len(start), len(request), max(size, 1000)):
        connection.sendall(request[at:at + max(size, 1000)])

    assert received(connection).endswith(b"\r\n\r\n%d" % len(body))


def test_a_body_that_ends_early_is_400(servers):
    servers.start()
    connection = servers.connect(POST + b"Content-Length: 9\r\n\r\n{}")
    connection.shutdown(socket.SHUT_WR)

    assert received(connection).startswith(b"HTTP/1.1 400 ")


def test_a_server_that_stops_finishes_replies(servers):
    servers.start()
    connection = servers.connect(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
    while not servers.application.running:
        time.sleep(0.01)
    threading.Timer(0.1, servers.application.go.set).start()
    servers.stop()

    assert received(connection).startswith(b"HTTP/1.1 200 OK")


def test_a_server_that_stops_sends_all_replies_in_the_same_moment(servers, monkeypatch):
    monkeypatch.setattr(connections, "_LAST_S", 60.0)
    servers.start()
    clients = [servers.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(3)]
    wait_for("the replies", lambda: servers.front.phases()[Phase.REPLY.value,] == 3)
    stopping = threading.Thread(target=servers.stop)
    stopping.start()

    sizes = dict.fromkeys(clients, 0)
    left = list(clients)
    while left:  # in turns: if the server waited for one of them, none would get on
        for client in list(left):
            if data := client.recv(MIB):
                sizes[client] += len(data)
            else:
                left.remove(client)
    stopping.join()

    assert min(sizes.values()) > sum(map(len, PIECES))
    assert servers.front.phases() == dict.fromkeys(servers.front.phases(), 0)
