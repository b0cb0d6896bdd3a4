"""The API's own HTTP server, cheroot."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from cheroot import wsgi
from cheroot.server import ChunkedRFile
from oslo_config import cfg

from ironic_rules.exceptions import ConfigurationError, RequestTooLarge

#: Seconds that open requests have to finish when the server stops.
_SHUTDOWN_S = 0.5
#: Maximum bytes that are passed to the socket at once.
_PIECE = 65536
#: Maximum bytes of a request's first line and headers.
_MAX_HEAD = 65536
#: Maximum bytes of the line before a chunk.
_MAX_LINE = 4096


class _Chunks:
    """What cheroot reads a chunked body from, with limits: cheroot reads lines and chunks of any length as a whole."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self.close = stream.close

    def readline(self) -> bytes:
        line: bytes = self._stream.readline(_MAX_LINE)
        if len(line) == _MAX_LINE:
            raise OSError("the line before a chunk is too long")
        return line

    def read(self, size: int) -> bytes:
        if size > self._limit:
            raise RequestTooLarge(limit=self._limit)
        chunk: bytes = self._stream.read(size)
        return chunk


def _gateway(limit: int) -> type[wsgi.Gateway_10]:
    """Return cheroot's gateway to a WSGI application, with a limit on the memory that a body can take.

    cheroot would read the unread rest of a long body as a whole, and take the rest of a chunked one for the next
    request. Such connections are closed after the reply.
    """

    class Gateway(wsgi.Gateway_10):  # type: ignore[misc]
        def respond(self) -> None:
            body = self.req.rfile
            if isinstance(body, ChunkedRFile):
                body.rfile = _Chunks(body.rfile, limit)
                self.req.close_connection = True
            elif body.remaining > limit:
                self.req.close_connection = True
            super().respond()

    return Gateway


def _in_pieces(app: Any) -> Any:
    """Return ``app`` with large bodies split up: cheroot copies the unsent rest once per packet of the socket."""

    def serve(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        for body in app(environ, start_response):
            for start in range(0, len(body), _PIECE):
                yield body[start:start + _PIECE]

    return serve


class ApiServer:
    """``start``, ``stop`` and ``wait`` of a WSGI application on ``[api]host_ip`` and ``[api]port``."""

    def __init__(self, conf: cfg.ConfigOpts, app: Any) -> None:
        self._host: str = conf.api.host_ip
        self._server = wsgi.Server(
            (self._host, conf.api.port), _in_pieces(app), numthreads=conf.api.threads, server_name="ironic-rules",
            request_queue_size=128, timeout=60,
            shutdown_timeout=_SHUTDOWN_S)  # type: ignore[arg-type]  # seconds; a fraction works as well
        self._server.max_request_header_size = _MAX_HEAD
        self._server.gateway = _gateway(conf.api.max_json_body_size)
        self._thread = threading.Thread(target=self._server.serve, name="api", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the server, e.g. ``http://127.0.0.1:6385``; known once it has started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._server.bind_addr[1]}"

    def start(self) -> None:
        """Bind and serve in a thread.

        :raises ConfigurationError: the address cannot be bound
        """
        try:
            self._server.prepare()
        except OSError as exc:
            raise ConfigurationError(f"Cannot listen on {self._host}, port {self._server.bind_addr[1]}: {exc}") from exc
        self._thread.start()

    def stop(self) -> None:
        """Close the socket; open requests have half a second to finish."""
        self._server.stop()

    def wait(self) -> None:
        """Wait until the server has stopped."""
        self._thread.join()
