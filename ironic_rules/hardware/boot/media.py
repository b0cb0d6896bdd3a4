"""Media that machines and BMCs load: URLs of kernels, ramdisks and ISO images, files to download, and floppy images.

URLs are from ``driver_info``, the configuration, or ``instance_info``. Files are below ``[deploy]http_root`` of the
operator's web server. A floppy image has 1.44 MB and a FAT12 file system, for a BMC's virtual floppy disk or USB stick:
https://www.ecma-international.org/publications-and-standards/standards/ecma-107/ defines the format; long names are
Microsoft's extension of it.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_log import log

from ironic_rules.db import clock
from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError, Problem
from ironic_rules.hardware import destinations
from ironic_rules.models import states, urls
from ironic_rules.models.documents import JSON
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

IMAGE_SCHEMES = (*urls.HTTP, "tftp", "ftp", "nfs")
# Paths are written to boot scripts: no white space, quotes, backslashes, and nothing that starts an expansion ($, {).
_PATH = re.compile(r"(?:/[A-Za-z0-9._~:/?&%@+=,-]*)?")
#: Keys of the ramdisk, each with the key that replaces it for rescues.
_RESCUE = {"deploy_kernel": "rescue_kernel", "deploy_ramdisk": "rescue_ramdisk", "deploy_iso": "rescue_iso"}
_RESCUE_STATES = frozenset({states.RESCUING, states.RESCUEWAIT})
MAX_LENGTH = 2048
_NO_URL = "must be a URL without white space, quotes and other characters that have a meaning in boot scripts"


def image_url(conf: cfg.ConfigOpts, task: Task, key: str) -> str:
    """Return the URL in ``driver_info``, else in ``[deploy]``, under ``key``.

    During a rescue, one of ``driver_info`` for rescues precedes them.

    :raises InvalidParameterValue: there is none, it has characters that are not allowed in a boot script, or that in
        ``driver_info`` leads into a denied network
    """
    info, rescue_key = task.node.driver_info, _RESCUE.get(key)
    if task.node.provision_state in _RESCUE_STATES and rescue_key is not None and info.get(rescue_key) is not None:
        key = rescue_key
    value = info.get(key)
    if value is not None:
        return _checked_url(conf, value, f"/driver_info/{key}")
    if not conf.deploy[key]:
        raise InvalidParameterValue(f"Neither driver_info/{key} nor [deploy]{key} is set.")
    return operators_url(conf.deploy[key], f"[deploy]{key}")


def operators_url(value: str, option: str) -> str:
    """Return the URL in ``option``. The operator's own may lead anywhere.

    :raises InvalidParameterValue: it has characters that are not allowed in a boot script
    """
    if (url := _parsed(value)) is None:
        raise InvalidParameterValue(f"{option} {_NO_URL}.")
    return url


def check_rescue(conf: cfg.ConfigOpts, task: Task) -> None:
    """Check the URLs of the ramdisk for rescues.

    :raises InvalidParameterValue: one is wrong, or there is a kernel without a ramdisk, or the other way round
    """
    images = {key: value for key in _RESCUE.values() if (value := task.node.driver_info.get(key)) is not None}
    for key, value in images.items():
        _checked_url(conf, value, f"/driver_info/{key}")
    pair = {"rescue_kernel", "rescue_ramdisk"}
    if len(missing := pair - set(images)) == 1:
        raise InvalidParameterValue(problems=[Problem(f"/driver_info/{min(missing)}", "is missing: there is a "
                                                      f"{min(pair - missing)}")])


def instance_image_url(conf: cfg.ConfigOpts, task: Task, key: str) -> str:
    """Return the URL in ``instance_info`` under ``key``.

    :raises InvalidParameterValue: there is none, it has characters that are not allowed in a boot script, or it leads
        into a denied network
    """
    value, where = task.node.instance_info.get(key), f"/instance_info/{key}"
    if value is None:
        raise InvalidParameterValue(problems=[Problem(where, "is missing")])
    return _checked_url(conf, value, where)


def refuse_with_iso(task: Task) -> None:
    """Refuse fields that contradict the ISO image that an instance boots.

    :raises InvalidParameterValue: with every key of ``instance_info``
    """
    if problems := [Problem(f"/instance_info/{key}", "cannot be used together with boot_iso")
                    for key in ("kernel", "ramdisk", "kernel_append_params") if task.node.instance_info.get(key)]:
        raise InvalidParameterValue(problems=problems)


def _checked_url(conf: cfg.ConfigOpts, value: JSON, where: str) -> str:
    url = _parsed(value)
    if url is None:
        raise InvalidParameterValue(problems=[Problem(where, _NO_URL)])
    destinations.check(conf, {where: url}, IMAGE_SCHEMES)
    return url


def _parsed(value: Any) -> str | None:
    """Return the URL with its scheme and host in their usual form; None if it does not belong in a boot script."""
    try:
        url = urls.parse(value, IMAGE_SCHEMES)
    except ValueError:
        return None
    return str(url) if url.user is None and _PATH.fullmatch(url.rest) and len(value) <= MAX_LENGTH else None


SECTOR = 512
SECTORS = 2880
_FAT_SECTORS = 9
_ROOT_ENTRIES = 224
_ROOT_SECTORS = _ROOT_ENTRIES * 32 // SECTOR
_DATA_START = 1 + 2 * _FAT_SECTORS + _ROOT_SECTORS
_MAX_CONTENT = (SECTORS - _DATA_START) * SECTOR
_LAST = 0xFFF


def floppy_image(label: str, name: str, content: bytes) -> bytes:
    """Return an image with one file.

    :param label: at most 11 ASCII characters
    :param name: of the file, at most 26 ASCII characters
    :raises ValueError: an argument is too long
    """
    volume = label.encode("ascii")
    if len(volume) > 11 or len(name.encode("ascii")) > 26 or not 0 < len(content) <= _MAX_CONTENT:
        raise ValueError("the label, the name or the content is too long for a floppy image")
    volume = volume.ljust(11)
    clusters = -(-len(content) // SECTOR)
    chain = [0xFF0, _LAST, *range(3, clusters + 2), _LAST]
    fat = _packed(chain).ljust(_FAT_SECTORS * SECTOR, b"\0")
    short = _short_name(name)
    root = struct.pack("<11sB20x", volume, 0x08)
    root += b"".join(_long_entries(name, short))
    root += struct.pack("<11sB14xHI", short, 0x20, 2, len(content))
    parts = _boot_sector(volume) + fat + fat + root.ljust(_ROOT_SECTORS * SECTOR, b"\0") + content
    return parts.ljust(SECTORS * SECTOR, b"\0")


def _boot_sector(volume: bytes) -> bytes:
    head = struct.pack(
        "<3s8sHBHBHHBHHHIIBBBI11s8s", b"\xeb\x3c\x90", b"MSWIN4.1", SECTOR, 1, 1, 2, _ROOT_ENTRIES, SECTORS, 0xF0,
        _FAT_SECTORS, 18, 2, 0, 0, 0, 0, 0x29, 0x1F0D15C5, volume, b"FAT12   ")
    return head.ljust(SECTOR - 2, b"\0") + b"\x55\xaa"


def _packed(entries: list[int]) -> bytes:
    """Return 12-bit numbers, two in three bytes."""
    padded = [*entries, 0] if len(entries) % 2 else entries
    return b"".join(
        (low | high << 12).to_bytes(3, "little") for low, high in zip(padded[::2], padded[1::2], strict=True))


def _short_name(name: str) -> bytes:
    stem, _, extension = name.upper().rpartition(".")
    return f"{stem[:6]}~1".ljust(8).encode("ascii") + extension[:3].ljust(3).encode("ascii")


def _long_entries(name: str, short: bytes) -> list[bytes]:
    """Return the directory entries of the long name: 13 characters each, the last ones first."""
    checksum = 0
    for byte in short:
        checksum = ((checksum & 1) << 7 | checksum >> 1) + byte & 0xFF
    units = name.encode("utf-16-le")
    if len(units) % 26:
        units = (units + b"\0\0").ljust(-(-len(units) // 26) * 26, b"\xff")
    pieces = [units[start:start + 26] for start in range(0, len(units), 26)]
    return [
        struct.pack("<B10sBBB12sH4s", number | (0x40 if number == len(pieces) else 0), piece[:10], 0x0F, 0, checksum,
                    piece[10:22], 0, piece[22:])
        for number, piece in reversed(list(enumerate(pieces, 1)))
    ]


#: Older files belong to nodes that were deleted while they waited for their ramdisk.
OLD_S = 7 * 24 * 3600
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
#: Errors of copy_file_range(2) between file systems, and in those that do not have it.
_NO_RANGES = frozenset({errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})


class PublishedFolder:
    """One folder below ``[deploy]http_root``. Safe for concurrent use by threads and processes.

    :param name: of the folder
    :param lasting: whether its files are needed for as long as their nodes are deployed, so that none is too old
    """

    def __init__(self, conf: cfg.ConfigOpts, name: str, *, lasting: bool = False) -> None:
        self._conf = conf
        self._name = name
        self._lasting = lasting

    def url(self, file: str) -> str:
        """Return the URL of a file.

        :raises InvalidParameterValue: ``[deploy]http_url`` is not set
        """
        root = self._conf.deploy.http_url
        if not root:
            raise InvalidParameterValue("[deploy]http_url is not set: the URL at which a web server serves "
                                        "[deploy]http_root.")
        return f"{root.rstrip('/')}/{self._name}/{_checked_name(file)}"

    def written_at(self, file: str) -> datetime.datetime | None:
        """Return when a file was written; None if there is none."""
        try:
            return datetime.datetime.fromtimestamp(int(self._path(file).lstat().st_mtime), datetime.UTC)
        except OSError:
            return None

    def write(self, file: str, content: bytes) -> None:
        """Write a file atomically: a reader sees all of it or the previous one. Files that are too old are removed.

        :raises IronicRulesError: the folder cannot be written
        """
        path = self._path(file)
        try:
            write_atomically(path, content)
            self._remove_old(keep=path)
        except OSError as exc:
            raise IronicRulesError(f"The file {path} cannot be written ([deploy]http_root): {exc.strerror}.") from exc

    def copy(self, file: str, source: Path, offset: int, old: bytes, new: bytes) -> None:
        """Publish a copy of a large file, in which ``new`` replaces ``old`` at ``offset``; as :meth:`write`.

        :raises IronicRulesError: the folder cannot be written, or the file cannot be read or was replaced
        """
        path = self._path(file)
        unfinished = path.with_name(f".new-{path.name}")
        try:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            with source.open("rb") as original, unfinished.open("w+b") as copied:
                _copy_content(original.fileno(), copied.fileno())
                if os.pread(copied.fileno(), len(old), offset) != old:
                    raise IronicRulesError(f"The file {source} was replaced while it was copied: try again.")
                os.pwrite(copied.fileno(), new, offset)
                os.fchmod(copied.fileno(), 0o644)
            os.replace(unfinished, path)
            self._remove_old(keep=path)
        except OSError as exc:
            raise IronicRulesError(f"{path}, a copy of {source}, cannot be made ([deploy]http_root): {exc.strerror}."
                                   ) from exc
        finally:
            unfinished.unlink(missing_ok=True)

    def link(self, file: str, target: Path) -> None:
        """Publish a large file by a symbolic link to it; as :meth:`write`, but the web server must be able to read it.

        :raises IronicRulesError: the folder cannot be written
        """
        path = self._path(file)
        try:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            new = path.with_name(f".new-{path.name}")
            new.unlink(missing_ok=True)
            new.symlink_to(target)
            os.replace(new, path)
            self._remove_old(keep=path)
        except OSError as exc:
            raise IronicRulesError(f"The link {path} cannot be made ([deploy]http_root): {exc.strerror}.") from exc

    def remove(self, file: str) -> None:
        """Remove a file, if it exists.

        :raises IronicRulesError: it cannot be removed
        """
        path = self._path(file)
        try:
            path.unlink(missing_ok=True)
        except OSError as exc:
            raise IronicRulesError(f"The file {path} cannot be removed ([deploy]http_root): {exc.strerror}.") from exc

    def _path(self, file: str) -> Path:
        return Path(self._conf.deploy.http_root).absolute() / self._name / _checked_name(file)

    def _remove_old(self, keep: Path) -> None:
        if self._lasting:
            return
        # By the service's clock, which does not jump with that of the host.
        now = clock.now().timestamp()
        os.utime(keep, (now, now), follow_symlinks=False)
        for path in keep.parent.iterdir():
            # Another process may remove it at the same time.
            with contextlib.suppress(FileNotFoundError):
                if path != keep and path.is_file() and path.lstat().st_mtime < now - OLD_S:
                    LOG.info("Removing %s, which is older than %s days", path, OLD_S // 86400)
                    path.unlink()


def _copy_content(source: int, target: int) -> None:
    """Copy a file. File systems that can share blocks between files (XFS, Btrfs) need no room for the copy."""
    remaining = os.fstat(source).st_size
    try:
        while remaining and (copied := os.copy_file_range(source, target, remaining)):
            remaining -= copied
    except OSError as exc:
        if exc.errno not in _NO_RANGES:
            raise
        while copied := os.sendfile(target, source, None, 1 << 30):
            remaining -= copied


def write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path`` by a file with ``content``, readable by a web server; missing folders are created."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
        os.replace(name, path)
    except BaseException:  # also at the end of the process no half-written file is left
        os.unlink(name)
        raise


def _checked_name(file: str) -> str:
    if not _NAME.fullmatch(file):
        raise IronicRulesError("The name of a published file has characters that are not allowed in a path or URL.")
    return file
