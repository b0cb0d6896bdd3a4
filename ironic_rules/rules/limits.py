"""Limits of rules, their size, their results, and the hosts that they may call; passed as arguments.

A service can set its own. URLs are validated strictly, so that no other parser of one can find a different host in it.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import urls
from ironic_rules.models.urls import Url

_ENTRY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*)"
                    r"(?::(?P<port>[0-9]{1,5}))?")


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
        texts = list(entries)
        bad = [entry for entry in texts if _entry(entry) is None]
        if bad:
            raise ConfigurationError("[inspection_rules]api_call_allowed_hosts: neither a host nor host:port: "
                                     + ", ".join(repr(entry) for entry in bad))
        return cls(frozenset(entry for entry in map(_entry, texts) if entry is not None))

    def check(self, url: object) -> str:
        """Return ``url`` if it may be called.

        :raises ValueError: it may not; the text says why, and does not quote the URL
        """
        parsed = _parsed(url)
        self._check_host(parsed)
        if "#" in parsed.rest:
            raise ValueError("a URL must not contain white space and '#'")
        if {".", ".."} & set(urllib.parse.unquote(parsed.rest.partition("?")[0]).split("/")):
            raise ValueError("the path of a URL must not contain '.' and '..'")
        return str(url)

    def check_prefix(self, text: str) -> None:
        """Check the text before the first template of a URL: data must not determine the host.

        :raises ValueError: the host does not end there, or may not be called
        """
        parsed = _parsed(text) if urls.problem(text) is None else None
        if parsed is None or not parsed.rest:
            raise ValueError("a template may only follow http://HOST[:PORT]/ or https://HOST[:PORT]/")
        self._check_host(parsed)

    def _check_host(self, url: Url) -> None:
        if not self.entries:
            raise ValueError("api-call is disabled: [inspection_rules]api_call_allowed_hosts is empty")
        standard = urls.PORTS[url.scheme]
        port = url.port or standard
        if (url.host, port) not in self.entries and not (port == standard and (url.host, None) in self.entries):
            raise ValueError("[inspection_rules]api_call_allowed_hosts does not name this host and port")


#: No service may be called.
NO_HOSTS = AllowedHosts()


def host_of(url: str) -> str:
    """Return host and port of a checked URL: the only part of it that may be in a message.

    :raises ValueError: it is not one
    """
    return urls.parse(url).netloc


def _parsed(url: object) -> Url:
    parsed = urls.parse(url)
    if parsed.user is not None:
        raise ValueError("must be a URL without user and password")
    return parsed


def _entry(text: str) -> tuple[str, int | None] | None:
    match = _ENTRY.fullmatch(text.strip())
    if match is None:
        return None
    bare, port = match["host"].strip("[]"), int(match["port"]) if match["port"] else None
    host = urls.usual_host(bare)
    return (host, port) if host is not None and (port is None or 0 < port < 65536) else None


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts, characters and levels. A rule that exceeds a limit is refused; if data exceed one, the step fails."""

    conditions: int = 100
    actions: int = 100
    loop_items: int = 4096
    depth: int = 20
    text: int = 65536
    result: int = 65536
    #: bytes, in UTF-8, of the text that a regular expression is applied to
    subject: int = 32768
    #: characters that all actions write while the rules of a phase run on one node
    written: int = 8 * 1024 * 1024
    #: services that rules may call
    hosts: AllowedHosts = NO_HOSTS


DEFAULT = Limits()

#: Maximum number of levels of lists and objects in an action's argument, and of parts of the path to which it writes:
#: together fewer than the 254 levels that can be written as JSON.
MAX_LEVELS = 100
