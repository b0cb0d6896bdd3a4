"""The folder that one dnsmasq watches: reads, writes and compares files, without deciding on their content.

dnsmasq ignores names that begin with a dot, and reads a file as soon as another one was renamed to it. So a file is
written under such a name, and renamed when it is complete. Names are used relative to the opened folder, symbolic links
are never followed, and only files with a name of the filter (:func:`is_ours`) are touched. Files are not synchronized
to the disk: after a power failure the filter reads them before dnsmasq is started, and rewrites those that are wrong.

The files that dnsmasq has read are known by inotify(7), without a configuration of dnsmasq. It reads a file when it was
renamed into the folder or written in place, all files when it starts or reloads, and closes them without writing. So a
file was read if it was opened after it had been renamed or written, and closed.

The kernel tells the observers of a folder of a rename one after the other. On a busy machine dnsmasq may be told, open
and close the file before this observer is told of the rename; then the file seems to be unread, and nothing reads it
again (seen with 2 of 12,871 files). A file that is opened while it is being renamed is therefore ``doubtful``. Other
programs that read files (``grep``) look like dnsmasq: then a file counts as read although dnsmasq may need some
milliseconds more, and its lines are counted twice, which at worst reloads dnsmasq early. dnsmasq's own log would also
say what it reads, but systemd's journal has it, not a file, and it may lose lines.

The running dnsmasq is known by its PID file, and gets a signal to read its files again.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import ctypes.util
import errno
import fcntl
import os
import re
import select
import signal
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from oslo_log import log as logging

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import addresses
from ironic_rules.pxe_filter import plan

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
        #: number of times that each file was read since ``take_reads`` was called
        self._reads: collections.Counter[str] = collections.Counter()
        #: files that were opened since ``begin`` was called
        self._touched: set[str] = set()
        #: files that may have been read although they are in ``unread``
        self.doubtful: set[str] = set()
        #: true if events were lost, so that ``unread`` is not reliable until all files are read again
        self.lost = False

    @property
    def is_open(self) -> bool:
        """True if events are received."""
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
        """Return the number of reads of each file since the last call."""
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


def pid_in(pid_file: str) -> int | None:
    """Return the process id in the file; None if it has none.

    :raises OSError: it cannot be read
    """
    try:
        pid = int(Path(pid_file).read_text(encoding="ascii").strip())
    except ValueError:
        return None
    return pid if pid > 1 else None


def is_dnsmasq(pid: int) -> bool:
    """Return whether the process is a dnsmasq: if one died, its id may now be that of an unrelated process."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "dnsmasq"
    except (OSError, ValueError):  # it has ended
        return False


def signal_dnsmasq(pid_file: str, number: signal.Signals) -> None:
    """Send a signal to the dnsmasq whose process id is in the file, and to no other process.

    If it ends at any moment, its id may become that of another process. So the process is held by a descriptor before
    its name is read, and the descriptor is signalled: what was checked is what gets the signal.

    :raises ProcessLookupError: no dnsmasq runs with that id
    :raises OSError: the file cannot be read, or the process belongs to another user
    """
    missing = ProcessLookupError("no dnsmasq runs with the process id in it")
    pid = pid_in(pid_file)
    if pid is None:
        raise missing
    try:
        process = os.pidfd_open(pid)
    except (ProcessLookupError, OverflowError):
        raise missing from None
    try:
        if not is_dnsmasq(pid):
            raise missing
        signal.pidfd_send_signal(process, number)
    finally:
        os.close(process)


LOG = logging.getLogger(__name__)


def running(pid_file: str) -> int | None:
    """Return the process id in the file, None if no dnsmasq runs with it."""
    try:
        pid = pid_in(pid_file)
    except OSError:
        return None
    return pid if pid is not None and is_dnsmasq(pid) else None


def started(pid_file: str) -> str | None:
    """Return the identity of the running dnsmasq of a PID file; None if none runs."""
    pid = running(pid_file)
    return None if pid is None else identity_of(pid)


def identity_of(pid: int) -> str | None:
    """Return the identity of a running process, its id and its start time; None if it is not running."""
    try:
        # The second field, the name of the program, may contain spaces; the start time is the 20th after it.
        return f"{pid} {Path(f'/proc/{pid}/stat').read_text(errors='replace').rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return None


def reload(pid_file: str) -> bool:
    """Signal the dnsmasq to read its hosts files again; return whether it was signalled."""
    try:
        signal_dnsmasq(pid_file, signal.SIGHUP)
    except OSError as exc:
        LOG.warning("The dnsmasq of %s cannot be signalled to reload: %s", pid_file, exc)
        return False
    return True


_LINE = re.compile(rf"^([0-9a-f]{{2}}(?::[0-9a-f]{{2}}){{5}}|{plan.FORM})(?:,tag:![a-z-]+)?(?:,ignore)?$", re.MULTILINE)
_SHARD = re.compile(r"macs-[0-9a-f]{4}").fullmatch
#: Names of files with single changes of several groups, see ``targets.hostsdir``.
is_override = re.compile(r"changes-[0-9a-f]{8}").fullmatch
_LOCK = ".ironic-pxe-filter.lock"
_NEW = ".ironic-pxe-filter.new"
#: Name of the file with the state of the running filter, for ``--status``.
_STATE = ".ironic-pxe-filter.state"
#: Maximum size in bytes; a larger file was not written by a filter.
_MAX_SIZE = 64 * 1024 * 1024
#: Mode of the files, whatever the umask of this process.
_MODE = 0o644
#: Mode that dnsmasq needs, which does not read as root.
_READABLE = 0o444
#: Names that dnsmasq does not read.
_IGNORED = re.compile(r"\..*|#.*#|#|.*~", re.DOTALL).fullmatch


def addresses_in(text: str) -> list[str]:
    """Return the unicast addresses and the identifiers that have a line in ``text``, the content of a file."""
    refused: set[str] = set()
    return [address for address in _LINE.findall(text) if plan.is_one(address) or plan.usable(address, refused)]


def addresses_of(name: str, text: str) -> list[str]:
    """Return the addresses of a file, including the one that it is named after, even if it is empty or damaged."""
    mac = plan.usable(name.strip(), set())
    return [*addresses_in(text), mac] if mac else addresses_in(text)


def is_ours(name: str) -> bool:
    """Return whether the name is one of a filter's file, in either layout; also with trailing white space."""
    return (name == plan.UNKNOWN_FILE or _SHARD(name) is not None or is_override(name) is not None
            or addresses.is_mac(name.strip()))


class _Written(NamedTuple):
    """A file as it is known: attributes to detect that another process has written it, and its content."""

    inode: int
    size: int
    modified_ns: int
    mode: int
    content: int
    lines: int

    def is_of(self, status: os.stat_result) -> bool:
        """Return whether the file is unchanged."""
        return self[:4] == (status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode)


def _written(status: os.stat_result, content: str) -> _Written:
    return _Written(status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode, hash(content),
                    content.count("\n"))


class Hostsdir:
    """One folder. Methods raise OSError from the system calls."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._folder = -1
        self._lock = -1
        self._identity: tuple[int, int] | None = None
        self._written: dict[str, _Written] = {}
        #: number of lines in the files
        self.lines = 0

    def open(self) -> None:
        """Open the folder and lock it: only one filter writes to it at a time.

        :raises ConfigurationError: it is not a folder, or another filter uses it
        """
        try:
            self._open()
        except BlockingIOError:
            self.close()
            raise ConfigurationError(f"Another ironic-pxe-filter uses {self.path}.") from None
        except OSError as exc:
            self.close()
            raise ConfigurationError(f"[pxe_filter]dhcp_hostsdir cannot be used: {exc}") from exc

    def _open(self) -> None:
        self._folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        status = os.fstat(self._folder)
        self._identity = (status.st_dev, status.st_ino)
        self._lock = os.open(_LOCK, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=self._folder)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise BlockingIOError(exc.errno, "another ironic-pxe-filter uses the folder") from exc
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_NEW, dir_fd=self._folder)  # from a filter that was killed while it was writing

    def close(self) -> None:
        """Close the folder."""
        self._identity = None
        for descriptor in (self._lock, self._folder):
            if descriptor >= 0:
                os.close(descriptor)
        self._lock = self._folder = -1

    def reopen_if_replaced(self) -> bool:
        """Reopen the folder if it was removed and created again, and forget its files; return whether it was."""
        status = os.stat(self.path)
        if (status.st_dev, status.st_ino) == self._identity:
            return False
        self.close()
        self._written.clear()
        self.lines = 0
        try:
            self._open()
        except OSError:
            self.close()  # nothing may be written without the lock
            raise
        return True

    @property
    def names(self) -> set[str]:
        """Names of the files that exist."""
        return set(self._written)

    def lines_of(self, name: str) -> int:
        """Return the number of lines of a file."""
        written = self._written.get(name)
        return 0 if written is None else written.lines

    def peek(self) -> list[tuple[str, str]]:
        """Return the items of ``read``, without locking the folder; an empty list if it cannot be read."""
        try:
            self._folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            return list(self.read())
        except OSError:
            return []
        finally:
            self.close()

    def read(self) -> Iterator[tuple[str, str]]:
        """Yield name and content of every file of the filter."""
        for name in self._names():
            text = self._read(name)
            if text is not None:
                yield name, text

    def changed_by_others(self) -> Iterator[tuple[str, str]]:
        """Yield name and content of the filter's files that others changed, created or (with empty content) deleted."""
        missing = set(self._written)
        with os.scandir(self._folder) as entries:
            for entry in entries:
                written = self._written.get(entry.name)
                missing.discard(entry.name)
                if written is None and not is_ours(entry.name):
                    continue
                status = entry.stat(follow_symlinks=False)
                if written is None or not written.is_of(status):
                    yield entry.name, self._read(entry.name) or ""
        yield from ((name, "") for name in missing)

    def foreign_names(self) -> list[str]:
        """Return the names of files that dnsmasq reads and that are not the filter's."""
        with os.scandir(self._folder) as entries:
            return sorted(entry.name for entry in entries if not is_ours(entry.name) and not _IGNORED(entry.name))

    def forget(self, name: str) -> None:
        """Discard what is known of a file, so that the next ``write`` writes it."""
        self.lines -= self.lines_of(name)
        self._written.pop(name, None)

    def write(self, name: str, content: str) -> bool:
        """Replace the content of the file atomically; return whether it was different."""
        written = self._written.get(name)
        if (written is not None and written.content == hash(content) and written.size == len(content)
                and written.mode & _READABLE == _READABLE):
            return False
        self._remember(name, self._replace(name, content.encode("ascii")), content)
        return True

    def _replace(self, name: str, data: bytes) -> os.stat_result:
        new = self._create()
        try:
            try:
                while data:
                    data = data[os.write(new, data):]
                status = os.fstat(new)
                if stat.S_IMODE(status.st_mode) != _MODE:
                    os.fchmod(new, _MODE)
                    status = os.fstat(new)
            finally:
                os.close(new)
            os.rename(_NEW, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(_NEW, dir_fd=self._folder)
            raise
        return status

    def overwrite(self, name: str, content: str) -> None:
        """Replace the content of an existing file in place.

        For a few bytes, this works on a disk that is full, beyond a quota, and in a folder that must not be written:
        the file has its block already. dnsmasq reads the file when it is closed.
        """
        self._remember(name, self._overwrite(name, content.encode("ascii")), content)

    def _overwrite(self, name: str, data: bytes) -> os.stat_result:
        file = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            if os.pwrite(file, data, 0) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.ftruncate(file, len(data))
            return os.fstat(file)
        finally:
            os.close(file)

    def repeat(self, name: str) -> None:
        """Replace the file by an equal one, so that dnsmasq reads it again."""
        text = self._read(name)
        if text is not None:
            self.forget(name)
            self.write(name, text)

    def write_state(self, text: str) -> None:
        """Leave a line of text for ``peek_state``."""
        data = f"{identity_of(os.getpid())}\n{text}".encode()
        try:
            self._replace(_STATE, data)
        except OSError:
            self._overwrite(_STATE, data)

    def peek_state(self) -> str | None:
        """Return what the filter that uses the folder has written last; None: none is running, or it has not yet."""
        try:
            with open(os.path.join(self.path, _STATE), encoding="utf-8") as reader:
                writer, _, text = reader.read(1000).partition("\n")
        except OSError:
            return None
        pid = writer.partition(" ")[0]
        return text if pid.isdigit() and identity_of(int(pid)) == writer else None

    def _create(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(_NEW, flags, _MODE, dir_fd=self._folder)
        except FileExistsError:
            # It could not be removed before, because the disk was not writable.
            os.unlink(_NEW, dir_fd=self._folder)
            return os.open(_NEW, flags, _MODE, dir_fd=self._folder)

    def remove(self, name: str) -> None:
        """Delete the file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._folder)
        self.forget(name)

    def _names(self) -> list[str]:
        with os.scandir(self._folder) as entries:
            return sorted(entry.name for entry in entries if is_ours(entry.name))

    def _read(self, name: str) -> str | None:
        """Return the content of the file, and remember it; None if it is not a regular file of the filter."""
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
        except OSError:
            return None  # a link, or deleted since; a rename replaces either
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SIZE:
                return None
            with open(file, encoding="ascii", errors="replace", newline="", closefd=False) as reader:
                text = reader.read()
        finally:
            os.close(file)
        self._remember(name, status, text)
        return text

    def _remember(self, name: str, status: os.stat_result, content: str) -> None:
        self.forget(name)
        self._written[name] = _written(status, content)
        self.lines += self._written[name].lines
