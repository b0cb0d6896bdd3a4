"""A small client of the service: keep-alive connections, a microversion, and retries like those of the real clients.

API calls are retried after 409 (the node is locked), 502, 503, 504 and connection errors; a ramdisk's report after
409, any 5xx and connection errors, as ironic-python-agent does.
"""

from __future__ import annotations

import ssl
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from ironic_rules.models import json_text
from ironic_rules.models.documents import JSONObject

VERSION_HEADER = "X-OpenStack-Ironic-API-Version"


class ClientError(Exception):
    """The service did not carry out a request.

    :param uncertain: an earlier attempt failed without a response, so the service may have carried it out nevertheless
    """

    def __init__(self, text: str, uncertain: bool = False) -> None:
        self.uncertain = uncertain
        super().__init__(text)


class Unreachable(ClientError):
    """No response: refused, reset or timed out, even after the last retry."""


class ApiError(ClientError):
    """A response with an error status."""

    def __init__(self, status: int, text: str, uncertain: bool = False) -> None:
        self.status = status
        super().__init__(text, uncertain)


class Stopped(ClientError):
    """The user has interrupted the run."""


@dataclass(frozen=True)
class Retry:
    """The number of tries, and the delays: the base in seconds, doubled each time, at most six times the base.

    The agent waits 5 to 30 s; a simulation does not need to wait that long.
    """

    tries: int = 5
    base_delay_s: float = 1.0

    def delay_s(self, tries_made: int) -> float:
        """Return the seconds to wait after that many tries."""
        return self.base_delay_s * min(2.0 ** (tries_made - 1), 6.0)


@dataclass(frozen=True)
class Callback:
    """The result of one ramdisk's POST.

    :param accepted: the service responded with a status below 400
    :param uncertain: not accepted, but an attempt got no definite response: the node's state shows whether it arrived
    :param seconds: time of the last attempt only, without delays
    """

    accepted: bool
    uncertain: bool
    seconds: float
    tries: int
    reason: str = ""


def _trusting(authority: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authority)
    except OSError as error:
        raise ValueError(f"{authority} has no certificates that can be read: {error.strerror or error}") from error


class Client:
    """The service at ``endpoint``. Methods may be called from several threads."""

    def __init__(
        self, endpoint: str, api_version: str = "1.96", *, retry: Retry | None = None, timeout_s: float = 100.0,
        connections: int = 8, headers: Mapping[str, str] | None = None, authority: str | None = None,
    ) -> None:
        """Create the client.

        :param authority: path of the certificates that are trusted in place of the system's
        :raises ValueError: they cannot be read
        """
        self.endpoint = endpoint.rstrip("/").removesuffix("/v1")
        self.retry = retry or Retry()
        self.stop = threading.Event()
        self._version = {VERSION_HEADER: api_version}
        limits = httpx.Limits(max_connections=connections + 2, max_keepalive_connections=connections + 2)
        self._http = httpx.Client(
            verify=True if authority is None else _trusting(authority),
            timeout=httpx.Timeout(timeout_s, connect=10.0), limits=limits, follow_redirects=False,
            headers={"Accept": "application/json", "User-Agent": "ironic-rules-simulate", **(headers or {})},
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._http.close()

    def check(self) -> None:
        """Check that there is a bare-metal API at the endpoint, which supports the requested version.

        :raises ClientError: there is no service, or another one; the text is one line for the user
        """
        try:
            answer = self._http.get(f"{self.endpoint}/")
        except httpx.InvalidURL as exc:
            raise Unreachable(f"{self.endpoint} is not a usable URL: {exc}") from exc
        except httpx.HTTPError as exc:
            raise Unreachable(f"cannot connect to {self.endpoint}: {_reason(exc)}") from exc
        body = _object(answer)
        if answer.status_code != 200 or "default_version" not in body:
            raise ApiError(answer.status_code, f"{self.endpoint} responds, but it is not a bare-metal API "
                                               f"(GET / gave {answer.status_code} without a default_version)")
        try:
            self.get("/v1/nodes", limit=1, fields="uuid")
        except ApiError as exc:
            if exc.status == 406:
                requested, versions = self._version[VERSION_HEADER], body["default_version"]
                least, most = str(versions.get("min_version")), str(versions.get("version"))
                if _numbers(least) <= _numbers(requested) <= _numbers(most):
                    raise ApiError(406, f"API version {requested} does not have what the simulation needs: "
                                        f"use a later one, up to {most}") from exc
                raise ApiError(406, f"{self.endpoint} does not support API version {requested}, only {least} to {most}"
                               ) from exc
            raise

    def get(self, path: str, **query: Any) -> JSONObject:
        """Return the object at ``path``, which begins with ``/v1``."""
        return self.call("GET", path, query=query)

    def pages(self, path: str, key: str, **query: Any) -> Iterator[JSONObject]:
        """Yield the items of a collection, page after page."""
        page = self.get(path, **query)
        while True:
            yield from page.get(key) or []
            if not page.get("next"):
                return
            page = self.call("GET", page["next"])

    def call(
        self, method: str, path: str, body: object = None, query: Mapping[str, Any] | None = None, *,
        retry_conflict: bool = True, headers: Mapping[str, str] | None = None,
    ) -> JSONObject:
        """Send one request, with retries, and return the JSON object of the response ({} if there is none).

        :param retry_conflict: retry after 409 too, which may be caused by a short lock
        :raises ApiError: an error status; the text is that of the service
        :raises Unreachable: no response
        """
        url = path if path.startswith("http") else self.endpoint + path
        again = {502, 503, 504} | ({409} if retry_conflict else set())
        uncertain = False
        for attempt in range(1, self.retry.tries + 1):
            last = attempt == self.retry.tries
            try:
                answer = self._http.request(method, url, json=body, params=query or None,
                                            headers={**self._version, **(headers or {})})
            except httpx.HTTPError as exc:
                if last:
                    raise Unreachable(f"{method} {url}: {_reason(exc)}", uncertain=True) from exc
                uncertain = True
            else:
                if answer.status_code < 400:
                    return _object(answer)
                if last or answer.status_code not in again:
                    text = f"{method} {answer.url.path}: {answer.status_code} {fault(answer)}"
                    raise ApiError(answer.status_code, text, uncertain)
                uncertain = uncertain or answer.status_code != 409
            self._pause(attempt)
        raise AssertionError("a retry policy has at least one try")

    def send_inventory(self, content: bytes) -> Callback:
        """POST a ramdisk's data to the public endpoint as the agent does: JSON, no version header, no credentials.

        Errors of the service are not raised, but returned in the result.
        """
        uncertain = False
        attempt = 0
        while True:
            attempt += 1
            begin = time.perf_counter()
            try:
                answer = self._http.post(f"{self.endpoint}/v1/continue_inspection", content=content,
                                         headers={"Content-Type": "application/json"})
            except httpx.HTTPError as exc:
                reason, final, lost = _reason(exc), False, True
            else:
                if answer.status_code < 400:
                    return Callback(True, False, time.perf_counter() - begin, attempt)
                reason = f"{answer.status_code} {fault(answer)}"
                lost = answer.status_code >= 500
                final = not lost and answer.status_code != 409
            seconds = time.perf_counter() - begin
            uncertain = uncertain or lost
            if final or attempt >= self.retry.tries:
                return Callback(False, uncertain, seconds, attempt, reason)
            self._pause(attempt)

    def _pause(self, tries_made: int) -> None:
        if self.stop.wait(self.retry.delay_s(tries_made)):
            raise Stopped("interrupted")


def fault(answer: httpx.Response) -> str:
    """Return the text of an error body in any of Ironic's formats; the reason phrase if there is none."""
    body: Any = _object(answer)
    body = body.get("error_message", body)
    if isinstance(body, str):
        try:
            body = json_text.parse(body)
        except ValueError:
            return body
    text = body.get("faultstring") or body.get("title") if isinstance(body, dict) else None
    return str(text or answer.reason_phrase)


def _object(answer: httpx.Response) -> JSONObject:
    try:
        body = json_text.parse(answer.text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _numbers(version: str) -> list[int]:
    """Return the key by which versions are compared; a version of another form is later than all others."""
    numbers = version.split(".")
    return [int(number) for number in numbers] if all(map(str.isdecimal, numbers)) else [sys.maxsize]


def _reason(exc: httpx.HTTPError) -> str:
    return str(exc) or type(exc).__name__
