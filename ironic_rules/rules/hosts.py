"""The hosts that rules may call, and validation of their URLs.

Strict, so that no other parser of a URL can find a different host in it.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.rules.errors import OperandError

MAX_URL = 4096

_PORTS = {"http": 80, "https": 443}
_HOST = r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+"
# No user, no backslash, no white space.
_URL = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST})(?::(?P<port>[0-9]{{1,5}}))?(?P<rest>[/?].*)?",
                  re.ASCII | re.IGNORECASE | re.DOTALL)  # without ASCII, a long s would match an s
_ALLOWED = re.compile(rf"(?P<host>{_HOST}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)(?::(?P<port>[0-9]{{1,5}}))?")
_REST = re.compile(r"[^\s\\#\x00-\x1f\x7f]*")


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Host and port of each service that may be called; without a port, the scheme's default port."""

    entries: frozenset[tuple[str, int | None]] = frozenset()

    @classmethod
    def of(cls, entries: Iterable[str]) -> AllowedHosts:
        """Return the hosts in ``entries``.

        :param entries: ``host`` or ``host:port``; an IPv6 address with a port is in brackets
        :raises ConfigurationError: with every entry that is neither
        """
        given = list(entries)
        bad = [entry for entry in given if _entry(entry) is None]
        if bad:
            raise ConfigurationError("[inspection_rules]api_call_allowed_hosts: neither a host nor host:port: "
                                     + ", ".join(repr(entry) for entry in bad))
        return cls(frozenset(entry for entry in map(_entry, given) if entry is not None))

    def check(self, url: Any) -> str:
        """Return ``url`` if it may be called.

        :raises OperandError: it may not; the text says why, and does not quote the URL
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
        """Check the text before the first template of a URL: data must not determine the host.

        :raises OperandError: the host does not end there, or may not be called
        """
        found = _URL.fullmatch(text)
        if found is None or not found["rest"]:
            raise OperandError("a template may only follow http://HOST[:PORT]/ or https://HOST[:PORT]/")
        self._check_host(found)

    def _check_host(self, found: re.Match[str]) -> None:
        if not self.entries:
            raise OperandError("api-call is disabled: [inspection_rules]api_call_allowed_hosts is empty")
        host = _canonical(found["host"])
        standard = _PORTS[found["scheme"].lower()]
        port = int(found["port"] or standard)
        if (host, port) not in self.entries and not (port == standard and (host, None) in self.entries):
            raise OperandError("[inspection_rules]api_call_allowed_hosts does not name this host and port")


#: No service may be called.
NONE = AllowedHosts()


def host_of(url: str) -> str:
    """Return host and port of a checked URL: the only part of it that may be in a message."""
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
