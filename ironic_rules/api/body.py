"""Request bodies as JSON: limited in size, parsed in turns, and checked more strictly than parsers do.

Bodies of any type are read up to ``[api]max_json_body_size`` or, without credentials, the anonymous limit. orjson
refuses malformed text, NaN, infinities and invalid UTF-8. This module also refuses deep nesting, duplicate keys,
integers beyond 64 bits (orjson makes floats of them), NUL characters, and too many values.

To parse a large body is one call of a C library, which keeps the interpreter's lock: all other threads wait. Such calls
follow each other with a pause, so that a health check, which needs several turns of the lock, waits for one of them at
most.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import orjson

from ironic_rules.exceptions import Invalid, RequestTooLarge
from ironic_rules.httpd import faults
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models import json_text
from ironic_rules.models.documents import JSON
from ironic_rules.models.json_text import Oddity

LOG = logging.getLogger(__name__)

#: Bytes from which on a body is large: smaller ones hold up no other thread for long.
LARGE_CALL = 256 * 1024
#: Seconds after such a call in which there is no other one.
PAUSE_S = 0.02
_one = threading.Lock()


@contextlib.contextmanager
def turn_of_large_call(size: int) -> Iterator[None]:
    """Let the block run with a body of ``size`` bytes: one with a large one at a time, and the others between them."""
    if size <= LARGE_CALL:
        yield
        return
    with _one:
        try:
            yield
        finally:
            time.sleep(PAUSE_S)


#: Maximum number of commas and brackets in a body; a list of as many empty lists takes 100 times its size in memory.
MAX_VALUES = 500_000
#: One value per so many bytes of the limit for bodies without credentials, but never less than so many.
_BYTES_PER_VALUE = 40
_ALWAYS = 50_000
_KEY = re.compile(rb'"[ \t\n\r]*+:')
_LONG_INTEGER = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}+(?![.eE])")
_SPACE = b" \t\n\r"
_NUMBER = b"+-.0123456789eE"
_INT64 = range(-(2**63), 2**64)
_LARGE = float(2**63)
_LOOKED_AT = frozenset({dict, list, float})


def parse(raw: bytes, max_depth: int, *, allow_nul: bool = False, max_values: int = MAX_VALUES) -> Any:
    """Return the JSON value in ``raw``; None if it is empty.

    :param max_depth: maximum number of levels of lists and objects
    :param allow_nul: whether strings may contain ``\\u0000`` (firmware texts do; database columns cannot)
    :raises Invalid: 400, with the position or the reason
    """
    if not raw:
        return None
    value, reason = _load(raw, max_depth, max_values)
    if reason is None and not allow_nul and b"\\u0000" in raw and _has_nul(value):
        reason = "The body contains a NUL character."
    if reason is not None:
        raise Invalid(reason)
    return value


def parse_report(raw: bytes, max_depth: int, max_values: int = MAX_VALUES) -> tuple[JSON, list[Oddity]]:
    """Return the JSON value in ``raw``, and what is odd in it: one odd value must not cost a machine its report.

    Accepts what :func:`json_text.read_tolerantly` does; refuses what endangers the service, as :func:`parse` does.

    :raises Invalid: 400, with the position or the reason
    """
    if not raw:
        return None, []
    value, reason = _load(raw, max_depth, max_values)
    if reason is None:
        return value, []
    try:
        with turn_of_large_call(len(raw)):
            return json_text.read_tolerantly(raw, max_depth)
    except (ValueError, RecursionError) as error:
        raise Invalid(reason) from error


def _load(raw: bytes, max_depth: int, max_values: int) -> tuple[JSON, str | None]:
    """Return the JSON value in ``raw``, and why it is not accepted, or None.

    :raises Invalid: 400, it endangers the service: it is too deep, or has too many values
    """
    # Separators in strings are counted too, which is fast; a body with too many is counted again without its strings.
    if _separators(raw) > max_values and _exceeds(raw, max_values):
        raise Invalid(f"The body has more than {max_values} values.")
    try:
        with turn_of_large_call(len(raw)):
            value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("depth limit"):
            raise Invalid(_too_deep(max_depth)) from error
        return None, f"The body is not valid JSON: {error}."
    keys, levels, has_large = _measure(value, max_depth)
    if levels > max_depth:
        raise Invalid(_too_deep(max_depth))
    # More places that look like the end of a key than keys: a string that begins with a colon, or duplicates.
    if _keys_at_most(raw) != keys and _keys(raw) != keys:
        return value, "The body has an object with duplicate keys."
    if has_large and not _has_64_bits(raw):
        return value, "The body has an integer beyond 64 bits."
    return value, None


def most_values(size: int) -> int:
    """Return how many values a body may have whose sender is not known, where bodies are limited to ``size`` bytes.

    Reports of real machines have a value per 25 bytes or more, and are below 1 MiB: 42,000 values at most.
    """
    return min(MAX_VALUES, max(_ALWAYS, size // _BYTES_PER_VALUE))


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _exceeds(raw: bytes, max_values: int) -> bool:
    values = 0
    for outline in json_text.outlines(raw):
        values += _separators(outline)
        if values > max_values:
            return True
    return False


def _keys_at_most(raw: bytes) -> int:
    """Return how many places of ``raw`` look like the end of a key, inside of strings too."""
    # Faster than _KEY, and no object for each of them.
    return raw.translate(None, _SPACE).count(b'":')


def _keys(raw: bytes) -> int:
    """Return how many keys the objects of valid JSON have."""
    keys, rest = 0, b""
    for outline in json_text.outlines(raw):
        outline = rest + outline
        keys += len(_KEY.findall(outline))
        rest = b'"' if outline.rstrip(_SPACE).endswith(b'"') else b""
    return keys


def _has_64_bits(raw: bytes) -> bool:
    """Return whether all integers of valid JSON have 64 bits at most."""
    rest = b""
    for outline in json_text.outlines(raw):
        outline = rest + outline
        # A number that may continue in the next piece is looked at there.
        numbers = len(outline.rstrip(_NUMBER))
        rest = outline[numbers:]
        if not all(map(_is_int64, _LONG_INTEGER.findall(outline, 0, numbers))):
            return False
    return all(map(_is_int64, _LONG_INTEGER.findall(rest)))


def depth(value: JSON, most: int) -> int:
    """Return how many levels of lists and objects ``value`` has; ``most + 1`` if there are more."""
    return _measure(value, most)[1]


def _too_deep(max_depth: int) -> str:
    return f"The body is nested deeper than {max_depth} levels."


def _measure(value: JSON, max_depth: int) -> tuple[int, int, bool]:
    """Return the number of object keys in ``value``, its depth, and whether a float in it may be a large integer.

    Stops one level below ``max_depth``.
    """
    keys = levels = 0
    has_large = False
    level: list[Any] = [value] if type(value) in _LOOKED_AT else []
    while level and levels <= max_depth:
        below: list[Any] = []
        containers = 0
        for item in level:
            if type(item) is float:
                has_large |= abs(item) >= _LARGE
                continue
            containers += 1
            items = item
            if type(item) is dict:
                keys += len(item)
                items = item.values()
            below += [child for child in items if type(child) in _LOOKED_AT]
        levels += bool(containers)
        level = below
    return keys, levels, has_large


def _is_int64(digits: bytes) -> bool:
    return len(digits) <= 20 and int(digits) in _INT64


def _has_nul(value: JSON) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if "\0" in item:
                return True
        elif isinstance(item, dict):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False


_CHUNK = 64 * 1024
#: Maximum size of a refused body that is read and discarded, as a multiple of the limit.
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
    route = environ.get("ironic_rules.found")
    return route is not None and route.controller is not None and route.controller.route.public


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
