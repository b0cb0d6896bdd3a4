"""The growth of memory with requests: ``tox -e perf -- soak`` lets 8 clients use all kinds of routes for five minutes.

``IRONIC_RULES_TEST_SOAK_S`` is another number of seconds. The first third is for caches, pools and heaps to fill; of
the rest, the table has the slope of the resident memory. No test fails for using much: the figures are for people.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from tests.functional.api.routes import ROUTES
from tests.perf import loads
from tests.perf.client import Client, run
from tests.perf.processes import ours

_CLIENTS = 8
#: Requests between two looks at the memory.
_ROUND = 2000
_MIB_PER = 10_000
#: A route may reply that it has nothing, or that this is not possible in the node's state.
_REPLIES = tuple(range(200, 500))
_PLAIN = sorted({route.path for route in ROUTES if route.method == "GET" and "{" not in route.path})
_OF_NODE = sorted({route.path for route in ROUTES
                   if route.method == "GET" and re.fullmatch(r"/v1/nodes/\{\w+\}[^{]*", route.path)})


def read(client: Client, number: int, node: str) -> None:
    paths = _PLAIN + _OF_NODE
    client.request("GET", re.sub(r"\{\w+\}", node, paths[number % len(paths)]), ok=_REPLIES)


def change_rule(client: Client, number: int, _: str) -> None:
    made = client.json("POST", "/v1/inspection_rules", loads.rule(number, False))["uuid"]
    client.request("PATCH", f"/v1/inspection_rules/{made}",
                   [{"op": "replace", "path": "/description", "value": f"soak {number}"}])
    client.request("DELETE", f"/v1/inspection_rules/{made}")


def change_template(client: Client, number: int, _: str) -> None:
    made = client.json("POST", "/v1/deploy_templates", {"name": f"CUSTOM_SOAK_{number}", "steps": [
        {"interface": "bios", "step": "factory_reset", "args": {}, "priority": 10}]})["uuid"]
    client.request("DELETE", f"/v1/deploy_templates/{made}")


def change_node(client: Client, number: int, node: str) -> None:
    client.request("PATCH", f"/v1/nodes/{node}", [{"op": "add", "path": "/extra/soak", "value": number}], ok=_REPLIES)
    client.request("PUT", f"/v1/nodes/{node}/traits/CUSTOM_SOAK", ok=_REPLIES)


def refused(client: Client, number: int, _: str) -> None:
    client.request("POST", "/v1/inspection_rules", {"conditions": number}, ok=_REPLIES)
    client.request("POST", "/v1/continue_inspection", loads.inventory(90_000_000 + number % 50), ok=_REPLIES)


def inspect(client: Client, number: int, _: str) -> None:
    """Enroll a machine, inspect it, and delete it."""
    loads._enter_inspect_wait(client, 50_000_000 + number, {})
    client.request("POST", "/v1/continue_inspection", loads.inventory(50_000_000 + number), ok=_REPLIES)
    name = f"/v1/nodes/bench-{50_000_000 + number}"
    loads._until(lambda: loads._has_reached(client, name.rpartition("/")[2], "manageable"))
    client.request("PUT", f"{name}/maintenance", {})
    client.request("DELETE", name)


#: By the last digits of a request's number; the others read.
_CHANGES: dict[int, Any] = {7: change_rule, 19: change_template, 23: change_node, 31: refused, 43: inspect}


def work(client: Client, number: int, node: str) -> None:
    _CHANGES.get(number % 50, read)(client, number, node)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, float]]:
    """Return the number of requests and MiB, of one round after the other."""
    found: list[tuple[int, float]] = []
    with ours(tmp_path_factory.mktemp("ours")) as service:
        loads.create_nodes(service.endpoint, 200)
        with Client(service.endpoint) as client:
            node = client.json("GET", "/v1/nodes?limit=1&fields=uuid")["nodes"][0]["uuid"]
        done, ends = 0, time.monotonic() + float(os.environ.get("IRONIC_RULES_TEST_SOAK_S", "300"))
        while time.monotonic() < ends or len(found) < 6:
            run(service.endpoint, _ROUND, _CLIENTS, lambda client, number, first=done: work(
                client, first + number, node))
            done += _ROUND
            found.append((done, service.resident_mib()))
    return found


def test_the_memory_of_all_kinds_of_requests(samples: list[tuple[int, float]]) -> None:
    rest = samples[len(samples) // 3:]
    slope, _ = statistics.linear_regression([float(done) for done, _ in rest], [mib for _, mib in rest])
    table = Table(title=f"Resident memory while {_CLIENTS} clients use all kinds of routes")
    for column in ("requests", "MiB at the first third", "MiB at the end", "largest", "MiB per 10,000 requests"):
        table.add_column(column, justify="right")
    largest = max(mib for _, mib in samples)
    table.add_row(f"{rest[-1][0]:,}", f"{rest[0][1]:.1f}", f"{rest[-1][1]:.1f}", f"{largest:.1f}",
                  f"{slope * _MIB_PER:.2f}")
    Console(width=120).print(table)
    assert rest[-1][0] >= _ROUND
