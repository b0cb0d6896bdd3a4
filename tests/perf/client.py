"""A small HTTP client and the loads of the benchmarks, for this service and the reference service alike."""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: Microversion of every request; both services support it.
VERSION = "1.96"


class Client:
    """One keep-alive connection."""

    def __init__(self, endpoint: str) -> None:
        parts = urllib.parse.urlsplit(endpoint)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        self._headers = {"X-OpenStack-Ironic-API-Version": VERSION, "Accept": "application/json",
                         "Content-Type": "application/json"}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()

    def request(self, method: str, path: str, body: Any = None, ok: tuple[int, ...] = (200, 201, 202, 204)) -> bytes:
        """Return the reply's body; a status that is not in ``ok`` is an error."""
        data = None if body is None else json.dumps(body).encode()
        for attempt in (0, 1):
            try:
                self._connection.request(method, path, data, self._headers)
                response = self._connection.getresponse()
                text = response.read()
                break
            except (http.client.HTTPException, ConnectionError):
                # The server may close an idle connection at any time.
                self._connection.close()
                if attempt:
                    raise
        if response.status not in ok:
            raise RuntimeError(f"{method} {path}: {response.status} {text[:300]!r}")
        return text

    def json(self, method: str, path: str, body: Any = None, **kwargs: Any) -> Any:
        """Return the reply's body decoded."""
        return json.loads(self.request(method, path, body, **kwargs) or b"null")


@dataclass
class Timing:
    """The measurements of a load: seconds per request, and the total duration."""

    seconds: list[float] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def per_second(self) -> float:
        return len(self.seconds) / self.wall_s

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the request times in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))] * 1e3

    @property
    def median_ms(self) -> float:
        return statistics.median(self.seconds) * 1e3


def run(endpoint: str, count: int, concurrency: int, work: Callable[[Client, int], object]) -> Timing:
    """Call ``work(client, i)`` for each ``i`` below ``count`` from ``concurrency`` threads with a connection each."""
    timing, numbers, guard = Timing(), iter(range(count)), threading.Lock()
    errors: list[BaseException] = []

    def loop() -> None:
        try:
            with Client(endpoint) as client:
                while True:
                    with guard:
                        number = next(numbers, None)
                    if number is None:
                        return
                    began = time.perf_counter()
                    work(client, number)
                    taken = time.perf_counter() - began
                    with guard:
                        timing.seconds.append(taken)
        except (RuntimeError, OSError, http.client.HTTPException) as exc:
            errors.append(exc)

    threads = [threading.Thread(target=loop) for _ in range(concurrency)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    timing.wall_s = time.perf_counter() - began
    if errors:
        raise errors[0]
    return timing
