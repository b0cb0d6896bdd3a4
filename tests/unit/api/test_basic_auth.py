"""Wrong passwords: they cost bcrypt's time, of which no client may take all."""

from __future__ import annotations

import base64
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import bcrypt
import pytest

from ironic_rules.api.basic_auth import BasicAuth

HASH = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()


class Client:
    """Sends a password; the clock stands still unless :attr:`now` is changed."""

    def __init__(self, path: str, **settings: Any) -> None:
        self.now = 0.0
        self._app = BasicAuth(self._welcome, path, clock=lambda: self.now, **settings)
        self.checks = self._app._checks

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


class SlowChecks:
    """A checker of passwords that waits: each check ends when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: queue.Queue[bytes] = queue.Queue()
        self._goes_on = threading.Semaphore(0)
        self._check = bcrypt.checkpw
        monkeypatch.setattr(bcrypt, "checkpw", self)

    def __call__(self, password: bytes, known: bytes) -> bool:
        self.begun.put(password)
        assert self._goes_on.acquire(timeout=60)
        return self._check(password, known)

    def end(self, number: int = 1) -> None:
        self._goes_on.release(number)


def checked(client: Client, password: str, source: str, statuses: queue.Queue[tuple[str, int]],
            checks: SlowChecks) -> threading.Thread:
    """Send a password in a thread; return when its check has begun."""
    thread = threading.Thread(target=lambda: statuses.put((password, client.status(password, source))))
    thread.start()
    assert checks.begun.get(timeout=60) == password.encode()
    return thread


def started(client: Client, password: str, source: str, statuses: queue.Queue[tuple[str, int]]) -> threading.Thread:
    """Send a password in a thread; return when it waits, is checked or was refused."""
    waiting = client.checks._waiting
    before, told = len(waiting), statuses.qsize()
    thread = threading.Thread(target=lambda: statuses.put((password, client.status(password, source))))
    thread.start()
    until = time.monotonic() + 60
    while len(waiting) == before and statuses.qsize() == told and time.monotonic() < until:
        time.sleep(0.001)
    return thread


def test_wrong_passwords_from_many_addresses_do_not_keep_a_user_out(path, monkeypatch):
    client = Client(path, threads=10, checks=1)
    addresses = [f"192.0.2.{number}" for number in range(1, 41)]
    assert [client.status("wrong", address) for address in addresses] == [401] * 40
    checks = SlowChecks(monkeypatch)
    statuses: queue.Queue[tuple[str, int]] = queue.Queue()
    threads = [checked(client, "wrong0", addresses[0], statuses, checks)]
    # All places are taken, and the next ones are refused.
    threads += [started(client, f"wrong{number}", addresses[number], statuses) for number in range(1, 10)]
    assert sorted(statuses.get(timeout=60) for _ in range(5)) == [(f"wrong{number}", 503) for number in range(5, 10)]

    threads.append(started(client, "right", "198.51.100.1", statuses))

    # It is the next one after the one that runs, and one of the others has given its place.
    assert statuses.get(timeout=60) == ("wrong4", 503)
    checks.end()
    assert checks.begun.get(timeout=60) == b"right"
    checks.end(4)
    assert sorted(statuses.get(timeout=60) for _ in range(5)) == [
        ("right", 200), *((f"wrong{number}", 401) for number in range(4))]
    for thread in threads:
        thread.join()


def test_requests_that_were_refused_count_too(path, monkeypatch):
    """With slow checks, most addresses have only sent what was refused."""
    client = Client(path, threads=4, checks=1)
    checks = SlowChecks(monkeypatch)
    statuses: queue.Queue[tuple[str, int]] = queue.Queue()
    threads = [checked(client, "0", "192.0.2.0", statuses, checks)]
    threads.append(started(client, "1", "192.0.2.1", statuses))
    assert [client.status(f"{number}", f"192.0.2.{number}") for number in (2, 3, 2, 3)] == [503] * 4
    # That of an address that has been refused once is next.
    assert client.status("right", "198.51.100.1") == 503
    checks.end()
    assert checks.begun.get(timeout=60) == b"1"
    threads.append(started(client, "2", "192.0.2.2", statuses))

    threads.append(started(client, "right", "198.51.100.1", statuses))

    assert {statuses.get(timeout=60), statuses.get(timeout=60)} == {("0", 401), ("2", 503)}
    checks.end(2)
    assert {statuses.get(timeout=60), statuses.get(timeout=60)} == {("1", 401), ("right", 200)}
    for thread in threads:
        thread.join()


def test_an_address_with_many_requests_has_one_share(path, monkeypatch):
    client = Client(path, threads=8, checks=1)
    checks = SlowChecks(monkeypatch)
    statuses: queue.Queue[tuple[str, int]] = queue.Queue()
    threads = [checked(client, "a0", "2001:db8::1", statuses, checks)]
    # All addresses of a network are one user's.
    threads += [started(client, f"a{number}", f"2001:db8::{number}:1", statuses) for number in range(1, 4)]

    threads.append(started(client, "right", "2001:db8:0:1::1", statuses))

    assert statuses.get(timeout=60) == ("a3", 503)
    checks.end()
    assert checks.begun.get(timeout=60) == b"right"
    checks.end(3)
    assert sorted(statuses.get(timeout=60) for _ in range(4)) == [("a0", 401), ("a1", 401), ("a2", 401), ("right", 200)]
    for thread in threads:
        thread.join()


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
