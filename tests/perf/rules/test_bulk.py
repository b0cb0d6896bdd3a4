"""Work on many nodes over their stored data: ``tox -e perf -- rules/test_bulk.py`` prints the table.

The same nodes are inspected, then hooks and rules are applied to them again, then tried out, with 100 rules. Bars:
1,000 nodes a second and core for dry runs, 2.5 times the rate of the inspections for applying again. No test fails for
being slow: the figures are for people.
"""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.perf import client as clients
from tests.perf import loads, processes

_NODES = 400
_RULES = 100


def _rate(client: clients.Client, service: processes.Measured, path: str, body: object) -> tuple[float, float]:
    """Run an operation; return nodes per second and milliseconds of processor time per node, of both its last parts.

    What comes before the first nodes are done, such as the pause until a conductor looks, does not count.
    """
    operation = client.json("POST", path, body)["uuid"]
    began: tuple[int, float, float] | None = None
    while True:
        shown = client.json("GET", f"/v1/operations/{operation}")
        now = (shown["progress"]["done"], time.perf_counter(), service.processor_s())
        if began is None and now[0]:
            began = now
        if shown["status"] != "running":
            assert began is not None
            assert shown["progress"]["failed"] == 0
            nodes, seconds, used = (end - start for end, start in zip(now, began, strict=True))
            return nodes / seconds, used * 1000 / nodes
        # Each look takes processor time of the service, too.
        time.sleep(0.1)


def test_the_table_of_work_on_many_nodes(tmp_path: Path) -> None:
    table = Table("work", "nodes/s", "CPU, ms a node", "nodes/s a core", title=f"{_NODES} nodes, {_RULES} rules")

    def add(name: str, rate: float, used_ms: float) -> None:
        table.add_row(name, f"{rate:.0f}", f"{used_ms:.2f}", f"{1000 / used_ms:.0f}")

    with processes.ours(tmp_path) as service, clients.Client(service.endpoint) as client:
        rules = {matching: [loads.rule(number, number < matching) for number in range(_RULES)]
                 for matching in (0, 50, 100)}
        client.json("PUT", "/v1/inspection_rules", {"rules": rules[50]})
        first = loads.enter_inspect_wait(service.endpoint, _NODES)
        used = service.processor_s()
        rate, _ = loads.report_all(service.endpoint, first, _NODES, 8)
        add("inspection", rate, (service.processor_s() - used) * 1000 / _NODES)
        add("applied again", *_rate(client, service, "/v1/nodes/reapply", {}))
        client.request("DELETE", "/v1/inspection_rules", ok=(204,))
        for matching, given in rules.items():
            rates = [_rate(client, service, "/v1/inspection_rules/dry_run", {"nodes": {}, "rules": given})
                     for _ in range(3)]
            add(f"dry run, {matching} rules match, best of 3", *min(rates, key=lambda rate: rate[1]))
    Console(width=110).print(table)
