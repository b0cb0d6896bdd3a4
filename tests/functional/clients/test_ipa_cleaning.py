"""The real ironic-python-agent runs clean steps and service steps of its own, over TLS. No step touches a disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ironic_rules.simulator.inventories import SimulatedMachine
from tests.functional.clients import machines

# The endpoint is a fixture.
from tests.functional.clients.test_ipa_deployment import endpoint as endpoint
from tests.functional.clients.test_ipa_deployment import finished, provision, ramdisk
from tests.functional.processes import wait_for

pytestmark = pytest.mark.slow


def managed(endpoint: str, number: int) -> SimulatedMachine:
    """Return a machine whose node is manageable."""
    machine = machines.machine(number)
    machines.call(endpoint, "POST", "nodes", {
        "uuid": machine.uuid, "driver": "fake-hardware", "deploy_interface": "custom-agent"})
    machines.call(endpoint, "POST", "ports", {"node_uuid": machine.uuid, "address": machine.pxe_mac})
    provision(endpoint, machine, "manage")
    machines.wait_for_state(endpoint, machine.uuid, "manageable")
    return machine


def write(text: str) -> dict[str, Any]:
    return {"interface": "deploy", "step": "write_more", "args": {"text": text}}


@pytest.fixture
def folder(tmp_path) -> Iterator[Any]:
    return tmp_path / "ramdisk"


def lines(folder) -> list[str]:
    return (folder / "ran").read_text().splitlines() if (folder / "ran").exists() else []


def test_the_agents_steps_clean_a_machine_before_it_is_available(endpoint, folder):
    machine = managed(endpoint, 61)

    provision(endpoint, machine, "provide")
    waiting = machines.wait_for_state(endpoint, machine.uuid, "clean wait")
    assert waiting["clean_step"]["step"] == "prepare_cleaning"
    with ramdisk(endpoint, machine, folder):
        shown = machines.wait_for_state(endpoint, machine.uuid, "available")

    assert lines(folder) == [f"cleaned {machine.uuid}"]
    assert finished(endpoint, machine) == [
        "deploy.prepare_cleaning", "deploy.note_cleaned", "deploy.tear_down_cleaning"]
    assert (shown["last_error"], shown["power_state"], shown["clean_step"]) == (None, "power off", {})
    assert not [key for key in shown["driver_internal_info"] if key.startswith(("clean", "agent_url", "agent_clean"))]


def test_requested_steps_run_in_the_agent_and_out_of_band_in_their_order(endpoint, folder):
    machine = managed(endpoint, 62)

    provision(endpoint, machine, "clean", clean_steps=[
        write("first"), {"interface": "power", "step": "power_on"}, write("second"), write("third")])
    with ramdisk(endpoint, machine, folder):
        machines.wait_for_state(endpoint, machine.uuid, "manageable")

    assert lines(folder) == ["first", "second", "third"]
    assert finished(endpoint, machine) == [
        "deploy.prepare_cleaning", "deploy.write_more", "power.power_on", "deploy.write_more", "deploy.write_more",
        "deploy.tear_down_cleaning"]


def test_a_clean_step_that_fails_in_the_agent_and_one_that_it_does_not_have(endpoint, folder):
    machine = managed(endpoint, 63)

    provision(endpoint, machine, "clean", clean_steps=[write("first"), {"interface": "raid", "step": "break_down"}])
    with ramdisk(endpoint, machine, folder):
        shown = machines.wait_for_state(endpoint, machine.uuid, "clean failed")
    assert "Clean step raid.break_down (3 of 4, request) failed: " in shown["last_error"]
    assert "the machine smokes" in shown["last_error"]
    assert (shown["power_state"], shown["fault"], lines(folder)) == ("power off", "clean failure", ["first"])

    machines.call(endpoint, "DELETE", f"nodes/{machine.uuid}/maintenance")
    provision(endpoint, machine, "clean", clean_steps=[write("more"), {"interface": "raid", "step": "make_tea"}])
    with ramdisk(endpoint, machine, folder):
        shown = machines.wait_for_state(endpoint, machine.uuid, "clean failed")
    assert "raid.make_tea" in shown["last_error"]
    assert lines(folder) == ["first"]


def test_a_step_in_the_agent_is_aborted(endpoint, folder):
    machine = managed(endpoint, 64)
    provision(endpoint, machine, "clean", clean_steps=[{"interface": "deploy", "step": "take_long"}])

    with ramdisk(endpoint, machine, folder):
        wait_for("the long step", lambda: lines(folder))
        machines.wait_for_state(endpoint, machine.uuid, "clean wait")
        provision(endpoint, machine, "abort")
        shown = machines.wait_for_state(endpoint, machine.uuid, "clean failed")

    assert shown["last_error"] == "The cleaning was aborted by request in clean step deploy.take_long. (IR-2084)"
    assert (shown["power_state"], shown["maintenance"]) == ("power off", False)


def test_service_steps_run_in_the_agent_while_the_instance_does_not(endpoint, folder):
    machine = managed(endpoint, 65)
    provision(endpoint, machine, "adopt")
    machines.wait_for_state(endpoint, machine.uuid, "active")

    provision(endpoint, machine, "service", service_steps=[write("serviced")])
    with ramdisk(endpoint, machine, folder):
        shown = machines.wait_for_state(endpoint, machine.uuid, "active")

    assert lines(folder) == ["serviced"]
    assert finished(endpoint, machine) == ["deploy.prepare_service", "deploy.write_more", "deploy.tear_down_service"]
    assert (shown["power_state"], shown["last_error"]) == ("power on", None)


def test_with_fast_track_the_same_agent_cleans_again_and_again(endpoint, folder):
    machine = managed(endpoint, 66)
    machines.call(endpoint, "PATCH", f"nodes/{machine.uuid}", [
        {"op": "add", "path": "/driver_info/fast_track", "value": True}])

    provision(endpoint, machine, "provide")
    machines.wait_for_state(endpoint, machine.uuid, "clean wait")
    with ramdisk(endpoint, machine, folder):
        available = machines.wait_for_state(endpoint, machine.uuid, "available")
        # A reboot would make the token invalid, and the agent would not be heard any more.
        for text in ("more", "most"):
            provision(endpoint, machine, "manage")
            provision(endpoint, machine, "clean", clean_steps=[write(text)])
            wait_for(text, lambda text=text: lines(folder)[-1:] == [text])
            shown = machines.wait_for_state(endpoint, machine.uuid, "manageable")
            provision(endpoint, machine, "provide")
            machines.wait_for_state(endpoint, machine.uuid, "available")

    assert (available["power_state"], shown["power_state"], shown["last_error"]) == ("power on", "power on", None)
    assert lines(folder) == [*(cleaned := [f"cleaned {machine.uuid}"]), "more", *cleaned, "most", *cleaned]
