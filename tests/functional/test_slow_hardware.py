"""Redfish steps of machines that take long, never finish or answer nonsense: polled without a worker and a lock.

One server is the BMC of all machines; each of them has its own system.
"""

from __future__ import annotations

import itertools
import threading

import pytest

from ironic_rules import context
from ironic_rules.conductor import heartbeat, recovery, state_machine, step_polls, wait_states
from ironic_rules.conductor.step_polls import StepPolls
from ironic_rules.conductor.worker_pool import Slot
from ironic_rules.db import clock, conductors
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.bios import RedfishBIOS
from ironic_rules.hardware.redfish.driver_info import RedfishHardware
from ironic_rules.models import states
from ironic_rules.models.internal_keys import STEP_POLL
from ironic_rules.steps import procedures
from tests.functional.agents import agent
from tests.functional.processes import wait_for
from tests.functional.test_direct_deployment import beat
from tests.functional.test_recovery import dies_at
from tests.functional.whole import make_conductor, running
from tests.unit.hardware.redfish_bmc import ROOT, SESSIONS, close_all, members, serving

MACHINES = 60
OPTIONS = """
[DEFAULT]
enabled_bios_interfaces = fake,redfish,no-bios
enabled_boot_interfaces = fake
enabled_deploy_interfaces = fake,custom-agent
enabled_inspect_interfaces = agent,no-inspect
enabled_management_interfaces = fake,redfish
enabled_power_interfaces = fake,redfish
enabled_raid_interfaces = fake,redfish,no-raid
[conductor]
workers_pool_size = 4
# The tests run the rounds themselves.
step_poll_interval = 3600
[deploy]
image_url_denied_networks =
[redfish]
auth_type = basic
connection_attempts = 1
connection_retry_interval = 1
"""


class Machine(RedfishHardware):
    supported_boot_interfaces = ("fake",)
    supported_deploy_interfaces = ("fake", "custom-agent")
    supported_inspect_interfaces = ("no-inspect",)


def system(number):
    return f"/redfish/v1/Systems/{number}"


def documents():
    found = {ROOT: {"Id": "RootService", "RedfishVersion": "1.6.0", "Systems": {"@odata.id": "/redfish/v1/Systems"}},
             "/redfish/v1/Systems": members(*map(system, range(MACHINES)))}
    for number in range(MACHINES):
        path = system(number)
        found[path] = {
            "Id": str(number), "Name": "System", "PowerState": "Off", "Boot": {}, "Bios": {"@odata.id": f"{path}/Bios"},
            "Actions": {"#ComputerSystem.Reset": {
                "target": f"{path}/Reset", "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart"]}}}
        found[f"{path}/Bios"] = {
            "Id": "Bios", "Name": "Bios", "Attributes": {"VMX": "off", "Cores": 1},
            "@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{path}/Bios/Settings"}}}
        found[f"{path}/Bios/Settings"] = {"Id": "Settings", "Name": "Settings", "Attributes": {}}
    return found


#: Boot devices of the machines, by their numbers.
boots: dict[str, list[str]] = {}


@pytest.fixture(scope="module")
def bmc():
    with serving(documents()) as found:

        def switch(path, body):
            if "Boot" in body:
                found.content[path]["Boot"].update(body["Boot"])
            if not path.endswith("/Reset"):
                return
            machine = found.content[path.removesuffix("/Reset")]
            machine["PowerState"] = "Off" if body["ResetType"] == "ForceOff" else "On"
            if body["ResetType"] != "ForceOff":
                boot, often = machine["Boot"], machine["Boot"].get("BootSourceOverrideEnabled")
                boots.setdefault(machine["Id"], []).append(
                    boot["BootSourceOverrideTarget"] if often in ("Once", "Continuous") else "local disk")
                if often == "Once":
                    boot["BootSourceOverrideEnabled"] = "Disabled"

        found.then = switch
        yield found


@pytest.fixture(scope="module")
def ironic(bmc, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "CONNECTIONS", client.Connections())
        with running(tmp_path_factory.mktemp("slow"), OPTIONS, {"redfish": Machine}) as service:
            yield service
        close_all(client.CONNECTIONS)


_numbers = itertools.count()
VMX = {"interface": "bios", "step": "apply_configuration", "priority": 110,
       "args": {"settings": [{"name": "VMX", "value": "on"}]}}


@pytest.fixture
def deploying(ironic, bmc):
    """A function that begins to deploy a machine, with a step for its BIOS unless others are given; it then waits.

    Nodes in other states than available are only created.

    It returns the node's UUID and the path of the machine.
    """

    def begin(*steps, state="available"):
        path = system(next(_numbers))
        node = ironic.enroll(state, driver="redfish", driver_info={
            "redfish_address": bmc.url, "redfish_system_id": path, "redfish_username": "u", "redfish_password": "p"})
        if state == "available":
            reply = ironic.ask(node, "active", deploy_steps=list(steps or [VMX]))
            assert reply.status_int == 202, reply.text
        return node, path

    return begin


def is_waiting(ironic, node, state=states.DEPLOYWAIT):
    """Wait until a poll of the node would count: a worker has the node a moment longer than its lock."""
    wait_for(f"node {node} to wait", lambda: (row := ironic.row(node)).provision_state == state
             and row.reservation is None and STEP_POLL in row.driver_internal_info
             and not ironic.works_on(row.id), interval_s=0.01)


@pytest.fixture
def round_of_polls(ironic):
    """A function that runs one round and waits for its end; it returns the number of nodes."""
    made = []

    def poll(conductor=ironic.conductor):
        rounds = StepPolls(conductor)
        made.append(rounds)
        found = rounds.poll_all()
        assert rounds.wait(60)
        return found

    yield poll
    for rounds in made:
        rounds.stop()


@pytest.fixture
def alone(ironic):
    """No polls but those of ``round_of_polls``."""
    waits = ironic.conductor.step_waits
    listener = waits._listener
    waits.listen(lambda node_id: None)
    yield
    waits.listen(listener)


def applied(bmc, path):
    bmc.content[f"{path}/Bios"]["Attributes"]["VMX"] = "on"


def make_overdue(ironic, node):
    internal = ironic.row(node).driver_internal_info
    past = clock.now().replace(year=2000).isoformat()
    ironic.put(node, driver_internal_info={**internal, STEP_POLL: {**internal[STEP_POLL], "until": past}})


def test_machines_that_never_finish_delay_no_request(ironic, bmc, deploying, round_of_polls, alone):
    nodes = [deploying()[0] for _ in range(40)]
    for node in nodes:
        is_waiting(ironic, node)

    assert round_of_polls() == 40
    # No worker is busy, no lock is held, and each machine was told once.
    assert ironic.conductor.workers._lanes and not ironic.conductor.workers._active
    assert len([path for method, path, _ in bmc.told if method == "PATCH"]) == 40
    other = ironic.enroll()
    assert ironic.provision(other, "manage")["provision_state"] == "manageable"
    reply = ironic.app.put_json(f"/v1/nodes/{nodes[0]}/states/power", {"target": "power off"})
    assert reply.status_int == 202
    assert ironic.at_rest(nodes[0]).provision_state == states.DEPLOYWAIT
    assert ironic.show(nodes[0])["power_state"] == "power off"
    # A user who no longer wants the machine need not wait either, and it is not polled any more.
    assert ironic.provision(nodes[1], "deleted")["provision_state"] == "available"
    assert ironic.provision(nodes[2], "abort")["provision_state"] == "deploy failed"
    assert [node for node in nodes if STEP_POLL not in ironic.row(node).driver_internal_info] == nodes[1:3]
    assert round_of_polls() == 38

    for node in nodes[3:]:
        make_overdue(ironic, node)
    round_of_polls()
    while any(ironic.row(node).provision_state == states.DEPLOYWAIT for node in nodes[3:]):
        round_of_polls()
    for node in nodes[3:]:
        row = ironic.at_rest(node)
        assert row.provision_state == "deploy failed"
        assert row.last_error.startswith("Deploy step bios.apply_configuration (1 of ")
        assert row.last_error.endswith(
            "failed: it was not completed in time (1800 seconds, [redfish]configuration_timeout): the BMC does not "
            "report the requested value of VMX. (IR-2087)")
    assert ironic.row(nodes[0]).provision_state == states.DEPLOYWAIT
    ironic.provision(nodes[0], "deleted")


def test_a_deployment_goes_on_soon_after_the_machine_has_finished(ironic, bmc, deploying):
    cores = {**VMX, "args": {"settings": [{"name": "Cores", "value": "1"}, {"name": "VMX", "value": "on"}]}}
    off, on = ({"interface": "power", "step": f"power_{state}", "priority": 109 - index, "args": {}}
               for index, state in enumerate(("off", "on")))
    node, path = deploying(cores, off, on)
    is_waiting(ironic, node)
    applied(bmc, path)

    # Without a round: by the conductor that began the step.
    wait_for("the deployment", lambda: ironic.row(node).provision_state == "active", interval_s=0.01)
    row = ironic.at_rest(node)
    assert (row.last_error, row.power_state, row.deploy_step) == (None, "power on", {})
    assert STEP_POLL not in row.driver_internal_info
    assert [body["ResetType"] for _, told, body in bmc.told if told == f"{path}/Reset"] == ["On", "ForceOff", "On"]


@pytest.mark.parametrize(("verb", "steps", "begun_in", "ended_in", "aborted_in"), [
    ("clean", "clean_steps", "manageable", "manageable", "clean failed"),
    ("service", "service_steps", "active", "active", "service failed")])
def test_cleaning_and_servicing_wait_in_the_same_way(ironic, bmc, deploying, round_of_polls, alone, verb, steps,
                                                    begun_in, ended_in, aborted_in):
    step = {name: VMX[name] for name in ("interface", "step", "args")}
    node, path = deploying(state=begun_in)
    assert ironic.ask(node, verb, **{steps: [step]}).status_int == 202
    is_waiting(ironic, node, f"{verb} wait")

    assert ironic.provision(node, "abort")["provision_state"] == aborted_in
    assert STEP_POLL not in ironic.row(node).driver_internal_info
    assert ironic.ask(node, verb, **{steps: [step]}).status_int == 202
    is_waiting(ironic, node, f"{verb} wait")
    applied(bmc, path)
    round_of_polls()
    wait_for("the end", lambda: ironic.row(node).provision_state == ended_in, interval_s=0.01)
    assert ironic.row(node).last_error is None


@pytest.mark.parametrize("ramdisk", [False, True])
def test_the_reboot_of_a_step_boots_the_ramdisk_that_runs_again(ironic, bmc, deploying, ramdisk):
    steps = [{name: VMX[name] for name in ("interface", "step", "args")},
             {"interface": "deploy", "step": "burnin_cpu", "args": {}}]
    node, path = deploying(state="manageable")
    ironic.put(node, deploy_interface="custom-agent")
    with agent() as running:
        reply = ironic.ask(node, "clean", clean_steps=steps if ramdisk else steps[:1], disable_ramdisk=not ramdisk)
        assert reply.status_int == 202, reply.text
        first = None
        if ramdisk:
            ironic.at_rest(node)
            first = beat(ironic, node, running)
        is_waiting(ironic, node, "clean wait")
        applied(bmc, path)
        if ramdisk:
            wait_for("the settings", lambda: procedures.pending_poll(ironic.row(node).driver_internal_info).ended)
            ironic.at_rest(node)
            # With this, the ramdisk that was running is none any more, and the new one is waited for.
            body = {"callback_url": running.url, "agent_token": first}
            assert ironic.app.post_json(f"/v1/heartbeat/{node}", body).status_int == 404
            running.restart()
            token = beat(ironic, node, running)
            assert running.names()[-1] == "clean.execute_clean_step"
            running.end()
            beat(ironic, node, running, token)
        wait_for("the end", lambda: ironic.row(node).provision_state == "manageable", interval_s=0.01)

    row = ironic.at_rest(node)
    assert (row.last_error, STEP_POLL in row.driver_internal_info) == (None, False)
    assert boots[path.rpartition("/")[2]] == (["Pxe", "Pxe"] if ramdisk else ["local disk"])


def test_a_ramdisk_that_does_not_come_back_after_the_reboot_of_a_step_is_waited_for_as_long_as_others(
        ironic, bmc, deploying, round_of_polls, alone):
    node, path = deploying(state="manageable")
    ironic.put(node, deploy_interface="custom-agent")
    with agent() as running:
        ironic.ask(node, "clean", clean_steps=[{name: VMX[name] for name in ("interface", "step", "args")}])
        ironic.at_rest(node)
        beat(ironic, node, running)
    is_waiting(ironic, node, "clean wait")
    applied(bmc, path)
    round_of_polls()
    wait_for("the settings", lambda: procedures.pending_poll(ironic.at_rest(node).driver_internal_info).ended)
    ironic.put(node, provision_updated_at=clock.now().replace(year=2000))

    recovery.fail_overdue(ironic.conductor)

    wait_for("the end", lambda: ironic.row(node).provision_state == "clean failed")
    assert "call-back in clean step bios.apply_configuration (1800 seconds, [conductor]clean_callback_timeout)" in (
        ironic.at_rest(node).last_error)


def test_a_heartbeat_does_not_end_the_step_and_costs_no_request_to_the_bmc(ironic, bmc, deploying, alone):
    node, _ = deploying()
    is_waiting(ironic, node)
    asked = len(bmc.read)

    heartbeat.heartbeat(ironic.conductor, context.admin(), node, "http://192.0.2.1:9999", "11", {})
    is_waiting(ironic, node)

    assert (len(bmc.read), procedures.pending_poll(ironic.row(node).driver_internal_info).ended) == (asked, False)


def test_what_waits_for_hardware_does_not_time_out_as_a_ramdisk_does(ironic, deploying, alone):
    node, _ = deploying()
    is_waiting(ironic, node)
    ironic.put(node, provision_updated_at=clock.now().replace(year=2000))

    recovery.fail_overdue(ironic.conductor)

    ironic.conductor.workers.wait_for_end(wait_states.Lane.TIMEOUTS)
    is_waiting(ironic, node)


def test_a_conductor_that_ends_closes_its_sessions_at_bmcs(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "CONNECTIONS", client.Connections())
    with serving(documents()) as bmc:
        bmc.sessions = set()
        with running(tmp_path, OPTIONS.replace("auth_type = basic", ""), {"redfish": Machine}) as ironic:
            node = ironic.enroll(driver="redfish", bios_interface="no-bios", driver_info={
                "redfish_address": bmc.url, "redfish_system_id": system(0), "redfish_username": "u"})
            assert ironic.provision(node, "manage")["provision_state"] == "manageable"
            assert len(bmc.sessions) == 1

    assert not bmc.sessions
    assert [path for _, path, _ in bmc.told] == [SESSIONS, f"{SESSIONS}/1"]


@pytest.mark.parametrize("moment", ["waiting", "resumed", "continuing"])
def test_another_conductor_continues(ironic, bmc, deploying, round_of_polls, alone, monkeypatch, moment):
    node, path = deploying()
    is_waiting(ironic, node)
    applied(bmc, path)
    if moment != "waiting":
        # The process dies after the outcome of the poll is stored: before its worker begins, or in the middle.
        with monkeypatch.context() as patch:
            if moment == "resumed":
                patch.setattr(Slot, "run", lambda self, *args: None)
            else:
                dies_at(patch, state_machine, "_save")
            round_of_polls()
            wait_for("the death", lambda: not ironic.conductor.workers.is_active(ironic.row(node).id))
        assert ironic.row(node).provision_state == states.DEPLOYING
    successor = make_conductor(ironic.conf, ironic.db, host=f"successor-{moment}", hardware=ironic.conductor.hardware)
    ironic.db.write(lambda conn: conductors.register(
        conn, successor.host, "", successor.hardware.register(), successor.instance))
    try:
        if moment == "waiting":
            assert round_of_polls(successor) >= 1
        else:
            ironic.put(node, reservation="conductor-9")
            assert recovery.resume_orphans(successor) == 1
        assert ironic.at_rest(node).provision_state == "active"
    finally:
        successor.workers.stop(10)
        ironic.db.write(lambda conn: conductors.unregister(conn, successor.host, successor.instance))
    assert len([body for _, told, body in bmc.told if told == f"{path}/Bios/Settings"]) == 1


@pytest.mark.parametrize(("answer", "text"), [
    ({"Attributes": ["nonsense"]}, "the BMC does not report the requested value of VMX"), ([1, 2], "sent an invalid"),
    (b"<html>", "sent an invalid response"), ("refused", "refused a request")])
def test_a_bmc_that_answers_nonsense_is_asked_again_and_named_when_the_time_is_over(
        ironic, bmc, deploying, round_of_polls, alone, answer, text, monkeypatch):
    node, path = deploying()
    is_waiting(ironic, node)
    if answer == "refused":
        monkeypatch.setitem(bmc.broken, f"{path}/Bios", 500)
    else:
        monkeypatch.setitem(bmc.content, f"{path}/Bios", answer)
    round_of_polls()
    is_waiting(ironic, node)

    make_overdue(ironic, node)
    round_of_polls()

    row = ironic.at_rest(node)
    assert row.provision_state == "deploy failed"
    assert "Deploy step bios.apply_configuration (1 of " in row.last_error
    assert "it was not completed in time" in row.last_error
    assert text in row.last_error


def test_a_node_in_maintenance_is_left_alone(ironic, deploying, round_of_polls, alone):
    node, _ = deploying()
    is_waiting(ironic, node)
    make_overdue(ironic, node)
    ironic.put(node, maintenance=True)

    round_of_polls()

    is_waiting(ironic, node)
    ironic.put(node, maintenance=False)
    round_of_polls()
    assert ironic.at_rest(node).provision_state == "deploy failed"


def test_a_bmc_whose_answer_never_ends_keeps_no_thread_from_the_others(ironic, deploying, alone, monkeypatch):
    nodes = [deploying()[0] for _ in range(2)]
    for node in nodes:
        is_waiting(ironic, node)
    held, asked = threading.Event(), []

    def poll(interface, task, what):
        asked.append(task.node.uuid)
        if len(asked) == 1:
            held.wait(60)
        return "nothing"

    monkeypatch.setattr(RedfishBIOS, "poll", poll)
    monkeypatch.setattr(step_polls, "_HELD_S", 0.0)
    with ironic.option("conductor", "step_poll_workers", 1):
        rounds = StepPolls(ironic.conductor)
        try:
            rounds.poll_all()
            wait_for("the only thread", lambda: asked)
            rounds.poll_all()
            wait_for("another thread", lambda: set(nodes) <= set(asked))
        finally:
            held.set()
            rounds.stop()
        assert rounds.wait(60)
    for node in nodes:
        assert ironic.ask(node, "abort").status_int == 202
