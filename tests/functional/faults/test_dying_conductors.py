"""A conductor kills itself at a given point of its work; the other one finishes the work."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import nodes
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.faults.conftest import FaultyCluster
from tests.functional.fleets import Simulation
from tests.functional.processes import wait_for

pytestmark = pytest.mark.slow

#: The pipeline from the acceptance of data to the commit, in order.
POINTS = [
    "ironic_rules.db.nodes:reserve_in_state:before",
    "ironic_rules.db.inventory:receive:after",
    "ironic_rules.conductor.worker_pool:Slot.run:before",
    "ironic_rules.conductor.task_store:read:after",
    "ironic_rules.conductor.inspection:process:before",
    "ironic_rules.inspection.pipeline:Pipeline.run:after",
    "ironic_rules.hardware.agent.inspect:AgentInspect.finish:after",
    "ironic_rules.db.nodes:release:after",
    "ironic_rules.db.inventory:finish:after",
    "ironic_rules.db.node_records:add_history:after",
]
#: The others are for ``tox -e faults``: before there is a lock, with data and without a result, at the last statement.
_IN_EACH_RUN = frozenset({POINTS[0], POINTS[4], POINTS[-1]})
FLEET = 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A cluster for all of the tests: the nodes of their fleets remain."""
    folder = tmp_path_factory.mktemp("dying")
    with migrated_database("mysql") as database, temporary_vhost() as transport:
        cluster = FaultyCluster(folder, database, transport)
        try:
            cluster.conductor("survivor")
            yield cluster, cluster.api("api")[1]
        finally:
            cluster.close()


@pytest.mark.parametrize("point", [
    pytest.param(point, marks=() if point in _IN_EACH_RUN else pytest.mark.long) for point in POINTS])
def test_a_conductor_that_is_killed_there_loses_nothing(whole, point):
    cluster, url = whole
    before = len(cluster.select(sa.select(nodes.c.id)))
    doomed = cluster.faulty_conductor(f"doomed-{POINTS.index(point)}", IRONIC_RULES_TEST_DIES_AT=point)

    fleet = Simulation(url, FLEET, cluster.folder)
    wait_for("the conductor's death", lambda: not doomed.is_running())

    assert fleet.report()["status"] == 0
    assert doomed.status == -9
    cluster.assert_all_inspected(before + FLEET)
