"""What the history of inspections, the statistics of rules and the journal of refused callbacks cost.

``tox -e perf -- inspection/test_costs.py`` starts the service with and without them, in turns, three times each, and
prints the medians of its processor time: nodes per second depend on what else the machine does. Bars: 5 % of an
inspection for history and statistics together, for the journal 2 % of it and 10 % of a refused request.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.perf import loads
from tests.perf.client import Client
from tests.perf.processes import ours

_ROUNDS = 3
_NODES = 100
_REFUSED = 300
_RULES, _MATCHING = 100, 10
_OFF = {
    "all": "",
    "no history": "[inspection_history]\nmax_entries = 0\n",
    "no statistics": "[inspection_rules]\nstatistics_interval = 0\n",
    "no journal": "[inspection_journal]\nmax_entries = 0\n",
}


def _spent(folder: Path, config: str) -> tuple[float, float]:
    """Return the milliseconds of processor time of an inspection and of a refused callback."""
    folder.mkdir()
    with ours(folder, config) as service, Client(service.endpoint) as client:
        client.json("PUT", "/v1/inspection_rules", {
            "rules": [loads.rule(number, number < _MATCHING) for number in range(_RULES)]})
        loads.inspect(service.endpoint, 10, 4)
        first = loads.enter_inspect_wait(service.endpoint, _NODES)
        began = service.processor_s()
        loads.report_all(service.endpoint, first, _NODES, 8)
        inspection = (service.processor_s() - began) / _NODES
        began = service.processor_s()
        for number in range(_REFUSED):
            client.request("POST", "/v1/continue_inspection", loads.inventory(50_000_000 + number), ok=(404,))
        return inspection * 1000, (service.processor_s() - began) / _REFUSED * 1000


def test_the_table_of_costs(tmp_path: Path) -> None:
    found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for turn in range(_ROUNDS):
        for name in list(_OFF)[::(-1) ** turn]:
            found[name].append(_spent(tmp_path / f"{turn} {name}", _OFF[name]))
    table = Table("with", "inspection, ms", "less than all", "refused callback, ms", "less than all",
                  title=f"{_RULES} rules, of which {_MATCHING} match; processor time")
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()}
    for name, values in medians.items():
        cells = []
        for value, whole in zip(values, medians["all"], strict=True):
            cells += [f"{value:.2f}", f"{(1 - value / whole) * 100:.1f} %"]
        table.add_row(name, *cells)
    Console(width=110).print(table)
