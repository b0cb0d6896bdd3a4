"""The first line and the headers of a request, checked strictly before anything else looks at them.

Servers and proxies that understand a request differently are how one request becomes two (RFC 9112, section 11.2). So
everything that could be understood in two ways is refused: the connection ends after the reply.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ironic_rules.exceptions import Invalid

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_FIELD = rb"(" + _TOKEN + rb"):[ \t]*+([^\x00-\x08\x0a-\x1f\x7f]*+)\r\n"
_LINE = re.compile(_TOKEN + rb" [!-~\x80-\xff]++ HTTP/1\.[01]\r\n")
# The repeat of headers is not possessive: before 3.11.5, CPython matches such repeats of several characters wrongly.
# A header matches in one way only, so that going back takes linear time.
_HEAD = re.compile(_LINE.pattern + rb"(?:" + _FIELD + rb")*\r\n")
_FIELDS = re.compile(_FIELD)
_HOST = re.compile(rb"(?:[0-9A-Za-z._~%!$&'()*+,;=-]++|\[[0-9A-Za-z:._%-]++\])(?::[0-9]{0,5})?")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*+)(.*+)", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,18}")

#: Headers whose repetitions are one list (RFC 9110); of others the last one counts.
_LISTS = frozenset(
    (b"Accept", b"Accept-Charset", b"Accept-Encoding", b"Accept-Language", b"Accept-Ranges", b"Allow",
     b"Cache-Control", b"Connection", b"Content-Encoding", b"Content-Language", b"Expect", b"If-Match",
     b"If-None-Match", b"Pragma", b"Te", b"Trailer", b"Upgrade", b"Vary", b"Via", b"Warning"))
_ONCE = frozenset((b"Host", b"Content-Length", b"Transfer-Encoding"))


class Head(NamedTuple):
    """``length`` is None for a body in chunks; ``headers`` by name in title case, without ``Expect``.

    The target in ``line`` is a path that begins with one slash, also if the client sent a URL. With two, parsers of
    URLs take what follows for a host, and fail if it is none.
    """

    line: bytes
    headers: dict[bytes, bytes]
    length: int | None
    expects_continue: bool


def read(head: bytes) -> Head:
    """Return what ``head`` says, from the first line to the empty one.

    Headers with an underscore in their name are left out: for the application they would be those with a hyphen, which
    proxies may set or remove.

    :raises Invalid: 400, with the reason
    """
    if not _HEAD.fullmatch(head):
        raise Invalid(_reason(head))
    end = head.index(b"\r\n") + 2
    headers: dict[bytes, bytes] = {}
    for name, value in _FIELDS.findall(head, end):
        if b"_" in name:
            continue
        key = name.title()
        if key in headers:
            if key in _ONCE:
                raise Invalid(f"The request has more than one header {key.decode()}.")
            if key in _LISTS:
                headers[key] += b", " + value.rstrip(b" \t")
                continue
        headers[key] = value.rstrip(b" \t")
    line = head[:end]
    _check_host(headers, line)
    line = _with_path(headers, line)
    return Head(line, headers, _length(headers, line), headers.pop(b"Expect", b"").lower() == b"100-continue")


def _check_host(headers: dict[bytes, bytes], line: bytes) -> None:
    host = headers.get(b"Host")
    if host is None:
        if line.endswith(b"1\r\n"):
            raise Invalid("The request has no header Host.")
    elif not _HOST.fullmatch(host):
        raise Invalid("The header Host is not a name or an address, with or without a port.")


def _with_path(headers: dict[bytes, bytes], line: bytes) -> bytes:
    """Return the first line with a path for a URL, whose host takes the place of the header's (RFC 9112 §3.2.2)."""
    method, target, version = line.split(b" ")
    if target.startswith(b"/"):
        return b" ".join((method, b"/" + target.lstrip(b"/"), version))
    if (method == b"CONNECT" and _HOST.fullmatch(target)) or (method, target) == (b"OPTIONS", b"*"):
        return line
    found = _ABSOLUTE.fullmatch(target)
    if not found:
        raise Invalid("The target of the request is neither a path nor a URL with http or https.")
    if not _HOST.fullmatch(found[1]):
        raise Invalid("The URL in the first line has no host that is a name or an address, with or without a port.")
    headers[b"Host"] = found[1]
    return b" ".join((method, b"/" + found[2].lstrip(b"/"), version))


def _length(headers: dict[bytes, bytes], line: bytes) -> int | None:
    coding, length = headers.get(b"Transfer-Encoding"), headers.get(b"Content-Length")
    if coding is not None:
        if length is not None:
            raise Invalid("The request has both Content-Length and Transfer-Encoding.")
        if coding.lower() != b"chunked" or line.endswith(b"0\r\n"):
            raise Invalid("Of transfer codings, the service has chunked only, in HTTP/1.1.")
        return None
    if length is None:
        return 0
    if not _LENGTH.fullmatch(length):
        raise Invalid("Content-Length is not a number, or is too large.")
    return int(length)


def _reason(head: bytes) -> str:
    if not _LINE.match(head):
        return "The first line of the request is not METHOD PATH HTTP/1.1."
    for number, line in enumerate(head.split(b"\r\n")[1:-2], 1):
        if line[:1] in b" \t":
            return f"Header {number} begins with a space: headers that continue on the next line are refused."
        if not _FIELDS.fullmatch(line + b"\r\n"):
            return f"Header {number} is not a name, a colon and a text without control characters."
    return "The headers contain control characters."
