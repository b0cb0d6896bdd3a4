"""The names and origins of this service: requests that a browser sends for other sites have different ones.

A name in the header ``Host`` that is none of them means DNS rebinding: the name of a web page of another site leads to
the address of this service, so that the browser takes both for one site.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from oslo_config import cfg

_AUTHORITY = re.compile(r"(\[[0-9A-Za-z:.%_~-]+\]|[^][:/?#@\s]+)(?::([0-9]*))?")
#: IPv4 as browsers and systems understand it too: 127.1, 0x7f.0.0.1, 2130706433.
_NUMBER = r"(?:0x[0-9a-f]{1,8}|[0-9]{1,12})"
_IPV4 = re.compile(rf"{_NUMBER}(?:\.{_NUMBER}){{0,3}}")
_PORTS = {"http": "80", "https": "443"}
_ANY = "*"


class OwnNames:
    """The values of ``Host`` that clients may send, and the values of ``Origin`` that are pages of this service itself.

    Every name is accepted if ``[api]allowed_hosts`` is empty, and the service does not listen on a loopback address.

    :param address: on which the service listens; None: another WSGI server listens, and does not say where
    """

    def __init__(self, conf: cfg.ConfigOpts, address: str | None) -> None:
        allowed: list[str] = conf.api.allowed_hosts
        self._accepts_all = _ANY in allowed or not (allowed or (address is not None and is_loopback(address)))
        self._names = {canonical(name) for name in allowed}
        self._suffixes = tuple(canonical(name) for name in allowed if name.startswith("."))
        # Ramdisks and users are told these URLs, so they use these names.
        urls = (conf.api.public_endpoint, conf.inspector.callback_endpoint_override, conf.deploy.external_callback_url)
        self._names |= {canonical(urlsplit(url).hostname or "") for url in urls if url}
        if address is not None:
            self._names.add(canonical(address))  # the watchdog requests it
        self._origins = {origin for url in urls[:1] if url and (origin := _origin(url))}

    def accepts(self, host: str) -> bool:
        """Return whether a client may use this value of ``Host``.

        HTTP/1.0, as of health checks, has none (""), browsers always send one.
        """
        if self._accepts_all or not host:
            return True
        found = _AUTHORITY.fullmatch(host)
        if found is None:
            return False
        name = canonical(found[1])
        return name in self._names or is_loopback(name) or name.endswith(self._suffixes)

    def is_own(self, origin: str, environ: Mapping[str, Any]) -> bool:
        """Return whether a page of ``origin`` is one of this service: under the URL of the request, or the public one.

        A proxy that ends TLS makes https of http, which only the browser knows: it says ``same-origin``.
        """
        given = _origin(origin)
        if given is None:
            return False
        is_same = environ.get("HTTP_SEC_FETCH_SITE") == "same-origin"
        schemes = {environ["wsgi.url_scheme"], *(("http", "https") if is_same else ())}
        host = environ.get("HTTP_HOST", "")
        return given in self._origins | {_origin(f"{scheme}://{host}") for scheme in schemes}


def canonical(name: str) -> str:
    """Return the one notation of a name or an address; IPv6 may be in brackets, and with a zone."""
    name = name.lower().removesuffix(".")
    try:
        if _IPV4.fullmatch(name):
            return socket.inet_ntoa(socket.inet_aton(name))
        address = ipaddress.IPv6Address(name.removeprefix("[").removesuffix("]").partition("%")[0])
    except (ValueError, OSError):
        return name
    return str(address.ipv4_mapped or address)


def is_loopback(name: str) -> bool:
    """Return whether a name or an address always means this machine."""
    name = canonical(name)
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _origin(url: str) -> tuple[str, str, str] | None:
    """Return scheme, host and port of a URL or an origin; None if it is none, such as ``null``."""
    scheme, separator, rest = url.partition("://")
    found = _AUTHORITY.fullmatch(rest.partition("/")[0])
    if not separator or found is None or scheme.lower() not in _PORTS:
        return None
    return scheme.lower(), canonical(found[1]), found[2] or _PORTS[scheme.lower()]
