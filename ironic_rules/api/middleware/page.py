"""The page at ``/ui/``: the files of ``ironic_rules/ui``, served to everybody.

They hold no data. What the page shows, it requests from the API with the credentials of the person before it.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.httpd import faults

PREFIX = "/ui"
#: Suffix -> media type; a file with another suffix is not served.
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".txt": "text/plain; charset=utf-8",
}
#: Everything comes from this service, nothing is inline, and no other page may show this one within it.
POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'; frame-ancestors 'none'"
_ALWAYS: faults.Headers = [
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    # A browser asks each time whether a file is still the current one: after an upgrade none is of the version before.
    ("Cache-Control", "no-cache"),
    ("Vary", "Accept-Encoding"),
]
#: Smaller files do not become smaller.
_WORTH_COMPRESSING = 512


class WebPage:
    """Replies to ``GET`` and ``HEAD`` below ``/ui``; everything else goes to ``app``.

    The files are read once, when the process starts; a path is a key of a dictionary, so that none leads out of the
    folder.
    """

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app
        self._files = dict(_files(resources.files("ironic_rules") / "ui", PREFIX + "/"))
        self._files[PREFIX + "/"] = self._files[PREFIX + "/index.html"]

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path != PREFIX and not path.startswith(PREFIX + "/"):
            return self._app(environ, start_response)
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            refused = faults.from_status(405, "Files are only read.", allow=("GET", "HEAD"))
            return _send(refused, environ, start_response)
        if path == PREFIX:
            # Relative, so that it is right behind a proxy that serves the API below a path of its own.
            return _send(faults.Fault(308, [("Location", "ui/")], b""), environ, start_response)
        file = self._files.get(path)
        if file is None:
            return _send(faults.from_status(404, "There is no such file."), environ, start_response)
        return _send(file.reply(environ), environ, start_response)


class _File:
    """One file in memory."""

    def __init__(self, media_type: str, content: bytes) -> None:
        self._media_type = media_type
        self._content = content
        self._tag = hashlib.sha256(content).hexdigest()[:32]

    @cached_property
    def _compressed(self) -> bytes | None:
        """The content for clients that accept gzip; None if it would not be smaller. Made when one asks."""
        if len(self._content) < _WORTH_COMPRESSING:
            return None
        compressed = gzip.compress(self._content, mtime=0)
        return compressed if len(compressed) < len(self._content) else None

    def reply(self, environ: WSGIEnvironment) -> faults.Fault:
        compressed = self._compressed if _accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")) else None
        tag = f'"{self._tag}"' if compressed is None else f'"{self._tag}-gzip"'
        headers = [("ETag", tag), ("Content-Type", self._media_type)]
        if compressed is not None:
            headers.append(("Content-Encoding", "gzip"))
        if tag in _tags(environ.get("HTTP_IF_NONE_MATCH", "")):
            return faults.Fault(304, [("ETag", tag)], b"")
        return faults.Fault(200, headers, compressed or self._content)


def _files(folder: Traversable, path: str) -> Any:
    """Yield ``(path, file)`` for everything below ``folder`` that is served."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{path}{entry.name}/")
            continue
        media_type = MEDIA_TYPES.get("." + entry.name.rpartition(".")[2])
        if media_type is not None:
            yield path + entry.name, _File(media_type, entry.read_bytes())


def _accepts_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _tags(header: str) -> set[str]:
    """Return the tags of ``If-None-Match``, without ``W/``: a proxy that compresses makes tags weak."""
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def _send(reply: faults.Fault, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    headers = [*reply.headers, *_ALWAYS]
    if reply.status != 304:
        headers.append(("Content-Length", str(len(reply.body))))
    start_response(faults.status_line(reply.status), headers)
    return [reply.body] if reply.body and environ["REQUEST_METHOD"] == "GET" else []
