"""What every test of rules gets: a web in which a few hosts may be called, and nothing leaves the process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from ironic_rules.rules import ActionError
from ironic_rules.rules.api_call import GATE

ALLOWED = ("cmdb.example.org", "cmdb.example.org:8443", "silent.example.org", "192.0.2.7", "[2001:db8::7]:8080")


class Web:
    """Answers ``/status/N`` with N, silent.example.org not at all, and all else with 200. Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], float]] = []

    def get(self, url: str, headers: Mapping[str, str], timeout_s: float) -> int:
        self.asked.append((url, dict(headers), timeout_s))
        if "silent.example.org" in url:
            raise ActionError("silent.example.org did not answer within 5 seconds")
        _, found, status = url.partition("/status/")
        return int(status[:3]) if found else 200


@pytest.fixture(scope="package", autouse=True)
def _open_gate() -> Iterator[Web]:
    web = Web()
    GATE.open(ALLOWED, web.get)
    yield web
    GATE.close()


@pytest.fixture
def web(_open_gate: Web) -> Web:
    """The web of the tests, asked nothing yet."""
    _open_gate.asked.clear()
    return _open_gate
