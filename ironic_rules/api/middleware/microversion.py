"""Negotiates the API version: sets ``ironic_rules.version`` for the application, and headers of the reply.

Below ``/compute`` it is a version of the compute API, which has headers of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.api import compute_versions, versions
from ironic_rules.exceptions import NotAcceptable
from ironic_rules.httpd import faults

_BOUNDS = ((versions.HEADER_MIN, versions.MIN_STRING), (versions.HEADER_MAX, versions.MAX_STRING))


class Microversion:
    """Every reply states the supported versions and the one that was used; a 406 states only the former."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        is_compute = compute_versions.is_compute(environ)
        try:
            minor = compute_versions.negotiate(environ) if is_compute else versions.parse(
                environ.get("HTTP_X_OPENSTACK_IRONIC_API_VERSION"), environ.get("HTTP_OPENSTACK_API_VERSION"))
        except NotAcceptable as error:
            fault = faults.from_status(error.code, str(error))
            bounds = () if is_compute else _BOUNDS
            return faults.send(fault._replace(headers=[*fault.headers, *bounds]), environ, start_response)
        environ["ironic_rules.version"] = minor
        added = compute_versions.headers(minor) if is_compute else [*_BOUNDS, (versions.HEADER, f"1.{minor}")]

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += added
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        return self._app(environ, start)
