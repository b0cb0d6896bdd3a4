"""Concurrent operations on one node, and wrong clocks, in real processes."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import node_inventory, nodes, ports
from tests.functional.faults.conftest import SETTLED_S, Api
from tests.functional.fleets import Simulation
from tests.functional.processes import wait_for

pytestmark = pytest.mark.slow

#: The numbers of nodes of each race and of a fleet; the first ones with ``tox -e faults``.
NODES, FLEET = (12, 40) if os.environ.get("IRONIC_RULES_TEST_LONG") == "1" else (6, 24)


@pytest.fixture
def api(cluster):
    for name in ("conductor-1", "conductor-2"):
        cluster.conductor(name)
    api = Api(cluster.api("api")[1])
    yield api
    api.close()


def at_once(*calls):
    """Make the calls at the same moment; return what they return."""
    barrier = threading.Barrier(len(calls))

    def run(call):
        barrier.wait(60)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.mark.parametrize("cluster", ["mysql", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
def test_operations_on_one_node_at_the_same_moment(api, cluster):
    # One after the other: to start the processes takes longer than the operations.
    of_several_callbacks_one_is_accepted(api, cluster)
    a_callback_while_the_operator_aborts(api, cluster)
    a_node_is_deleted_while_its_ramdisk_reports(api, cluster)


def of_several_callbacks_one_is_accepted(api, cluster):
    for _ in range(NODES):
        _, body = api.waiting()
        # Equal ones would be repetitions of one report.
        answers = at_once(*[lambda body={**body, "number": number}: api("POST", "/v1/continue_inspection", body)
                            for number in range(6)])
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses.count(200) == 1, statuses
        assert set(statuses) <= {200, 404, 503}
    cluster.assert_all_inspected(NODES)


def a_callback_while_the_operator_aborts(api, cluster):
    outcomes = []
    for _ in range(NODES):
        uuid, body = api.waiting()
        callback, abort = at_once(
            lambda body=body: api("POST", "/v1/continue_inspection", body),
            lambda uuid=uuid: api("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "abort"}))
        outcomes.append((uuid, callback.status_code, abort.status_code))
    wait_for("stable states of all nodes", cluster.rests, SETTLED_S)
    for uuid, callback, abort in outcomes:
        node = api("GET", f"/v1/nodes/{uuid}").json()
        kept = [row.status for row in cluster.select(sa.select(node_inventory.c.status).join(
            nodes, nodes.c.id == node_inventory.c.node_id).where(nodes.c.uuid == uuid))]
        if callback == 200:
            assert (node["provision_state"], node["last_error"], kept) == ("manageable", None, ["processed"])
            assert abort in (400, 409, 503)
        elif abort == 202:
            assert node["provision_state"] == "inspect failed"
            assert "abort" in node["last_error"]
            assert callback in (404, 503) and kept == []
        else:
            # Each found the other's lock: neither took effect, and both may be repeated.
            assert (callback, node["provision_state"]) == (503, "inspect wait")


def a_node_is_deleted_while_its_ramdisk_reports(api, cluster):
    deleted = []
    for _ in range(NODES):
        uuid, body = api.waiting()
        deleted.append(uuid)
        api.patiently("PUT", f"/v1/nodes/{uuid}/maintenance", {})
        callback, deletion = at_once(
            lambda body=body: api("POST", "/v1/continue_inspection", body),
            lambda uuid=uuid: api("DELETE", f"/v1/nodes/{uuid}"))
        wait_for("stable states of all nodes", cluster.rests, SETTLED_S)
        assert callback.status_code in (200, 404, 503)
        if deletion.status_code == 204:
            assert api("GET", f"/v1/nodes/{uuid}").status_code == 404
        else:
            assert deletion.status_code in (409, 503), deletion.text
            assert callback.status_code in (200, 503)
            api.patiently("DELETE", f"/v1/nodes/{uuid}")
    assert cluster.select(sa.select(nodes.c.id).where(nodes.c.uuid.in_(deleted))) == []
    known = sa.select(nodes.c.id)
    for table in (ports, node_inventory):
        assert cluster.select(sa.select(table.c.id).where(table.c.node_id.not_in(known))) == []


@pytest.mark.parametrize("cluster", ["mysql", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
@pytest.mark.parametrize("jump_s", [pytest.param(100_000, marks=pytest.mark.long), -100_000])
def test_a_conductors_clock_jumps_under_load(cluster, tmp_path, jump_s):
    clock = tmp_path / "clock"
    clock.write_text("0")
    cluster.conductor("conductor-1")
    cluster.faulty_conductor("conductor-2", IRONIC_RULES_TEST_CLOCK=str(clock))
    url = cluster.api("api")[1]
    fleet = Simulation(url, FLEET, cluster.folder)
    wait_for("the first nodes", lambda: cluster.select(sa.select(node_inventory.c.id).limit(1)))

    clock.write_text(str(jump_s))
    wait_for("half of the fleet", lambda: len(cluster.select(sa.select(node_inventory.c.id))) >= FLEET // 2)
    clock.write_text("0")

    report = fleet.report()
    assert report["status"] == 0, report
    wait_for("stable states of all nodes", cluster.rests, SETTLED_S)
    states = cluster.select(sa.select(nodes.c.provision_state, sa.func.count()).group_by(nodes.c.provision_state))
    assert [tuple(row) for row in states] == [("manageable", FLEET)]


@pytest.mark.parametrize("cluster", ["mysql", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
def test_apis_whose_clocks_are_wrong_see_who_is_alive(cluster, tmp_path):
    conductor = cluster.conductor("conductor-1")
    apis = []
    for seconds in (120, -120):
        clock = tmp_path / f"clock{seconds}"
        clock.write_text(str(seconds))
        apis.append(Api(cluster.faulty_api(f"api{seconds}", IRONIC_RULES_TEST_CLOCK=str(clock))))
    for api in apis:
        assert api("POST", "/v1/nodes", {"driver": "fake-hardware"}).status_code == 201
        # Of a conductor that is short of processor time, one heartbeat may be late.
        wait_for("a live conductor", lambda api=api: api("GET", "/healthcheck").json()["conductors"] == 1)
    conductor.kill()
    for api in apis:
        wait_for("a dead conductor", lambda api=api: api("GET", "/healthcheck").status_code == 503)
        assert api("POST", "/v1/nodes", {"driver": "fake-hardware"}).status_code >= 400
        api.close()
