"""Cleaning many nodes at once: ``tox -e perf -- steps`` prints steps per second and memory of one conductor.

The conductor is in this process, with a SQLite file, so the memory includes the libraries of the tests. ``NODES`` in
the environment replaces 1,000. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import os
import time

import psutil
import sqlalchemy as sa
from rich.console import Console

from ironic_rules import context, service
from ironic_rules.conductor import provisioning
from ironic_rules.db import conductors, nodes
from ironic_rules.db.tables import nodes as table
from tests.functional.processes import wait_for
from tests.functional.whole import configuration

_NODES = int(os.environ.get("NODES", "1000"))
_STEPS = [{"interface": "power", "step": "reboot"}, {"interface": "raid", "step": "pretend", "args": {}}] * 5
_BAR = 100
_BAR_MIB = 150


def test_many_nodes_are_cleaned(tmp_path):
    conf = configuration(tmp_path, "[conductor]\nqueue_size = 2000\n")
    db = service.make_database(conf, upgrade=True)
    conductor = service.make_conductor(conf, db)
    db.write(lambda conn: conductors.register(conn, conductor.host, "", {}, conductor.instance))
    values = {"driver": "fake-hardware", "provision_state": "manageable", "power_state": "power off",
              "raid_interface": "fake"}
    made = db.write(lambda conn: [nodes.create(conn, values).id for _ in range(_NODES)])

    begun, processor = time.perf_counter(), time.process_time()
    for node_id in made:
        provisioning.change_provision_state(conductor, context.admin(), node_id, "clean", {"clean_steps": _STEPS})

    def are_clean() -> bool:
        with db.reader() as conn:
            left = sa.or_(table.c.provision_state != "manageable", table.c.reservation.is_not(None))
            return not conn.scalar(sa.select(sa.func.count()).select_from(table).where(left))

    wait_for("clean nodes", are_clean, timeout_s=900, interval_s=0.5)
    took, processor = time.perf_counter() - begun, time.process_time() - processor
    conductor.workers.stop(10)
    db.dispose()

    steps = _NODES * len(_STEPS)
    memory = psutil.Process().memory_info().rss / 2**20
    Console().print(f"{_NODES} nodes, {steps} steps: {steps / took:.0f} steps/s (bar: {_BAR}), "
                    f"{1000 * processor / steps:.1f} ms of the processor each, {memory:.0f} MiB (bar: {_BAR_MIB})")
