"""The lists that clients request besides nodes, rules and templates: ``tox -e perf -- test_lists.py``.

With ``IRONIC_RULES_REFERENCE`` set, the reference service is measured in the same run, and the ratios are printed next
to their limit. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from tests.perf import loads, reference
from tests.perf.client import Client, Timing, run
from tests.perf.processes import ours

_COUNT = 1000
_NODES = 1000
#: The required ratio to the reference's requests per second.
_BAR = 15
_LISTS = {
    "chassis": f"chassis?limit={_COUNT}", "chassis, detail": f"chassis?limit={_COUNT}&detail=true",
    "volume connectors": f"volume/connectors?limit={_COUNT}",
    "volume connectors, detail": f"volume/connectors?limit={_COUNT}&detail=true",
    "volume targets": f"volume/targets?limit={_COUNT}",
    "volume targets, detail": f"volume/targets?limit={_COUNT}&detail=true",
    "allocations": f"allocations?limit={_COUNT}",
    "runbooks": f"runbooks?limit={_COUNT}", "runbooks, detail": f"runbooks?limit={_COUNT}&detail=true",
    "shards": "shards",
}


def _body(collection: str, number: int, nodes: list[str]) -> dict[str, Any]:
    """Return a request that creates the item of this number."""
    return {
        "chassis": {"description": f"rack {number}", "extra": {"row": number % 40}},
        "volume/connectors": {"node_uuid": nodes[number % len(nodes)], "type": "iqn",
                              "connector_id": f"iqn.2026-11.org.example:{number}", "extra": {"row": number % 40}},
        "volume/targets": {"node_uuid": nodes[number % len(nodes)], "volume_type": "iscsi", "boot_index": number,
                           "volume_id": str(uuid.UUID(int=number)),
                           "properties": {"target_iqn": f"iqn.2026-11.org.example:{number}", "target_lun": 1}},
        # No node has the class: an allocation that has ended with an error is listed like any other one.
        "allocations": {"name": f"allocation-{number}", "resource_class": "none", "traits": ["CUSTOM_FAST"],
                        "extra": {"row": number % 40}},
        "runbooks": {"name": f"CUSTOM_BENCH_{number}", "extra": {"row": number % 40}, "steps": [
            {"interface": "raid", "step": "create_configuration", "order": 1, "args": {}},
            {"interface": "bios", "step": "apply_configuration", "order": 2,
             "args": {"settings": [{"name": "LogicalProc", "value": "Enabled"}]}}]},
    }[collection]


def measure(endpoint: str, repeat: int) -> dict[str, Timing]:
    """Return the timing of every list of a service whose database is empty."""
    run(endpoint, _NODES, 1, lambda client, number: client.request("POST", "/v1/nodes", {
        "driver": "fake-hardware", "name": f"list-{number}", "shard": f"shard-{number}"}))
    with Client(endpoint) as client:
        nodes = [node["uuid"] for node in client.json("GET", f"/v1/nodes?limit={_NODES}&fields=uuid")["nodes"]]
    for collection in ("chassis", "volume/connectors", "volume/targets", "allocations", "runbooks"):
        run(endpoint, _COUNT, 1, lambda client, number, collection=collection: client.request(  # type: ignore[misc]
            "POST", f"/v1/{collection}", _body(collection, number, nodes)))
    found = {}
    for name, path in _LISTS.items():
        with Client(endpoint) as client:
            answer = client.json("GET", f"/v1/{path}")
        length = len(next(value for value in answer.values() if isinstance(value, list)))
        assert length == _COUNT, f"{name}: {length}"
        found[name] = loads.repeat_get(endpoint, f"/v1/{path}", repeat)
    return found


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Timing]]:
    found = {}
    with ours(tmp_path_factory.mktemp("ours")) as service:
        found["ironic-rules"] = measure(service.endpoint, 60)
    venv = reference.environment()
    if venv is not None:
        with reference.running(tmp_path_factory.mktemp("reference"), venv) as service:
            found["reference"] = measure(service.endpoint, 8)
    return found


def test_the_table_of_lists(figures: dict[str, dict[str, Timing]]) -> None:
    table = Table(title=f"Lists of {_COUNT}: requests/s, p50 in ms")
    for column in ("list", *(f"{name} {what}" for name in figures for what in ("/s", "p50")), "ratio", "bar"):
        table.add_column(column, justify="left" if column == "list" else "right")
    for name in _LISTS:
        cells = [cell for timings in figures.values() for cell in (
            f"{timings[name].per_second:.1f}", f"{timings[name].median_ms:.2f}")]
        ratio = "-"
        if "reference" in figures:
            ratio = f"{figures['ironic-rules'][name].per_second / figures['reference'][name].per_second:.1f}"
        table.add_row(name, *cells, ratio, str(_BAR))
    Console(width=110).print(table)
    assert all(timing.per_second > 0 for timings in figures.values() for timing in timings.values())
