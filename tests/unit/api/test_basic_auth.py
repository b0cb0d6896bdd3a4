"""Wrong passwords: they cost bcrypt's time, of which no client may take all."""

from __future__ import annotations

import base64
import queue
import threading
from collections.abc import Callable
from typing import Any

import bcrypt
import pytest

from ironic_rules.api.middleware.basic_auth import BasicAuth

HASH = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()


class Client:
    """Sends a password; the clock stands still unless :attr:`now` is changed."""

    def __init__(self, path: str, **settings: Any) -> None:
        self.now = 0.0
        self._app = BasicAuth(self._welcome, path, clock=lambda: self.now, **settings)

    @staticmethod
    def _welcome(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        return []

    def status(self, password: str, source: str = "192.0.2.1") -> int:
        self.headers: list[tuple[str, str]] = []
        given: list[str] = []

        def start(status: str, headers: list[tuple[str, str]]) -> None:
            given.append(status)
            self.headers = headers

        credentials = base64.b64encode(f"admin:{password}".encode()).decode()
        self._app({"HTTP_AUTHORIZATION": f"Basic {credentials}", "REMOTE_ADDR": source}, start)
        return int(given[0][:3])


@pytest.fixture
def path(tmp_path) -> str:
    (tmp_path / "htpasswd").write_text(f"admin:{HASH}\n")
    return str(tmp_path / "htpasswd")


def test_a_source_that_fails_waits_a_second_between_attempts(path):
    client = Client(path)
    assert [client.status(f"wrong{number}") for number in range(7)] == [401] * 5 + [429] * 2
    client.now = 0.9
    assert client.status("wrong") == 429
    assert ("Retry-After", "1") in client.headers
    client.now = 1.0
    assert client.status("wrong") == 401
    assert client.status("right") == 429
    assert client.status("right", "192.0.2.2") == 200
    assert client.status("right") == 200  # it has been right before, from wherever
    client.now = 2.0
    assert client.status("wrong") == 401


def test_a_source_that_has_failed_long_ago_is_as_any_other(path):
    client = Client(path)
    for number in range(5):
        client.status(f"wrong{number}")
    client.now = 60.0

    assert [client.status(f"wrong{number}") for number in range(6)] == [401] * 5 + [429]


def test_a_right_password_ends_the_wait(path):
    client = Client(path)
    for number in range(5):
        client.status(f"wrong{number}")
    client.now = 1.0

    assert [client.status("right"), *(client.status(f"wrong{number}") for number in range(5))] == [200, *[401] * 5]


def test_few_passwords_are_checked_at_once_and_few_threads_wait_for_them(path, monkeypatch):
    client = Client(path, threads=6, checks=1)
    assert client.status("right") == 200
    running: list[int] = []
    most: list[int] = []
    begun, released = threading.Event(), threading.Event()
    check = bcrypt.checkpw

    def slow(password: bytes, known: bytes) -> bool:
        running.append(1)
        most.append(len(running))
        begun.set()
        released.wait(60)
        running.pop()
        return check(password, known)

    monkeypatch.setattr(bcrypt, "checkpw", slow)
    statuses: queue.Queue[int] = queue.Queue()
    threads = [threading.Thread(target=lambda number=number: statuses.put(
        client.status("wrong", f"192.0.2.{number}"))) for number in range(6)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    assert client.status("right") == 200
    assert running == [1]
    # Those who are refused are answered first: when there are three, the others are waiting or checking.
    assert [statuses.get(timeout=60) for _ in range(3)] == [503] * 3
    released.set()
    assert [statuses.get(timeout=60) for _ in range(3)] == [401] * 3
    for thread in threads:
        thread.join()

    assert max(most) == 1
