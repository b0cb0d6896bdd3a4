"""The HTTP requests of the rule action ``api-call``."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Mapping

import httpx

from ironic_rules.rules import ActionError
from ironic_rules.rules.hosts import host_of

#: Maximum number of bytes of a response that are read. They are discarded: the server is only given time to send them.
MAX_ANSWER_BYTES = 65536


class HttpxGet:
    """Sends GET requests. Ignores the environment (proxies, ``.netrc``), except OpenSSL's ``SSL_CERT_FILE``.

    One per process; thread-safe. Requests share no state, not even cookies.
    """

    def __init__(self) -> None:
        logging.getLogger("httpx").addFilter(_is_no_request)
        self._tls = ssl.create_default_context()

    def __call__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> int:
        """Send a request and return the status of the response.

        :param timeout_s: seconds for the connection, for each wait for data, and for the content as a whole
        :raises ActionError: there was no response; of the URL, the text contains only the host
        """
        host = host_of(url)
        try:
            with (
                httpx.Client(verify=self._tls, trust_env=False, follow_redirects=False, timeout=timeout_s) as client,
                client.stream("GET", url, headers={"User-Agent": "ironic-rules", **headers}) as answer,
            ):
                _skim(answer, timeout_s)
                return int(answer.status_code)
        except httpx.TimeoutException:
            reason = f"{host} did not answer within {timeout_s:g} seconds"
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            reason = f"no answer from {host} ({type(exc).__name__})"
        # Outside the handler, so that no traceback contains the exception with the whole URL.
        raise ActionError(reason)


def _is_no_request(record: logging.LogRecord) -> bool:
    """Keep httpx from logging whole URLs at any log level, because those of sensitive rules must not be disclosed."""
    return record.levelno > logging.INFO


def _skim(answer: httpx.Response, timeout_s: float) -> None:
    deadline, left = time.monotonic() + timeout_s, MAX_ANSWER_BYTES
    for chunk in answer.iter_raw():
        left -= len(chunk)
        if left <= 0 or time.monotonic() > deadline:
            return
