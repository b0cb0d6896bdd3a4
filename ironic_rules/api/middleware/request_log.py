"""One INFO line per request: client address, method and URL, status, bytes, seconds."""

from __future__ import annotations

import logging
import time
from typing import Any

from ironic_rules.text import printable

LOG = logging.getLogger(__name__)


class RequestLog:
    """Logs when the reply starts. Control characters in what the client sent are escaped."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if not LOG.isEnabledFor(logging.INFO):
            return self._app(environ, start_response)
        started = time.monotonic()

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            length = next((value for name, value in headers if name == "Content-Length"), "-")
            LOG.info('%s "%s %s" status: %s len: %s time: %.4f', environ.get("REMOTE_ADDR", "-"),
                     environ["REQUEST_METHOD"], _target(environ), status[:3], length, time.monotonic() - started)
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, start)


def _target(environ: dict[str, Any]) -> str:
    query = environ.get("QUERY_STRING")
    target = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "") + (f"?{query}" if query else "")
    return printable(target, 1024)
