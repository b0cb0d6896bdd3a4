"""Inspection in a real ``openstack``, as in document 001: no new commands to start it, one for the inventory."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ironic_rules.models import states
from tests.functional.clients import machines
from tests.functional.clients.test_cli import PATIENCE_S, Cli
from tests.functional.clients.warm_openstack import INSTALLED

pytestmark = pytest.mark.slow


@pytest.fixture
def cli(endpoint: str, tmp_path: Path) -> Cli:
    return Cli(endpoint, tmp_path)


def test_m_33_inspection_is_chosen_started_and_aborted_by_the_commands_that_there_are(cli, endpoint):
    machine = machines.machine(33)
    machines.call(endpoint, "POST", "nodes", {"name": "m-33", "driver": "fake-hardware", "uuid": machine.uuid,
                                              "inspect_interface": "no-inspect"})
    machines.call(endpoint, "POST", "ports", {"node_uuid": machine.uuid, "address": machine.pxe_mac})
    cli.run("node manage m-33 --wait 60")

    refused = cli.refused("node inspect m-33")
    cli.run("node set --inspect-interface agent m-33")
    cli.run("node inspect m-33")
    machines.wait_for_state(endpoint, "m-33", states.INSPECTWAIT)
    cli.run("node abort m-33")
    aborted = machines.wait_for_state(endpoint, "m-33", states.INSPECTFAIL)
    again = cli.start("node inspect m-33 --wait 60")
    machines.boot(endpoint, "m-33", machine)
    status, _, errors = cli.finish(again)

    assert "inspect" in refused
    assert (aborted["inspect_interface"], "aborted" in aborted["last_error"]) == ("agent", True)
    assert (status, machines.node(endpoint, "m-33")["provision_state"]) == (0, "manageable"), errors


def test_m_34_the_inventory_is_shown_or_saved_to_a_file(cli, endpoint, tmp_path):
    machine = machines.machine(34)
    machines.enrol(endpoint, "m-34", machine)
    missing = cli.refused("node inventory save m-34")
    machines.start_inspection(endpoint, "m-34")
    machines.boot(endpoint, "m-34", machine)
    machines.wait_for_state(endpoint, "m-34", states.MANAGEABLE)

    shown = json.loads(cli.run("node inventory save m-34"))
    cli.run("node inventory save --file inventory.json m-34")

    assert "inventory" in missing.lower()
    assert shown == json.loads((tmp_path / "inventory.json").read_text())
    assert (shown.keys(), shown["inventory"]) == ({"inventory", "plugin_data"}, machine.inventory)


def test_m_35_no_command_sends_a_ramdisks_data():
    listed = subprocess.run([INSTALLED, "--os-auth-type", "none", "command", "list", "-f", "value"],
                            capture_output=True, text=True, check=True, timeout=PATIENCE_S)

    commands = re.findall(r"'(baremetal [^']*)'", listed.stdout)
    assert "baremetal node inspect" in commands
    assert [name for name in commands if re.search("continue|callback|lookup|heartbeat", name)] == []
