"""A small client of the service: keep-alive connections, a microversion, and retries as the real clients do them.

API calls are repeated after 409 (the node is locked), 502, 503, 504 and connection errors; a ramdisk's callback after
409, any 5xx and connection errors, as ironic-python-agent does.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

VERSION_HEADER = "X-OpenStack-Ironic-API-Version"


class ClientError(Exception):
    """The service did not do what it was asked to.

    :param uncertain: an earlier attempt failed without an answer, so the service may have done it all the same
    """

    def __init__(self, text: str, uncertain: bool = False) -> None:
        self.uncertain = uncertain
        super().__init__(text)


class Unreachable(ClientError):
    """No answer at all: refused, reset or timed out, also after the last retry."""


class ApiError(ClientError):
    """An answer with an error status."""

    def __init__(self, status: int, text: str, uncertain: bool = False) -> None:
        self.status = status
        super().__init__(text, uncertain)


class Stopped(ClientError):
    """The user has interrupted the run."""


@dataclass(frozen=True)
class Retry:
    """How often to try, and the delays between: the base in seconds, doubled each time, at most six times the base.

    The agent waits 5 to 30 s; a simulation has no reason to be that patient.
    """

    tries: int = 5
    base_delay_s: float = 1.0

    def delay_s(self, tries_made: int) -> float:
        """Return the seconds to wait after that many tries."""
        return self.base_delay_s * min(2.0 ** (tries_made - 1), 6.0)


@dataclass(frozen=True)
class Callback:
    """What became of one ramdisk's POST.

    :param accepted: the service answered with a status below 400
    :param uncertain: not accepted, but an attempt got no definite answer: the node's state tells whether it arrived
    :param seconds: time of the last attempt alone, without waiting
    """

    accepted: bool
    uncertain: bool
    seconds: float
    tries: int
    reason: str = ""


class Client:
    """The service at ``endpoint``. Methods may be called from several threads."""

    def __init__(
        self, endpoint: str, api_version: str = "1.96", *, retry: Retry | None = None, timeout_s: float = 100.0,
        connections: int = 8, headers: Mapping[str, str] | None = None,
    ) -> None:
        self.endpoint = endpoint.rstrip("/").removesuffix("/v1")
        self.retry = retry or Retry()
        self.stop = threading.Event()
        self._version = {VERSION_HEADER: api_version}
        limits = httpx.Limits(max_connections=connections + 2, max_keepalive_connections=connections + 2)
        self._http = httpx.Client(
            timeout=httpx.Timeout(timeout_s, connect=10.0), limits=limits, follow_redirects=False,
            headers={"Accept": "application/json", "User-Agent": "ironic-rules-simulate", **(headers or {})},
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._http.close()

    def check(self) -> None:
        """Make sure that a bare-metal API answers at the endpoint, with a version that it has.

        :raises ClientError: nobody answers, or somebody else does; the text is one line for the user
        """
        try:
            answer = self._http.get(f"{self.endpoint}/")
        except httpx.InvalidURL as exc:
            raise Unreachable(f"{self.endpoint} is not a usable URL: {exc}") from exc
        except httpx.HTTPError as exc:
            raise Unreachable(f"cannot connect to {self.endpoint}: {_reason(exc)}") from exc
        body = _object(answer)
        if answer.status_code != 200 or "default_version" not in body:
            raise ApiError(answer.status_code, f"{self.endpoint} answers, but it is not a bare-metal API "
                                               f"(GET / gave {answer.status_code} without a default_version)")
        try:
            self.get("/v1/nodes", limit=1, fields="uuid")
        except ApiError as exc:
            if exc.status == 406:
                known = body["default_version"]
                raise ApiError(406, f"{self.endpoint} does not know API version {self._version[VERSION_HEADER]}, but "
                                    f"{known.get('min_version')} to {known.get('version')}") from exc
            raise

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the object at ``path``, which begins with ``/v1``."""
        return self.call("GET", path, query=query)

    def pages(self, path: str, key: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the items of a collection, page after page."""
        page = self.get(path, **query)
        while True:
            yield from page.get(key) or []
            if not page.get("next"):
                return
            page = self.call("GET", page["next"])

    def call(
        self, method: str, path: str, body: object = None, query: Mapping[str, Any] | None = None, *,
        retry_conflict: bool = True,
    ) -> dict[str, Any]:
        """Send one request, repeated as the retry policy says, and return the JSON object of the answer ({} if none).

        :param retry_conflict: repeat after 409 too, which may mean a lock that is soon gone
        :raises ApiError: an error status; its text is the service's own
        :raises Unreachable: no answer
        """
        url = path if path.startswith("http") else self.endpoint + path
        again = {502, 503, 504} | ({409} if retry_conflict else set())
        uncertain = False
        for attempt in range(1, self.retry.tries + 1):
            last = attempt == self.retry.tries
            try:
                answer = self._http.request(method, url, json=body, params=query or None, headers=self._version)
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

        Never raises for what the service does; the result says it.
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
    """Return the service's words from an error body in any of Ironic's forms; the reason phrase if there are none."""
    body: Any = _object(answer)
    body = body.get("error_message", body)
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return body
    text = body.get("faultstring") or body.get("title") if isinstance(body, dict) else None
    return str(text or answer.reason_phrase)


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _reason(exc: httpx.HTTPError) -> str:
    return str(exc) or type(exc).__name__
