"""URLs in data, e.g. of images: how they are read, and the IP addresses to which none may lead. No side effects.

The syntax is strict, so that no other program that reads such a URL can find a different host in it.
``hardware.destinations`` resolves names, and sends requests.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_URL = 4096
HTTP = ("http", "https")
PORTS = {"http": 80, "https": 443}
#: Networks in which no server is. A connection to 0.0.0.0 or [::] reaches the machine that makes it.
_NO_SERVERS: tuple[Network, ...] = tuple(map(ipaddress.ip_network, (
    "0.0.0.0/8", "224.0.0.0/4", "255.255.255.255/32", "::/128", "ff00::/8")))
#: Networks whose addresses end with an IPv4 address: IPv4-compatible and -translated ones, and NAT64 (RFC 6052, 8215).
#: ipaddress knows IPv4-mapped ones, 6to4 and Teredo.
_IPV4_AT_THE_END = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")))
_LOOPBACK = ipaddress.IPv6Address("::1")
#: Names of the machine that uses them, even if its resolver does not know them (RFC 6761).
_LOCAL_NAME = re.compile(r"(?:.*\.)?localhost\.?")
_LOCAL_ADDRESSES = ("127.0.0.1", "::1")

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<user>[A-Za-z0-9._~!$&'()*+,;=:%-]*)@)?"
                  r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?#].*)?", re.ASCII)
_MEANT_AS_URL = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*:")
_MAX_NAME = 253
# The last label must not be a number: getaddrinfo would read "32", "0x20" and "10.1" as IPv4 addresses.
_HOST_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_-]{0,62}\.)*(?!(?:[0-9]+|0[Xx][0-9A-Fa-f]*)\.?\Z)"
                        r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}\.?")


@dataclass(frozen=True, slots=True)
class Url:
    """A URL that was read; as a text, with scheme and host in their usual form, and all else as it was given.

    :ivar user: user and password, as in the URL
    :ivar host: a name in lower case, or an IP address, without brackets
    :ivar rest: path, query and fragment
    """

    scheme: str
    user: str | None
    host: str
    port: int | None
    rest: str

    def __str__(self) -> str:
        user = "" if self.user is None else f"{self.user}@"
        return f"{self.scheme}://{user}{self.netloc}{self.rest}"

    @property
    def netloc(self) -> str:
        """Host and port, as in the URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def known_addresses(self) -> tuple[str, ...]:
        """The IP addresses of the host that are known without a name server; none for most names."""
        if _address(self.host) is not None:
            return (self.host,)
        return _LOCAL_ADDRESSES if _LOCAL_NAME.fullmatch(self.host) else ()

    @property
    def shown(self) -> str:
        """Scheme and host, for messages: the rest may be a secret."""
        return f"{self.scheme}://[{self.host}]" if ":" in self.host else f"{self.scheme}://{self.host}"


def parse(text: object, schemes: Collection[str] = HTTP) -> Url:
    """Return the URL in ``text``.

    :raises ValueError: it is not a URL with one of the schemes; the reason does not quote it, as it may be a secret
    """
    beginnings = " or ".join(f"{scheme}://" for scheme in schemes)
    if not isinstance(text, str) or not 0 < len(text) <= MAX_URL:
        raise ValueError(f"must be a URL that begins with {beginnings}, of at most {MAX_URL} characters")
    if not text.isprintable() or " " in text or "\\" in text:
        raise ValueError(r"must be a URL without white space, control characters and '\'")
    if text.partition(":")[0].lower() not in schemes:
        raise ValueError(f"must be a URL that begins with {beginnings}")
    match = _URL.fullmatch(text)
    host = None
    if match is not None:
        host = usual_host(match["host"].strip("[]"), is_ipv6=match["host"].startswith("["))
    if match is None or host is None:
        raise ValueError("must be a URL whose host is a name of ASCII characters, or an IP address in its usual form, "
                         "such as 192.0.2.1 or [2001:db8::1]")
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port < 65536:
        raise ValueError("must be a URL with a port from 1 to 65535")
    return Url(match["scheme"].lower(), match["user"], host, port, match["rest"] or "")


def problem(text: object, schemes: Collection[str] = HTTP) -> str | None:
    """Return why :func:`parse` refuses ``text``; None if it does not."""
    try:
        parse(text, schemes)
    except ValueError as exc:
        return str(exc)
    return None


def is_meant(value: object) -> bool:
    """Return whether ``value`` is meant to be a URL, however wrong: it begins with a scheme of any name."""
    return isinstance(value, str) and _MEANT_AS_URL.match(value) is not None


def usual_host(text: str, *, is_ipv6: bool | None = None) -> str | None:
    """Return a host in its usual form: a name in lower case, or an IP address, without brackets.

    :param is_ipv6: whether it must, or must not, be an IPv6 address
    :returns: None for what programs read differently, such as ``127.1`` and ``0x7f000001``
    """
    address = _address(text)
    if is_ipv6 is not None and is_ipv6 != (address is not None and address.version == 6):
        return None
    if address is not None:
        return str(address)
    return text.lower() if is_host_name(text) else None


def is_host_name(text: str) -> bool:
    """Return whether ``text`` is a host name, and nothing that may be read as an IP address."""
    return len(text.removesuffix(".")) <= _MAX_NAME and _HOST_NAME.fullmatch(text) is not None


def refused_network(address: Address, denied: Iterable[Network]) -> Network | None:
    """Return the network for which a URL that leads to ``address`` is refused: a denied one, or one without servers.

    :returns: None if it is not refused, neither for the address nor for an IPv4 address inside it
    """
    networks = (*_NO_SERVERS, *denied)
    for candidate in (address, *_inner(address)):
        for network in networks:
            if network.version == candidate.version and candidate in network:
                return network
    return None


def has_servers(network: Network) -> bool:
    """Return whether a network of :func:`refused_network` may contain servers, so that it is a denied one."""
    return network not in _NO_SERVERS


def shown(text: str) -> str:
    """Return scheme and host of a URL with any scheme, for messages."""
    try:
        return parse(text, (text.partition(":")[0].lower(),)).shown
    except ValueError:
        return "an invalid URL"


def _inner(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """Yield the IPv4 addresses to which a gateway, a translator or this machine may send what ``address`` is sent."""
    if isinstance(address, ipaddress.IPv4Address) or address.is_unspecified or address == _LOOPBACK:
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if any(address in network for network in _IPV4_AT_THE_END):
        yield ipaddress.IPv4Address(address.packed[-4:])


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
