"""``openstack baremetal …``: the commands that operators use."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import IO, Any

import pytest

from ironic_rules.models import states
from tests.functional.clients import machines, warm_openstack

#: Seconds that one command may take on a busy machine.
PATIENCE_S = 90


class Cli:
    """The ``openstack`` command without a user's settings, and without authentication unless it has a token."""

    def __init__(self, endpoint: str, folder: Path, token: str | None = None) -> None:
        login = ["none"] if token is None else ["admin_token", "--os-token", token]
        self._options = ["--os-auth-type", *login, "--os-endpoint", endpoint, "baremetal"]
        self._folder = folder
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}

    def start(self, command: str, *words: str, stdin: IO[str] | None = None) -> subprocess.Popen[str]:
        """Start ``openstack baremetal COMMAND``; blanks divide the words of ``command``, but not ``words``."""
        return subprocess.Popen(
            [warm_openstack.executable(), *self._options, *command.split(), *words], cwd=self._folder, text=True,
            env=self._environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        """Return status, output and errors of what :meth:`start` started."""
        with process:
            try:
                output, errors = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
            return process.returncode, output, errors

    def run(self, command: str, *words: str, stdin: IO[str] | None = None) -> str:
        """Run a command that succeeds; return what it prints."""
        status, output, errors = self.finish(self.start(command, *words, stdin=stdin))
        assert status == 0, f"{command}: {errors}"
        return output

    def json(self, command: str, *words: str) -> Any:
        """Run a command that succeeds; return what it prints as JSON."""
        return json.loads(self.run(command, *words, "-f", "json"))

    def refused(self, command: str, *words: str) -> str:
        """Run a command that the service refuses; return the error."""
        status, _, errors = self.finish(self.start(command, *words))
        assert status != 0
        return errors


@pytest.fixture
def cli(endpoint: str, tmp_path: Path) -> Cli:
    return Cli(endpoint, tmp_path)


@pytest.mark.slow
def test_a_node_is_created_changed_and_deleted(cli):
    created = cli.json("node create --driver fake-hardware --name web-1 --inspect-interface agent --resource-class r7 "
                       "--property cpu_arch=x86_64 --driver-info ipmi_password=secret --extra rack=7")
    cli.run("node set web-1 --name web-2 --property memory_mb=4096 --extra", 'row={"number": 3}')
    cli.run("node unset web-2 --property cpu_arch --extra rack")
    cli.run("node trait add web-2 CUSTOM_GPU HW_CPU_X86_AVX2 CUSTOM_SPARE")
    cli.run("node trait remove web-2 CUSTOM_SPARE")
    cli.run("node maintenance set web-2 --reason", "new fans")
    shown = cli.json("node show web-2")
    traits = cli.json("node trait list web-2")
    cli.run("node maintenance unset web-2")
    cli.run("node delete", created["uuid"])

    assert (created["provision_state"], created["inspect_interface"], created["driver_info"]) == (
        "enroll", "agent", {"ipmi_password": "******"})
    assert (shown["uuid"], shown["resource_class"]) == (created["uuid"], "r7")
    assert shown["properties"] == {"memory_mb": 4096}
    assert shown["extra"] == {"row": {"number": 3}}
    assert (shown["maintenance"], shown["maintenance_reason"]) == (True, "new fans")
    assert shown["traits"] == [line["traits"] for line in traits] == ["CUSTOM_GPU", "HW_CPU_X86_AVX2"]
    assert "Node web-2 could not be found" in cli.refused("node show web-2")


def test_nodes_are_listed_page_by_page(cli, endpoint):
    names = [f"listed-{number}" for number in range(5)]
    for name in names:
        machines.call(endpoint, "POST", "nodes", {"name": name, "driver": "fake-hardware", "resource_class": "listed"})

    everything = cli.json("node list --resource-class listed --limit 0 --fields name resource_class")
    # The command itself sorts the result.
    sorted_down = cli.json("node list --resource-class listed --limit 3 --sort name:desc --provision-state enroll")
    detailed = cli.json("node list --resource-class listed --limit 1 --long")

    assert everything == [{"name": name, "resource_class": "listed"} for name in names]
    assert [node["name"] for node in sorted_down] == names[2::-1]
    assert set(sorted_down[0]) == {"uuid", "name", "instance_uuid", "power_state", "provision_state", "maintenance"}
    assert (detailed[0]["name"], detailed[0]["driver"], detailed[0]["traits"]) == ("listed-0", "fake-hardware", [])


@pytest.mark.slow
def test_a_node_is_inspected_and_provided(cli, endpoint):
    machine = machines.machine(1)
    machines.enrol(endpoint, "inspected", machine)
    cli.run("node manage inspected --wait 60")
    validated = cli.json("node validate inspected")
    # The command polls while the machine boots, as for an operator.
    waiting = cli.start("node inspect inspected --wait 60")
    machines.boot(endpoint, "inspected", machine)
    status, _, errors = cli.finish(waiting)
    assert status == 0, errors
    inspected = machines.node(endpoint, "inspected")
    saved = json.loads(cli.run("node inventory save inspected"))
    cli.run("node provide inspected --wait 60")
    provided = machines.node(endpoint, "inspected")
    cli.run("node inspect inspected")
    machines.wait_for_state(endpoint, "inspected", states.INSPECTWAIT)
    cli.run("node abort inspected")
    aborted = machines.wait_for_state(endpoint, "inspected", states.INSPECTFAIL)

    assert {line["Interface"] for line in validated if line["Result"]} >= {"boot", "deploy", "power", "storage"}
    assert inspected["provision_state"] == "manageable"
    assert inspected["properties"] == {"cpu_arch": machine.inventory["cpu"]["architecture"]}
    assert saved["inventory"] == machine.inventory
    assert (provided["provision_state"], provided["power_state"]) == ("available", "power off")
    assert "aborted" in aborted["last_error"]


@pytest.mark.slow
def test_ports_and_port_groups_are_created_changed_and_deleted(cli, endpoint):
    node = machines.call(endpoint, "POST", "nodes", {"name": "connected", "driver": "fake-hardware"})["uuid"]
    group = cli.json(f"port group create --node {node} --name bond-1 --address 52:54:00:00:02:00")
    port = cli.json(f"port create 52:54:00:00:02:01 --node {node} --pxe-enabled false")
    cli.run(f"port set {port['uuid']} --address 52:54:00:00:02:02 --extra cable=blue --port-group {group['uuid']}")
    listed = cli.json("port list --node connected --long")
    shown = cli.json("port show --address 52:54:00:00:02:02 --fields uuid pxe_enabled")
    groups = cli.json("port group list --node connected")
    cli.run("port delete", port["uuid"])

    assert port["pxe_enabled"] is False
    assert [(line["uuid"], line["address"], line["extra"], line["portgroup_uuid"]) for line in listed] == [
        (port["uuid"], "52:54:00:00:02:02", {"cable": "blue"}, group["uuid"])]
    assert shown == {"uuid": port["uuid"], "pxe_enabled": False}
    assert groups == [{"uuid": group["uuid"], "address": "52:54:00:00:02:00", "name": "bond-1"}]
    assert machines.call(endpoint, "GET", "ports?node=connected")["ports"] == []


def test_drivers_and_conductors_are_shown(cli):
    conductor, = cli.json("conductor list")

    assert conductor["alive"] is True
    assert cli.json("driver list") == [{"name": "fake-hardware", "hosts": conductor["hostname"]}]
    assert cli.json("driver show fake-hardware")["default_inspect_interface"] == "agent"


@pytest.mark.slow
def test_rules_are_created_changed_and_deleted(cli, endpoint):
    actions = [{"op": "set-attribute", "args": {"path": "/extra/a", "value": 1}},
               {"op": "add-trait", "args": {"name": "CUSTOM_A"}}]
    conditions = [{"op": "!is-empty", "args": {"value": "{inventory[disks]}"}}]
    # The command sends priority and sensitive as strings.
    created = cli.json("inspection rule create --description first --priority 5 --sensitive false --phase main",
                       "--conditions", json.dumps(conditions), "--actions", json.dumps(actions))
    uuid = created["uuid"]
    listed = cli.json("inspection rule list")
    detailed = cli.json("inspection rule list --long")
    cli.run("inspection rule set", uuid, "--priority", "7", "--conditions", "[]")
    cli.run("inspection rule unset", uuid, "--description", "--action", "0")
    shown = cli.json("inspection rule show", uuid)
    cli.run("inspection rule delete", uuid)

    assert listed == [{"uuid": uuid, "description": "first", "phase": "main", "priority": 5, "scope": None,
                       "enabled": True}]
    assert [{name: rule[name] for name in created} for rule in detailed] == [created]
    assert (created["priority"], created["sensitive"], created["conditions"], created["actions"]) == (
        5, False, conditions, actions)
    assert (shown["description"], shown["priority"], shown["conditions"], shown["actions"]) == (
        None, 7, [], actions[1:])
    assert machines.call(endpoint, "GET", "inspection_rules")["inspection_rules"] == []


def test_a_wrong_rule_is_refused_with_the_place_of_the_mistake(cli):
    error = cli.refused("inspection rule create --actions", '[{"op": "no-such-action", "args": {}}]')

    assert "/actions/0/op: there is no such action; known: add-trait," in error


@pytest.mark.slow
def test_d_25_deploy_templates_are_created_changed_and_deleted(cli, endpoint, tmp_path):
    raid = {"interface": "raid", "step": "create_configuration", "priority": 10,
            "args": {"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]}}
    bios = {"interface": "bios", "step": "set_password", "args": {"password": "secret"}, "priority": 150}
    (tmp_path / "steps.yaml").write_text(json.dumps([raid, {**bios, "priority": "150"}]))
    # As document 003 writes it; python-ironicclient has the name without an option.
    created = cli.json("deploy template create --name CUSTOM_CLI --steps steps.yaml --extra rack=7 --extra",
                       'a={"b": 1}')
    twice = cli.refused("deploy template create CUSTOM_CLI --name CUSTOM_OTHER --steps steps.yaml")
    unnamed = cli.refused("deploy template create --steps steps.yaml")
    shown = cli.json("deploy template show CUSTOM_CLI")
    cli.run("deploy template set CUSTOM_CLI --name CUSTOM_CLI_2 --extra row=3 --steps", json.dumps([bios, raid]))
    cli.run("deploy template unset CUSTOM_CLI_2 --extra a")
    (tmp_path / "stdin.json").write_text(json.dumps([bios, raid, raid]))
    with (tmp_path / "stdin.json").open() as steps:
        cli.run("deploy template set CUSTOM_CLI_2 --steps -", stdin=steps)
    changed = cli.json("deploy template show", created["uuid"])
    for number in range(2):
        machines.call(endpoint, "POST", "deploy_templates", {"name": f"CUSTOM_CLI_OTHER_{number}", "steps": [raid]})
    listed = cli.json("deploy template list --limit 0")
    detailed = cli.json("deploy template list --long")
    fields = cli.json("deploy template list --fields name steps --limit 1 --marker", created["uuid"])
    cli.run("deploy template delete CUSTOM_CLI_2 CUSTOM_CLI_OTHER_0 CUSTOM_CLI_OTHER_1")

    assert "A deploy template has one name, but CUSTOM_CLI and --name CUSTOM_OTHER are two." in twice
    assert "A deploy template needs a name." in unnamed
    hidden = {**bios, "args": {"password": "******"}}
    assert (created["steps"], created["extra"]) == ([raid, hidden], {"rack": 7, "a": {"b": 1}})
    # After a creation, and in lists, the client shows the fields that it knows. It does not know descriptions.
    # The service does not know the step of the BIOS, which is a warning.
    assert ([warning["kind"] for warning in shown.pop("warnings")], changed.pop("warnings")[0]["kind"]) == (
        ["step"], "step")
    assert {**created, "description": None} == shown
    assert (changed["name"], changed["steps"], changed["extra"]) == (
        "CUSTOM_CLI_2", [hidden, raid, raid], {"rack": 7, "row": 3})
    assert [line["name"] for line in listed] == ["CUSTOM_CLI_2", "CUSTOM_CLI_OTHER_0", "CUSTOM_CLI_OTHER_1"]
    assert set(listed[0]) == {"uuid", "name"}
    assert {**detailed[0], "description": None} == changed
    assert fields == [{"name": "CUSTOM_CLI_OTHER_0", "steps": [raid]}]
    assert machines.call(endpoint, "GET", "deploy_templates")["deploy_templates"] == []


def test_a_wrong_deploy_template_is_refused_with_the_place_of_the_mistake(cli):
    steps = '[{"interface": "raid", "step": "create_configuration", "args": {}, "priority": -1}]'

    assert "/steps/0/priority: must be an integer" in cli.refused("deploy template create CUSTOM_CLI --steps", steps)
    assert "Deploy template CUSTOM_NOPE could not be found" in cli.refused("deploy template show CUSTOM_NOPE")
