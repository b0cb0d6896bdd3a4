"""Reading the power states of 10,000 BMCs: ``tox -e perf -- polls`` prints processor time, memory and durations.

The BMCs are one process of their own, so that its time does not count. A thousand of them accept connections and never
reply in the second part, in which requests to the service are measured at the same time.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from ironic_rules.conductor.power_states import PowerStates
from ironic_rules.db import nodes
from ironic_rules.hardware.redfish import client
from ironic_rules.models import states
from tests.functional.test_slow_hardware import OPTIONS, Machine
from tests.functional.whole import Whole, running
from tests.unit.hardware.redfish_bmc import close_all

_NODES, _HUNG = 10_000, 1000
_BMC = """
import asyncio, json, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
ROOT = json.dumps({"Id": "Root", "Name": "Root", "RedfishVersion": "1.6.0",
                   "Systems": {"@odata.id": "/redfish/v1/Systems"}}).encode()

async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            path = head.split(b" ", 2)[1].decode()
            if path.endswith("/hung"):
                await asyncio.sleep(86400)
            body = ROOT
            if "/Systems/" in path:
                body = json.dumps({"@odata.id": path, "Id": "1", "Name": "System", "PowerState": "On"}).encode()
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n"
                         % len(body) + body)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    monkeypatch.setattr(client, "CONNECTIONS", client.Connections())
    process = subprocess.Popen([sys.executable, "-c", _BMC], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        close_all(client.CONNECTIONS)
        process.terminate()
        process.wait()
        process.stdout.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def address(number: int, port: int) -> str:
    """Return an address of its own for each BMC: all of 127.0.0.0/8 is this machine."""
    return f"http://127.{1 + number // 62500}.{number // 250 % 250}.{1 + number % 250}:{port}"


def create(whole: Whole, port: int, number: int, hung: int = 0) -> None:
    """Create nodes; of those that hang, the identifiers are spread over the others."""
    every = number // hung if hung else number + 1

    def write(conn: object) -> None:
        for place in range(number):
            system = "hung" if place % every == every - 1 else "1"
            nodes.create(conn, {  # type: ignore[arg-type]
                "driver": "redfish", "conductor_group": "", "provision_state": states.ACTIVE, "power_state": "power on",
                "power_interface": "redfish", "driver_info": {
                    "redfish_address": address(place, port), "redfish_system_id": f"/redfish/v1/Systems/{system}",
                    "redfish_username": "u", "redfish_password": "p", "redfish_auth_type": "basic"}})

    whole.db.write(write)


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of processor time and of the clock."""
    cpu, begun = time.process_time(), time.monotonic()
    work()
    return time.process_time() - cpu, time.monotonic() - begun


def memory() -> float:
    return psutil.Process().memory_info().rss / 2**20


@pytest.mark.parametrize("cached", [0, 1000, _NODES])
def test_a_round_of_ten_thousand_bmcs(port: int, tmp_path: Path, cached: int) -> None:
    with (running(tmp_path, OPTIONS, {"redfish": Machine}) as whole,
          whole.option("redfish", "connection_cache_size", cached)):
        create(whole, port, _NODES)
        reader, before = PowerStates(whole.conductor), memory()
        rounds = [measured(reader.sync) for _ in range(3)]
        assert not reader._silent
        Console().print(
            f"{_NODES} BMCs, connection_cache_size {cached}: first round {rounds[0][0]:.1f} s of CPU in "
            f"{rounds[0][1]:.1f} s, next ones {min(cpu for cpu, _ in rounds[1:]):.1f} s; memory + "
            f"{memory() - before:.0f} MiB", soft_wrap=True)


def test_a_thousand_bmcs_hang(port: int, tmp_path: Path) -> None:
    with running(tmp_path, OPTIONS, {"redfish": Machine}) as whole:
        create(whole, port, _NODES, _HUNG)
        reader, before = PowerStates(whole.conductor), memory()
        replies: list[float] = []
        done = threading.Event()

        def ask() -> None:
            while not done.wait(0.1):
                begun = time.monotonic()
                assert whole.app.get("/v1/nodes?limit=10").status_int == 200
                replies.append(time.monotonic() - begun)

        asking = threading.Thread(target=ask)
        asking.start()
        most, rounds = 0, []
        try:
            for _ in range(4):
                rounds.append(measured(reader.sync))
                most = max(most, threading.active_count())
        finally:
            done.set()
            asking.join()
        assert len(reader._silent) == _HUNG
        Console().print(
            f"{_NODES} BMCs, {_HUNG} of them hang: rounds of "
            f"{', '.join(f'{clock:.0f} s ({cpu:.1f} s of CPU)' for cpu, clock in rounds)}; a list meanwhile, 95 %: "
            f"{1000 * statistics.quantiles(replies, n=20)[-1]:.0f} ms; memory + {memory() - before:.0f} MiB",
            soft_wrap=True)
