"""The folder that one dnsmasq watches: reads, writes and compares files, without deciding on their content.

dnsmasq ignores names that begin with a dot, and reads a file as soon as another one was renamed to it. So a file is
written under such a name, and renamed when it is complete. Names are used relative to the opened folder, symbolic links
are never followed, and only files with a name of the filter (:func:`is_ours`) are touched.

Files are not synchronised to the disk: after a power failure the filter reads them before dnsmasq is started, and
rewrites those that are wrong.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import addresses
from ironic_rules.pxe_filter import dnsmasq, identifiers, plan

_LINE = re.compile(rf"^([0-9a-f]{{2}}(?::[0-9a-f]{{2}}){{5}}|{identifiers.FORM})(?:,tag:![a-z-]+)?(?:,ignore)?$",
                   re.MULTILINE)
_SHARD = re.compile(r"macs-[0-9a-f]{4}").fullmatch
#: Names of files with single changes of several groups (``overrides``).
is_override = re.compile(r"changes-[0-9a-f]{8}").fullmatch
_LOCK = ".ironic-pxe-filter.lock"
_NEW = ".ironic-pxe-filter.new"
#: What the running filter says about itself, for ``--status``.
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
    return [found for found in _LINE.findall(text) if identifiers.is_one(found) or plan.usable(found, refused)]


def addresses_of(name: str, text: str) -> list[str]:
    """Return the addresses of a file, including the one that it is named after, even if it is empty or damaged."""
    mac = plan.usable(name.strip(), set())
    return [*addresses_in(text), mac] if mac else addresses_in(text)


def is_ours(name: str) -> bool:
    """Return whether the name is one of a filter's file, in either layout; also with trailing white space."""
    return (name == plan.UNKNOWN_FILE or _SHARD(name) is not None or is_override(name) is not None
            or addresses.is_mac(name.strip()))


class _Written(NamedTuple):
    """What is known of a file: attributes to detect that another process has written it, and its content."""

    inode: int
    size: int
    modified_ns: int
    mode: int
    content: int
    lines: int

    def is_of(self, found: os.stat_result) -> bool:
        """Return whether the file is unchanged."""
        return self[:4] == (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)


def _written(found: os.stat_result, content: str) -> _Written:
    return _Written(found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, hash(content),
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
        found = os.fstat(self._folder)
        self._identity = (found.st_dev, found.st_ino)
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
        found = os.stat(self.path)
        if (found.st_dev, found.st_ino) == self._identity:
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
        known = self._written.get(name)
        return 0 if known is None else known.lines

    def peek(self) -> list[tuple[str, str]]:
        """Return what ``read`` yields, without locking the folder; an empty list if it cannot be read."""
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
                known = self._written.get(entry.name)
                missing.discard(entry.name)
                if known is None and not is_ours(entry.name):
                    continue
                found = entry.stat(follow_symlinks=False)
                if known is None or not known.is_of(found):
                    yield entry.name, self._read(entry.name) or ""
        yield from ((name, "") for name in missing)

    def foreign_names(self) -> list[str]:
        """Return the names of files that dnsmasq reads and that are not the filter's."""
        with os.scandir(self._folder) as entries:
            return sorted(entry.name for entry in entries
                          if not is_ours(entry.name) and not _IGNORED(entry.name))

    def forget(self, name: str) -> None:
        """Discard what is known of a file, so that the next ``write`` writes it."""
        self.lines -= self.lines_of(name)
        self._written.pop(name, None)

    def write(self, name: str, content: str) -> bool:
        """Replace the content of the file atomically; return whether it was different."""
        known = self._written.get(name)
        if (known is not None and known.content == hash(content) and known.size == len(content)
                and known.mode & _READABLE == _READABLE):
            return False
        self._remember(name, self._replace(name, content.encode("ascii")), content)
        return True

    def _replace(self, name: str, data: bytes) -> os.stat_result:
        new = self._create()
        try:
            try:
                while data:
                    data = data[os.write(new, data):]
                found = os.fstat(new)
                if stat.S_IMODE(found.st_mode) != _MODE:
                    os.fchmod(new, _MODE)
                    found = os.fstat(new)
            finally:
                os.close(new)
            os.rename(_NEW, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(_NEW, dir_fd=self._folder)
            raise
        return found

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
        data = f"{dnsmasq.identity_of(os.getpid())}\n{text}".encode()
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
        return text if pid.isdigit() and dnsmasq.identity_of(int(pid)) == writer else None

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
            return None  # a link, or deleted meanwhile; a rename replaces either
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_SIZE:
                return None
            with open(file, encoding="ascii", errors="replace", newline="", closefd=False) as reader:
                text = reader.read()
        finally:
            os.close(file)
        self._remember(name, found, text)
        return text

    def _remember(self, name: str, found: os.stat_result, content: str) -> None:
        self.forget(name)
        self._written[name] = _written(found, content)
        self.lines += self._written[name].lines
