"""Everything at once, seeded: a fleet is inspected again and again while one fault follows the other.

``tox -e chaos`` takes ten minutes for each database; ``-s`` shows every fault and how long its consequences lasted.
"""

from __future__ import annotations

import collections
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import node_history, node_inventory, nodes, ports
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.faults import chaos
from tests.functional.processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.long]

SECONDS = float(os.environ.get("IRONIC_RULES_TEST_CHAOS_S", "45"))
FLEET = int(os.environ.get("IRONIC_RULES_TEST_CHAOS_FLEET", "24"))
HOSTILE = int(os.environ.get("IRONIC_RULES_TEST_CHAOS_HOSTILE", "100"))
SEED = int(os.environ.get("IRONIC_RULES_TEST_CHAOS_SEED", "1"))
OPERATORS = 8


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_nothing_that_was_acknowledged_is_lost_or_done_twice(tmp_path, kind):
    with migrated_database(kind) as database, temporary_vhost() as transport:
        service = chaos.Service(tmp_path, database, transport)
        try:
            for name in (*chaos.CONDUCTORS, *chaos.APIS):
                service.begin(name)
            for name in (*chaos.CONDUCTORS, *chaos.APIS):
                service.ready(name)
            machines = disturbed(service)
            wait_for("stable states of all nodes", service.rests, chaos.RECOVERED_S)
            assert_kept(service, machines)
        finally:
            service.close()


def disturbed(service):
    """Let operators inspect machines while faults happen; return the machines."""
    over, dice, faults = threading.Event(), random.Random(SEED), []
    operators = [chaos.Operator(service, SEED + number, over) for number in range(OPERATORS)]
    with ThreadPoolExecutor(OPERATORS) as pool:
        parts = list(pool.map(lambda one: [one.enrol() for _ in range(FLEET // OPERATORS)], operators))
        with chaos.Knocking(service.urls, HOSTILE) as knocking:
            working = [pool.submit(one.work, part) for one, part in zip(operators, parts, strict=True)]
            try:
                end = time.monotonic() + SECONDS
                while time.monotonic() < end:
                    faults.append(chaos.cause(service, dice, len(faults)))
                    print(f"{faults[-1]}", flush=True)
                    early = [one for one in working if one.done()]
                    assert not early, early[0].exception()
            finally:
                over.set()
            for one in working:
                one.result()
    machines = [machine for part in parts for machine in part]
    print(f"seed {SEED}: {len(faults)} faults, {sum(len(one.reports) for one in machines)} inspections, "
          f"{sum(len(one.patches) for one in machines)} changes, {knocking.opened} hostile connections")
    assert len(faults) >= min(len(chaos.FAULTS), SECONDS / 15)
    return machines


def assert_kept(service, machines):
    """Check that each report that was acknowledged was processed once, and that each change is there."""
    wanted = collections.Counter(serial for machine in machines for serial in machine.reports)
    rows = service.select(sa.select(node_inventory.c.status, node_inventory.c.received_plugin_data))
    processed = collections.Counter(row.received_plugin_data["serial"] for row in rows if row.status == "processed")
    assert processed == wanted
    assert {row.status for row in rows} == {"processed"}
    finished = sa.select(sa.func.count()).where(node_history.c.event.like("Inspection finished%"))
    assert service.select(finished)[0][0] == wanted.total()

    states = service.select(sa.select(nodes.c.uuid, nodes.c.provision_state, nodes.c.reservation, nodes.c.extra))
    assert {(row.provision_state, row.reservation) for row in states} == {("manageable", None)}
    extra = {row.uuid: set(row.extra) for row in states}
    assert {machine.uuid: set(machine.patches) for machine in machines} == extra
    assert len(service.select(sa.select(ports.c.id))) == len(machines)
