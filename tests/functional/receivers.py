"""Receivers of webhooks for tests: real HTTP servers that answer well, badly, slowly or not at all."""

from __future__ import annotations

import contextlib
import http.server
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps what it gets in ``messages``: headers and content. ``mode`` says how it answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode: str | int = 204
        self.headers: dict[str, str] = {}
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.attempts = 0
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/events?token=t0ken"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about clients that have gone."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        server = self.server
        server.attempts += 1
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if server.mode == "hang":
            server.ended.wait(60)
            return
        if server.mode == "drip":
            self.wfile.write(b"HTTP/1.1 204 No Content\r\n")
            while not server.ended.wait(0.1):
                self.wfile.write(b"X: y\r\n")
            return
        if server.mode == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        assert isinstance(server.mode, int)
        if server.mode < 300:
            server.messages.append((dict(self.headers), content))
        self.send_response(server.mode)
        for name, value in server.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """Yield one that runs."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
