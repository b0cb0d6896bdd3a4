"""Replies in the formats of other services: ironic-inspector's below ``/v1/rules``, Nova's below ``/compute``.

Inspector's clients read the supported versions from two headers of ``/`` and ``/v1/rules`` (without them, only 1.0),
and the text of an error from ``{"error": {"message": ...}}``, which is added to the form that clients of Ironic read.

Nova's clients read errors as ``{"itemNotFound": {"code": 404, "message": "…"}}``. All other parts of the API make the
errors of this service; they are translated here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson

from ironic_rules.api import versions
from ironic_rules.exceptions import Invalid, NotAcceptable
from ironic_rules.httpd import faults

HEADER = "X-OpenStack-Ironic-Inspector-API-Version"
#: Minor versions of Inspector's API 1: those that it had in the end.
MIN, MAX = 0, 18
#: The first minor version in which POST replies 201.
CREATED = 6
_BOUNDS = ((HEADER.replace("Version", "Minimum-Version"), f"1.{MIN}"),
           (HEADER.replace("Version", "Maximum-Version"), f"1.{MAX}"))
_ENVIRON = "HTTP_" + HEADER.upper().replace("-", "_")
_VERSION = re.compile(r"1(?:\.(0|[1-9][0-9]?))?")
_ROOTS: tuple[list[str], ...] = ([], ["v1"])


class InspectorClients:
    """Sets ``ironic_rules.inspector_version``: the minor that the client says, None if it says none."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        segments = [segment for segment in environ.get("PATH_INFO", "").split("/", 4) if segment]
        if segments not in _ROOTS and segments[:2] != ["v1", "rules"]:
            return self._app(environ, start_response)
        failed: list[tuple[str, list[tuple[str, str]]]] = []

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            headers += _BOUNDS
            if status[0] in "45":
                failed[:] = [(status, headers)]
                return None
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

        body: Iterable[bytes]
        try:
            environ["ironic_rules.inspector_version"] = version(environ.get(_ENVIRON))
        except (Invalid, NotAcceptable) as error:
            body = faults.send(faults.from_error(error), environ, start)
        else:
            body = self._app(environ, start)
        if not failed:
            return body
        (status, headers), = failed
        whole = _with_both_forms(b"".join(body))
        start_response(status, [
            (name, str(len(whole)) if name == "Content-Length" and whole else value) for name, value in headers])
        return [whole] if whole else []


def version(header: str | None) -> int | None:
    """Return the minor version that a client requests.

    :raises Invalid: 400, it is none;  NotAcceptable: 406, it is not supported
    """
    if header is None:
        return None
    match = _VERSION.fullmatch(header.strip())
    if match is None:
        raise Invalid(f"{HEADER}: expected 1.{MIN} to 1.{MAX}.")
    minor = int(match[1] or 0)
    if minor > MAX:
        raise NotAcceptable(f"Version 1.{minor} of Inspector's API is not supported; 1.{MIN} to 1.{MAX} are.")
    return minor


def _with_both_forms(body: bytes) -> bytes:
    """Return the body of an error with its text where clients of Inspector look for it."""
    try:
        reply = orjson.loads(body)
        error = orjson.loads(reply["error_message"])
        text = error.get("faultstring") or error.get("description") or error.get("title")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        # A body of keystonemiddleware, or the empty one of HEAD: clients show it as it is.
        return body
    return orjson.dumps({**reply, "error": {"message": text}})


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
        if not versions.is_compute_request(environ):
            return self._app(environ, start_response)
        if not self._enabled:
            return faults.send(faults.from_status(404, "There is no such resource."), environ, start_response)
        begun: list[Any] = []

        def begin(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Any:
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
