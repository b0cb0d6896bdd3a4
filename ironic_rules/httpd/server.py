"""The API's own HTTP server: cheroot, with requests that have been read and checked before."""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import logging
import resource
import socket
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from cheroot import wsgi
from cheroot.server import HTTPRequest
from oslo_config import cfg

from ironic_rules.certificates import Certificates
from ironic_rules.exceptions import ConfigurationError, cannot_listen
from ironic_rules.httpd.connections import Connection, Front, Limits
from ironic_rules.httpd.probes import Turns
from ironic_rules.httpd.tls import TlsConnection
from ironic_rules.inspection.journal import Lines
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: Seconds that open requests have to finish when the server stops.
_SHUTDOWN_S = 0.5
#: Maximum number of connections that wait to be accepted.
_BACKLOG = 1024
#: File descriptors of a process that are not connections: databases, brokers, bodies in files, BMCs.
_OTHER_FILES = 500
#: The status after which cheroot closes the connection.
_TOO_LARGE = 413
#: Seconds that a reply to a request of this process itself may take.
_REPLY_S = 20.0
#: Lines about unexpected errors of cheroot: so many at once, and so many per second on average.
_ERRORS_AT_ONCE, _ERRORS_PER_SECOND = 20, 0.1
#: Addresses that mean every address, and one of them that a client can connect to.
_LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class _Request(HTTPRequest):  # type: ignore[misc]
    """A request that the front has received as a whole."""

    def __init__(self, server: object, connection: Connection) -> None:
        assert connection.head is not None
        connection.rfile = io.BytesIO(connection.head.line)
        super().__init__(server, connection)
        if isinstance(connection, TlsConnection):
            self.scheme = b"https"

    def header_reader(self, _: object, headers: dict[bytes, bytes]) -> None:
        """Give cheroot the headers that have been read.

        cheroot knows ``close`` and ``Keep-Alive`` in ``Connection`` only in these letters and alone. But this is a list
        of names in letters of any case, and ``close`` counts more (RFC 9112, section 9.3).
        """
        headers.update(self.conn.head.headers)
        options = {option.strip(b" \t").lower() for option in headers.pop(b"Connection", b"").split(b",")}
        if b"close" in options:
            headers[b"Connection"] = b"close"
        elif b"keep-alive" in options:
            headers[b"Connection"] = b"Keep-Alive"

    def send_headers(self) -> None:
        """Write the head of the reply; if the connection ends, it says so, also in reply to HTTP/1.0.

        cheroot does that in HTTP/1.1 only, but its status line always says HTTP/1.1. A proxy that uses HTTP/1.0 would
        expect the connection to be kept, and could send the next client's request while it is closed: 502.
        """
        if self.response_protocol != "HTTP/1.1":
            names = {name.lower() for name, _ in self.outheaders}
            ends = (self.close_connection or b"content-length" not in names or int(self.status[:3]) == _TOO_LARGE
                    or not self.server.can_add_keepalive_connection)
            if ends:
                self.close_connection = True
                self.outheaders.append((b"Connection", b"close"))
        super().send_headers()

    def respond(self) -> None:
        """Call the application and write its reply."""
        self.rfile = self.conn.body.stream()
        if self.conn.ends:
            self.close_connection = True
        self.server.gateway(self).respond()
        if self.ready:
            self.ensure_headers_sent()
        if self.chunked_write:
            self.conn.wfile.write(b"0\r\n\r\n")


class _Server(wsgi.Server):  # type: ignore[misc]
    """cheroot with a :class:`~ironic_rules.httpd.connections.Front` in place of its own connections."""

    limits: Limits
    numbers: Numbers | None = None
    certificates: Certificates | None = None
    #: A socket that was bound before, and that other processes use too.
    shared: socket.socket | None = None
    _connections: Any

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # cheroot's own queue gives every turn to the client that has sent the most requests.
        self.turns = self.requests._queue = Turns()
        self.requests.get = self.turns.get
        self._errors = Lines(_ERRORS_AT_ONCE, _ERRORS_PER_SECOND)

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        """Log an error, unless there are many: cheroot writes each one to standard error, with its traceback."""
        if (withheld := self._errors.take()) is not None:
            LOG.error("%s (%d such errors were not logged since the last one)", printable(msg), withheld,
                      exc_info=traceback)

    def prepare(self) -> None:
        super().prepare()
        self._connections._selector.close()  # it has no other way to end one that has not run
        if (certificates := self.certificates) is None:
            self._connections = Front(self, self.limits, self.numbers)
        else:
            self._connections = Front(self, self.limits, self.numbers, functools.partial(TlsConnection, certificates),
                                      certificates.refresh)

    def bind(self, family: Any, type: Any, proto: Any = 0) -> Any:
        if self.shared is None:
            return super().bind(family, type, proto)
        self.socket = self.shared
        self.bind_addr = self.resolve_real_bind_addr(self.shared)
        return self.socket

    def adopt(self, sock: socket.socket) -> None:
        """Serve a socket of this process itself."""
        self._connections.adopt(sock)

    def offer_gauges(self, numbers: Numbers) -> None:
        """Let the metrics have the state of connections and threads."""

        def threads() -> dict[tuple[str, ...], float]:
            idle = self.requests.idle
            return {("idle",): idle, ("busy",): max(0, self.numthreads - idle)}

        numbers.gauge("api_threads", threads)
        numbers.gauge("api_requests_waiting", lambda: {
            (): self.requests.qsize + (self._connections.waiting if self.ready else 0)})
        numbers.gauge("api_connections", lambda: self._connections.phases() if self.ready else {})


Connection.RequestHandlerClass = _Request


class Address(NamedTuple):
    """The place where a server listens, and the prefix of the options that say so: ``[api]``, or ``[api]public_``."""

    host: str
    port: int
    prefix: str = "[api]"

    def refused(self, error: OSError, port: int | None = None) -> ConfigurationError:
        """Return the error for an address that cannot be used; ``port`` is the number that was chosen."""
        reason = f"Cannot listen on {self.host}, port {self.port if port is None else port}"
        return cannot_listen(reason, f"{self.prefix}host_ip", f"{self.prefix}port", error)


def addresses(conf: cfg.ConfigOpts) -> list[Address]:
    """Return where the API listens: for all clients, or for operators and then for ramdisks."""
    listeners = [Address(conf.api.host_ip, conf.api.port)]
    if conf.api.public_port is not None:
        listeners.append(Address(conf.api.public_host_ip, conf.api.public_port, "[api]public_"))
    return listeners


class ApiServer:
    """``start``, ``stop`` and ``wait`` of a WSGI application."""

    def __init__(self, conf: cfg.ConfigOpts, app: object, numbers: Numbers | None = None,
                 shared: socket.socket | None = None, certificates: Certificates | None = None,
                 address: Address | None = None) -> None:
        """Create the server.

        :param certificates: None: it speaks http
        :param address: by default ``[api]host_ip`` and ``[api]port``
        :param shared: from :func:`listen`, for one of several processes; None: the server binds its own socket
        """
        self._address = address or addresses(conf)[0]
        self._host = self._address.host
        self._server = _Server(
            self._address[:2], app, numthreads=conf.api.threads, server_name="ironic-rules",
            request_queue_size=_BACKLOG, timeout=conf.api.keep_alive_timeout,
            shutdown_timeout=_SHUTDOWN_S)  # type: ignore[arg-type]  # seconds; a fraction works as well
        self._server.limits = Limits(
            body=conf.api.max_json_body_size, all_bodies=conf.api.max_bodies_size,
            large_bodies=conf.api.max_large_bodies, head_s=conf.api.head_timeout,
            keep_alive_s=conf.api.keep_alive_timeout, bytes_per_s=conf.api.min_bytes_per_second,
            connections=conf.api.max_connections, per_source=conf.api.max_connections_per_source,
            all_replies=conf.api.max_replies_size)
        self._server.numbers = numbers
        self._server.shared = shared
        self._server.certificates = certificates
        self._thread = threading.Thread(target=self._server.serve, name="api", daemon=True)
        if numbers is not None:
            self._server.offer_gauges(numbers)

    @property
    def url(self) -> str:
        """The URL of the server, e.g. ``http://127.0.0.1:6385``; known once it has started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        scheme = "http" if self._server.certificates is None else "https"
        return f"{scheme}://{host}:{self._server.bind_addr[1]}"

    def start(self) -> None:
        """Bind and serve in a thread.

        :raises ConfigurationError: the address cannot be bound
        """
        _allow_files(self._server.limits.connections + _OTHER_FILES)
        try:
            self._server.prepare()
        except OSError as exc:
            raise self._address.refused(exc, self._server.bind_addr[1]) from exc
        self._thread.start()

    def is_answering(self) -> bool:
        """Return whether the server replies to a request that needs neither a database nor a conductor."""
        connection = http.client.HTTPConnection(
            _LOCAL.get(self._host, self._host), self._server.bind_addr[1], timeout=_REPLY_S)
        try:
            if self._server.certificates is not None:
                # This process has no certificate of a client, which the server may want.
                connection.sock, other = socket.socketpair()
                connection.sock.settimeout(_REPLY_S)
                self._server.adopt(other)
            connection.request("GET", "/healthcheck/live")
            return connection.getresponse().status < http.client.INTERNAL_SERVER_ERROR
        except (OSError, http.client.HTTPException) as exc:
            LOG.error("The API does not reply to its own request: %s", exc)
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """Close the socket; open requests have half a second to finish."""
        self._server.stop()

    def wait(self) -> None:
        """Wait until the server has stopped."""
        self._thread.join()


class ApiServers:
    """All servers of a process, the one for operators first."""

    def __init__(self, servers: Sequence[ApiServer]) -> None:
        self._servers = servers

    @property
    def url(self) -> str:
        """The URL for operators, known once the servers have started."""
        return self._servers[0].url

    @property
    def text(self) -> str:
        """The URLs as the process prints them."""
        return " and for ramdisks on ".join(server.url for server in self._servers)

    def start(self) -> None:
        """Bind and serve, in threads.

        :raises ConfigurationError: an address cannot be bound; nothing is served then
        """
        with contextlib.ExitStack() as on_failure:
            for server in self._servers:
                server.start()
                on_failure.callback(server.stop)
            on_failure.pop_all()

    def is_answering(self) -> bool:
        """Return whether each server replies."""
        return all(server.is_answering() for server in self._servers)

    def stop(self) -> None:
        """Close the sockets; open requests have half a second to finish."""
        for server in self._servers:
            server.stop()

    def wait(self) -> None:
        """Wait until the servers have stopped."""
        for server in self._servers:
            server.wait()


def listen(conf: cfg.ConfigOpts) -> list[socket.socket]:
    """Return sockets that listen on the addresses of the API, to be shared by processes.

    A connection that one of them has not accepted when it dies is accepted by another one.

    :raises ConfigurationError: an address cannot be bound
    """
    return [_listen(address) for address in addresses(conf)]


def _listen(address: Address) -> socket.socket:
    where = address[:2]
    try:
        family, kind, proto, _, _ = socket.getaddrinfo(*where, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener: socket.socket = _Server.prepare_socket(where, family, kind, proto, True, None)
        listener.bind(where)
        listener.listen(_BACKLOG)
    except OSError as exc:
        raise address.refused(exc) from exc
    return listener


def _allow_files(number: int) -> None:
    """Raise the soft limit of open files, as far as the hard one permits: the usual one is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= number:
        return
    allowed = number if hard == resource.RLIM_INFINITY else min(number, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < number:
        LOG.warning("[api]max_connections needs %d open files, but the process may open %d only: raise its limit.",
                    number, allowed)
