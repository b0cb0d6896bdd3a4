"""ironic-python-agent runs deploy steps of its own: the real agent, with its real API server, over TLS."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ironic_rules.simulator.inventories import SimulatedMachine
from tests.functional.clients import machines
from tests.functional.processes import free_port, standalone, wait_for

DRIVER = Path(__file__).with_name("ipa_deploy_driver.py")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with the deploy interface ``custom-agent``."""
    config = ("[deploy]\nimage_url_denied_networks =\n[DEFAULT]\nenabled_deploy_interfaces = fake,custom-agent\n"
              "enabled_rescue_interfaces = fake,agent,no-rescue\n")
    with standalone(tmp_path_factory.mktemp("ipa"), config=config) as (_, url):
        yield url


def available(endpoint: str, machine: SimulatedMachine, *traits: str) -> None:
    """Create the machine's node, available, and with the traits of its instance."""
    machines.call(endpoint, "POST", "nodes", {
        "uuid": machine.uuid, "driver": "fake-hardware", "deploy_interface": "custom-agent",
        "automated_clean": False, "instance_info": {"traits": list(traits)}})
    machines.call(endpoint, "POST", "ports", {"node_uuid": machine.uuid, "address": machine.pxe_mac})
    for target, state in (("manage", "manageable"), ("provide", "available")):
        provision(endpoint, machine, target)
        machines.wait_for_state(endpoint, machine.uuid, state)
    machines.call(endpoint, "PUT", f"nodes/{machine.uuid}/traits", {"traits": list(traits)})


def provision(endpoint: str, machine: SimulatedMachine, target: str, **arguments: Any) -> None:
    machines.call(endpoint, "PUT", f"nodes/{machine.uuid}/states/provision", {"target": target, **arguments})


@contextlib.contextmanager
def ramdisk(endpoint: str, machine: SimulatedMachine, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the agent on the machine."""
    folder.mkdir(exist_ok=True)
    (folder / "machine.json").write_bytes(machine.content)
    with (folder / "machine.json").open("rb") as stdin, (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, DRIVER, endpoint, str(free_port()), str(folder)],
                                   stdin=stdin, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


def finished(endpoint: str, machine: SimulatedMachine) -> list[str]:
    history = machines.call(endpoint, "GET", f"nodes/{machine.uuid}/history?detail=true&limit=1000")["history"]
    return [entry["event"].split()[2] for entry in history if " finished after " in entry["event"]]


def more(text: str, priority: int) -> dict[str, Any]:
    return {"interface": "deploy", "step": "write_more", "args": {"text": text}, "priority": priority}


def test_steps_of_the_agent_run_among_those_of_the_service(endpoint, tmp_path):
    machine = machines.machine(41)
    machines.call(endpoint, "POST", "deploy_templates", {
        "name": "CUSTOM_IN_BAND", "steps": [more("first", 90), more("last", 50)]})
    available(endpoint, machine, "CUSTOM_IN_BAND")

    provision(endpoint, machine, "active", deploy_steps=[
        {"interface": "power", "step": "power_on", "args": {}, "priority": 60}])
    waiting = machines.wait_for_state(endpoint, machine.uuid, "wait call-back")
    assert waiting["deploy_step"]["step"] == "deploy"
    with ramdisk(endpoint, machine, tmp_path / "ramdisk"):
        shown = machines.wait_for_state(endpoint, machine.uuid, "active")

    assert (tmp_path / "ramdisk" / "ran").read_text().splitlines() == [
        "first", f"system of {machine.uuid} with {machine.pxe_mac}", "last"]
    assert finished(endpoint, machine) == [
        "deploy.deploy", "deploy.write_more", "deploy.write_system", "power.power_on", "deploy.write_more",
        "deploy.tear_down_agent", "deploy.switch_to_tenant_network", "deploy.boot_instance"]
    assert (shown["last_error"], shown["power_state"]) == (None, "power on")
    assert not [key for key in shown["driver_internal_info"] if key.startswith(("deploy_", "agent_url", "agent_dep"))]


def test_a_step_that_fails_in_the_agent_fails_the_deployment_with_its_text(endpoint, tmp_path):
    machine = machines.machine(42)
    available(endpoint, machine)

    provision(endpoint, machine, "active", deploy_steps=[
        {"interface": "raid", "step": "break_down", "args": {}, "priority": 90}])
    with ramdisk(endpoint, machine, tmp_path / "ramdisk"):
        shown = machines.wait_for_state(endpoint, machine.uuid, "deploy failed")

    assert "raid.break_down" in shown["last_error"]
    assert "the machine smokes" in shown["last_error"]
    assert shown["power_state"] == "power off"


@pytest.mark.parametrize(("step", "text"), [
    ({"interface": "deploy", "step": "make_coffee", "args": {}, "priority": 90}, "deploy.make_coffee"),
    ({"interface": "deploy", "step": "write_more", "args": {"loudness": 1}, "priority": 90}, "/args/loudness"),
])
def test_a_step_that_not_even_the_agent_has_fails_the_deployment(endpoint, tmp_path, step, text):
    machine = machines.machine(43 if "coffee" in text else 44)
    available(endpoint, machine)

    provision(endpoint, machine, "active", deploy_steps=[step])
    with ramdisk(endpoint, machine, tmp_path / "ramdisk"):
        shown = machines.wait_for_state(endpoint, machine.uuid, "deploy failed")

    assert text in shown["last_error"]
    assert not (tmp_path / "ramdisk" / "ran").exists()


def test_a_default_step_of_the_agent_can_be_left_out(endpoint, tmp_path):
    machine = machines.machine(45)
    available(endpoint, machine)

    provision(endpoint, machine, "active", deploy_steps=[
        {"interface": "deploy", "step": "write_system", "args": {}, "priority": 0}, more("only this", 70)])
    with ramdisk(endpoint, machine, tmp_path / "ramdisk"):
        machines.wait_for_state(endpoint, machine.uuid, "active")

    assert (tmp_path / "ramdisk" / "ran").read_text() == "only this\n"


def test_a_ramdisk_that_dies_in_a_step_leaves_a_deployment_that_can_be_torn_down(endpoint, tmp_path):
    machine = machines.machine(46)
    available(endpoint, machine)
    provision(endpoint, machine, "active", deploy_steps=[
        {"interface": "deploy", "step": "take_long", "args": {}, "priority": 90}])
    ran = tmp_path / "ramdisk" / "ran"
    with ramdisk(endpoint, machine, tmp_path / "ramdisk"):
        wait_for("the long step", lambda: ran.exists())
        shown = machines.wait_for_state(endpoint, machine.uuid, "wait call-back")
        assert shown["deploy_step"]["step"] == "take_long"

    provision(endpoint, machine, "deleted")

    shown = machines.wait_for_state(endpoint, machine.uuid, "available")
    assert (shown["instance_info"], shown["deploy_step"], shown["power_state"]) == ({}, {}, "power off")
    assert "agent_url" not in shown["driver_internal_info"]
