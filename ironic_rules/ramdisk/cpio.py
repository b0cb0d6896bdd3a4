"""Archives of initramfs: cpio's format "newc", made from a tar archive.

https://docs.kernel.org/driver-api/early-userspace/buffer-format.html defines it. Owners, device nodes and links come
from the tar archive, so no file is extracted, and it needs no root. The same archive always gives the same bytes.
"""

from __future__ import annotations

import stat
import tarfile
from collections.abc import Callable
from typing import BinaryIO

_TYPES = {tarfile.REGTYPE: stat.S_IFREG, tarfile.AREGTYPE: stat.S_IFREG, tarfile.LNKTYPE: stat.S_IFREG,
          tarfile.SYMTYPE: stat.S_IFLNK, tarfile.DIRTYPE: stat.S_IFDIR, tarfile.CHRTYPE: stat.S_IFCHR,
          tarfile.BLKTYPE: stat.S_IFBLK, tarfile.FIFOTYPE: stat.S_IFIFO}
_TRAILER = "TRAILER!!!"
_CHUNK = 1 << 20


def from_tar(archive: tarfile.TarFile, out: BinaryIO, epoch: int, keep: Callable[[str], bool]) -> None:
    """Write the members of a tar archive.

    :param epoch: the latest time of a member, in seconds since 1970
    :param keep: whether a member's path, which begins with ``/``, is written
    """
    links = _hard_links(archive)
    numbers: dict[str, int] = {}
    for number, member in enumerate(archive, 1):
        path = absolute(member.name)
        if path == "/" or not keep(path):
            continue
        first = absolute(member.linkname) if member.islnk() else path
        # The kernel links what has the same number; the first one has the content.
        inode = numbers.setdefault(first, number)
        data = member.linkname.encode() if member.issym() else b""
        size = member.size if member.isreg() and not member.islnk() else len(data)
        mode = stat.S_IMODE(member.mode) | _TYPES[member.type]
        _header(out, path, inode, mode, (member.uid, member.gid), 1 + links.get(first, 0),
                min(int(member.mtime), epoch), size, (member.devmajor, member.devminor))
        if data:
            out.write(data)
        elif size:
            content = archive.extractfile(member)
            assert content is not None
            while chunk := content.read(_CHUNK):
                out.write(chunk)
        out.write(b"\0" * (-size % 4))
    _header(out, "/" + _TRAILER, 0, 0, (0, 0), 1, 0, 0, (0, 0))


def absolute(name: str) -> str:
    """Return the path of a member's name, such as ``./etc/fstab``."""
    return "/" + name.removeprefix(".").strip("/")


def _hard_links(archive: tarfile.TarFile) -> dict[str, int]:
    """Return the number of further names of files that have several."""
    counts: dict[str, int] = {}
    for member in archive:
        if member.islnk():
            counts[absolute(member.linkname)] = counts.get(absolute(member.linkname), 0) + 1
    return counts


def _header(out: BinaryIO, path: str, inode: int, mode: int, owner: tuple[int, int], links: int, mtime: int, size: int,
            device: tuple[int, int]) -> None:
    name = path.lstrip("/").encode() + b"\0"
    fields = (inode, mode, *owner, links, mtime, size, 0, 0, *device, len(name), 0)
    header = b"070701" + b"".join(b"%08x" % value for value in fields) + name
    out.write(header + b"\0" * (-len(header) % 4))
