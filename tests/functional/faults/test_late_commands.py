"""A conductor hangs, and continues with the messages that it was sent when their callers have given up."""

from __future__ import annotations

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import nodes
from tests.functional.faults.conftest import Api
from tests.functional.processes import wait_for

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("cluster", [pytest.param("mysql", marks=pytest.mark.long), "postgresql"], indirect=True)
def test_a_conductor_that_hung_carries_out_nothing_that_was_given_up(cluster):
    # On a busy machine, it must not count as dead before it has been sent the requests.
    cluster._base = cluster._base.replace("heartbeat_timeout = 4", "heartbeat_timeout = 60")
    conductor = cluster.conductor("hung")
    api = Api(cluster.api("api")[1])
    uuid, body = api.waiting()
    before = cluster.select(sa.select(nodes))
    os.kill(conductor.pid, signal.SIGSTOP)

    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(api, "PUT", f"/v1/nodes/{uuid}/states/power", {"target": "rebooting"}),
                   pool.submit(api, "POST", "/v1/continue_inspection", body)]
    for answer in (one.result() for one in answers):
        assert answer.status_code == 503
        assert "has expired and will not be carried out" in answer.text
    os.kill(conductor.pid, signal.SIGCONT)
    log = cluster.folder / "hung.log"
    wait_for("the late messages", lambda: len(re.findall(r"endpoint .*The request has expired", log.read_text())) == 2)
    assert cluster.select(sa.select(nodes)) == before

    accepted = api.patiently("POST", "/v1/continue_inspection", body)
    cluster.assert_all_inspected(1)
    line = re.search(r".*inspecting -> manageable.*", log.read_text())
    assert f"[{accepted.headers['Openstack-Request-Id']} " in line[0].replace("None ", "")
    api.close()
