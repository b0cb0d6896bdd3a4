"""The HTTP requests of the rule action ``api-call``."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Collection, Mapping

import httpx

from ironic_rules.hardware import destinations
from ironic_rules.models import urls
from ironic_rules.models.urls import Network
from ironic_rules.rules import ActionError
from ironic_rules.rules.limits import host_of

#: Maximum number of bytes of a response that are read. They are discarded: the server is only given time to send them.
MAX_ANSWER_BYTES = 65536


class HttpxGet:
    """Sends GET requests. Ignores the environment (proxies, ``.netrc``), except OpenSSL's ``SSL_CERT_FILE``.

    One per process; thread-safe. Requests share no state, not even cookies.
    """

    def __init__(self, denied: Collection[Network] = ()) -> None:
        """Create it.

        :param denied: networks into which no name may lead; an IP address, and ``localhost``, is what the operator
            has allowed, wherever it is
        """
        self._denied = denied
        logging.getLogger("httpx").addFilter(_is_no_request)
        self._tls = ssl.create_default_context()

    def __call__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> int:
        """Send a request and return the status of the response.

        :param timeout_s: seconds for the connection, for each wait for data, and for the content as a whole
        :raises ActionError: there was no response; of the URL, the text contains only the host
        """
        host, target = host_of(url), urls.parse(url)
        try:
            destination = destinations.find(target, () if target.known_addresses else self._denied, timeout_s)
        except ValueError as exc:
            raise ActionError(f"nothing was sent: {exc}") from None
        try:
            with (
                destinations.client(destination, self._tls, timeout_s) as client,
                client.stream("GET", str(target), headers={"User-Agent": "ironic-rules", **headers}) as answer,
            ):
                _skim(answer, timeout_s)
                return int(answer.status_code)
        except httpx.TimeoutException:
            reason = f"{host} did not answer within {timeout_s:g} seconds"
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as exc:  # the last one: httpx reads names as IDNA
            reason = f"no answer from {host} ({type(exc).__name__})"
        # Outside the handler, so that no traceback contains the exception with the whole URL.
        raise ActionError(reason)


def _is_no_request(record: logging.LogRecord) -> bool:
    """Keep httpx from logging whole URLs at any log level, because those of sensitive rules must not be disclosed."""
    return record.levelno > logging.INFO


def _skim(answer: httpx.Response, timeout_s: float) -> None:
    deadline, remaining = time.monotonic() + timeout_s, MAX_ANSWER_BYTES
    for chunk in answer.iter_raw():
        remaining -= len(chunk)
        if remaining <= 0 or time.monotonic() > deadline:
            return
