"""Counts the requests by method, route and status, and their durations."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.api import resource
from ironic_rules.metrics.numbers import Numbers

#: Other methods, which any client can invent, are one.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_OTHER = "other"
#: What no route is found for.
_NO_ROUTE = "none"


class RequestMetrics:
    """Counts when the reply starts. A route is its path with ``{names}``; no label has what the client sent."""

    def __init__(self, app: WSGIApplication, root: resource.Resource, numbers: Numbers) -> None:
        self._app = app
        self._numbers = numbers
        self._routes: dict[Any, str] = {}
        for route in resource.walk_routes(root):
            self._routes.setdefault(route.controller, route.path)  # of two notations of a path, the first

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        began = time.monotonic()

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            found = environ.get("ironic_rules.found")
            route = _NO_ROUTE if found is None else self._routes.get(found.controller, _NO_ROUTE)
            method = environ["REQUEST_METHOD"]
            self._numbers.count("api_requests", method if method in _METHODS else _OTHER, route, status[:3])
            self._numbers.observe("api_request_duration_seconds", time.monotonic() - began, route)
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, start)
