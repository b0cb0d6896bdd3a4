"""Separate processes over RabbitMQ and a database server, as in production, by configuration alone."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import node_inventory, nodes
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import temporary_database
from tests.functional.fleets import Simulation
from tests.functional.processes import Cluster, answers, wait_for

NODES = 200


def states_and_inventories(database_url: str) -> tuple[dict[str, int], int, int]:
    """Return how many nodes are in each provision state, how many have an inventory, and how many are locked."""
    engine = sa.create_engine(database_url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        state = nodes.c.provision_state
        rows = conn.execute(sa.select(state, sa.func.count().label("number")).group_by(state))
        found = {row.provision_state: row.number for row in rows}
        processed = sa.select(sa.func.count(sa.distinct(node_inventory.c.node_id)))
        inventories = conn.scalar(processed.where(node_inventory.c.status == "processed"))
        locked = conn.scalar(sa.select(sa.func.count()).where(nodes.c.reservation.is_not(None)))
    engine.dispose()
    return found, inventories or 0, locked or 0


@pytest.mark.slow
def test_200_nodes_over_rabbitmq_and_postgresql(tmp_path):
    with temporary_database("postgresql") as database, temporary_vhost() as transport:
        cluster = Cluster(tmp_path, database, transport)
        try:
            cluster.sync_database()
            for name in ("conductor-1", "conductor-2"):
                cluster.conductor(name)
            urls = [cluster.api(name)[1] for name in ("api-1", "api-2")]
            fleets = [Simulation(url, NODES // 2, tmp_path) for url in urls]
            reports = [fleet.report() for fleet in fleets]
            assert [report["status"] for report in reports] == [0, 0], reports
            assert states_and_inventories(database) == ({"manageable": NODES}, NODES, 0)
        finally:
            cluster.close()


@pytest.mark.slow
def test_200_nodes_over_rabbitmq_and_mariadb_while_a_conductor_is_killed(tmp_path):
    with temporary_database("mysql") as database, temporary_vhost() as transport:
        cluster = Cluster(tmp_path, database, transport)
        try:
            cluster.sync_database()
            doomed = cluster.conductor("conductor-1")
            cluster.conductor("conductor-2")
            urls = [cluster.api(name)[1] for name in ("api-1", "api-2")]
            fleets = [Simulation(url, NODES // 2, tmp_path) for url in urls]

            def some_are_done():
                return states_and_inventories(database)[1] >= NODES // 10

            wait_for("the first inspected nodes", some_are_done, timeout_s=120)
            doomed.kill()
            reports = [fleet.report() for fleet in fleets]
            assert [report["status"] for report in reports] == [0, 0], reports
            assert states_and_inventories(database) == ({"manageable": NODES}, NODES, 0)
            assert all(answers(url + "/healthcheck") for url in urls)
        finally:
            cluster.close()
