"""The connections of the HTTP server: one thread reads each request until it is whole, and sends replies.

A worker gets a connection when the request's head and body are there, and gives its reply away without waiting for the
client. So a slow client, or one that sends nothing, takes a few kilobytes of memory, and no worker. Deadlines end such
connections; beyond the maximum number of connections, those that have waited longest for their client make room.
Requests that wait for a worker take turns (:mod:`~ironic_rules.httpd.probes`), also those that a client sends at once.

:class:`Front` has the interface of cheroot's ``ConnectionManager``.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import io
import itertools
import logging
import os
import queue
import select
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from cheroot.server import HTTPConnection

from ironic_rules.exceptions import Invalid, IronicRulesError, RequestTooSlow, Unavailable
from ironic_rules.httpd import faults, request
from ironic_rules.httpd.probes import Probes, Turns, is_probe
from ironic_rules.httpd.request import IN_MEMORY, Body, Room
from ironic_rules.metrics.numbers import Numbers

LOG = logging.getLogger(__name__)

#: Maximum bytes of a request's first line and headers.
_MAX_HEAD = 65536
#: Maximum bytes that are read at once.
_PIECE = 65536
#: Maximum pieces that are sent at once: the system takes 1,024.
_MOST_PIECES = 512
#: Maximum bytes of all bodies that are in memory, and of all incomplete heads and requests before their turn.
_MOST_IN_MEMORY = 16 * 1024 * 1024
#: Seconds between two looks at the deadlines.
_SWEEP_S = 0.5
#: Part of all connections that make room at once, if they are of one source.
_EVICTED = 0.02
#: Maximum size of a refused request that is read, as a multiple of the limit of a body: a client that is still
#: sending when the connection closes never sees the reply.
_MOST_DISCARDED = 4
#: Milliseconds that a worker waits for each part of a client's next request while no other request waits for a worker:
#: the way from the front to a worker would add much to a short request.
_NEXT_MS = 1
#: Number of these parts: many clients send head and body separately.
_NEXT_PARTS = 2
#: For SO_LINGER: a connection that is closed ends at once. Otherwise the system keeps what the client has not received,
#: for minutes if the client receives nothing.
_AT_ONCE = struct.pack("ii", 1, 0)
#: Maximum number of handshakes that continue before other connections have their turn: each takes up to a millisecond.
_HANDSHAKES_AT_ONCE = 8
#: Seconds that all replies on their way have when the server stops.
_LAST_S = 0.5
#: Seconds between two log lines with the same reason.
_REPEATED_S = 60.0


#: cheroot looks at this file also when there is no request.
_NOTHING = io.BytesIO()


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, bytes, bytes per second, and numbers."""

    body: int
    all_bodies: int = 256 * 1024 * 1024
    large_bodies: int = 2
    head_s: float = 10.0
    keep_alive_s: float = 60.0
    bytes_per_s: int = 16 * 1024
    connections: int = 2000
    per_source: int = 1200
    all_replies: int = 64 * 1024 * 1024


class Handshake(enum.Enum):
    """The event that a handshake waits for."""

    READS = selectors.EVENT_READ
    WRITES = selectors.EVENT_WRITE
    DONE = 0


class Phase(enum.Enum):
    """The event that a connection waits for."""

    HANDSHAKE = "TLS to begin"
    HEAD = "the request"
    BODY = "the body of the request"
    WORK = "the reply"
    REPLY = "the client to receive the reply"
    END = "the client to see the end"


_INCOMING = frozenset((Phase.HEAD, Phase.BODY))


class Connection(HTTPConnection):  # type: ignore[misc]
    """A connection. Only the thread that it waits for uses it: the front, or a worker in phase WORK."""

    def __init__(self, front: Front, sock: socket.socket, address: tuple[object, ...]) -> None:
        # cheroot's own constructor makes buffers of 16 KiB and two caches.
        self.server = front.server
        self.socket = sock
        self.front = front
        self.wfile = self
        self.rfile: Any = _NOTHING
        self.requests_seen = self.bytes_read = self.bytes_written = 0
        self.remote_addr = address[0]
        self.remote_port = address[1]
        self.ssl_env: dict[str, str] = {}
        self.phase = Phase.HEAD
        self.since = time.monotonic()
        self.moved = 0          # bytes since then, in the direction that the phase is about
        self.is_kept = False    # whether a request was served before
        self.received = b""     # what was read and belongs to no body yet
        self.counted = 0        # bytes of it that the front has counted
        self.head: request.Head | None = None
        self.body: Body | None = None
        self.unsent: collections.deque[memoryview] = collections.deque()
        self.held = 0           # bytes of the pieces in it: one takes its memory until all of it is sent
        self.is_at_end = False  # whether the client sends nothing more
        self.ends = False       # whether the connection ends after the reply

    def communicate(self) -> bool:
        """Serve the request, in a worker, and those that follow at once; return whether the connection is kept."""
        is_kept = self._communicate()
        while is_kept and self.front.take_next(self):
            is_kept = self._communicate()
        return is_kept

    def _communicate(self) -> bool:
        is_kept: bool = super().communicate()
        try:
            self.send()
        except OSError:  # the client has gone
            self.forget_reply()
            return False
        return is_kept

    def write(self, data: bytes) -> int:
        """Take a piece of the reply, as the file that cheroot writes to."""
        self.unsent.append(memoryview(data))
        self.held += len(data)
        return len(data)

    def send(self) -> bool:
        """Send what the socket takes without waiting; return whether everything was sent.

        :raises OSError: the client has gone
        """
        while self.unsent:
            if not self.unsent[0]:
                self.unsent.popleft()
                continue
            try:
                sent = self._send_pieces()
            except BlockingIOError:
                return False
            self.moved += sent
            while self.unsent and len(self.unsent[0]) <= sent:
                piece = self.unsent.popleft()
                sent -= len(piece)
                self.held -= memoryview(piece.obj).nbytes
            if sent:
                self.unsent[0] = self.unsent[0][sent:]
        return True

    def _send_pieces(self) -> int:
        # Many pieces in one call: after each, this thread waits for the interpreter again.
        return self.socket.sendmsg(itertools.islice(self.unsent, _MOST_PIECES))

    def receive(self, size: int) -> bytes:
        """Return the octets that have arrived; none: the client has ended.

        :raises BlockingIOError: nothing has
        :raises OSError: the connection is broken
        """
        return self.socket.recv(size)

    def shake_hands(self) -> Handshake:
        """Continue the handshake; without TLS there is none.

        :raises OSError: it has failed
        """
        return Handshake.DONE

    def end_sending(self) -> None:
        """Tell the client that nothing more comes."""
        self.socket.shutdown(socket.SHUT_WR)

    def discard(self, size: int) -> int:
        """Discard what has arrived; return the number of bytes: 0 at the end."""
        return len(self.socket.recv(size))

    def close(self) -> None:
        """End the connection, as workers do after the last reply."""
        self.ends = True
        self.front.put(self)

    def receive_soon(self) -> bytes:
        """Return the octets that the client sends in the next moment; none also if the connection is broken."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        if not poll.poll(_NEXT_MS):
            return b""
        try:
            data = self.receive(_PIECE)
        except OSError:  # the front will meet it, too
            return b""
        self.is_at_end = not data
        return data

    def enter(self, phase: Phase) -> None:
        self.phase = phase
        self.since = time.monotonic()
        self.moved = 0

    def forget_request(self) -> None:
        if self.body is not None:
            self.body.close()
        self.head = self.body = None
        self.rfile = _NOTHING

    def forget_reply(self) -> None:
        """Free the memory at once, also if something still has the connection."""
        self.unsent.clear()
        self.held = 0


#: Makes the connection of a front, for a socket and the client's address. It raises OSError if the client has gone.
Connect: TypeAlias = Callable[["Front", socket.socket, tuple[object, ...]], Connection]


class Front:
    """Reads requests and hands them over; see the module."""

    def __init__(self, server: Any, limits: Limits, numbers: Numbers | None = None,
                 connect: Connect | None = None, look: Callable[[], None] = lambda: None) -> None:
        """Create the front of a server that listens.

        :param connect: makes the connection of a new socket; by default one without TLS
        :param look: called twice per second
        """
        self.server = server
        self._connect: Connect = connect or Connection
        self._look = look
        self._numbers = numbers or Numbers()
        self._limits = limits
        self._room = Room(limits.all_bodies, _MOST_IN_MEMORY)
        self._selector = selectors.DefaultSelector()
        self._guard = threading.Lock()
        self._open: set[Connection] = set()
        self._sources: collections.Counter[str] = collections.Counter()
        self._received = 0  # bytes that connections have in received
        self._large: set[Connection] = set()
        self._large_waiting = Turns()
        self._returned: collections.deque[Connection] = collections.deque()
        self._refused = _Repeated(self._numbers)
        self._probes = Probes(server)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._stops = False
        self._stopped = threading.Event()
        self._stopped.set()
        self._listens = True
        server.socket.setblocking(False)
        self._selector.register(server.socket, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def phases(self) -> dict[tuple[str, ...], float]:
        """Return the number of connections by what they wait for, for the metrics."""
        counts = collections.Counter(connection.phase for connection in list(self._open))
        return {(phase.value,): counts[phase] for phase in Phase}

    @property
    def waiting(self) -> int:
        """The number of requests with a large body that wait for others to be processed."""
        return self._large_waiting.qsize()

    # Methods that cheroot calls.

    @property
    def can_add_keepalive_connection(self) -> bool:
        """True if a worker may keep a connection: those that wait too long are closed anyway."""
        return not self._stops

    def run(self, _: float) -> None:
        """Serve until :meth:`stop`."""
        self._stopped.clear()
        try:
            while not self._stops:
                self._pass()
        finally:
            self._stopped.set()

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stops = True
        self._wake_up()
        self._stopped.wait()

    def close(self) -> None:
        """Close the connections on which no worker works; all replies on their way together have a moment."""
        idle = [connection for connection in list(self._open) if connection.phase is not Phase.WORK]
        self._end_now(*idle, *self._returned)
        self._returned.clear()
        self._probes.stop()
        self._selector.close()
        wake, self._wake = self._wake, -1  # a late worker must not write into another file with its number
        os.close(wake)

    def put(self, connection: Connection) -> None:
        """Take a connection back from a worker."""
        connection.forget_request()
        if connection in self._large:
            self._next_large(connection)
        if self._stops:
            self._end_now(connection)
        elif connection.unsent or connection.ends or connection.received or connection.is_at_end:
            self._returned.append(connection)
            self._wake_up()
        else:
            connection.is_kept = True
            connection.enter(Phase.HEAD)
            with contextlib.suppress(KeyError, ValueError, RuntimeError):  # the front was closed
                self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def take_next(self, connection: Connection) -> bool:
        """Return whether a worker that has replied has the next request of the same connection, too.

        Anything but one small request, of the same kind, is left to the front, with what has arrived of it.
        """
        replied = connection.head
        if (replied is None or connection.unsent or connection.ends or connection.received or connection.is_at_end
                or connection in self._large):
            return False
        received = b""
        of_probes = is_probe(replied)
        for _ in range(_NEXT_PARTS):
            others_wait = self._probes.is_waiting if of_probes else self.server.requests.qsize
            if self._stops or others_wait or not (data := connection.receive_soon()):
                break
            received += data
            if request := self._small_request(received):
                head, body = request
                if is_probe(head) is not of_probes:
                    body.close()
                    break
                connection.forget_request()
                connection.head, connection.body = head, body
                connection.is_kept = True
                connection.enter(Phase.WORK)
                return True
        connection.received = received
        return False

    def _small_request(self, received: bytes) -> tuple[request.Head, Body] | None:
        """Return a request that has arrived as a whole, and nothing else; None if that is not so."""
        end = received.find(b"\r\n\r\n") + 4
        try:
            head = request.read(received[:end])
        except Invalid:
            return None
        if head.length is None or len(received) - end != head.length:
            return None
        if end > _MAX_HEAD or head.length > min(IN_MEMORY, self._limits.body):
            return None
        body = Body(head.length, self._limits.body, self._room)
        try:
            body.feed(received[end:])
        except OSError:  # the front will meet it, too, and reply
            body.close()
            return None
        return head, body

    # The loop.

    def _pass(self) -> None:
        swept = time.monotonic()
        while not self._stops:
            handshakes = 0
            for key, _ in self._selector.select(_SWEEP_S):
                connection = key.data
                if connection is not None:
                    if connection.phase is Phase.HANDSHAKE:
                        handshakes += 1
                        if handshakes > _HANDSHAKES_AT_ONCE:
                            continue
                    self._serve(connection)
                elif key.fd == self._wake:
                    self._take_back()
                else:
                    self._accept()
            now = time.monotonic()
            if now - swept >= _SWEEP_S:
                swept = now
                self._sweep(now)

    def _wake_up(self) -> None:
        with contextlib.suppress(OSError):
            os.eventfd_write(self._wake, 1)

    def _serve(self, connection: Connection) -> bool:
        """Continue with a connection whose socket is ready; return whether another thread has it now."""
        if connection not in self._open:  # it made room for another one that was ready at the same time
            return False
        try:
            if connection.phase is Phase.REPLY:
                if connection.send():
                    self._selector.unregister(connection.socket)
                    self._after_reply(connection)
            elif connection.phase is Phase.END:
                self._discard(connection)
            elif connection.phase is Phase.HANDSHAKE:
                self._shake_hands(connection)
            else:
                return self._read(connection)
        except OSError as error:
            if connection.phase is Phase.HANDSHAKE:
                self._refused.note("handshakes of TLS that failed", f"{connection.remote_addr}: {error}")
            self._forget(connection)
        except Exception:  # of one connection; the others stay open
            LOG.exception("A connection of %s is closed for an unexpected error.", connection.remote_addr)
            self._forget(connection)
        return False

    def _shake_hands(self, connection: Connection) -> None:
        handshake = connection.shake_hands()
        if handshake is Handshake.DONE:
            connection.enter(Phase.HEAD)
        self._selector.modify(connection.socket, handshake.value or selectors.EVENT_READ, connection)

    def _read(self, connection: Connection) -> bool:
        size = _PIECE
        if connection.body is not None and connection.body.missing:
            size = min(size, connection.body.missing)
        try:
            data = connection.receive(size)
        except BlockingIOError:
            return False
        if data and not connection.moved and connection.phase is Phase.HEAD and connection.is_kept:
            connection.since = time.monotonic()
        connection.moved += len(data)
        connection.is_at_end = not data
        try:
            return self._advance(connection, data)
        except Invalid as error:
            self._refuse(connection, error, "malformed requests")
        return False

    def _advance(self, connection: Connection, data: bytes) -> bool:
        """Process what has been received, up to a request that is complete; return whether another thread has it."""
        if connection.phase is Phase.HEAD:
            data = self._head(connection, data)
        body = connection.body
        if body is not None:
            try:
                rest = body.feed(data) if data and not body.is_complete else data
            except OSError as error:
                self._refuse(connection, Unavailable(), "a body cannot be written into a temporary file", str(error))
                return False
            self._keep(connection, rest)
            if rest and self._received > _MOST_IN_MEMORY:
                # A client that sends requests before it has a reply has to repeat them if the connection ends.
                self._refused.note("too many bytes in requests before the reply to others", connection.remote_addr)
                self._keep(connection, b"")
                connection.ends = True
            if body.is_complete:
                self._dispatch(connection, body)
                return True
            if self._room.is_full:
                self._make_room()
        if connection.is_at_end and connection.phase is Phase.BODY:
            raise Invalid("The body is shorter than its Content-Length, or its last chunk is missing.")
        if connection.is_at_end and connection.phase is Phase.HEAD:
            self._forget(connection)
        return False

    def _head(self, connection: Connection, data: bytes) -> bytes:
        """Read the head; return what follows it, or nothing.

        :raises Invalid: 400, the head is malformed
        """
        held = len(connection.received)
        received = connection.received + data
        if not held:
            received = received.removeprefix(b"\r\n")  # some clients send one after a body
        # The end may be on both sides of where the last piece ended.
        end = received.find(b"\r\n\r\n", max(0, held - 3))
        if end < 0:
            self._keep(connection, received)
            if len(received) > _MAX_HEAD:
                raise Invalid(f"The first line and the headers are longer than {_MAX_HEAD} bytes.")
            if self._received > _MOST_IN_MEMORY:
                self._refuse(connection, Unavailable(), "too many bytes in incomplete headers")
            return b""
        self._keep(connection, b"")
        if end > _MAX_HEAD:
            raise Invalid(f"The first line and the headers are longer than {_MAX_HEAD} bytes.")
        head = request.read(received[:end + 4])
        connection.head = head
        connection.body = Body(head.length, self._limits.body, self._room)
        rest = received[end + 4:]
        if not connection.body.is_complete:
            if head.expects_continue and not rest:
                connection.socket.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.enter(Phase.BODY)
        return rest

    def _keep(self, connection: Connection, received: bytes) -> None:
        """Set what a connection has received and belongs to no body yet, and count it."""
        connection.received = received
        self._received += len(received) - connection.counted
        connection.counted = len(received)

    def _dispatch(self, connection: Connection, body: Body) -> None:
        """Hand a complete request to a worker; a large one when there are not too many of them."""
        self._unregister(connection)
        connection.enter(Phase.WORK)
        if connection.head is not None and is_probe(connection.head):
            self._probes.put(connection)
            return
        if body.is_too_large:
            connection.ends = True
        if body.is_large:
            with self._guard:
                if len(self._large) >= self._limits.large_bodies:
                    self._large_waiting.put(connection)
                    return
                self._large.add(connection)
        self.server.process_conn(connection)

    def _next_large(self, former: Connection) -> None:
        with self._guard:
            self._large.discard(former)
            try:
                following = self._large_waiting.get_nowait()
            except queue.Empty:
                return
            self._large.add(following)
        self.server.process_conn(following)

    def _take_back(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        for _ in range(len(self._returned)):  # not those returned since: new connections have their turn, too
            connection = self._returned.popleft()
            try:
                if connection.unsent:
                    connection.enter(Phase.REPLY)
                    self._selector.register(connection.socket, selectors.EVENT_WRITE, connection)
                    self._limit_replies(connection)
                else:
                    self._after_reply(connection)
            except (OSError, ValueError):
                self._forget(connection)

    def _after_reply(self, connection: Connection) -> None:
        data = connection.received
        self._keep(connection, b"")
        if connection.ends:
            connection.end_sending()
            connection.enter(Phase.END)
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            return
        connection.is_kept = True
        connection.enter(Phase.HEAD)
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        if data or connection.is_at_end:
            connection.moved = len(data)
            try:
                self._advance(connection, data)
            except Invalid as error:
                self._refuse(connection, error, "malformed requests")

    def _discard(self, connection: Connection) -> None:
        size = connection.discard(_PIECE)
        connection.moved += size
        if not size or connection.moved > _MOST_DISCARDED * self._limits.body:
            self._forget(connection)

    # Connections come and go.

    def _accept(self) -> None:
        # Each of several processes takes one: connections are kept, and the first could get those of all clients.
        for _ in range(64 if self.server.shared is None else 1):
            try:
                sock, address = self.server.socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # No file descriptors: other connections give theirs.
                self._refused.note("the process has reached its limit of open files", str(error))
                if not self._evict_of_any():
                    self._listens = False
                    self._selector.unregister(self.server.socket)
                return
            if not self._make_place(address[0]):
                self._refused.note("too many connections", address[0])
                sock.close()
                continue
            sock.setblocking(False)
            try:
                connection = self._connect(self, sock, address)
            except OSError:
                sock.close()
                continue
            self._add(connection)
            if connection.phase is Phase.HANDSHAKE:
                self._selector.register(connection.socket, selectors.EVENT_READ, connection)
                continue
            # The request is often there already. Each call of the system that is saved is one turn less to wait for
            # when many threads want to run.
            if not self._serve(connection) and connection in self._open and connection.phase in _INCOMING:
                self._selector.register(sock, selectors.EVENT_READ, connection)

    def _add(self, connection: Connection) -> None:
        with self._guard:
            self._open.add(connection)
            self._sources[connection.remote_addr] += 1

    def adopt(self, sock: socket.socket) -> None:
        """Serve a socket of this process itself, without TLS."""
        sock.setblocking(False)
        connection = Connection(self, sock, ("127.0.0.1", 0))
        self._add(connection)
        self._returned.append(connection)
        self._wake_up()

    def _make_place(self, source: str) -> bool:
        """Return whether there is a place for a connection of ``source``, if need be that of another one.

        There is always one, except if ``source`` has the most connections and all of them wait for the service.
        """
        is_full = len(self._open) >= self._limits.connections
        has_many = self._sources[source] >= self._limits.per_source
        if not is_full and not has_many:
            return True
        self._take_back()  # those whose reply is there do not wait for the service
        if has_many or self._sources[source] == max(self._sources.values()):
            return self._evict(self._of(source), for_others=False)
        return self._evict_of_any()

    def _of(self, source: str) -> list[Connection]:
        return [connection for connection in list(self._open) if connection.remote_addr == source]

    def _evict_of_any(self) -> bool:
        """Close connections of the source with the most, or, if it has none that can be closed, of others."""
        for source, number in self._sources.most_common(1):
            if number > 1 and self._evict(self._of(source), for_others=True):
                return True
        return self._evict(self._open, for_others=True)

    def _evict(self, connections: Iterable[Connection], *, for_others: bool) -> bool:
        """Close the connections that have waited longest for their client; return whether any was closed.

        If none waits for its client, those end whose request has not begun: first those that have sent more requests,
        and others only ``for_others``, the last ones first.
        """
        candidates = list(connections)
        waiting = sorted((connection for connection in candidates if connection.phase is not Phase.WORK),
                         key=lambda connection: connection.since)
        if not waiting:
            waiting = sorted((connection for connection in candidates if connection.received or for_others),
                             key=lambda connection: (not connection.received, -connection.since))
        most = max(1, int(self._limits.connections * _EVICTED))
        closed = 0
        for connection in waiting:
            if closed < most and (connection.phase is not Phase.WORK or self._withdraw(connection)):
                self._refused.note("too many connections", connection.remote_addr)
                self._forget(connection)
                closed += 1
        return closed > 0

    def _withdraw(self, connection: Connection) -> bool:
        """Take back a request that no thread has; return whether that is so."""
        queues = self.server.turns, self._probes.turns, self._large_waiting
        if not any(turns.withdraw(connection) for turns in queues):
            return False
        if connection in self._large:
            self._next_large(connection)
        return True

    def _make_room(self) -> None:
        """Refuse the body that began first, of those that are not complete."""
        bodies = [connection for connection in list(self._open) if connection.phase is Phase.BODY]
        if bodies:
            oldest = min(bodies, key=lambda connection: connection.since)
            self._refuse(oldest, Unavailable(), "too many bytes in the bodies of all requests")

    def _limit_replies(self, newest: Connection) -> None:
        """End other replies than ``newest`` until all that clients have not received have the permitted bytes.

        Ends those of the source with the most bytes, the next deadline first; a client that receives moves its own.
        """
        sources: collections.Counter[str] = collections.Counter()
        replies = [connection for connection in list(self._open) if connection.phase is Phase.REPLY]
        for connection in replies:
            sources[connection.remote_addr] += connection.held
        replies.remove(newest)
        while replies and sources.total() > self._limits.all_replies:
            ended = max(replies, key=lambda reply: (sources[reply.remote_addr], -self._deadline(reply)))
            replies.remove(ended)
            sources[ended.remote_addr] -= ended.held
            self._refused.note("too many bytes in replies that clients do not receive", ended.remote_addr)
            self._forget(ended)

    def _sweep(self, now: float) -> None:
        """End the connections whose deadline is over."""
        self._look()
        if not self._listens:
            self._listens = True
            self._selector.register(self.server.socket, selectors.EVENT_READ)
        for connection in list(self._open):
            if connection.phase is not Phase.WORK and now > self._deadline(connection):
                is_idle = connection.phase is Phase.HEAD and not connection.moved
                if connection.phase is Phase.HANDSHAKE:
                    self._refused.note("slow clients", f"{connection.remote_addr}: {connection.phase.value}")
                if is_idle or connection.phase in (Phase.REPLY, Phase.END, Phase.HANDSHAKE):
                    self._forget(connection)
                else:
                    self._refuse(connection, RequestTooSlow(what=connection.phase.value), "slow clients")

    def _deadline(self, connection: Connection) -> float:
        limits = self._limits
        if connection.phase is Phase.HEAD:
            is_idle = connection.is_kept and not connection.moved
            return connection.since + (limits.keep_alive_s if is_idle else limits.head_s)
        return connection.since + limits.head_s + connection.moved / limits.bytes_per_s

    def _refuse(self, connection: Connection, error: IronicRulesError, reason: str, cause: str = "") -> None:
        """Reply with ``error`` and end the connection; ``cause`` is for the log only."""
        self._refused.note(reason, f"{connection.remote_addr}: {cause or error}")
        fault = faults.from_status(error.code, str(error))
        self._unregister(connection)
        self._keep(connection, b"")
        connection.forget_request()
        head = "".join(f"{name}: {value}\r\n" for name, value in fault.headers)
        connection.write(f"HTTP/1.1 {faults.status_line(fault.status)}\r\n{head}Content-Length: {len(fault.body)}\r\n"
                         "Connection: close\r\n\r\n".encode() + fault.body)
        connection.ends = True
        try:
            connection.enter(Phase.REPLY)
            if connection.send():
                self._after_reply(connection)
            else:
                self._selector.register(connection.socket, selectors.EVENT_WRITE, connection)
        except OSError:
            self._forget(connection)

    def _unregister(self, connection: Connection) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)

    def _forget(self, connection: Connection) -> None:
        """Close a connection at once."""
        self._keep(connection, b"")
        self._unregister(connection)
        connection.forget_request()
        if connection.unsent:
            connection.forget_reply()
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        with self._guard:
            if connection in self._open:
                self._open.remove(connection)
                self._sources[connection.remote_addr] -= 1
                if not self._sources[connection.remote_addr]:
                    del self._sources[connection.remote_addr]
        connection.socket.close()

    def _end_now(self, *connections: Connection) -> None:
        """Close connections when the server stops: what is left of their replies has half a second."""
        until = time.monotonic() + _LAST_S
        for connection in connections:
            self._unregister(connection)
        with selectors.DefaultSelector() as selector:
            for connection in connections:
                if connection.unsent:
                    selector.register(connection.socket, selectors.EVENT_WRITE, connection)
            while selector.get_map() and (remaining_s := until - time.monotonic()) > 0:
                for key, _ in selector.select(remaining_s):
                    try:
                        is_sent = key.data.send()
                    except OSError:  # the client has gone
                        is_sent = True
                    if is_sent:
                        selector.unregister(key.fileobj)
        for connection in connections:
            self._forget(connection)


class _Repeated:
    """Counts a reason, and logs it at once, and then how often it was there, at most once per minute."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._next: dict[str, float] = {}
        self._more: collections.Counter[str] = collections.Counter()

    def note(self, reason: str, example: str) -> None:
        self._numbers.count("api_connections_refused", reason)
        now = time.monotonic()
        if now < self._next.get(reason, 0):
            self._more[reason] += 1
            return
        self._next[reason] = now + _REPEATED_S
        LOG.warning("Refused: %s. This time %s; %d since the last such line.", reason, example,
                    self._more.pop(reason, 0))
