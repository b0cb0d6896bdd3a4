"""A TCP relay in front of a server, so that a test can make the server unavailable, or silent, and available again."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Listens on a port of 127.0.0.1 and passes everything on to ``host:port``, until ``cut()``.

    While ``is_silent`` is set, it reads and drops everything, so that neither side notices anything. A connection that
    has lost data so remains silent.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.is_silent = False
        self.port = 0
        self.mend()

    def mend(self) -> None:
        """Accept connections (again)."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Close all connections and accept no new ones."""
        with self._lock:
            sockets = self._open if self._listener is None else [self._listener, *self._open]
            self._listener, self._open = None, []
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                with contextlib.ExitStack() as unused:
                    unused.enter_context(near)
                    far = unused.enter_context(socket.create_connection(self._server))
                    with self._lock:
                        if self._listener is not listener:  # cut meanwhile
                            continue
                        self._open += [near, far]
                    unused.pop_all()
                has_lost = threading.Event()
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(source, sink, has_lost), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, has_lost: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.is_silent:
                    has_lost.set()
                if not has_lost.is_set():
                    sink.sendall(data)
        if has_lost.is_set():  # the other side is not told
            return
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
