"""A server that answers with single bytes, each soon enough for a limit of the time of one read."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

HEADERS = b"HTTP/1.1 200 OK\r\nX-Slow: "
BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
_PAUSE_S = 0.05
#: Then it gives up, after minutes, so that a test of something without a limit ends.
_MOST = 4000


@contextlib.contextmanager
def server(start: bytes) -> Iterator[str]:
    """Yield the URL of a server whose answers begin with ``start``, then come as single bytes."""
    stopped = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(start)
                    for _ in range(_MOST):
                        if stopped.wait(_PAUSE_S):
                            return
                        connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stopped.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
