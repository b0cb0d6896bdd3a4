"""The access log: one INFO line per request, an id for each (``req-<uuid4>``, in two headers), counts and durations.

A line has client address, method and URL, status, bytes and seconds. Anyone can send requests of ramdisks, which need
no credentials: beyond a number of refused ones, they are only counted.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.api import routes
from ironic_rules.context import RequestContext
from ironic_rules.inspection.journal import Lines
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

_FORM = re.compile(r"req-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


class RequestId:
    """Sets ``openstack.request_id``. An id that the client sends is used only if it has the usual format."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        sent_id = environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        request_id = sent_id if _FORM.fullmatch(sent_id) else f"req-{uuid.uuid4()}"
        environ["openstack.request_id"] = request_id
        # Until the caller is known. Log lines have the thread's last context, which would be another request's.
        RequestContext(request_id=request_id)

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += (("x-openstack-request-id", request_id), ("openstack-request-id", request_id))
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, start)


#: Paths that ramdisks request.
_RAMDISKS = ("/v1/continue_inspection", "/v1/lookup", "/v1/heartbeat")
#: Lines about refused requests of one of these kinds: so many at once, and so many per second on average.
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


#: Other methods, which any client can invent, are one.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_OTHER = "other"
#: Label of requests for which no route is found.
_NO_ROUTE = "none"


class RequestMetrics:
    """Counts when the reply starts. A route is its path with ``{names}``; no label has what the client sent."""

    def __init__(self, app: WSGIApplication, root: routes.Resource, numbers: Numbers) -> None:
        self._app = app
        self._numbers = numbers
        self._routes: dict[Any, str] = {}
        for route in routes.walk_routes(root):
            self._routes.setdefault(route.controller, route.path)  # of two notations of a path, the first

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        began = time.monotonic()

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            match = environ.get("ironic_rules.found")
            route = _NO_ROUTE if match is None else self._routes.get(match.controller, _NO_ROUTE)
            method = environ["REQUEST_METHOD"]
            self._numbers.count("api_requests", method if method in _METHODS else _OTHER, route, status[:3])
            self._numbers.observe("api_request_duration_seconds", time.monotonic() - began, route)
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, start)
