"""Observes which files of a folder dnsmasq has read, with inotify(7). dnsmasq needs no configuration for that.

dnsmasq reads a file when it was renamed into the folder or written in place, all files when it starts or reloads, and
closes them without writing. So a file was read if it was opened after it had been renamed or written, and closed.

The kernel tells the observers of a folder of a rename one after the other. On a busy machine dnsmasq may be told, open
and close the file before this observer is told of the rename; then the file seems to be unread, and nothing reads it
again (seen with 2 of 12,871 files). What is opened while it is being renamed is therefore ``doubtful``.
 Other programs that read files (``grep``) cannot be told from dnsmasq: then a file counts as read
although dnsmasq may need some milliseconds more, and its lines are counted twice, which at worst reloads dnsmasq early.
dnsmasq's own log would also say what it reads, but systemd's journal has it, not a file, and it may lose lines.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import ctypes.util
import os
import select
import struct
from collections.abc import Iterator

_IN_CLOSE_WRITE, _IN_CLOSE_NOWRITE, _IN_OPEN, _IN_MOVED_TO = 0x8, 0x10, 0x20, 0x80
_IN_DELETE, _IN_Q_OVERFLOW = 0x200, 0x4000
_HEADER = struct.Struct("iIII")
_BUFFER = 64 * 1024


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("c") or "libc.so.6", use_errno=True)


class Watch:
    """The events of one folder since it was opened. Not for several threads at a time."""

    def __init__(self) -> None:
        self._file = -1
        #: files that were replaced and not read since
        self.unread: set[str] = set()
        #: files that were opened since they were replaced
        self._opened: set[str] = set()
        #: how often each file was read since ``take_reads`` was called
        self._reads: collections.Counter[str] = collections.Counter()
        #: files that were opened since ``begin`` was called
        self._touched: set[str] = set()
        #: files that may have been read although they are in ``unread``
        self.doubtful: set[str] = set()
        #: whether events were lost, so that ``unread`` is not reliable until all files are read again
        self.lost = False

    @property
    def is_open(self) -> bool:
        """Whether events are received."""
        return self._file >= 0

    def open(self, path: str) -> None:
        """Start observing the folder.

        :raises OSError: the system's limit of such observers is reached (``fs.inotify.max_user_instances``)
        """
        libc = _libc()
        self._file = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        mask = _IN_CLOSE_WRITE | _IN_CLOSE_NOWRITE | _IN_OPEN | _IN_MOVED_TO | _IN_DELETE
        if libc.inotify_add_watch(self._file, os.fsencode(path), mask) < 0:
            error = ctypes.get_errno()
            self.close()
            raise OSError(error, os.strerror(error), path)

    def close(self) -> None:
        """Stop observing."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
        self.unread, self._opened, self.doubtful = set(), set(), set()

    def begin(self) -> None:
        """Files will be renamed: if one of them is opened from now on, that may be the new one."""
        self._drain()
        self._touched, self.doubtful = set(), set()

    def expect(self, names: set[str]) -> None:
        """Take note that these files are to be read again."""
        self._drain()
        self.unread |= names
        self._opened -= names
        self.lost = False

    def wait(self, timeout_s: float) -> None:
        """Wait until an event is there."""
        if self._file >= 0:
            poll = select.poll()  # select() fails with file descriptors above 1023
            poll.register(self._file, select.POLLIN)
            poll.poll(timeout_s * 1000)
            self._drain()

    def look(self) -> None:
        """Take over the events so far."""
        self._drain()

    def take_reads(self) -> collections.Counter[str]:
        """Return how often each file was read since the last call."""
        self._drain()
        reads, self._reads = self._reads, collections.Counter()
        return reads

    def _drain(self) -> None:
        for mask, name in self._events():
            if mask & _IN_Q_OVERFLOW:
                self.lost = True
            elif name.startswith("."):
                continue  # dnsmasq ignores it
            elif mask & _IN_MOVED_TO:
                if name in self._touched:
                    self.doubtful.add(name)
                self.unread.add(name)
                self._opened.discard(name)
            elif mask & _IN_CLOSE_WRITE:  # who has written it, has opened it
                self.unread.add(name)
                self._opened.discard(name)
            elif mask & _IN_DELETE:
                self.unread.discard(name)
            elif mask & _IN_OPEN:
                self._touched.add(name)
                self._opened.add(name)
            elif mask & _IN_CLOSE_NOWRITE and name in self._opened:
                self._opened.discard(name)
                self.unread.discard(name)
                self._reads[name] += 1

    def _events(self) -> Iterator[tuple[int, str]]:
        while self._file >= 0:
            data = b""
            with contextlib.suppress(BlockingIOError):
                data = os.read(self._file, _BUFFER)
            if not data:
                return
            position = 0
            while position < len(data):
                _, mask, _, length = _HEADER.unpack_from(data, position)
                position += _HEADER.size
                yield mask, os.fsdecode(data[position:position + length].rstrip(b"\0"))
                position += length
