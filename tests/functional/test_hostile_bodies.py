"""The memory of the service while, and after, clients send bodies that are made to cost much."""

from __future__ import annotations

import collections
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.functional import processes

#: ``IRONIC_RULES_TEST_BODIES=1000`` is the full size; the figures are printed with ``-s``.
NUMBER = int(os.environ.get("IRONIC_RULES_TEST_BODIES", "36"))
MIB = 2**20
START = b'{"inventory":{"interfaces":[{"mac_address":"52:54:00:00:00:01"}],"x":'


def filled(unit: bytes, size: int) -> bytes:
    """Return a report of about ``size`` bytes with a list of ``unit``, as often as it fits."""
    return START + b"[" + b",".join([unit] * (size // (len(unit) + 1) - 40)) + b"]}}"


def made() -> list[tuple[bytes, int]]:
    """Return the bodies, each with the status of its reply."""
    return [
        (filled(b'""', 10 * MIB), 413), (filled(b'""', 4 * MIB), 400), (filled(b"{}", 630 * 1024), 400),
        (filled(b"{}", 128 * 1024), 404), (filled(b'["a"]', 1200 * 1024), 400), (filled(b"1e300", 600 * 1024), 404),
        (START + b"{" + b",".join(b'"%x":1.5' % number for number in range(100_000)) + b"}}}", 404),
        (START + b'"' + b'\\":' * MIB + b'"}}', 404),
        (START + b'"' + "\U0001f4bb".encode() * (MIB - 99) + b'"}}', 404),
    ]


def mib(pid: int, field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) // 1024


@pytest.mark.slow
def test_bodies_that_are_made_to_cost_much_do_not_fill_the_memory(tmp_path):
    bodies = made()

    def send(number: int) -> tuple[int, int, int]:
        body, expected = bodies[number % len(bodies)]
        return number % len(bodies), httpx.post(url, content=body, timeout=120).status_code, expected

    with processes.standalone(tmp_path, imports_itself=True) as (service, endpoint), ThreadPoolExecutor(10) as clients:
        url = f"{endpoint}/v1/continue_inspection"
        replies = collections.Counter(clients.map(send, range(NUMBER)))
        most, after = mib(service.pid, "VmHWM"), mib(service.pid, "VmRSS")

    print(f"{NUMBER} bodies, ten at once: at most {most} MiB, {after} MiB afterwards")
    assert all(status == expected for _, status, expected in replies), replies
    assert most < 200
    assert after < 150
