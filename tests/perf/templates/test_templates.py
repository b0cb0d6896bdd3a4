"""Deploy templates over HTTP: ``tox -e perf -- templates`` prints the table.

With ``IRONIC_RULES_REFERENCE`` set, the reference service is measured in the same run, and the ratios are printed next
to their limits. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from tests.perf import loads, reference
from tests.perf.client import Timing, run
from tests.perf.processes import ours

_COUNT = 1000
_LIST = f"/v1/deploy_templates?limit={_COUNT}"
#: figure: the required ratio to the reference's requests per second
_BARS = {"create": 4, "get by name": 4, "get by name, 4 at once": 4, f"list of {_COUNT}": 15,
         f"list of {_COUNT}, detail": 15, f"list of {_COUNT}, detail, 4 at once": 15}


def _template(number: int) -> dict[str, Any]:
    """Return a template with a RAID and a BIOS step; every tenth has a secret among its arguments."""
    settings = [{"name": "LogicalProc", "value": "Enabled"}, {"name": "SriovGlobalEnable", "value": "No"}]
    bios = ({"step": "set_password", "args": {"name": "setup", "new_password": "secret"}} if number % 10 == 0
            else {"step": "apply_configuration", "args": {"settings": settings}})
    raid = {"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}
    return {"name": f"CUSTOM_BENCH_{number}", "extra": {"rack": number % 40}, "steps": [
        {"interface": "raid", "step": "create_configuration", "priority": 90,
         "args": {"logical_disks": [raid], "delete_configuration": True}},
        {"interface": "bios", "priority": 150, **bios}]}


def measure(endpoint: str, repeat: int) -> dict[str, Timing]:
    """Return every figure of a service that has no templates."""
    found = {"create": run(endpoint, _COUNT, 1, lambda client, number: client.request(
        "POST", "/v1/deploy_templates", _template(number)))}
    one = f"/v1/deploy_templates/CUSTOM_BENCH_{_COUNT // 2}"
    found["get by name"] = loads.repeat_get(endpoint, one, 300)
    found["get by name, 4 at once"] = loads.repeat_get(endpoint, one, 300, 4)
    found[f"list of {_COUNT}"] = loads.repeat_get(endpoint, _LIST, repeat)
    found[f"list of {_COUNT}, detail"] = loads.repeat_get(endpoint, f"{_LIST}&detail=true", repeat)
    found[f"list of {_COUNT}, detail, 4 at once"] = loads.repeat_get(endpoint, f"{_LIST}&detail=true", repeat, 4)
    return found


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Timing]]:
    found = {}
    with ours(tmp_path_factory.mktemp("ours")) as service:
        found["ironic-rules"] = measure(service.endpoint, 100)
    venv = reference.environment()
    if venv is not None:
        with reference.running(tmp_path_factory.mktemp("reference"), venv) as service:
            found["reference"] = measure(service.endpoint, 12)
    return found


def test_the_table_of_deploy_templates(figures: dict[str, dict[str, Timing]]) -> None:
    table = Table(title="Deploy templates: requests/s, p50 and p95 in ms")
    columns = [f"{name} {what}" for name in figures for what in ("/s", "p50", "p95")]
    for column in ("figure", *columns, "ratio", "bar"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for name, bar in _BARS.items():
        cells = [cell for timings in figures.values() for cell in (
            f"{timings[name].per_second:.1f}", f"{timings[name].median_ms:.2f}",
            f"{timings[name].percentile_ms(95):.2f}")]
        ratio = "-"
        if "reference" in figures:
            ratio = f"{figures['ironic-rules'][name].per_second / figures['reference'][name].per_second:.1f}"
        table.add_row(name, *cells, ratio, str(bar))
    Console(width=130).print(table)
    assert all(timing.per_second > 0 for timings in figures.values() for timing in timings.values())
