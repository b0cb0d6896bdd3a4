"""The speed of the main functions: ``tox -e perf`` prints the table.

With ``IRONIC_RULES_REFERENCE`` set, the reference service is measured in the same run and ratios are printed. No test
fails for being slow: the figures are for people.
"""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.table import Table

from tests.perf import loads, reference
from tests.perf.client import Client
from tests.perf.processes import Measured, ours

_LISTS = {
    "list of 1,000 nodes": "/v1/nodes?limit=1000",
    "list of 1,000 nodes, 2 fields": "/v1/nodes?limit=1000&fields=uuid,provision_state",
    "list of 1,000 nodes, detail": "/v1/nodes?limit=1000&detail=true",
    "list of 1,000 rules": "/v1/inspection_rules?limit=1000",
    "list of 1,000 rules, detail": "/v1/inspection_rules?limit=1000&detail=true",
}

Figures = dict[str, float]


def measure(service: Measured, nodes: int, repeat: int) -> Figures:
    """Return every figure of a service whose database is empty."""
    figures: Figures = {
        "start to first answer, s": service.started_s, "resident memory at start, MiB": service.resident_mib()}
    rate, posts = loads.inspect(service.endpoint, nodes, 8)
    figures[f"end to end, {nodes} nodes, 8 at once, nodes/s"] = rate
    figures["POST continue_inspection p50, ms"] = posts.median_ms
    figures["POST continue_inspection p95, ms"] = posts.percentile_ms(95)
    figures[f"resident memory after {nodes} inspections, MiB"] = service.resident_mib()
    loads.delete_all(service.endpoint, "nodes")
    figures["node create, 4 at once, requests/s"] = loads.create_nodes(service.endpoint, 1000).per_second
    figures["rule create, requests/s"] = loads.create_rules(service.endpoint, 1000).per_second
    for name, path in _LISTS.items():
        figures[f"{name}, requests/s"] = loads.repeat_get(service.endpoint, path, repeat).per_second
    figures["get one node by name, requests/s"] = loads.repeat_get(
        service.endpoint, _first_node(service.endpoint), 200).per_second
    figures["GET / (the API's own overhead), ms"] = loads.repeat_get(service.endpoint, "/", 300).median_ms
    return figures


def _first_node(endpoint: str) -> str:
    with Client(endpoint) as client:
        found = client.json("GET", "/v1/nodes?limit=1&fields=name")
    return "/v1/nodes/" + found["nodes"][0]["name"]


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    with ours(tmp_path_factory.mktemp("ours")) as service:
        found["ironic-rules"] = measure(service, 200, 60)
    venv = reference.environment()
    if venv is not None:
        with reference.running(tmp_path_factory.mktemp("reference"), venv) as service:
            found["reference"] = measure(service, 200, 15)
    return found



def test_the_table_of_the_main_job(figures: dict[str, Figures]) -> None:
    table = Table(title="The main job")
    for column in ("figure", *figures, *(["ratio"] if "reference" in figures else [])):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for name, own in figures["ironic-rules"].items():
        cells = [f"{values[name]:.2f}" for values in figures.values()]
        if "reference" in figures:
            other = figures["reference"][name]
            cells.append(f"{own / other:.2f}" if name.endswith("/s") else f"1/{other / own:.2f}")
        table.add_row(name, *cells)
    Console(width=110).print(table)
    assert all(value > 0 for values in figures.values() for value in values.values())
