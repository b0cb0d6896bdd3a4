"""The body of a request while it arrives: in memory if it is short, in a temporary file otherwise."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import threading
from typing import IO

from ironic_rules.exceptions import Invalid

#: Maximum bytes of a body that is kept in memory.
IN_MEMORY = 256 * 1024
#: Maximum bytes of the line before a chunk, and of everything after the last one.
_MAX_LINE = 4096
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*")


class Room:
    """How many bytes the bodies of all requests take, in all and in memory. Used by several threads."""

    def __init__(self, most: int, most_in_memory: int) -> None:
        self._most = most
        self._most_in_memory = most_in_memory
        self._lock = threading.Lock()
        self._taken = 0
        self._in_memory = 0

    @property
    def is_full(self) -> bool:
        return self._taken > self._most

    @property
    def is_memory_full(self) -> bool:
        return self._in_memory > self._most_in_memory

    def take(self, size: int, in_memory: int) -> None:
        """Count bytes that have arrived; negative numbers: that are gone."""
        with self._lock:
            self._taken += size
            self._in_memory += in_memory


class Body:
    """Takes bytes until the body is there, or is larger than ``limit``.

    :param length: of the body in bytes; None: it comes in chunks
    :param room: where its bytes are counted until :meth:`close`
    """

    def __init__(self, length: int | None, limit: int, room: Room) -> None:
        self._limit = limit
        self._room = room
        self._file: IO[bytes] | None = None
        self._kept = bytearray()
        self._chunks = _Chunks() if length is None else None
        self._missing = length or 0
        self.size = 0
        #: Nothing of a body that declares too many bytes is kept: who reads it gets to its end at once.
        self.is_too_large = self._missing > limit
        self.is_complete = length == 0 or self.is_too_large

    @property
    def missing(self) -> int:
        """How many bytes are missing, if that is known."""
        return self._missing

    @property
    def is_large(self) -> bool:
        return self.size > IN_MEMORY

    def feed(self, data: bytes) -> bytes:
        """Take what belongs to the body and return the rest.

        :raises Invalid: 400, the chunks are malformed
        :raises OSError: the temporary file cannot be written; the body can only be closed
        """
        if self._chunks is None:
            piece, rest = data[:self._missing], data[self._missing:]
            self._missing -= len(piece)
            self._store(piece)
            self.is_complete = not self._missing
        else:
            pieces, rest = self._chunks.feed(data)
            self._store(b"".join(pieces))
            self.is_complete = self._chunks.is_done
            if self.size > self._limit:
                self.is_too_large = self.is_complete = True
        if self.is_complete and self._file is not None:
            self._file.flush()  # otherwise who reads the body gets the error
        return rest

    def _store(self, piece: bytes) -> None:
        # Counted is what was written, because that is what close() gives back.
        if self._file is None and (self.size + len(piece) > IN_MEMORY or self._room.is_memory_full):
            self._file = tempfile.TemporaryFile(prefix="ironic-rules-body-")  # noqa: SIM115  (closed by close)
            self._file.write(self._kept)
            self._room.take(0, -len(self._kept))
            self._kept = bytearray()
        if self._file is None:
            self._kept += piece
        else:
            self._file.write(piece)
        self.size += len(piece)
        self._room.take(len(piece), len(piece) if self._file is None else 0)

    def stream(self) -> IO[bytes]:
        """Return what the body is read from."""
        if self._file is None:
            self._file = io.BytesIO(self._kept)
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Forget the body, also for who still has the stream."""
        self._room.take(-self.size, -len(self._kept))
        self.size = 0
        self._kept = bytearray()
        if self._file is not None:
            with contextlib.suppress(OSError):  # of what could not be written before; the file is closed nevertheless
                self._file.close()


class _Chunks:
    """Takes a body in chunks apart (RFC 9112, section 7.1). Extensions and trailers are checked and dropped."""

    def __init__(self) -> None:
        self._buffer = b""
        self._left = 0       # of the current chunk
        self._ends = False   # whether the two bytes after a chunk come next
        self._trailers = -1  # bytes after the last chunk; -1: it has not come
        self.is_done = False

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the pieces of the body in ``data`` and, at the end of the body, what follows it."""
        data = self._buffer + data
        pieces: list[bytes] = []
        at = 0
        while not self.is_done:
            if self._left:
                piece = data[at:at + self._left]
                if not piece:
                    break
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                self._ends = not self._left
            elif self._ends:
                if len(data) - at < 2:
                    break
                if data[at:at + 2] != b"\r\n":
                    raise Invalid("A chunk of the body does not end where it says.")
                at += 2
                self._ends = False
            else:
                end = data.find(b"\n", at)
                if (end if end >= 0 else len(data)) - at > _MAX_LINE:
                    raise Invalid("The line before a chunk is too long.")
                if end < 0:
                    break
                self._line(data[at:end + 1])
                at = end + 1
        self._buffer = b"" if self.is_done else data[at:]
        return pieces, data[at:] if self.is_done else b""

    def _line(self, line: bytes) -> None:
        if not line.endswith(b"\r\n"):
            raise Invalid("A line in the body of chunks does not end with CR and LF.")
        text = line[:-2]
        if self._trailers >= 0:
            self._trailers += len(line)
            self.is_done = not text
            if (text and not _TRAILER.fullmatch(text)) or self._trailers > _MAX_LINE:
                raise Invalid("What follows the last chunk of the body is no header, or too long.")
            return
        found = _CHUNK.fullmatch(text)
        if not found:
            raise Invalid("The size of a chunk is malformed.")
        self._left = int(found[1], 16)
        if not self._left:
            self._trailers = 0
