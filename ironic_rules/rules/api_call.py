"""The ``api-call`` action: an HTTP GET to a host that the operator has allowed.

The engine has no network: the request itself is a function that ``GATE.open`` gets at start, together with the
hosts. The action's arguments ask the same gate, so that a call that could not be made is refused with the rule.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models.task import Task
from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.errors import ActionError, OperandError
from ironic_rules.rules.kinds import Kind

MAX_URL = 4096
MAX_TIMEOUT_S = 60
#: How many requests a rule may make for one node; the node stays locked meanwhile.
MAX_REQUESTS = 16

#: Sends a request (URL, headers, timeout in seconds) and returns the status of the answer. It follows no redirect.
#: Raises ActionError, with a text that has nothing of the URL but its host.
HttpGet = Callable[[str, Mapping[str, str], float], int]

_PORTS = {"http": 80, "https": 443}
_HOST = r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+"
# Strict, so that no other reader of the URL can find another host in it: no user, no backslash, no white space.
_URL = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST})(?::(?P<port>[0-9]{{1,5}}))?(?P<rest>[/?].*)?",
                  re.ASCII | re.IGNORECASE | re.DOTALL)  # not ASCII, and a long s were an s
_ALLOWED = re.compile(rf"(?P<host>{_HOST}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)(?::(?P<port>[0-9]{{1,5}}))?")
_REST = re.compile(r"[^\s\\#\x00-\x1f\x7f]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
#: They say where a request goes or where it ends.
_RESERVED_HEADERS = frozenset({"connection", "content-length", "expect", "host", "te", "transfer-encoding", "upgrade"})


class Gate:
    """Which hosts may be called, and how. Closed until ``open``; opened once, at start."""

    def __init__(self) -> None:
        self._allowed: frozenset[tuple[str, int | None]] = frozenset()
        self._get: HttpGet | None = None

    def open(self, allowed: Iterable[str], get: HttpGet) -> None:
        """Allow calls, by ``get``, to these hosts and no others.

        :param allowed: ``host`` (on the scheme's own port) or ``host:port``; an IPv6 address with a port in brackets
        :raises ConfigurationError: with every entry that is neither
        """
        entries = list(allowed)
        bad = [entry for entry in entries if _entry(entry) is None]
        if bad:
            raise ConfigurationError("[inspection_rules]api_call_allowed_hosts: neither a host nor host:port: "
                                     + ", ".join(repr(entry) for entry in bad))
        self._allowed = frozenset(entry for entry in map(_entry, entries) if entry is not None)
        self._get = get

    def close(self) -> None:
        """Allow no calls."""
        self._allowed, self._get = frozenset(), None

    def check(self, url: Any) -> str:
        """Return ``url`` if it may be called.

        :raises OperandError: why it may not; the text has nothing of it
        """
        if not isinstance(url, str) or len(url) > MAX_URL:
            raise OperandError(f"must be a URL of at most {MAX_URL} characters")
        found = _URL.fullmatch(url)
        if found is None:
            raise OperandError("must be http://HOST[:PORT]/... or https://HOST[:PORT]/..., without user and password")
        self._check_host(found)
        rest = found["rest"] or ""
        if not _REST.fullmatch(rest):
            raise OperandError("a URL must not contain white space, control characters, '\\' and '#'")
        if {".", ".."} & set(urllib.parse.unquote(rest.partition("?")[0]).split("/")):
            raise OperandError("the path of a URL must not contain '.' and '..'")
        return url

    def check_prefix(self, text: str) -> None:
        """Check what stands before the first template of a URL: data must not choose the host.

        :raises OperandError: the host does not end there, or may not be called
        """
        found = _URL.fullmatch(text)
        if found is None or not found["rest"]:
            raise OperandError("a template may only stand behind http://HOST[:PORT]/ or https://HOST[:PORT]/")
        self._check_host(found)

    def get(self, url: str, headers: Mapping[str, str], timeout_s: float) -> int:
        """Send a request; the gate must be open for it.

        :raises ActionError: there was no answer
        :raises OperandError: the URL may not be called
        """
        self.check(url)
        if self._get is None:
            raise ActionError("api-call is off")
        return self._get(url, headers, timeout_s)

    def _check_host(self, found: re.Match[str]) -> None:
        if not self._allowed:
            raise OperandError("api-call is off: [inspection_rules]api_call_allowed_hosts names no host")
        host = _canonical(found["host"])
        standard = _PORTS[found["scheme"].lower()]
        port = int(found["port"] or standard)
        if (host, port) not in self._allowed and not (port == standard and (host, None) in self._allowed):
            raise OperandError("[inspection_rules]api_call_allowed_hosts does not name this host and port")


GATE = Gate()


def host_of(url: str) -> str:
    """Return host and port of a checked URL: all of it that may stand in a message."""
    found = _URL.fullmatch(url)
    if found is None:
        raise ValueError("not a checked URL")
    return found["host"] + (f":{found['port']}" if found["port"] else "")


def _entry(text: str) -> tuple[str, int | None] | None:
    found = _ALLOWED.fullmatch(text.strip())
    host = _canonical(found["host"]) if found else None
    if found is None or host is None:
        return None
    port = int(found["port"]) if found["port"] else None
    return (host, port) if port is None or 0 < port < 65536 else None


def _canonical(host: str) -> str | None:
    bare = host.strip("[]").lower()
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return None if ":" in bare else bare


def _headers(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise OperandError("must be an object of strings")
    headers = {}
    for name, given in value.items():
        if not _HEADER.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
            raise OperandError(f"names must be those of HTTP headers, but not {', '.join(sorted(_RESERVED_HEADERS))}")
        if isinstance(given, bool) or not isinstance(given, (str, int, float)):
            raise OperandError("must be an object of strings")
        headers[name] = str(given)
        if not _HEADER_VALUE.fullmatch(headers[name]):
            raise OperandError("the value of a header must be printable ASCII")
    return headers


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MAX_TIMEOUT_S:
        raise OperandError(f"must be a number of seconds, more than 0 and at most {MAX_TIMEOUT_S}")
    return float(value)


URL = Kind("URL", {"type": "string"}, (str,), "a string", GATE.check, prefix=GATE.check_prefix)
HEADERS = Kind("HTTP headers", {"type": ["object", "string"]}, (dict,), "an object of strings", _headers)
SECONDS = Kind("seconds", {"type": ["number", "string"]}, (int, float), "a number", _seconds)

Url = Annotated[str, URL]
Headers = Annotated[Mapping[str, str] | None, HEADERS]
Seconds = Annotated[float, SECONDS]


@ACTIONS.add("api-call")
class ApiCall(InspectionRuleActionBase):
    """Tell another service about the node by an HTTP GET. An answer other than 2xx fails the rule.

    Only hosts in ``[inspection_rules]api_call_allowed_hosts`` can be called. Redirects are not followed, nothing is
    sent again, and the content of the answer is not used. A rule makes at most 16 requests for a node. A dry run
    sends nothing, and takes it that the answer would be 2xx.

    :param url: ``http`` or ``https``; templates may only stand behind the host
    :param headers: HTTP headers by name
    :param timeout: seconds for the connection, and for each wait for data; at most 60

    .. rule:: {op: api-call, args: {url: "https://cmdb.example.org/seen/{inventory[hostname]}", timeout: 10}}
    """

    formatted_params = ["url", "headers", "timeout"]
    touches = frozenset()

    def __call__(self, task: Task, rule: ActiveRule, url: Url, headers: Headers = None, timeout: Seconds = 5.0) -> None:
        rule.requests += 1
        if rule.requests > MAX_REQUESTS:
            raise ActionError(f"more than {MAX_REQUESTS} requests")
        if rule.dry_run:
            rule.would(f"send GET to {host_of(GATE.check(url))}")
            return
        status = GATE.get(url, headers or {}, timeout)
        if not 200 <= status <= 299:
            note = "; redirects are not followed" if 300 <= status <= 399 else ""
            raise ActionError(f"{host_of(url)} answered with status {status}{note}")
