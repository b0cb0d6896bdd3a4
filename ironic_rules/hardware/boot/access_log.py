"""The access log of the web server of ``[deploy]http_url``: what a machine has requested from it while it booted.

Lines have the common or the combined format, in which nginx and Apache write them. At most the last :data:`MOST` bytes
are read; if the file was rotated after the boot began, those of the file before it, ``NAME.1``, too.
"""

from __future__ import annotations

import datetime
import os
import re
import stat
import urllib.parse
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from oslo_config import cfg

from ironic_rules.hardware.base import RamdiskFiles

#: Maximum number of bytes that are read of a file: some ten thousand lines.
MOST = 4 * 2**20
_LINE = re.compile(r'(?P<client>\S+) \S+ \S+ \[(?P<at>[^]]*)\] "(?P<method>[A-Z]+) (?P<path>\S+)[^"]*" '
                   r'(?P<status>\d{3}) (?P<size>\S+)')
#: Answers with the file, with a part of it, and to a client that has it.
_GOOD = frozenset({200, 206, 304})


class Request(NamedTuple):
    """A request with its answer.

    :ivar path: without the query, and without percent-encoding
    :ivar size: bytes of the body; ``-`` if there is none
    """

    client: str
    at: datetime.datetime
    path: str
    status: int
    size: str


def parse(line: str) -> Request | None:
    """Return the request of a line; None if the line has another format."""
    match = _LINE.match(line)
    if match is None:
        return None
    try:
        at = datetime.datetime.strptime(match["at"], "%d/%b/%Y:%H:%M:%S %z")
    except ValueError:
        return None
    return Request(match["client"], at, _plain(match["path"]), int(match["status"]), match["size"])


def tell(conf: cfg.ConfigOpts, files: RamdiskFiles) -> str:
    """Return a sentence about which of the files were requested; empty if no log can say it."""
    paths = {name: below for name, urls in files.urls.items() if (below := _paths_below(conf.deploy.http_url, urls))}
    if not conf.deploy.http_access_log or next(iter(files.urls)) not in paths:
        return ""
    try:
        answers = answers_to(paths, Path(conf.deploy.http_access_log), files.since)
    except OSError as exc:
        return f"The web server's log {conf.deploy.http_access_log} cannot be read: {exc.strerror}."
    requested = [name if answers[name] in _GOOD else f"{name} (answered with {answers[name]})"
                 for name in paths if name in answers]
    missing = [name for name in paths if name not in answers]
    if not requested:
        return f"The web server's log has no request for {' or '.join(missing)}."
    lacking = f", and none for {' or '.join(missing)}" if missing else ""
    return f"The web server's log has requests for {' and '.join(requested)}{lacking}."


def answers_to(paths: Mapping[str, Collection[str]], log: Path, since: datetime.datetime) -> dict[str, int]:
    """Return the status of the last answer for each name; without those of which nothing was requested.

    :param paths: name -> paths. No other machine requests those of the first name; of the others, only requests of the
        same clients count
    :param since: when the boot began
    :raises OSError: the log cannot be read
    """
    content = _content(log, since)
    first, *others = paths
    ends = [path.rpartition("/")[2] for path in paths[first]]
    own = [request for request in _requests(content, rb"^.*(?:%b).*$", ends, since) if request.path in paths[first]]
    if not own:
        return {}
    answers = {first: own[-1].status}
    if others:
        for request in _requests(content, rb"^(?:%b) .*$", {request.client for request in own}, since):
            answers |= {name: request.status for name in others if request.path in paths[name]}
    return answers


def problem(conf: cfg.ConfigOpts) -> str:
    """Return why the log cannot be read; empty if it can be, or there is none."""
    try:
        if conf.deploy.http_access_log:
            _end_of(Path(conf.deploy.http_access_log), 1)
    except OSError as exc:
        return f"[deploy]http_access_log: {conf.deploy.http_access_log}: {exc.strerror}"
    return ""


def _requests(content: bytes, pattern: bytes, words: Collection[str], since: datetime.datetime) -> Iterator[Request]:
    """Yield the requests since then, of lines that fit: of many lines, few are those of one machine."""
    fitting = re.compile(pattern % b"|".join(re.escape(word.encode()) for word in sorted(words)), re.MULTILINE)
    for match in fitting.finditer(content):
        request = parse(match[0].decode(errors="replace"))
        if request is not None and request.at >= since:
            yield request


def _content(log: Path, since: datetime.datetime) -> bytes:
    content = _end_of(log, MOST)
    begin = parse(content[:4096].partition(b"\n")[0].decode(errors="replace"))
    if len(content) < MOST and (begin is None or begin.at > since):
        try:
            content = _end_of(log.with_name(f"{log.name}.1"), MOST) + content
        except OSError:
            return content  # there is none, or it is not for this process
    return content


def _end_of(log: Path, most: int) -> bytes:
    """Return the last bytes of a file.

    :raises OSError: it cannot be read, or it is no file: reading a pipe would wait
    """
    handle = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no regular file", str(log))
        file.seek(max(0, status.st_size - most))
        return file.read(most)


def _paths_below(root: str | None, urls: Collection[str]) -> set[str]:
    """Return the paths of those URLs that are on the same server as ``root``."""
    server = urllib.parse.urlsplit(root or "").netloc
    return {_plain(parts.path) for parts in map(urllib.parse.urlsplit, urls) if server and parts.netloc == server}


def _plain(path: str) -> str:
    return urllib.parse.unquote(path.partition("?")[0])
