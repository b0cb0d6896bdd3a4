"""Protection from other sites: requests that a browser sends for a web page of another site are refused.

A browser reaches what its user reaches, such as a service on 127.0.0.1 that requires no password, and sends the
password of ``http_basic`` by itself. So a page of any site could use the service: it may send forms and simple
requests, and by DNS rebinding (the name of another site leads to the address of this service) every request. Such
requests have an origin, or a name in the header ``Host``, that is not one of this service.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg

from ironic_rules.api import versions
from ironic_rules.exceptions import ForeignHost, IronicRulesError, MediaTypeUnsupported, foreign_site
from ironic_rules.httpd import faults
from ironic_rules.text import printable

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
        match = _AUTHORITY.fullmatch(host)
        if match is None:
            return False
        name = canonical(match[1])
        return name in self._names or is_loopback(name) or name.endswith(self._suffixes)

    def is_own(self, origin: str, environ: Mapping[str, Any]) -> bool:
        """Return whether a page of ``origin`` is one of this service: under the URL of the request, or the public one.

        A proxy that ends TLS makes https of http, which only the browser knows: it says ``same-origin``.
        """
        site = _origin(origin)
        if site is None:
            return False
        is_same = environ.get("HTTP_SEC_FETCH_SITE") == "same-origin"
        schemes = {environ["wsgi.url_scheme"], *(("http", "https") if is_same else ())}
        host = environ.get("HTTP_HOST", "")
        return site in self._origins | {_origin(f"{scheme}://{host}") for scheme in schemes}


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
    match = _AUTHORITY.fullmatch(rest.partition("/")[0])
    if not separator or match is None or scheme.lower() not in _PORTS:
        return None
    return scheme.lower(), canonical(match[1]), match[2] or _PORTS[scheme.lower()]


_READING = frozenset({"GET", "HEAD", "OPTIONS"})
#: Values of Sec-Fetch-Site for requests of the service's own page, and for those that a user makes without any page.
_OWN_SITE = ("same-origin", "none")
_MEDIA_TYPE = "application/json"
#: First segments, after the version, of the paths that ramdisks use.
_LOOKUP = ["lookup"]
_CALLBACKS = (["continue_inspection"], ["heartbeat"])
#: A method of a driver, which may do anything.
_VENDOR = "vendor_passthru"
_MOST_SHOWN = 200


class OtherSites:
    """Checks the host of every request; of those that change something also the site and the type of the body."""

    def __init__(self, app: WSGIApplication, names: OwnNames) -> None:
        self._app = app
        self._names = names

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            self._check(environ)
        except IronicRulesError as error:
            return faults.send(faults.from_error(error), environ, start_response)
        return self._app(environ, start_response)

    def _check(self, environ: Mapping[str, Any]) -> None:
        """Check a request.

        :raises ForeignHost: 421;  foreign_site: 403;  MediaTypeUnsupported: 415
        """
        host = environ.get("HTTP_HOST", "")
        if not self._names.accepts(host):
            raise ForeignHost(host=printable(host, _MOST_SHOWN))
        segments = _segments(environ.get("PATH_INFO", ""))
        is_reading = environ["REQUEST_METHOD"] in _READING
        if is_reading and not _changes_by_reading(segments):
            return
        site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
        if site is not None and site not in _OWN_SITE:
            raise foreign_site(place=f"Sec-Fetch-Site: {printable(site, _MOST_SHOWN)}")
        if origin is not None and not self._names.is_own(origin, environ):
            raise foreign_site(place=f"Origin: {printable(origin, _MOST_SHOWN)}")
        if is_reading or not _has_body(environ):
            return
        content_type = environ.get("CONTENT_TYPE", "")
        # Agents of earlier releases send none. Browsers always send an Origin with a body.
        if not _is_json(content_type) and (content_type or origin is not None or segments[:1] not in _CALLBACKS):
            shown = f"the Content-Type {printable(content_type, _MOST_SHOWN)}" if content_type else "no Content-Type"
            raise MediaTypeUnsupported(given=shown)


def _segments(path: str) -> list[str]:
    """Return the segments of a path without the version of the API, which may be missing."""
    segments = [segment.removesuffix(versions.SUFFIX) for segment in path.split("/") if segment]
    return segments[1:] if segments[:1] == ["v1"] else segments


def _changes_by_reading(segments: list[str]) -> bool:
    """Return whether GET has an effect: the first lookup gets the token of the agent, and later ones do not."""
    return segments[:1] == _LOOKUP or _VENDOR in segments


def _has_body(environ: Mapping[str, object]) -> bool:
    """Return whether the request has a body; one in chunks counts as one."""
    return "HTTP_TRANSFER_ENCODING" in environ or environ.get("CONTENT_LENGTH") not in (None, "", "0")


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == _MEDIA_TYPE or (media_type.startswith("application/") and media_type.endswith("+json"))
