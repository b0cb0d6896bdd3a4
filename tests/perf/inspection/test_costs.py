"""The cost of the history of inspections, the statistics of rules, facts, events, and the journal of rejected reports.


``tox -e perf -- inspection/test_costs.py`` switches them off and on in one running service, in turns, and prints the
medians of its processor time: nodes per second depend on what else the machine does, and two processes with the same
load differ by more than what is measured. Bars: 5 % of an inspection for history and statistics together, 6 % for
the facts of a new node, 3 % for events, which RabbitMQ gets as notifications, for the journal 2 % of it and 10 % of a
refused request.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.functional import brokers
from tests.functional.processes import free_port
from tests.perf import loads
from tests.perf.client import Client
from tests.perf.processes import Measured

_ROUNDS = 16
_NODES = 50
_REFUSED = 100
_RULES, _MATCHING = 100, 10
_ON = {
    "all": "history statistics journal facts events",
    "neither history nor statistics": "journal facts events",
    "no statistics": "history journal facts events",
    "no journal": "history statistics facts events",
    "no facts": "history statistics journal events",
    "no events": "history statistics journal facts",
}


class _Switched:
    """A running service, and its switch."""

    def __init__(self, process: subprocess.Popen[str], endpoint: str) -> None:
        self._process = process
        self.measured = Measured(endpoint, process.pid, loads.first_answer(endpoint))

    def switch(self, names: str) -> None:
        """Let only some parts be on; ``end``: write what they have noted."""
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._process.stdin.write(f"{names}\n")
        self._process.stdin.flush()
        while "switched" not in self._process.stderr.readline():
            pass


@contextlib.contextmanager
def _service(folder: Path) -> Iterator[_Switched]:
    config, port = folder / "ironic-rules.conf", free_port()
    with brokers.temporary_vhost() as broker, contextlib.ExitStack() as stack:
        config.write_text("[DEFAULT]\nnotification_level = info\n[inspector]\nrequire_managed_boot = false\n"
                          f"[oslo_messaging_notifications]\ndriver = messagingv2\ntransport_url = {broker}\n")
        yield stack.enter_context(_started(config, folder, port))


@contextlib.contextmanager
def _started(config: Path, folder: Path, port: int) -> Iterator[_Switched]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.perf.inspection.switched_service", "--config-file", str(config), "--state-dir",
         str(folder / "state"), "--port", str(port)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True) as process:
        try:
            yield _Switched(process, f"http://127.0.0.1:{port}")
        finally:
            process.terminate()


def _spent(service: _Switched, client: Client, names: str, turn: int) -> tuple[float, float]:
    """Return the milliseconds of processor time of an inspection and of a rejected report."""
    endpoint = service.measured.endpoint
    first = loads.enter_inspect_wait(endpoint, _NODES)
    service.switch("end")  # events of the preparation
    service.switch(names)
    began = service.measured.processor_s()
    loads.report_all(endpoint, first, _NODES, 4)
    service.switch("end")
    inspection = (service.measured.processor_s() - began) / _NODES
    began = service.measured.processor_s()
    for number in range(_REFUSED):
        client.request("POST", "/v1/continue_inspection", loads.inventory(50_000_000 + turn * _REFUSED + number),
                       ok=(404,))
    service.switch("end")
    refused = (service.measured.processor_s() - began) / _REFUSED
    loads.delete_all(endpoint, "nodes")
    return inspection * 1000, refused * 1000


def test_the_table_of_costs(tmp_path: Path) -> None:
    found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    with _service(tmp_path) as service, Client(service.measured.endpoint) as client:
        client.json("PUT", "/v1/inspection_rules", {
            "rules": [loads.rule(number, number < _MATCHING) for number in range(_RULES)]})
        turns = 0
        for turn in range(-1, _ROUNDS):
            for name in [*_ON][turn % len(_ON):] + [*_ON][:turn % len(_ON)]:
                spent = _spent(service, client, _ON[name], turns)
                turns += 1
                if turn >= 0:  # the first is a warm-up
                    found[name].append(spent)
    table = Table("with", "inspection, ms", "less than all", "rejected report, ms", "less than all",
                  title=f"{_RULES} rules, of which {_MATCHING} match; processor time, median of {_ROUNDS} turns")
    for name, rows in found.items():
        cells = []
        for values, whole in zip(zip(*rows, strict=True), zip(*found["all"], strict=True), strict=True):
            less = statistics.median((1 - value / of_all) * 100 for value, of_all in zip(values, whole, strict=True))
            cells += [f"{statistics.median(values):.2f}", f"{less:.1f} %"]
        table.add_row(name, *cells)
    Console(width=110).print(table)
