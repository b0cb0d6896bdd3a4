"""Check of an image's URL before anything starts: a request to its server, as the agent will send one.

It finds URLs of images that do not exist, and those that lead, directly or by redirection, into networks that only the
machine itself or its neighbours must reach: ``[deploy]image_url_denied_networks``.
"""

from __future__ import annotations

import functools
import ipaddress
import socket
import ssl
import time
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence

from oslo_config import cfg

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware.agent.image import shown
from ironic_rules.hardware.request_deadline import RequestDeadline

_MAX_REDIRECTS = 5
#: Servers that refuse HEAD, e.g. those of signed URLs, answer GET.
_REFUSES_HEAD = frozenset({403, 405, 501})

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def check_all(conf: cfg.ConfigOpts, urls: Mapping[str, str]) -> None:
    """Check the HTTP URLs of ``urls``, by their JSON pointers, as ``[deploy]`` specifies.

    :raises InvalidParameterValue: of the first one that cannot be loaded
    """
    if timeout_s := conf.deploy.image_check_timeout:
        denied = [ipaddress.ip_network(network) for network in conf.deploy.image_url_denied_networks]
        for where, url in urls.items():
            if url.startswith(("http://", "https://")):
                check(url, where, denied, timeout_s)


def check(url: str, where: str, denied: Sequence[Network], timeout_s: float) -> None:
    """Check that ``url`` can be loaded, and that neither it nor a redirection leads into a denied network.

    :param where: JSON pointer of the URL, for errors;  timeout_s: for everything
    :raises InvalidParameterValue: of URLs, the text contains only the hosts
    """
    deadline = time.monotonic() + timeout_s
    try:
        for _ in range(_MAX_REDIRECTS + 1):
            _refuse_denied(url, denied)
            status, location = _ask(url, deadline)
            if location is None:
                if status >= 300:
                    raise ValueError(f"{shown(url)} answers with status {status}")
                return
            url = urllib.parse.urljoin(url, location)
        raise ValueError(f"it is redirected more than {_MAX_REDIRECTS} times")
    except ValueError as exc:
        raise InvalidParameterValue(problems=[Problem(where, f"the image cannot be loaded: {exc}")]) from None


def _refuse_denied(url: str, denied: Iterable[Network]) -> None:
    """Refuse a URL whose host is in a denied network.

    :raises ValueError: it is, or it has no address
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is redirected to what is not an HTTP URL")
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ValueError(f"{shown(url)} has no address") from None
    for *_, address in found:
        number = ipaddress.ip_address(str(address[0]).partition("%")[0])
        number = getattr(number, "ipv4_mapped", None) or number
        if network := next((net for net in denied if net.version == number.version and number in net), None):
            raise ValueError(f"{shown(url)} is in the network {network} ([deploy]image_url_denied_networks)")


def _ask(url: str, deadline: float) -> tuple[int, str | None]:
    """Return the status of the URL, and where it is redirected to.

    :raises ValueError: the server does not answer
    """
    import httpx  # only deployments need it, and it takes 5 MiB

    status, location = 0, None
    for method in ("HEAD", "GET"):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise ValueError(_too_long(url))
        limit = RequestDeadline(left_s)
        try:
            with (
                limit, httpx.Client(verify=_tls(), trust_env=False, timeout=left_s) as client,
                # Without the body: it may be many gigabytes.
                client.stream(method, url, headers={"User-Agent": "ironic-rules"}, extensions=limit.extensions,
                              ) as answer,
            ):
                status, location = answer.status_code, answer.headers.get("Location") if answer.is_redirect else None
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            # Without its text, which may contain the URL.
            reason = _too_long(url) if limit.is_over else f"no answer from {shown(url)} ({type(exc).__name__})"
            raise ValueError(reason) from None
        if status not in _REFUSES_HEAD:
            break
    return status, location


def _too_long(url: str) -> str:
    return f"{shown(url)} takes too long ([deploy]image_check_timeout)"


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return what connections are made with. Reading the system's certificates takes 20 ms."""
    return ssl.create_default_context()
