"""A request while it arrives: its first line and headers, checked strictly before anything else, and its body.

Servers and proxies that understand a request differently are how one request becomes two (RFC 9112, section 11.2). So
everything that could be understood in two ways is refused: the connection ends after the reply. A body is in memory if
it is short, in a temporary file otherwise.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import threading
from typing import IO, NamedTuple

from ironic_rules.exceptions import Invalid

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_FIELD = rb"(" + _TOKEN + rb"):[ \t]*+([^\x00-\x08\x0a-\x1f\x7f]*+)\r\n"
_LINE = re.compile(_TOKEN + rb" [!-~\x80-\xff]++ HTTP/1\.[01]\r\n")
# The repeat of headers is not possessive: before 3.11.5, CPython matches such repeats of several characters wrongly.
# A header matches in one way only, so that going back takes linear time.
_HEAD = re.compile(_LINE.pattern + rb"(?:" + _FIELD + rb")*\r\n")
_FIELDS = re.compile(_FIELD)
_HOST = re.compile(rb"(?:[0-9A-Za-z._~%!$&'()*+,;=-]++|\[[0-9A-Za-z:._%-]++\])(?::[0-9]{0,5})?")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*+)(.*+)", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,18}")

#: Headers whose repetitions are one list (RFC 9110); of others the last one counts.
_LISTS = frozenset(
    (b"Accept", b"Accept-Charset", b"Accept-Encoding", b"Accept-Language", b"Accept-Ranges", b"Allow",
     b"Cache-Control", b"Connection", b"Content-Encoding", b"Content-Language", b"Expect", b"If-Match",
     b"If-None-Match", b"Pragma", b"Te", b"Trailer", b"Upgrade", b"Vary", b"Via", b"Warning"))
_ONCE = frozenset((b"Host", b"Content-Length", b"Transfer-Encoding"))


class Head(NamedTuple):
    """``length`` is None for a body in chunks; ``headers`` by name in title case, without ``Expect``.

    The target in ``line`` is a path that begins with one slash, also if the client sent a URL. With two, parsers of
    URLs take what follows for a host, and fail if it is none.
    """

    line: bytes
    headers: dict[bytes, bytes]
    length: int | None
    expects_continue: bool


def read(head: bytes) -> Head:
    """Return what ``head`` says, from the first line to the empty one.

    Headers with an underscore in their name are left out: for the application they would be those with a hyphen, which
    proxies may set or remove.

    :raises Invalid: 400, with the reason
    """
    if not _HEAD.fullmatch(head):
        raise Invalid(_reason(head))
    end = head.index(b"\r\n") + 2
    headers: dict[bytes, bytes] = {}
    for name, value in _FIELDS.findall(head, end):
        if b"_" in name:
            continue
        key = name.title()
        if key in headers:
            if key in _ONCE:
                raise Invalid(f"The request has more than one header {key.decode()}.")
            if key in _LISTS:
                headers[key] += b", " + value.rstrip(b" \t")
                continue
        headers[key] = value.rstrip(b" \t")
    line = head[:end]
    _check_host(headers, line)
    line = _with_path(headers, line)
    return Head(line, headers, _length(headers, line), headers.pop(b"Expect", b"").lower() == b"100-continue")


def _check_host(headers: dict[bytes, bytes], line: bytes) -> None:
    host = headers.get(b"Host")
    if host is None:
        if line.endswith(b"1\r\n"):
            raise Invalid("The request has no header Host.")
    elif not _HOST.fullmatch(host):
        raise Invalid("The header Host is not a name or an address, with or without a port.")


def _with_path(headers: dict[bytes, bytes], line: bytes) -> bytes:
    """Return the first line with a path for a URL, whose host takes the place of the header's (RFC 9112 §3.2.2)."""
    method, target, version = line.split(b" ")
    if target.startswith(b"/"):
        return b" ".join((method, b"/" + target.lstrip(b"/"), version))
    if (method == b"CONNECT" and _HOST.fullmatch(target)) or (method, target) == (b"OPTIONS", b"*"):
        return line
    match = _ABSOLUTE.fullmatch(target)
    if not match:
        raise Invalid("The target of the request is neither a path nor a URL with http or https.")
    if not _HOST.fullmatch(match[1]):
        raise Invalid("The URL in the first line has no host that is a name or an address, with or without a port.")
    headers[b"Host"] = match[1]
    return b" ".join((method, b"/" + match[2].lstrip(b"/"), version))


def _length(headers: dict[bytes, bytes], line: bytes) -> int | None:
    coding, length = headers.get(b"Transfer-Encoding"), headers.get(b"Content-Length")
    if coding is not None:
        if length is not None:
            raise Invalid("The request has both Content-Length and Transfer-Encoding.")
        if coding.lower() != b"chunked" or line.endswith(b"0\r\n"):
            raise Invalid("Of transfer codings, the service has chunked only, in HTTP/1.1.")
        return None
    if length is None:
        return 0
    if not _LENGTH.fullmatch(length):
        raise Invalid("Content-Length is not a number, or is too large.")
    return int(length)


def _reason(head: bytes) -> str:
    if not _LINE.match(head):
        return "The first line of the request is not METHOD PATH HTTP/1.1."
    for number, line in enumerate(head.split(b"\r\n")[1:-2], 1):
        if line[:1] in b" \t":
            return f"Header {number} begins with a space: headers that continue on the next line are refused."
        if not _FIELDS.fullmatch(line + b"\r\n"):
            return f"Header {number} is not a name, a colon and a text without control characters."
    return "The headers contain control characters."


#: Maximum bytes of a body that is kept in memory.
IN_MEMORY = 256 * 1024
#: Maximum bytes of the line before a chunk, and of everything after the last one.
_MAX_LINE = 4096
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_TRAILER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*")


class Room:
    """The bytes that the bodies of all requests take, in all and in memory. Used by several threads."""

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
        """The number of missing bytes, if it is known."""
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
        """Return the file from which the body is read."""
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
        match = _CHUNK.fullmatch(text)
        if not match:
            raise Invalid("The size of a chunk is malformed.")
        self._left = int(match[1], 16)
        if not self._left:
            self._trailers = 0
