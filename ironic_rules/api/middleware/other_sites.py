"""Refuses requests that a browser sends for a web page of another site.

A browser reaches what its user reaches, such as a service on 127.0.0.1 that requires no password, and sends the
password of ``http_basic`` by itself. So a page of any site could use the service: it may send forms and simple
requests, and by DNS rebinding (:mod:`ironic_rules.api.own_names`) every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ironic_rules.api import versions
from ironic_rules.api.own_names import OwnNames
from ironic_rules.exceptions import ForeignHost, ForeignSite, IronicRulesError, MediaTypeUnsupported
from ironic_rules.httpd import faults
from ironic_rules.text import printable

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

        :raises ForeignHost: 421;  ForeignSite: 403;  MediaTypeUnsupported: 415
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
            raise ForeignSite(place=f"Sec-Fetch-Site: {printable(site, _MOST_SHOWN)}")
        if origin is not None and not self._names.is_own(origin, environ):
            raise ForeignSite(place=f"Origin: {printable(origin, _MOST_SHOWN)}")
        if is_reading or not _has_body(environ):
            return
        given = environ.get("CONTENT_TYPE", "")
        # Agents of earlier releases send none. Browsers always send an Origin with a body.
        if not _is_json(given) and (given or origin is not None or segments[:1] not in _CALLBACKS):
            shown = f"the Content-Type {printable(given, _MOST_SHOWN)}" if given else "no Content-Type"
            raise MediaTypeUnsupported(given=shown)


def _segments(path: str) -> list[str]:
    """Return the segments of a path without the version of the API, which may be missing."""
    segments = [segment.removesuffix(versions.SUFFIX) for segment in path.split("/") if segment]
    return segments[1:] if segments[:1] == ["v1"] else segments


def _changes_by_reading(segments: list[str]) -> bool:
    """Return whether GET has an effect: the first lookup gets the token of the agent, and later ones do not."""
    return segments[:1] == _LOOKUP or _VENDOR in segments


def _has_body(environ: Mapping[str, Any]) -> bool:
    """Return whether the request has a body; one in chunks counts as one."""
    return "HTTP_TRANSFER_ENCODING" in environ or environ.get("CONTENT_LENGTH") not in (None, "", "0")


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == _MEDIA_TYPE or (media_type.startswith("application/") and media_type.endswith("+json"))
