"""A web server on a loopback address that records the requests to it."""

from __future__ import annotations

import contextlib
import http.server
import ssl
import threading
from collections.abc import Iterator
from typing import Any


class Server:
    """``asked`` has method, path and Host header of each request; ``answer`` is the content of all responses."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None]] = []
        self.answer = b"{}"
        self.location: str | None = None
        self.port = 0


@contextlib.contextmanager
def serving(host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Run a server; with ``location`` set, it redirects there."""
    found = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            found.asked.append((self.command, self.path, self.headers["Host"]))
            self.send_response(302 if found.location else 200)
            if found.location:
                self.send_header("Location", found.location)
            self.send_header("Content-Length", str(len(found.answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(found.answer)

        do_GET = do_HEAD = do_POST = _answer

        def log_message(self, *arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer((host, port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
