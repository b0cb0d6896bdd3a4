"""Errors below ``/compute`` in Nova's format, ``{"itemNotFound": {"code": 404, "message": "…"}}``.

All other parts of the API make the errors of this service; here they are translated, whichever part they come from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson

from ironic_rules.api import compute_versions
from ironic_rules.httpd import faults

_NAMES = {400: "badRequest", 401: "unauthorized", 403: "forbidden", 404: "itemNotFound", 405: "badMethod",
          409: "conflictingRequest", 413: "overLimit", 429: "overLimit", 503: "serviceUnavailable"}
_OTHER = "computeFault"
_OF_BODY = ("content-length", "content-type")


class ComputeFaults:
    """Translates errors of the compute API; replies 404 if that is not enabled."""

    def __init__(self, app: WSGIApplication, *, enabled: bool) -> None:
        self._app = app
        self._enabled = enabled

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not compute_versions.is_compute(environ):
            return self._app(environ, start_response)
        if not self._enabled:
            return faults.send(faults.from_status(404, "There is no such resource."), environ, start_response)
        begun: list[Any] = []

        def begin(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            begun[:] = [status, headers]

        body = b"".join(self._app(environ, begin))
        status, headers = begun
        code = int(status.partition(" ")[0])
        if code >= 400:
            body = _translated(code, status, body)
            headers = [(name, value) for name, value in headers if name.lower() not in _OF_BODY]
            headers += [faults.CONTENT_TYPE, ("Content-Length", str(len(body)))]
        start_response(status, headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def _translated(code: int, status: str, body: bytes) -> bytes:
    return orjson.dumps({_NAMES.get(code, _OTHER): {"code": code, "message": _text(body) or status.partition(" ")[2]}})


def _text(body: bytes) -> str:
    """Return the text of an error of this service; empty for a reply of another format, such as a library's."""
    try:
        detail = orjson.loads(orjson.loads(body)["error_message"])
        return str(detail.get("faultstring") or detail.get("description") or "")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return ""
