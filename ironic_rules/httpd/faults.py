"""Error replies: the only place that turns an exception into status, headers and body.

``{"error_message": "<JSON text>"}``, as Ironic's clients parse it. The text contains ``faultcode`` (``Client`` or
``Server``), ``faultstring``, ``debuginfo`` and ``message_id``, which the page on messages lists. For input with
problems that have a place it contains ``problems``, each with ``pointer`` and ``text``; for requests that did not reach
a method (unknown path or method, version out of range) ``code``, ``title`` and ``description``, as in Ironic.
"""

from __future__ import annotations

import http
import logging
import traceback
from collections.abc import Iterable
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIEnvironment

import orjson
from oslo_db import exception as db_exc

from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.exceptions import Invalid, IronicRulesError, Unauthorized, Unavailable, outcome_unknown
from ironic_rules.models.documents import JSONObject

LOG = logging.getLogger(__name__)

Headers = list[tuple[str, str]]
CONTENT_TYPE = ("Content-Type", "application/json")
#: Maximum number of characters of an error text: it may repeat what the client sent, which may be megabytes.
_MAX_TEXT = 8192
GENERIC = "The service failed to process this request. The log has the details under the request id."


class Fault(NamedTuple):
    """A complete reply."""

    status: int
    headers: Headers
    body: bytes


def from_error(error: Exception, *, debug: bool = False, changes: bool = False) -> Fault:
    """Return the reply for ``error``, and log it if it is a server error (5xx).

    :param debug: put the traceback into ``debuginfo`` (``[DEFAULT]pecan_debug``)
    :param changes: the request was to change something
    """
    if isinstance(error, DATABASE_AWAY):
        LOG.error("The database cannot be reached: %s", error)
        # A deadlock, and a pool without a free connection, have rolled back, or begun nothing.
        error = outcome_unknown() if changes and isinstance(error, db_exc.DBConnectionError) else Unavailable()
    if isinstance(error, IronicRulesError):
        code, text, message_id = error.code, str(error), error.message_id
    else:
        code, text, message_id = 500, GENERIC, IronicRulesError.message_id
    if code == 500:
        LOG.error("Unexpected error", exc_info=error)
        text = GENERIC
    elif code > 500:
        LOG.warning("%d %s (%s): %s", code, type(error).__name__, message_id, text)
    headers: Headers = [CONTENT_TYPE]
    if isinstance(error, Unavailable):
        headers.append(("Retry-After", str(error.retry_after_s)))
    if isinstance(error, Unauthorized):
        headers.append(("WWW-Authenticate", 'Basic realm="Baremetal API"'))
    debuginfo = "".join(traceback.format_exception(error)) if debug else None
    detail = {**_fault(code, text, debuginfo), "message_id": message_id}
    if isinstance(error, Invalid) and error.problems:
        detail["problems"] = _placed(error)
    return Fault(code, headers, _body(detail))


def from_status(code: int, description: str = "", *, allow: Iterable[str] = ()) -> Fault:
    """Return the reply for a request that was refused before a method was found."""
    headers: Headers = [CONTENT_TYPE]
    if allow:
        headers.append(("Allow", ", ".join(sorted(allow))))
    title = http.HTTPStatus(code).phrase
    return Fault(code, headers, _body({
        **_fault(code, description or title), "message_id": f"IR-{code:04}", "code": code, "title": title,
        "description": description}))


def status_line(code: int) -> str:
    """Return e.g. ``404 Not Found``."""
    return _STATUS_LINES[code]


def send(fault: Fault, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    """Reply to a WSGI request with ``fault``, to HEAD without its body: a client would take that for the next reply."""
    headers = [*fault.headers, ("Content-Length", str(len(fault.body)))]
    start_response(status_line(fault.status), headers)
    return [] if environ.get("REQUEST_METHOD") == "HEAD" else [fault.body]


def _fault(code: int, text: str, debuginfo: str | None = None) -> JSONObject:
    return {"faultcode": "Server" if code >= 500 else "Client", "faultstring": _shortened(text), "debuginfo": debuginfo}


def _placed(error: Invalid) -> list[dict[str, str]]:
    """Return the problems one by one, as many as the text of an error has room for."""
    room, placed = _MAX_TEXT, []
    for problem in error.problems:
        room -= len(problem.where) + len(problem.text) + 2
        if room < 0:
            break
        placed.append({"pointer": problem.where, "text": problem.text})
    return placed


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}… ({len(text)} characters)"


def _body(detail: JSONObject) -> bytes:
    return orjson.dumps({"error_message": orjson.dumps(detail).decode()})


_STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in http.HTTPStatus}
