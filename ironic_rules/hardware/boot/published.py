"""Files that machines and BMCs download from the operator's web server: below ``[deploy]http_root``."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from ironic_rules.db import clock
from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError

LOG = log.getLogger(__name__)

#: Older files belong to nodes that were deleted while they waited for their ramdisk.
OLD_S = 7 * 24 * 3600
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


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
        return f"{root.rstrip('/')}/{self._name}/{_checked(file)}"

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
        return Path(self._conf.deploy.http_root).absolute() / self._name / _checked(file)

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


def _checked(file: str) -> str:
    if not _NAME.fullmatch(file):
        raise IronicRulesError("The name of a published file has characters that are not allowed in a path or URL.")
    return file
