"""Requests of httpx that go to given IP addresses, whatever a name server says. Imported when the first is sent."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

import httpx


class PinnedTransport(httpx.BaseTransport):
    """Connects to one of ``addresses`` instead of ``host``; the header ``Host`` and the certificate stay the host's.

    An address to which no connection can be made is followed by the next one, as when a name is resolved.
    """

    def __init__(self, host: str, addresses: Sequence[str], tls: ssl.SSLContext) -> None:
        self._host, self._addresses = host, addresses
        self._transport = httpx.HTTPTransport(verify=tls, trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        # ``host`` would be what an international name (xn--...) stands for.
        if request.url.raw_host.decode("ascii") != self._host:
            raise httpx.UnsupportedProtocol(f"This is a client for requests to {self._host}.", request=request)
        failure: httpx.TransportError | None = None
        for address in self._addresses:
            # The header Host was made of the URL before.
            pinned = httpx.Request(
                request.method, request.url.copy_with(host=address), headers=request.headers, stream=request.stream,
                extensions={**request.extensions, "sni_hostname": self._host.removesuffix(".")})
            try:
                return self._transport.handle_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
                failure = exc
        raise failure or httpx.ConnectError("There is no address.", request=request)

    def close(self) -> None:
        self._transport.close()
