"""Conductors that die while they clean or service a node: at each kind of step, another one takes over."""

from __future__ import annotations

import pytest

from ironic_rules.conductor import heartbeat, provisioning, recovery, state_machine, task_store
from ironic_rules.db import nodes
from ironic_rules.hardware.fake import FakePower, FakeRAID
from ironic_rules.steps import execution
from tests.functional.test_cleaning import AUTOMATED, MANUAL, assert_forgotten, finished, step
from tests.functional.test_deployment_recovery import dies_in
from tests.functional.test_recovery import ADMIN, bury, dies_at, finish
from tests.functional.test_recovery import conf as conf
from tests.functional.test_recovery import db as db
from tests.functional.test_recovery import group as group
from tests.functional.test_recovery import records as records

# The last five are fixtures.
from tests.functional.test_recovery import start_conductor as start_conductor

VOLUMES = [{"size_gb": 10, "raid_level": "1"}]
#: One of each kind: that can be run again, that cannot, that holds, that waits for the machine, and that waits a while.
STEPS = [step("power.power_on"), step("raid.create_configuration", logical_disks=VOLUMES), step("power.hold"),
         step("raid.pretend", asynchronous=True), step("power.wait", seconds=0), step("power.power_off")]
NAMES = [f"{each['interface']}.{each['step']}" for each in STEPS if each["step"] != "hold"]


@pytest.fixture
def node(db, group):
    """Return a function that creates a node of fake hardware in a state."""
    return lambda state: db.write(lambda conn: nodes.create(conn, {
        "driver": "fake-hardware", "provision_state": state, "conductor_group": group, "raid_interface": "fake",
        "power_state": "power off"})).uuid


def request(conductor, node, verb, **arguments):
    provisioning.change_provision_state(conductor, ADMIN, node, verb, arguments)
    finish(conductor)


def begin(conductor, node, verb):
    request(conductor, node, verb, **{MANUAL[verb][1]: STEPS})


def beat(conductor, node):
    heartbeat.heartbeat(conductor, ADMIN, node, "http://192.0.2.7:9999", None, {})
    finish(conductor)


def take_over(start_conductor, records, dead):
    """Let another conductor resume what the dead one left; return it."""
    bury(records.db, dead)
    successor = start_conductor("b")
    assert recovery.resume_orphans(successor) == 1
    finish(successor)
    return successor


#: Calls before the hold in which a conductor dies. A step takes two saves; the first save is that of the plan.
POINTS = [
    (state_machine, "_read", 1, False), (task_store, "save", 1, False), (task_store, "save", 2, True),
    (FakePower, "set_power_state", 1, False), (FakePower, "set_power_state", 1, True), (task_store, "save", 3, True),
    (task_store, "save", 4, False), (task_store, "save", 6, False), (task_store, "save", 7, True),
]


@pytest.mark.parametrize("verb", MANUAL)
@pytest.mark.parametrize(("owner", "name", "at", "afterwards"), POINTS,
                         ids=lambda value: getattr(value, "__name__", value))
def test_another_conductor_goes_on_and_repeats_no_finished_step(
        start_conductor, node, records, monkeypatch, verb, owner, name, at, afterwards):
    state, _, short, _, target = MANUAL[verb]
    uuid, first, created = node(state), start_conductor("a"), []
    monkeypatch.setattr(FakeRAID, "create_volumes", lambda raid, task, disks: created.append(disks))
    with monkeypatch.context() as patch:
        dies_in(patch, owner, name, at=at, afterwards=afterwards)
        begin(first, uuid, verb)
    assert records.row(uuid).reservation == first.host

    second = take_over(start_conductor, records, first)
    assert records.at_rest(uuid).provision_state == f"{short} hold"
    with monkeypatch.context() as patch:
        dies_at(patch, task_store, "save")
        request(second, uuid, "unhold")
    third = take_over(start_conductor, records, second)
    assert records.at_rest(uuid).provision_state == f"{short} wait"
    with monkeypatch.context() as patch:
        dies_at(patch, FakeRAID, "continue_step")
        beat(third, uuid)
    take_over(start_conductor, records, third)

    row = records.at_rest(uuid)
    assert (row.provision_state, row.last_error, row.power_state) == (target, None, "power off")
    assert (finished(records, uuid), created) == (NAMES, [VOLUMES])
    assert_forgotten(row)


@pytest.mark.parametrize("verb", MANUAL)
def test_a_step_that_can_not_be_repeated_fails_with_its_name(start_conductor, node, records, monkeypatch, verb):
    state, _, short, noun, _ = MANUAL[verb]
    uuid, first = node(state), start_conductor("a")
    with monkeypatch.context() as patch:
        dies_at(patch, FakeRAID, "create_volumes", afterwards=True)
        begin(first, uuid, verb)

    take_over(start_conductor, records, first)

    row = records.at_rest(uuid)
    assert (row.provision_state, row.maintenance, row.fault) == (f"{short} failed", True, f"{short} failure")
    assert row.last_error == (
        f"{short.capitalize()} step raid.create_configuration (2 of 6, request) failed: the step was interrupted, and "
        f"it cannot be run again. Check the machine, then repeat the {noun}. (IR-2087)")
    assert (finished(records, uuid), row.raid_config) == (["power.power_on"], {})
    assert_forgotten(row)


@pytest.mark.parametrize(("owner", "name", "at"), [
    (execution, "call", 2), (FakePower, "set_power_state", 1), (task_store, "save", 2), (task_store, "save", 6)])
def test_what_a_deletion_began_ends_with_a_clean_node(start_conductor, node, records, monkeypatch, owner, name, at):
    uuid, first = node("active"), start_conductor("a")
    with monkeypatch.context() as patch:
        dies_in(patch, owner, name, at=at)
        request(first, uuid, "deleted")

    take_over(start_conductor, records, first)

    row = records.at_rest(uuid)
    assert (row.provision_state, row.last_error) == ("available", None)
    assert finished(records, uuid) == AUTOMATED
    assert_forgotten(row)


@pytest.mark.parametrize("verb", MANUAL)
@pytest.mark.parametrize("place", ["hold", "wait"])
def test_an_abort_is_finished_by_another_conductor(start_conductor, node, records, monkeypatch, verb, place):
    state, _, short, noun, _ = MANUAL[verb]
    uuid, first = node(state), start_conductor("a")
    begin(first, uuid, verb)
    if place == "wait":
        request(first, uuid, "unhold")
    assert records.at_rest(uuid).provision_state == f"{short} {place}"
    with monkeypatch.context() as patch:
        dies_at(patch, state_machine, "clean_up")
        request(first, uuid, "abort")

    take_over(start_conductor, records, first)

    row = records.at_rest(uuid)
    where = f" in {short} step raid.pretend" if place == "wait" else ""
    assert (row.provision_state, row.last_error) == (
        f"{short} failed", f"The {noun} was aborted by request{where}. (IR-2084)")
    assert_forgotten(row)
