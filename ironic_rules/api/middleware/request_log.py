"""One INFO line per request: client address, method and URL, status, bytes, seconds.

Requests of ramdisks need no credentials: of those that are refused, anyone can send as many as they like, and beyond a
number of them they are only counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.inspection.refusals import Lines
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: What ramdisks request.
_RAMDISKS = ("/v1/continue_inspection", "/v1/lookup", "/v1/heartbeat")
#: Lines about refused requests of one of these kinds: so many at once, and so many per second in the long run.
REFUSED_AT_ONCE = 100
REFUSED_PER_SECOND = 0.5
_LEAST_REFUSED = "400"


class RequestLog:
    """Logs when the reply starts. Control characters in what the client sent are escaped."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app
        self._refused = {kind: Lines(REFUSED_AT_ONCE, REFUSED_PER_SECOND) for kind in _RAMDISKS}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not LOG.isEnabledFor(logging.INFO):
            return self._app(environ, start_response)
        started = time.monotonic()

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            unlogged = self._unlogged(environ, status)
            if unlogged is not None:
                length = next((value for name, value in headers if name == "Content-Length"), "-")
                LOG.info('%s "%s %s" status: %s len: %s time: %.4f%s', environ.get("REMOTE_ADDR", "-"),
                         environ["REQUEST_METHOD"], _target(environ), status[:3], length, time.monotonic() - started,
                         f" ({unlogged} refused ones were not logged since the last such line)" if unlogged else "")
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, start)

    def _unlogged(self, environ: WSGIEnvironment, status: str) -> int | None:
        """Return how many lines were withheld before this one; None if it is withheld as well."""
        if status[:3] >= _LEAST_REFUSED and (path := environ.get("PATH_INFO", "")).startswith(_RAMDISKS):
            return next(lines for kind, lines in self._refused.items() if path.startswith(kind)).take()
        return 0


def _target(environ: WSGIEnvironment) -> str:
    query = environ.get("QUERY_STRING")
    target = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "") + (f"?{query}" if query else "")
    return printable(target, 1024)
