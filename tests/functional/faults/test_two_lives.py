"""A conductor is stopped in the middle of its work and continues after another process has taken its nodes over."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import node_inventory, nodes
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.faults.conftest import SETTLED_S, SHORT_RPC, Api, FaultyCluster
from tests.functional.processes import wait_for

pytestmark = pytest.mark.slow

#: From the acceptance of a report to the commit of its result; the last ones are within that transaction.
POINTS = [
    "ironic_rules.conductor.state_machine:run:before",
    "ironic_rules.conductor.task_store:NodeRecord.task:after",
    "ironic_rules.conductor.inspection:process:before",
    "ironic_rules.inspection.pipeline:Pipeline.run:before",
    "ironic_rules.inspection.pipeline:Pipeline.run:after",
    "ironic_rules.hardware.agent.inspect:AgentInspect.finish:before",
    "ironic_rules.hardware.agent.inspect:AgentInspect.finish:after",
    "ironic_rules.conductor.inspection:process:after",
    "ironic_rules.conductor.task_store:save:before",
    "ironic_rules.db.nodes:release:before",
    "ironic_rules.db.nodes:release:after",
    "ironic_rules.conductor.task_store:save:after",
    "ironic_rules.db.inventory:finish:after",
    "ironic_rules.db.node_records:add_history:after",
]
#: Waiting transactions are ended soon, so that the test need not wait for the default of 20 seconds.
#: Each of the threads that wait has a connection.
CONFIG = "shutdown_grace = 20\n[database]\nidle_transaction_timeout = 2\nmax_pool_size = 40\n"
#: With IRONIC_RULES_TEST_STOPPED_S, the process is stopped for as many seconds, with the service's own time-outs.
STOPPED_S = float(os.environ.get("IRONIC_RULES_TEST_STOPPED_S", "0"))
DEFAULTS = "shutdown_grace = 20\n[database]\nmax_pool_size = 40\n"
#: With these, a process of another name takes over after heartbeat_timeout (60 s).
_TAKEN_OVER_S = SETTLED_S + (90 if STOPPED_S else 0)


@pytest.mark.parametrize(("kind", "successor"), [
    ("mysql", "old"), pytest.param("postgresql", "other", marks=pytest.mark.long)])
def test_who_continues_late_overwrites_nothing(tmp_path, kind, successor):
    with migrated_database(kind) as database, temporary_vhost() as transport:
        has_defaults = STOPPED_S > 0
        # The process that is stopped still has the queue of its name: calls that it took are repeated soon.
        cluster = FaultyCluster(
            tmp_path, database, transport + (SHORT_RPC if has_defaults else ""), DEFAULTS if has_defaults else CONFIG,
            has_defaults=has_defaults)
        try:
            with contextlib.closing(Api(cluster.api("api")[1])) as api:
                stop_and_continue(cluster, api, successor)
        finally:
            cluster.close()


def stop_and_continue(cluster, api, successor):
    before = cluster.conductor("old")
    with ThreadPoolExecutor(8) as pool:
        waiting = list(pool.map(lambda _: api.waiting(), POINTS))
    before.terminate()
    until = cluster.folder / "until"
    stopped = cluster.faulty_conductor(
        "old", IRONIC_RULES_TEST_PARKS_AT=",".join(POINTS), IRONIC_RULES_TEST_PARKED_UNTIL=str(until))
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(lambda one: api.patiently("POST", "/v1/continue_inspection", one[1]), waiting):
            assert answer.status_code == 200
    wait_for("a thread at each point", lambda: stopped.text().count("parked at") == len(POINTS))
    os.kill(stopped.pid, signal.SIGSTOP)
    continues = time.monotonic() + STOPPED_S

    # The successor has the locks of all nodes again, for their second inspection, when the other one continues.
    later = cluster.folder / "later"
    parked = cluster.faulty_conductor(
        "successor", successor, IRONIC_RULES_TEST_PARKED_UNTIL=str(later),
        IRONIC_RULES_TEST_PARKS_AT=",".join(["ironic_rules.conductor.inspection:start:before"] * len(POINTS)))
    inspected = sa.select(sa.func.count()).where(nodes.c.provision_state == "manageable", nodes.c.reservation.is_(None))
    wait_for("the end of the inspections", lambda: cluster.select(inspected)[0][0] == len(POINTS), _TAKEN_OVER_S)

    def use(uuid):
        api.patiently("PATCH", f"/v1/nodes/{uuid}", [
            {"op": "add", "path": "/description", "value": "kept"}, {"op": "add", "path": "/extra/kept", "value": 1},
            {"op": "add", "path": "/properties/cpu_arch", "value": "kept"}])
        api.patiently("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "inspect"})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, [uuid for uuid, _ in waiting]))
    wait_for("the second inspections", lambda: parked.text().count("parked at") == len(POINTS))
    known = everything(cluster)
    assert {row[1:4] for row in known[0]} == {("inspecting", successor, "kept")}

    until.touch()
    time.sleep(max(0.0, continues - time.monotonic()))
    os.kill(stopped.pid, signal.SIGCONT)
    wait_for("the threads", lambda: stopped.text().count("continues at") == len(POINTS))
    stopped.terminate()

    assert everything(cluster) == known
    later.touch()
    for uuid, _ in waiting:
        wait_for("inspect wait", lambda uuid=uuid: api.state(uuid) == "inspect wait")
    assert {row[3] for row in everything(cluster)[0]} == {"kept"}
    assert [tuple(row) for row in known[1]] == [("processed", len(POINTS))]


def everything(cluster):
    """Return what the work of a conductor could have changed."""
    columns = (nodes.c.uuid, nodes.c.provision_state, nodes.c.reservation, nodes.c.description, nodes.c.extra,
               nodes.c.properties, nodes.c.last_error, nodes.c.revision)
    statuses = sa.select(node_inventory.c.status, sa.func.count()).group_by(node_inventory.c.status)
    return cluster.select(sa.select(*columns).order_by(nodes.c.uuid)), cluster.select(statuses)
