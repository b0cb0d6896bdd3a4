"""ironic-python-agent, which runs on the machines themselves."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ironic_rules.models import states
from ironic_rules.simulator.inventories import SimulatedMachine
from tests.functional.clients import machines, warm_driver

DRIVER = Path(__file__).with_name("ipa_driver.py")


def agent(action: str, endpoint: str, machine: SimulatedMachine) -> dict[str, Any]:
    """Run the agent on ``machine``; see :mod:`tests.functional.clients.ipa_driver`."""
    result: dict[str, Any] = json.loads(warm_driver.run(
        sys.executable, DRIVER, action, endpoint, text=machine.content.decode()))
    return result


def test_the_agent_posts_what_it_found_and_accepts_the_answer(endpoint):
    machine = machines.machine(3)
    machines.enrol(endpoint, "ipa-inspected", machine)
    machines.start_inspection(endpoint, machine.uuid)

    result = agent("inspect", endpoint, machine)

    # The agent names no version: the answer is that of the oldest one, without a token.
    assert result == {"uuid": machine.uuid, "replies": [{"uuid": machine.uuid}]}
    node = machines.wait_for_state(endpoint, machine.uuid, states.MANAGEABLE)
    stored = machines.call(endpoint, "GET", f"nodes/{machine.uuid}/inventory")
    assert node["properties"] == {"cpu_arch": machine.inventory["cpu"]["architecture"]}
    assert stored["inventory"]["bmc_address"] == machine.bmc_address
    assert stored["inventory"]["memory"] == machine.inventory["memory"]
    assert stored["plugin_data"]["usb_devices"] == [{"product": "Hub", "vendor": "Example", "handle": "/bus/usb/1"}]
    assert "logs" not in stored["plugin_data"]


def test_a_failure_that_the_agent_reports_fails_the_inspection(endpoint):
    machine = machines.machine(4)
    machines.enrol(endpoint, "ipa-broken", machine)
    machines.start_inspection(endpoint, machine.uuid)

    result = agent("inspect-broken", endpoint, machine)

    assert result["replies"] == [{"uuid": machine.uuid}]
    assert "lldp is broken" in result["error"]
    node = machines.wait_for_state(endpoint, machine.uuid, states.INSPECTFAIL)
    assert "lldp is broken" in node["last_error"]


def test_the_agent_of_an_unknown_machine_is_told_so(endpoint):
    result = agent("inspect", endpoint, machines.machine(5))

    assert "returned an error" in result["error"] or "error 404" in result["error"]
    assert "uuid" not in result


def test_the_agent_finds_its_node_and_its_heartbeats_need_the_token(endpoint):
    machine = machines.machine(6)
    machines.enrol(endpoint, "ipa-lookup", machine)
    machines.start_inspection(endpoint, machine.uuid)

    result = agent("lookup", endpoint, machine)

    assert result["found"]["node"]["uuid"] == machine.uuid
    assert result["found"]["config"]["heartbeat_timeout"] == 300
    assert len(result["found"]["config"]["agent_token"]) >= 32
    assert result["second_token"] == "******"
    assert "Error 404" in result["refusal"]
    node = machines.node(endpoint, machine.uuid)
    assert node["driver_internal_info"]["agent_url"] == "http://192.0.2.9:9999"
    assert node["provision_state"] == states.INSPECTWAIT


def test_the_agent_finds_no_node_in_which_no_ramdisk_is_expected(endpoint):
    machine = machines.machine(7)
    machines.enrol(endpoint, "ipa-resting", machine)

    assert "error" in agent("lookup", endpoint, machine)
