"""Connections with TLS: the front does their handshakes and never waits for a client in one.

OpenSSL reads a record at a time. A read takes a whole one, so that a socket that is not ready has nothing left inside
OpenSSL, and the front may wait for the socket as it does for others.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from typing import TYPE_CHECKING

from ironic_rules.httpd.connections import Connection, Handshake, Phase

if TYPE_CHECKING:
    from ironic_rules.certificates import Certificates
    from ironic_rules.httpd.connections import Front

#: Bytes of a record: the most that one call of OpenSSL reads or writes.
_RECORD = 16 * 1024
#: The reply to a client that does not speak TLS.
_PLAIN = (b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 34\r\nConnection: close\r\n\r\n"
          b"This port speaks https, not http.\n")


class TlsConnection(Connection):
    """A connection whose socket encrypts. It begins with the phase HANDSHAKE."""

    def __init__(self, certificates: Certificates, front: Front, sock: socket.socket,
                 address: tuple[object, ...]) -> None:
        """Begin; nothing is sent or received yet.

        :raises OSError: the client has gone
        """
        wrapped = certificates.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        super().__init__(front, wrapped, address)
        self._encrypted: ssl.SSLSocket = wrapped
        self.phase = Phase.HANDSHAKE

    def shake_hands(self) -> Handshake:
        """Continue the handshake.

        :raises OSError: it has failed
        """
        try:
            self._encrypted.do_handshake()
        except ssl.SSLWantReadError:
            return Handshake.READS
        except ssl.SSLWantWriteError:
            return Handshake.WRITES
        except ssl.SSLError as error:
            if error.reason == "HTTP_REQUEST":
                with contextlib.suppress(OSError):
                    socket.socket.send(self.socket, _PLAIN)
                    socket.socket.shutdown(self.socket, socket.SHUT_WR)
                    socket.socket.recv(self.socket, _RECORD)  # a reset would take the reply from the client
            raise
        return Handshake.DONE

    def receive(self, size: int) -> bytes:
        """Return octets that have arrived, at most a record of them, whatever size is requested.

        :raises BlockingIOError: there is no whole record yet
        :raises OSError: the connection is broken
        """
        try:
            return self.socket.recv(_RECORD)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def _send_pieces(self) -> int:
        # OpenSSL wants a record that it could not send whole to begin with the same bytes the next time, and to be no
        # shorter: pieces are only added at the end.
        try:
            return self.socket.send(self._record())
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def _record(self) -> memoryview | bytes:
        first = self.unsent[0]
        if len(first) >= _RECORD or len(self.unsent) == 1:
            return first[:_RECORD]
        pieces, size = [], 0
        for piece in self.unsent:
            pieces.append(piece[:_RECORD - size])
            size += len(pieces[-1])
            if size == _RECORD:
                break
        return b"".join(pieces)

    def end_sending(self) -> None:
        """Tell the client, in TLS and below it, that nothing more comes."""
        with contextlib.suppress(ssl.SSLError):
            self._encrypted.unwrap()  # it sends its part, and then lacks the client's
        socket.socket.shutdown(self.socket, socket.SHUT_WR)

    def discard(self, size: int) -> int:
        """Discard what has arrived, still encrypted; return the number of bytes: 0 at the end."""
        return len(socket.socket.recv(self.socket, size))
