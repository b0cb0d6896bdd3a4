"""Destinations of URLs and files that users name: the one place that decides whether they may be used.

A URL is read (``models.urls``), its host is resolved, and each of its addresses is compared with the networks that are
denied. A request of the conductor then goes to one of these addresses, so that a name server that changes its answers
leads it nowhere else. A BMC or a ramdisk resolves the name again when it loads a URL: that can only be checked before.

Files of the conductor's machine must be below folders that the operator allows.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oslo_config import cfg

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware import resolver
from ironic_rules.models import urls
from ironic_rules.models.documents import JSON
from ironic_rules.models.urls import Network, Url

if TYPE_CHECKING:
    import httpx


_OPTION = "[deploy]image_url_denied_networks"


class Denied(ValueError):
    """An address of a host is in a network into which no request may go."""


class NoAddress(ValueError):
    """A host has no address, or none that a name server has returned in time."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A URL to which requests may be sent, and the addresses of its host, all of them checked."""

    url: Url
    addresses: tuple[str, ...]


def denied_networks(conf: cfg.ConfigOpts) -> tuple[Network, ...]:
    """Return the networks into which no URL in data may lead."""
    return tuple(map(ipaddress.ip_network, conf.deploy.image_url_denied_networks))


def find(url: Url, denied: Collection[Network], timeout_s: float = resolver.RESOLVE_TIMEOUT_S) -> Destination:
    """Return where requests to ``url`` go.

    :param denied: networks in which none of the host's addresses may be;  timeout_s: to resolve it
    :raises NoAddress: the host has none;  Denied: one of them is refused; the text contains only scheme and host
    """
    addresses = url.known_addresses or tuple(resolver.resolve([url.host], timeout_s))
    if not addresses:
        raise NoAddress(f"{url.shown} has no address")
    for address in addresses:
        refuse(url.shown, address, denied)
    return Destination(url, addresses)


def check(conf: cfg.ConfigOpts, texts: Mapping[str, JSON], schemes: Collection[str] = urls.HTTP) -> None:
    """Check URLs that a BMC or a machine will request.

    The conductor may not know a host that these know, so a name without an address is accepted.

    :param texts: the URLs by their JSON pointers
    :raises InvalidParameterValue: with each one that is not a URL or leads into a denied network
    """
    denied = denied_networks(conf)
    problems = []
    for where, text in texts.items():
        try:
            find(urls.parse(text, schemes), denied)
        except NoAddress:
            continue
        except ValueError as exc:
            problems.append(Problem(where, str(exc)))
    if problems:
        raise InvalidParameterValue(problems=problems)


def check_address(conf: cfg.ConfigOpts, text: str, where: str) -> None:
    """Check a URL without asking a name server: of most names, only whether they are one.

    :raises InvalidParameterValue: with the JSON pointer ``where``
    """
    try:
        url = urls.parse(text)
        for address in url.known_addresses:
            refuse(url.shown, address, denied_networks(conf))
    except ValueError as exc:
        raise InvalidParameterValue(problems=[Problem(where, str(exc))]) from None


def client(destination: Destination, tls: ssl.SSLContext, timeout_s: float) -> httpx.Client:
    """Return a client whose requests go to the addresses of ``destination``, and nowhere else.

    It ignores the environment (proxies, ``.netrc``) and follows no redirects. Certificates are those of the host.

    :param timeout_s: for each connection, and each wait for data
    """
    import httpx  # most processes send no such requests, and it takes 5 MiB

    from ironic_rules.hardware.pinned import PinnedTransport

    return httpx.Client(transport=PinnedTransport(destination.url.host, destination.addresses, tls), trust_env=False,
                        follow_redirects=False, timeout=timeout_s)


def refuse(shown: str, address: str, denied: Iterable[Network], option: str = _OPTION) -> None:
    """Refuse an address if it is in a network that is denied, or that contains no servers.

    :param shown: scheme and host, for the error;  option: the one that denies the networks
    :raises Denied: it is
    """
    number = ipaddress.ip_address(address.partition("%")[0])
    network = urls.refused_network(number, denied)
    if network is not None:
        why = f" ({option})" if urls.has_servers(network) else ", which contains no servers"
        raise Denied(f"{shown} is in the network {network}{why}")


def allowed_file(path: str | Path, folders: Iterable[str]) -> Path | None:
    """Return the file or folder at ``path``, without links.

    None whenever it cannot be used: what leads out of ``folders``, what does not exist and what the conductor may not
    read are the same, so that users do not find out which files exist.
    """
    try:
        target = Path(path).resolve(strict=True)
        is_allowed = any(target.is_relative_to(Path(folder).resolve()) for folder in folders)
    # A NUL character, and links in a circle.
    except (OSError, ValueError, RuntimeError):
        return None
    return target if is_allowed and os.access(target, os.R_OK) else None
