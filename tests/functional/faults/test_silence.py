"""The connections of one conductor to the database become silent under load: neither side is told."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from ironic_rules.db import clock
from ironic_rules.db.tables import node_inventory, nodes
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.faults.conftest import FaultyCluster
from tests.functional.fleets import Simulation
from tests.functional.processes import wait_for
from tests.functional.relay import Relay

pytestmark = pytest.mark.slow

#: With IRONIC_RULES_TEST_FLEET and ..._HOLE_S, another number of nodes and seconds, and the service's own time-outs.
FLEET = int(os.environ.get("IRONIC_RULES_TEST_FLEET", "24"))
HOLE_S = float(os.environ.get("IRONIC_RULES_TEST_HOLE_S", "3"))
CONFIG = "[database]\nstatement_timeout = 1\nidle_transaction_timeout = 2\nlock_timeout = 2\n"
#: With the service's own time-outs, the last node's inspection ends within so many seconds after the beginning of the
#: hole, however long it is: heartbeat_timeout and 60 seconds.
ENDED_S = 120
SILENT = "has not replied for"
PORTS = {"mysql": 3306, "postgresql": 5432}


@pytest.mark.parametrize("kind", [pytest.param("mysql", marks=pytest.mark.long), "postgresql"])
def test_a_hole_in_the_network_loses_nothing(tmp_path, kind):
    with migrated_database(kind) as database, temporary_vhost() as transport:
        has_defaults = "IRONIC_RULES_TEST_FLEET" in os.environ
        cluster = FaultyCluster(
            tmp_path, database, transport, "" if has_defaults else CONFIG, has_defaults=has_defaults)
        server = sa.make_url(database)
        relay = Relay(server.host or "127.0.0.1", server.port or PORTS[kind])
        try:
            cluster.conductor("healthy")
            through = server.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
            file = Path(cluster.configuration("silent"))
            file.write_text(file.read_text().replace(database, through))
            silent = cluster.start("ironic_rules.cmd.conductor", str(file), "silent")
            silent.printed("is running")
            url = cluster.api("api")[1]
            fleet = Simulation(url, FLEET, cluster.folder, "--timeout", "180", "--retry-delay", "2")
            wait_for("the first nodes", lambda: cluster.select(sa.select(node_inventory.c.id).limit(1)))

            relay.is_silent = True
            began = clock.wall()
            threading.Event().wait(HOLE_S)
            if kind == "postgresql":  # with PyMySQL, its own time-out may come first
                wait_for("the end of a statement", lambda: SILENT in (tmp_path / "silent.log").read_text())
            relay.is_silent = False

            report = fleet.report()
            assert report["status"] == 0, report["failures"]
            cluster.assert_all_inspected(FLEET)
            last = cluster.select(sa.select(sa.func.max(nodes.c.inspection_finished_at)))[0][0]
            print(f"{FLEET} nodes; the last one ended {(last - began).total_seconds():.1f} s after the beginning of a "
                  f"hole of {HOLE_S} s")
            assert not has_defaults or (last - began).total_seconds() <= ENDED_S
            assert silent.is_running()
        finally:
            cluster.close()
            relay.cut()
