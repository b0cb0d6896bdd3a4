"""The PXE filter's speed: ``tox -e perf -- pxe`` prints the tables.

With ``IRONIC_RULES_REFERENCE`` set, the filter of that environment is measured in the same run, with as many ports, and
ratios are printed. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from ironic_rules import context, service
from ironic_rules.conductor import provisioning
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import nodes, ports
from ironic_rules.models import states
from ironic_rules.pxe_filter.plan import Layout
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.processes import Cluster, wait_for
from tests.perf import reference
from tests.perf.pxe import population

_PORTS = 100_000
_WARM_UP, _ROUNDS = 10, 100
_TREE = Path(__file__).parents[3]
#: case: (description, intended ratio of the reference's time to ours)
_BARS = {
    "first": ("first sync, empty folder, s", 20), "steady": ("nothing changed, s", 100),
    "changed": ("1 % of the nodes changed, s", 20), "peak_mib": ("peak memory, MiB", 4),
}


def measure(python: str | Path, script: str, work: Path) -> dict[str, float]:
    work.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(_TREE)} if python == sys.executable else None
    output = subprocess.run([python, Path(__file__).with_name(script), str(_PORTS), work], check=True, cwd=work,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment).stdout
    figures: dict[str, float] = json.loads(output.splitlines()[-1])
    return figures


def test_the_syncs(tmp_path: Path) -> None:
    own = measure(sys.executable, "own_filter.py", tmp_path / "own")
    venv = reference.environment()
    other = None if venv is None else measure(venv / "bin/python", "reference_filter.py", tmp_path / "reference")
    table = Table(title=f"PXE filter with {_PORTS:,} ports, best of 3")
    for column in ("what", "ironic-rules", *(("reference", "ratio", "bar") if other else ())):
        table.add_column(column, justify="left" if column == "what" else "right")
    for case, (what, bar) in _BARS.items():
        cells = [f"{own[case]:.3f}"]
        if other:
            cells += [f"{other[case]:.3f}", f"1/{other[case] / own[case]:.1f}", f"1/{bar}"]
        table.add_row(what, *cells)
    table.add_row("first sync, in processor time of raw select and write", f"{own['raw']:.2f}")
    Console(width=110).print(table)
    assert all(figure > 0 for figure in own.values())


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_from_the_commit_of_a_conductor_to_the_file(tmp_path: Path, kind: str) -> None:
    """Over RabbitMQ: the conductor runs in this process, which knows the time of its commit, the filter in another."""
    hosts = tmp_path / "hosts"
    hosts.mkdir()
    with migrated_database(kind) as database, temporary_vhost() as transport:
        population.fill(database, _PORTS)
        cluster = Cluster(tmp_path, database, transport, f"[pxe_filter]\ndhcp_hostsdir = {hosts}\nsync_period = 3600\n")
        conf = service.prepare_config([], config_files=[cluster.configuration("conductor-1")])
        db = service.make_database(conf)
        messages = rpc_transport.get_transport(conf)
        conductor = service.make_conductor_service(conf, db, messages)
        try:
            conductor.start()
            cluster.run("ironic_rules.cmd.pxe_filter", name="filter").printed("is running")
            wait_for("the filter to listen", lambda: "Listening for messages" in (tmp_path / "filter.log").read_text())
            delays = [_delay(conductor._conductor, hosts, number) for number in range(_ROUNDS + _WARM_UP)][_WARM_UP:]
        finally:
            conductor.stop()
            messages.cleanup()
            cluster.close()
            db.dispose()
    delays.sort()
    table = Table(title=f"From a conductor's commit to the changed file: {kind}, RabbitMQ, {_PORTS:,} ports, ms")
    for column in ("median", "p95", "max", "bar (p95)"):
        table.add_column(column, justify="right")
    figures = statistics.median(delays), delays[int(len(delays) * 0.95)], delays[-1]
    table.add_row(*(f"{figure * 1000:.1f}" for figure in figures), "50")
    Console(width=110).print(table)
    assert len(delays) == _ROUNDS


def _delay(conductor: Conductor, hosts: Path, number: int) -> float:
    """Start the inspection of a new node; return the seconds from the commit until its address is allowed."""
    address = f"52:54:ff:00:{number >> 8:02x}:{number & 255:02x}"

    def create(conn: sa.Connection) -> int:
        interfaces = {f"{kind}_interface": "fake" for kind in ("boot", "deploy", "management", "power")}
        node = nodes.create(conn, {"driver": "fake-hardware", "provision_state": states.MANAGEABLE,
                                   "inspect_interface": "agent", **interfaces})
        ports.create(conn, {"node_id": node.id, "address": address})
        return int(node.id)

    node_id = conductor.db.write(create)
    file = hosts / Layout(1024).file_of(address)
    committed: list[float] = []
    send = conductor.pxe_filter.update_pxe_filters

    def sent(*args: Any, **kwargs: Any) -> None:
        committed.append(time.perf_counter())
        send(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conductor.pxe_filter, "update_pxe_filters", sent)
        provisioning.change_provision_state(conductor, context.admin(), node_id, "inspect", {})
        wait_for("the file", lambda: f"{address}\n" in file.read_text(), 30, 0.0005)
        return time.perf_counter() - committed[0]
