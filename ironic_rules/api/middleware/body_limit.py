"""Reads the body, whatever its type, up to ``[api]max_json_body_size`` or, without credentials, the anonymous limit."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.exceptions import Invalid, RequestTooLarge
from ironic_rules.httpd import faults
from ironic_rules.metrics.numbers import Numbers

LOG = logging.getLogger(__name__)

_CHUNK = 64 * 1024
#: How much of a refused body is read and discarded, as a multiple of the limit.
_MOST_DISCARDED = 4
_MOST_DIGITS = 18


class BodyLimit:
    """Stores the bytes in ``ironic_rules.body``. The limit applies to the bytes read, so also to chunked bodies."""

    def __init__(self, app: WSGIApplication, limit: int, anonymous_limit: int | None = None,
                 numbers: Numbers | None = None) -> None:
        self._app = app
        self._limit = limit
        self._numbers = numbers or Numbers()
        self._anonymous_limit = limit if anonymous_limit is None else min(limit, anonymous_limit)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            environ["ironic_rules.body"] = _read(environ, self._anonymous_limit if _is_public(environ) else self._limit)
        except (RequestTooLarge, Invalid) as error:
            reason = "too large" if isinstance(error, RequestTooLarge) else "unreadable"
            self._numbers.count("api_bodies_refused", reason)
            return faults.send(faults.from_error(error), environ, start_response)
        except (OSError, ValueError) as error:
            # Raised by servers for malformed chunks, and for a client that has disconnected or is too slow.
            LOG.info("The body of a request could not be read: %s", error)
            self._numbers.count("api_bodies_refused", "unreadable")
            return faults.send(faults.from_error(Invalid("The body could not be read.")), environ, start_response)
        try:
            return self._app(environ, start_response)
        finally:
            # pecan's request and the environment know each other: the body would stay until cycles are collected.
            del environ["ironic_rules.body"]


def _is_public(environ: WSGIEnvironment) -> bool:
    found = environ.get("ironic_rules.found")
    return found is not None and found.controller is not None and found.controller.route.public


def _read(environ: WSGIEnvironment, limit: int) -> bytes:
    chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower() or (
        environ.get("wsgi.input_terminated") and not environ.get("CONTENT_LENGTH"))
    declared = environ.get("CONTENT_LENGTH") or "0"
    if not declared.isascii() or not declared.isdecimal() or len(declared) > _MOST_DIGITS:
        raise Invalid("Content-Length is not a number, or is too large.")
    length = None if chunked else int(declared)
    stream = environ["wsgi.input"]
    if length is not None and length > limit:
        _discard(stream, min(length, _MOST_DISCARDED * limit))
        raise RequestTooLarge(limit=limit)
    # One byte more than allowed distinguishes a body that is too large from one of exactly the allowed size.
    body = _read_up_to(stream, limit + 1 if length is None else length)
    if length is None and len(body) > limit:
        _discard(stream, _MOST_DISCARDED * limit)
        raise RequestTooLarge(limit=limit)
    if length is not None and len(body) < length:
        raise Invalid("The body is shorter than its Content-Length.")
    return body


def _read_up_to(stream: Any, size: int) -> bytes:
    chunks: list[bytes] = []
    while size > 0 and (chunk := stream.read(size)):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _discard(stream: Any, size: int) -> None:
    """Discard up to ``size`` bytes: a client that is still sending when the connection closes never sees the reply."""
    while size > 0 and (chunk := stream.read(min(size, _CHUNK))):
        size -= len(chunk)
