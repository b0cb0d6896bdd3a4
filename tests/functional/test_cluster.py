"""Separate processes over RabbitMQ and a database server, as in production, by configuration alone."""

from __future__ import annotations

import os

import httpx
import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import inspection_rule_nodes, node_inventory, node_traits, nodes
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import temporary_database
from tests.functional.fleets import Simulation
from tests.functional.processes import Cluster, answers, wait_for

#: 200 with ``tox -e faults``.
NODES = 200 if os.environ.get("IRONIC_RULES_TEST_LONG") == "1" else 32
#: The number of nodes that a rule may be applied to, by both conductors together.
MAX_NODES = NODES * 3 // 4
TRAIT = "CUSTOM_LIMITED"


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


def create_limited_rule(url: str) -> str:
    reply = httpx.post(f"{url}/v1/inspection_rules", headers={"X-OpenStack-Ironic-API-Version": "1.96"}, json={
        "max_nodes": MAX_NODES, "actions": [{"op": "add-trait", "args": {"name": TRAIT}}]})
    assert reply.status_code == 201, reply.text
    uuid: str = reply.json()["uuid"]
    return uuid


def applied_and_counted(database_url: str, rule: str) -> tuple[int, int]:
    """Return how many nodes have what the rule sets, and how many are counted for it."""
    engine = sa.create_engine(database_url, poolclass=sa.NullPool)
    number = sa.select(sa.func.count())
    with engine.connect() as conn:
        applied = conn.scalar(number.where(node_traits.c.trait == TRAIT))
        counted = conn.scalar(number.where(inspection_rule_nodes.c.rule_uuid == rule))
    engine.dispose()
    return applied or 0, counted or 0


@pytest.mark.long
def test_a_fleet_over_rabbitmq_and_postgresql(tmp_path):
    with temporary_database("postgresql") as database, temporary_vhost() as transport:
        cluster = Cluster(tmp_path, database, transport)
        try:
            cluster.sync_database()
            for name in ("conductor-1", "conductor-2"):
                cluster.conductor(name)
            urls = [cluster.api(name)[1] for name in ("api-1", "api-2")]
            rule = create_limited_rule(urls[0])
            fleets = [Simulation(url, NODES // 2, tmp_path) for url in urls]
            reports = [fleet.report() for fleet in fleets]
            assert [report["status"] for report in reports] == [0, 0], reports
            assert states_and_inventories(database) == ({"manageable": NODES}, NODES, 0)
            assert applied_and_counted(database, rule) == (MAX_NODES, MAX_NODES)
        finally:
            cluster.close()


@pytest.mark.slow
def test_a_fleet_over_rabbitmq_and_mariadb_while_a_conductor_is_killed(tmp_path):
    with temporary_database("mysql") as database, temporary_vhost() as transport:
        cluster = Cluster(tmp_path, database, transport)
        try:
            cluster.sync_database()
            doomed = cluster.conductor("conductor-1")
            cluster.conductor("conductor-2")
            urls = [cluster.api(name)[1] for name in ("api-1", "api-2")]
            rule = create_limited_rule(urls[0])
            fleets = [Simulation(url, NODES // 2, tmp_path) for url in urls]

            def some_are_done():
                return states_and_inventories(database)[1] >= NODES // 10

            wait_for("the first inspected nodes", some_are_done, timeout_s=120)
            doomed.kill()
            reports = [fleet.report() for fleet in fleets]
            assert [report["status"] for report in reports] == [0, 0], reports
            assert states_and_inventories(database) == ({"manageable": NODES}, NODES, 0)
            assert applied_and_counted(database, rule) == (MAX_NODES, MAX_NODES)
            # The first one of a busy process may know nothing yet.
            wait_for("the health checks", lambda: all(answers(url + "/healthcheck") for url in urls))
        finally:
            cluster.close()
