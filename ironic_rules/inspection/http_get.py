"""The HTTP requests of the rule action ``api-call``."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Mapping

import httpx

from ironic_rules.rules import ActionError
from ironic_rules.rules.hosts import host_of

#: What is read of an answer before the connection is closed. It is not used: a server is only left time to say it.
MAX_ANSWER_BYTES = 65536


class HttpxGet:
    """Sends GET requests. Takes nothing from the environment (proxies, ``.netrc``) but OpenSSL's ``SSL_CERT_FILE``.

    One per process; safe to use from any thread. Requests share nothing, cookies neither.
    """

    def __init__(self) -> None:
        logging.getLogger("httpx").addFilter(_is_no_request)
        self._tls = ssl.create_default_context()

    def __call__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> int:
        """Send a request and return the status of the answer.

        :param timeout_s: seconds for the connection, for each wait for data, and for the content as a whole
        :raises ActionError: there was no answer; the text has nothing of the URL but its host
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
        # Outside of the handler, so that no traceback has the exception with the whole URL.
        raise ActionError(reason)


def _is_no_request(record: logging.LogRecord) -> bool:
    """Keep httpx from logging whole URLs, whatever levels are set: those of sensitive rules are nobody's business."""
    return record.levelno > logging.INFO


def _skim(answer: httpx.Response, timeout_s: float) -> None:
    deadline, left = time.monotonic() + timeout_s, MAX_ANSWER_BYTES
    for chunk in answer.iter_raw():
        left -= len(chunk)
        if left <= 0 or time.monotonic() > deadline:
            return
