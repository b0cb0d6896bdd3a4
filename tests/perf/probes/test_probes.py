"""The time of ``/healthcheck`` and version documents while the service is busy: each should take less than 0.1 s.

Three loads, one after the other: simulated ramdisks, ten clients that get pages of a thousand nodes, and ten that send
bodies which are made to cost much.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import multiprocessing
import os
import time
from collections.abc import Callable

import httpx

from tests.functional import test_hostile_bodies
from tests.functional.fleets import Simulation
from tests.perf import loads, processes

_PATHS = ("/healthcheck", "/healthcheck/live", "/", "/v1")
_SECONDS = 15.0
_NODES = 1000


def probe(endpoint: str, seconds: float = _SECONDS) -> list[float]:
    """Request each of the documents again and again, each over a new connection; return the durations in ms, sorted."""
    took = []
    _prefer(-15)  # to wait for a processor is not the service's fault
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        began = time.perf_counter()
        connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=20)
        connection.request("GET", _PATHS[number % len(_PATHS)])
        assert connection.getresponse().read()
        took.append((time.perf_counter() - began) * 1000)
        connection.close()
        number += 1
        time.sleep(0.02)
    _prefer(0)
    return sorted(took)


def _prefer(niceness: int) -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)


def pages(endpoint: str, until: float) -> None:
    """Get pages of all nodes until then."""
    with httpx.Client(base_url=endpoint, timeout=120) as client:
        while time.monotonic() < until:
            client.get(f"/v1/nodes/detail?limit={_NODES}").raise_for_status()


def bodies(endpoint: str, until: float) -> None:
    """Send bodies that are made to cost much until then."""
    made = itertools.cycle(test_hostile_bodies.made())
    while time.monotonic() < until:
        body, expected = next(made)
        assert httpx.post(f"{endpoint}/v1/continue_inspection", content=body, timeout=120).status_code == expected


def under(work: Callable[[str, float], None], endpoint: str) -> list[float]:
    """Return the durations while ten processes do ``work``."""
    until = time.monotonic() + _SECONDS + 3
    clients = [multiprocessing.Process(target=work, args=(endpoint, until)) for _ in range(10)]
    for client in clients:
        client.start()
    time.sleep(1)
    took = probe(endpoint)
    for client in clients:
        client.join()
    assert [client.exitcode for client in clients] == [0] * len(clients)
    return took


def test_health_checks_of_a_busy_service(tmp_path):
    with processes.ours(tmp_path) as service:
        loads.create_nodes(service.endpoint, _NODES)
        fleet = Simulation(service.endpoint, 300, tmp_path, "--concurrency", "32")
        time.sleep(2)
        found = {"simulated ramdisks": probe(service.endpoint)}
        fleet.report()
        found["pages of 1,000 nodes"] = under(pages, service.endpoint)
        found["hostile bodies"] = under(bodies, service.endpoint)
    for load, took in found.items():
        late = sum(each > 100 for each in took)
        print(f"{load}: {len(took)} requests, p50 {took[len(took) // 2]:.1f} ms, p95 {took[len(took) * 95 // 100]:.1f} "
              f"ms, longest {took[-1]:.1f} ms, {late} of more than 100 ms")
