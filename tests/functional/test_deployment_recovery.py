"""Conductors that die in a deployment: finished steps are not repeated, unfinished ones only if they can be."""

from __future__ import annotations

import os
import signal

import httpx
import pytest

from ironic_rules.conductor import heartbeat, provisioning, recovery, state_machine, task_store
from ironic_rules.conductor.worker_pool import Slot
from ironic_rules.db import deploy_templates, node_records, node_sets, nodes
from ironic_rules.exceptions import LockLost
from ironic_rules.hardware.fake import FakeBIOS, FakeDeploy, FakeRAID
from ironic_rules.models.steps import Step
from ironic_rules.steps import execution
from ironic_rules.steps.procedures import DEPLOYMENT
from ironic_rules.steps.progress import Progress
from tests import matrices
from tests.functional.clients import machines
from tests.functional.processes import free_port, standalone, wait_for
from tests.functional.test_deployment import CORE, finished
from tests.functional.test_recovery import ADMIN, SimulatedCrash, bury, dies_at, finish
from tests.functional.test_recovery import conf as conf
from tests.functional.test_recovery import db as db
from tests.functional.test_recovery import group as group
from tests.functional.test_recovery import records as records

# The last five are fixtures.
from tests.functional.test_recovery import start_conductor as start_conductor

TEMPLATE = "CUSTOM_RECOVERED"
SETTINGS = {"settings": [{"name": "VMX", "value": "on"}]}
VOLUMES = {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]}
#: The steps of the deployment in their order: three that can be run again, and one that cannot.
STEPS = [*CORE[:2], "bios.apply_configuration", "raid.create_configuration", *CORE[2:]]


@pytest.fixture
def available(db, group):
    """Return a node whose instance requests a template with a step of the BIOS and one of the RAID controller."""
    def steps(conn):
        if not deploy_templates.for_traits(conn, [TEMPLATE]):
            deploy_templates.create(conn, {"name": TEMPLATE}, [
                Step("bios", "apply_configuration", SETTINGS, 75),
                Step("raid", "create_configuration", VOLUMES, 70)])

    db.write(steps)
    def make(conn):
        row = nodes.create(conn, {
            "driver": "fake-hardware", "provision_state": "available", "conductor_group": group,
            "raid_interface": "fake", "bios_interface": "fake", "power_state": "power off",
            "instance_info": {"traits": [TEMPLATE]}})
        node_sets.set_traits(conn, row.id, [TEMPLATE])
        return row.uuid

    return db.write(make)


@pytest.fixture
def ran(monkeypatch):
    """Record the steps that were actually executed on the machine: a list of step names."""
    calls = []

    def count(cls, method, name):
        original = getattr(cls, method)

        def counted(*arguments):
            calls.append(name)
            return original(*arguments)

        monkeypatch.setattr(cls, method, counted)

    count(FakeBIOS, "write_settings", STEPS[2])
    count(FakeRAID, "create_volumes", STEPS[3])
    return calls


def deploy(conductor, node):
    provisioning.change_provision_state(conductor, ADMIN, node, "active", {})


def dies_in(patch, owner, name, *, at, afterwards=False):
    """Simulate the death of the process at the ``at``th call of ``owner.name``."""
    original, calls = getattr(owner, name), []

    def crash(*arguments, **named):
        calls.append(name)
        if len(calls) != at:
            return original(*arguments, **named)
        if afterwards:
            original(*arguments, **named)
        raise SimulatedCrash

    patch.setattr(owner, name, crash)


def assert_deployed(records, node):
    row = records.at_rest(node)
    assert (row.provision_state, row.last_error, row.power_state) == ("active", None, "power on")
    assert finished(records, node) == STEPS
    assert row.driver_internal_info == {"fake_bios_settings": {"VMX": "on"}}
    assert row.raid_config == VOLUMES


#: Points at which a conductor dies: a function, the number of its call, and whether it has done its work then. A step
#: takes two saves, one before it and one after it; the first save is that of the plan.
POINTS = [
    (state_machine, "_read", 1, False), (deploy_templates, "for_traits", 2, False), (Progress, "start", 1, True),
    (task_store, "save", 1, False), (task_store, "save", 1, True), (node_records, "add_history", 1, True),
    (task_store, "save", 2, True), (FakeDeploy, "deploy", 1, False), (FakeDeploy, "deploy", 1, True),
    (task_store, "save", 3, False), (task_store, "save", 3, True),
    (FakeBIOS, "write_settings", 1, False), (FakeBIOS, "write_settings", 1, True),
    (task_store, "save", 7, False), (task_store, "save", 7, True), (task_store, "save", 8, False),
    (task_store, "save", 10, True), (nodes, "update_locked", 12, True), (nodes, "release", 1, True),
    (task_store, "save", 18, False),
]


@pytest.mark.parametrize(("point", "successor"), matrices.sampled(len(POINTS), POINTS, ["a", "b"]))
def test_a_deployment_goes_on_after_a_death_in_the_middle(
        start_conductor, available, records, monkeypatch, point, successor, ran):
    owner, name, at, afterwards = point
    first = start_conductor("a")
    with monkeypatch.context() as patch:
        dies_in(patch, owner, name, at=at, afterwards=afterwards)
        deploy(first, available)
        finish(first)
    assert (records.row(available).provision_state, records.row(available).reservation) == ("deploying", first.host)
    bury(records.db, first)

    second = start_conductor(successor)
    assert recovery.resume_orphans(second) == 1
    finish(second)

    assert_deployed(records, available)
    assert ran.count("raid.create_configuration") == 1


def test_who_only_began_a_step_that_can_not_be_repeated_does_not_run_it_later(
        start_conductor, available, records, monkeypatch, ran):
    first = start_conductor("a")
    with monkeypatch.context() as patch:
        # The pass that plans, two for each of three steps, and the one that begins it.
        dies_in(patch, state_machine, "_read", at=9)
        deploy(first, available)
        finish(first)
    assert DEPLOYMENT.state_key in records.row(available).driver_internal_info

    recovery.resume_orphans(start_conductor("a"))

    assert records.at_rest(available).provision_state == "deploy failed"
    assert ran == ["bios.apply_configuration"]


@pytest.mark.parametrize("afterwards", [False, True])
def test_a_step_that_can_not_be_repeated_fails_the_deployment_in_which_its_conductor_died(
        start_conductor, available, records, monkeypatch, afterwards, ran):
    first = start_conductor("a")
    with monkeypatch.context() as patch:
        dies_at(patch, FakeRAID, "create_volumes", afterwards=afterwards)
        deploy(first, available)
        finish(first)
    row = records.row(available)
    assert (row.provision_state, row.deploy_step["step"]) == ("deploying", "create_configuration")
    bury(records.db, first)

    second = start_conductor("b")
    assert recovery.resume_orphans(second) == 1
    finish(second)

    row = records.at_rest(available)
    assert (row.provision_state, row.target_provision_state) == ("deploy failed", "active")
    assert row.power_state == "power off"
    assert row.last_error == (
        f"Deploy step raid.create_configuration (4 of 8, template {TEMPLATE}) failed: the step was interrupted, and it "
        "cannot be run again. Check the machine, then tear the node down or deploy it again. (IR-2087)")
    assert ran == ["bios.apply_configuration", *["raid.create_configuration"] * afterwards]
    assert (row.deploy_step, row.raid_config) == ({}, {})
    assert finished(records, available) == STEPS[:3]


def test_a_finished_step_is_not_repeated(start_conductor, available, records, monkeypatch, ran):
    first = start_conductor("a")
    with monkeypatch.context() as patch:
        dies_in(patch, execution, "call", at=5)
        deploy(first, available)
        finish(first)
    bury(records.db, first)

    second = start_conductor("b")
    recovery.resume_orphans(second)
    finish(second)

    assert_deployed(records, available)
    assert ran == ["bios.apply_configuration", "raid.create_configuration"]


def test_a_step_that_ends_its_conductor_again_and_again_is_given_up(start_conductor, available, records, monkeypatch):
    conductor = start_conductor()
    with monkeypatch.context() as patch:
        dies_at(patch, FakeBIOS, "write_settings")
        deploy(conductor, available)
        for _ in range(recovery.MAX_RESUMPTIONS + 1):
            finish(conductor)
            assert recovery.resume_orphans(conductor) == 1
        finish(conductor)

    row = records.at_rest(available)
    assert row.provision_state == "deploy failed"
    assert "bios.apply_configuration" in row.last_error
    assert "begun and not finished 6 times" in row.last_error


def test_a_deployment_whose_thread_never_began_is_done(start_conductor, available, records, monkeypatch):
    first = start_conductor("a")
    with monkeypatch.context() as patch:
        patch.setattr(Slot, "run", lambda *arguments: None)
        deploy(first, available)

    assert recovery.resume_orphans(start_conductor("a")) == 1

    assert_deployed(records, available)


def test_who_loses_the_lock_begins_no_further_step(start_conductor, available, records, monkeypatch, ran):
    conductor, other = start_conductor("a"), start_conductor("b")
    write = FakeBIOS.write_settings

    lost = []

    def taken_over_meanwhile(self, task, settings):
        with records.db.writer() as conn:
            lost.extend(held.lock for held in nodes.locks(conn, conductor.group))
            nodes.take_over(conn, lost[0], other.new_lock(task.node.id))
        write(self, task, settings)

    monkeypatch.setattr(FakeBIOS, "write_settings", taken_over_meanwhile)
    deploy(conductor, available)
    finish(conductor)

    row = records.row(available)
    assert (row.provision_state, row.reservation) == ("deploying", other.host)
    assert finished(records, available) == STEPS[:2]
    assert ran == ["bios.apply_configuration"]
    with pytest.raises(LockLost):
        state_machine._read(conductor, lost[0])


def test_a_deployment_that_waits_outlives_its_conductor(start_conductor, available, records, monkeypatch):
    conductor = start_conductor("a")
    monkeypatch.setattr(FakeBIOS, "write_settings", lambda *arguments: None)
    monkeypatch.setattr(execution, "call", lambda *arguments: "wait call-back")
    deploy(conductor, available)
    finish(conductor)
    assert records.row(available).provision_state == "wait call-back"
    monkeypatch.undo()
    bury(records.db, conductor)

    second = start_conductor("b")
    assert recovery.resume_orphans(second) == 0
    with monkeypatch.context() as patch:
        dies_at(patch, FakeDeploy, "continue_step")
        heartbeat.heartbeat(second, ADMIN, available, "http://192.0.2.7:9999", None, {})
        finish(second)
    assert records.row(available).provision_state == "deploying"
    assert recovery.resume_orphans(start_conductor("b")) == 1

    row = records.at_rest(available)
    assert (row.provision_state, row.last_error) == ("active", None)
    assert finished(records, available) == STEPS


@pytest.mark.slow
def test_a_sudden_death_of_the_process_in_a_step(tmp_path):
    port = free_port()

    def node(url, seconds):
        uuid = machines.machine(900).uuid
        machines.call(url, "POST", "nodes", {"uuid": uuid, "driver": "fake-hardware", "raid_interface": "fake"})
        for target, state in (("manage", "manageable"), ("provide", "available")):
            machines.call(url, "PUT", f"nodes/{uuid}/states/provision", {"target": target})
            machines.wait_for_state(url, uuid, state)
        machines.call(url, "PUT", f"nodes/{uuid}/states/provision", {"target": "active", "deploy_steps": [
            {"interface": "raid", "step": "pretend", "args": {"seconds": seconds}, "priority": 90},
            {"interface": "raid", "step": "create_configuration", "args": VOLUMES, "priority": 95}]})
        return uuid

    with standalone(tmp_path, port=port) as (process, url):
        uuid = node(url, 2)
        wait_for("the long step", lambda: machines.node(url, uuid)["deploy_step"].get("step") == "pretend")
        os.kill(process.pid, signal.SIGKILL)
        wait_for("the end of the process", lambda: not process.is_running())
    with standalone(tmp_path, port=port, name="again") as (_, url):
        shown = machines.wait_for_state(url, uuid, "active")
        entries = httpx.get(f"{url}/v1/nodes/{uuid}/history?detail=true",
                            headers={"X-OpenStack-Ironic-API-Version": "1.96"}).json()["history"]
    assert shown["raid_config"] == VOLUMES
    done = [entry["event"].split() for entry in entries if " finished after " in entry["event"]]
    names = [words[2] for words in done]
    assert names.count("raid.create_configuration") == names.count("raid.pretend") == 1
    # Again for its whole time.
    assert float(done[names.index("raid.pretend")][-2]) >= 2
