"""Check of the URLs of images before anything starts: a request to each server, as the agent will send one.

It finds URLs of images that do not exist, and those that lead, directly or by redirection, into networks that only the
machine itself or its neighbours must reach: ``[deploy]image_url_denied_networks``.
"""

from __future__ import annotations

import functools
import ssl
import time
import urllib.parse
from collections.abc import Collection, Mapping

from oslo_config import cfg

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware import destinations
from ironic_rules.hardware.destinations import Destination
from ironic_rules.hardware.request_deadline import RequestDeadline
from ironic_rules.models import urls
from ironic_rules.models.urls import Network, Url

_MAX_REDIRECTS = 5
#: Servers that refuse HEAD, e.g. those of signed URLs, answer GET.
_REFUSES_HEAD = frozenset({403, 405, 501})


def check_all(conf: cfg.ConfigOpts, given: Mapping[str, str], schemes: Collection[str] = urls.HTTP) -> None:
    """Check the URLs of ``given``, by their JSON pointers, as ``[deploy]`` specifies. Only those of HTTP are requested.

    :raises InvalidParameterValue: with each one that leads into a denied network, or with the first one that cannot be
        loaded
    """
    timeout_s = conf.deploy.image_check_timeout
    # URLs are compared with the denied networks even if none is requested.
    destinations.check(conf, given, schemes)
    if timeout_s:
        denied = destinations.denied_networks(conf)
        for where, text in given.items():
            url = urls.parse(text, schemes)
            if url.scheme in urls.HTTP:
                check(url, where, denied, timeout_s)


def check(url: Url, where: str, denied: Collection[Network], timeout_s: float) -> None:
    """Check that ``url`` can be loaded, and that neither it nor a redirection leads into a denied network.

    :param where: JSON pointer of the URL, for errors;  timeout_s: for everything
    :raises InvalidParameterValue: of URLs, the text contains only the hosts
    """
    deadline = time.monotonic() + timeout_s
    try:
        for _ in range(_MAX_REDIRECTS + 1):
            found = destinations.find(url, denied, max(0.0, deadline - time.monotonic()))
            status, location = _ask(found, deadline)
            if location is None:
                if status >= 300:
                    raise ValueError(f"{url.shown} answers with status {status}")
                return
            url = _redirected(url, location)
        raise ValueError(f"it is redirected more than {_MAX_REDIRECTS} times")
    except ValueError as exc:
        raise InvalidParameterValue(problems=[Problem(where, f"the image cannot be loaded: {exc}")]) from None


def _redirected(url: Url, location: str) -> Url:
    """Return the URL to which a server redirects.

    :raises ValueError: it is not an HTTP URL
    """
    try:
        return urls.parse(urllib.parse.urljoin(str(url), location))
    except ValueError as exc:
        raise ValueError(f"where it is redirected to {exc}") from None


def _ask(found: Destination, deadline: float) -> tuple[int, str | None]:
    """Return the status of the URL, and where it is redirected to.

    :raises ValueError: the server does not answer
    """
    import httpx  # only deployments need it, and it takes 5 MiB

    url, status, location = found.url, 0, None
    for method in ("HEAD", "GET"):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise ValueError(_too_long(url))
        limit = RequestDeadline(left_s)
        try:
            with (
                limit, destinations.client(found, _tls(), left_s) as client,
                # Without the body: it may be many gigabytes.
                client.stream(method, str(url), headers={"User-Agent": "ironic-rules"}, extensions=limit.extensions,
                              ) as answer,
            ):
                status, location = answer.status_code, answer.headers.get("Location") if answer.is_redirect else None
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            # Without its text, which may contain the URL.
            reason = _too_long(url) if limit.is_over else f"no answer from {url.shown} ({type(exc).__name__})"
            raise ValueError(reason) from None
        if status not in _REFUSES_HEAD:
            break
    return status, location


def _too_long(url: Url) -> str:
    return f"{url.shown} takes too long ([deploy]image_check_timeout)"


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return what connections are made with. Reading the system's certificates takes 20 ms."""
    return ssl.create_default_context()
