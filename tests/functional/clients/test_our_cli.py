"""Our commands and openstacksdk's companion, next to the commands of python-ironicclient, in a real ``openstack``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openstack
import pytest
from openstack import exceptions

from ironic_rules.client.sdk import InspectionRules, Inspections
from tests.functional.clients import machines
from tests.functional.clients.test_cli import PATIENCE_S, Cli
from tests.functional.clients.warm_openstack import INSTALLED
from tests.functional.installations import served
from tests.functional.processes import wait_for
from tests.functional.rows import identity
from tests.walking import walking

pytestmark = pytest.mark.slow

NEW, EXTENDED = "ironic_rules.client.rule_commands", "ironic_rules.client.extended_commands"
REVISIONS = "ironic_rules.client.rule_commands"
DRY_RUNS = "ironic_rules.client.dry_run_commands"
ORIGINS = {"apply": NEW, "create": EXTENDED, "delete": EXTENDED, "explain": DRY_RUNS, "export": NEW, "get": NEW,
           "import": NEW, "list": EXTENDED, "revision list": REVISIONS, "revision rollback": REVISIONS,
           "revision show": REVISIONS, "set": EXTENDED, "show": EXTENDED,
           "statistics": "ironic_rules.client.rule_commands", "test": DRY_RUNS, "unset": EXTENDED}

#: Starts ``openstack``, with the packages found in a given order, and prints which commands it uses.
LOOK = """
import contextlib, io, json, sys
from stevedore import _cache
found = _cache.get_group_all
_cache.get_group_all = lambda group: sorted(found(group), key=lambda point: point.value, reverse=sys.argv[1] == "down")
from openstackclient.shell import OpenStackShell
with contextlib.redirect_stdout(io.StringIO()):
    shell = OpenStackShell()
    shell.run(["module", "list"])
prefix = "baremetal inspection rule "
print(json.dumps({name.removeprefix(prefix): point.value.partition(":")[0]
                  for name, point in shell.command_manager.commands.items() if name.startswith(prefix)}))
"""

FAIL = [{"op": "fail", "args": {"msg": "no"}}]
NOT_EMPTY = [{"op": "!is-empty", "args": {"value": "{inventory[disks]}"}}]


@pytest.fixture
def cli(endpoint: str, tmp_path: Path) -> Iterator[Cli]:
    yield Cli(endpoint, tmp_path)
    machines.call(endpoint, "DELETE", "inspection_rules")


@pytest.fixture
def rules(endpoint: str) -> Iterator[InspectionRules]:
    with openstack.connect(
            load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=endpoint) as connection:
        yield InspectionRules(connection.baremetal)
    machines.call(endpoint, "DELETE", "inspection_rules")


def create(endpoint: str, **fields: Any) -> str:
    """Create a rule with the API only; return its UUID."""
    return str(machines.call(endpoint, "POST", "inspection_rules", {"actions": FAIL, **fields})["uuid"])


def stored(endpoint: str) -> list[dict[str, Any]]:
    """Return the first page of rules, with the API only."""
    return list(machines.call(endpoint, "GET", "inspection_rules?detail=true")["inspection_rules"])


@walking("order", ["up", "down"])
def test_it_does_not_depend_on_chance_whose_command_runs(order):
    seen = subprocess.run([sys.executable, "-c", LOOK, order], capture_output=True, text=True, check=True,
                          timeout=PATIENCE_S)

    assert json.loads(seen.stdout) == ORIGINS
    assert "duplicate" not in seen.stderr
    assert "Could not load" not in seen.stderr


def test_commands_are_silent_and_abbreviated_ones_are_the_same(cli, endpoint):
    uuid = create(endpoint)

    status, output, errors = cli.finish(cli.start("insp rule se", uuid, "--scope", "rack"))

    assert (status, output, errors) == (0, "", "")
    assert stored(endpoint)[0]["scope"] == "rack"


def test_the_commands_of_python_ironicclient_work_as_before(cli, endpoint):
    created = cli.json("inspection rule create --priority 5 --sensitive false --actions", json.dumps(FAIL),
                       "--conditions", json.dumps(NOT_EMPTY), "--description", "first")
    uuid = created["uuid"]
    cli.run("inspection rule set", uuid, "--priority", "7", "--phase", "early")
    cli.run("inspection rule unset", uuid, "--description", "--condition", "0")
    shown = cli.json("inspection rule show", uuid)
    other = create(endpoint)
    listed = cli.json("inspection rule list --fields uuid priority")
    deleted = cli.run("inspection rule delete", uuid, other)

    assert (created["priority"], created["conditions"], created["description"]) == (5, NOT_EMPTY, "first")
    assert (shown["priority"], shown["phase"], shown["description"], shown["conditions"]) == (7, "early", None, [])
    assert listed == [{"uuid": uuid, "priority": 7}, {"uuid": other, "priority": 0}]
    assert deleted == f"Deleted rule {uuid}\nDeleted rule {other}\n"
    assert stored(endpoint) == []


def test_r_70_a_file_of_rules_is_imported(cli, endpoint, tmp_path):
    (tmp_path / "rules.yaml").write_text("""
        - description: first
          priority: 10
          scope: rack
          conditions: [{op: "!is-empty", args: {value: "{inventory[disks]}"}}]
          actions: [{op: fail, args: {msg: "no"}}]
        - description: second
          name: hidden
          sensitive: true
          actions: [{op: fail, args: {msg: "no"}}]
        """, encoding="utf-8")

    rows = cli.json("inspection rule import rules.yaml")

    assert [(row["rule"], row["description"], row["result"]) for row in rows] == [
        (1, "first", "created"), (2, "second", "created")]
    assert [(rule["uuid"], rule["priority"], rule["scope"], rule["conditions"], rule["actions"])
            for rule in stored(endpoint)] == [
        (rows[0]["uuid"], 10, "rack", NOT_EMPTY, FAIL), (rows[1]["uuid"], 0, None, None, None)]


def test_r_70_rules_that_fail_are_named_with_the_reason_of_the_service(cli, endpoint, tmp_path):
    taken = create(endpoint)
    (tmp_path / "rules.json").write_text(json.dumps([
        {"actions": [{"op": "no-such-action", "args": {}}]}, {"uuid": taken, "actions": FAIL}, "text",
        {"description": "good", "actions": FAIL}, {"sensitive": True, "actions": FAIL}]), encoding="utf-8")

    status, output, _ = cli.finish(cli.start("inspection rule import rules.json -f json"))

    results = [row["result"] for row in json.loads(output)]
    assert status == 1
    assert results[0].startswith("failed: ") and "/actions/0/op: there is no such action" in results[0]
    assert results[1] == "unchanged"
    assert results[2].startswith("failed: a rule is an object (HTTP 400) (Request-ID: ")
    assert results[3] == "created"
    assert results[4].startswith("failed: a sensitive rule needs a uuid or a name by which it is found (HTTP 400)")
    assert [rule["description"] for rule in stored(endpoint)] == [None, "good"]


def test_r_70_one_rule_is_imported_from_the_standard_input(cli, endpoint):
    command = f"{INSTALLED} --os-auth-type none --os-endpoint {endpoint} baremetal inspection rule import -".split()

    run = subprocess.run([*command, "-f", "value", "-c", "result"], check=True, timeout=PATIENCE_S, text=True,
                         capture_output=True, input=json.dumps({"description": "piped", "actions": FAIL}))

    assert run.stdout == "created\n"
    assert [rule["description"] for rule in stored(endpoint)] == ["piped"]


def test_r_71_rules_are_listed_in_short_and_in_long(cli, endpoint):
    uuid = create(endpoint, scope="rack", description="first", conditions=NOT_EMPTY)
    hidden = create(endpoint, sensitive=True)

    short = cli.json("inspection rule list")
    long = cli.json("inspection rule list --long")

    assert [list(rule.items()) for rule in short] == [
        [("uuid", shown), ("description", text), ("phase", "main"), ("priority", 0), ("scope", scope),
         ("enabled", True)] for shown, text, scope in ((uuid, "first", "rack"), (hidden, None, None))]
    assert [(rule["uuid"], rule["conditions"], rule["actions"]) for rule in long] == [
        (uuid, NOT_EMPTY, FAIL), (hidden, None, None)]


def test_r_71_rules_are_listed_by_scope_and_phase(cli, endpoint):
    uuids = [create(endpoint, scope=scope, phase=phase) for scope, phase in (
        ("rack", "preprocess"), (None, "preprocess"), ("rack", "main"), ("rack", "preprocess"), ("rack", "preprocess"))]

    chosen = cli.json("inspection rule list --scope rack --phase preprocess --limit 0 --long")
    page = cli.json("inspection rule list --phase main")

    assert [rule["uuid"] for rule in chosen] == [uuids[0], uuids[3], uuids[4]]
    assert (chosen[0]["phase"], chosen[0]["actions"]) == ("preprocess", FAIL)
    assert [rule["uuid"] for rule in page] == [uuids[2]]
    assert "phase" in cli.refused("inspection rule list --phase late")


def test_r_72_get_is_show(cli, endpoint):
    uuid = create(endpoint, scope="rack")

    assert cli.json("inspection rule get", uuid) == cli.json("inspection rule show", uuid)
    assert cli.json("inspection rule get", uuid)["scope"] == "rack"


def test_r_73_one_rule_is_deleted(cli, endpoint):
    kept, deleted = create(endpoint), create(endpoint)

    cli.run("inspection rule delete", deleted)

    assert [rule["uuid"] for rule in stored(endpoint)] == [kept]
    assert deleted in cli.refused("inspection rule delete", deleted)


def test_r_73_all_rules_are_deleted(cli, endpoint):
    create(endpoint)
    create(endpoint)

    assert "--all" in cli.refused("inspection rule delete")
    assert cli.run("inspection rule delete --all") == "Deleted all rules.\n"
    assert stored(endpoint) == []


def test_r_74_every_property_is_set(cli, endpoint):
    uuid = create(endpoint)

    refused = cli.refused("inspection rule set", uuid, "--uuid", "4475ad5a-6f33-4d0b-a2fe-b4b0a4d3a5e8")
    cli.run("inspection rule set", uuid, "--uuid", uuid, "--scope", "rack", "--phase", "preprocess", "--priority", "3",
            "--disabled", "--name", "first", "--bundle", "racks", "--description", "new",
            "--conditions", json.dumps(NOT_EMPTY), "--actions", json.dumps(FAIL * 2))
    shown = cli.json("inspection rule get", uuid)
    cli.run("inspection rule set", uuid, "--sensitive")

    assert "because revisions, statistics and past inspections name the rule by it" in refused
    assert (shown["enabled"], shown["name"], shown["bundle"]) == (False, "first", "racks")
    assert {name: shown[name] for name in ("scope", "phase", "priority", "description", "conditions", "actions")} == {
        "scope": "rack", "phase": "preprocess", "priority": 3, "description": "new", "conditions": NOT_EMPTY,
        "actions": FAIL * 2}
    assert (stored(endpoint)[0]["sensitive"], stored(endpoint)[0]["actions"]) == (True, None)


def test_r_75_conditions_scope_and_description_are_unset(cli, endpoint):
    uuid = create(endpoint, scope="rack", description="old", conditions=NOT_EMPTY, name="first", bundle="racks",
                  max_nodes=3)

    cli.run("inspection rule unset", uuid, "--conditions", "--scope", "--description", "--name", "--bundle",
            "--max-nodes")

    rule, = stored(endpoint)
    assert (rule["name"], rule["bundle"], rule["max_nodes"]) == (None, None, None)
    assert (rule["scope"], rule["description"], rule["conditions"], rule["actions"]) == (None, None, [], FAIL)


def test_r_76_a_rule_is_created_from_fields(cli, endpoint, tmp_path):
    (tmp_path / "actions.yaml").write_text("[{op: fail, args: {msg: 'no'}}]", encoding="utf-8")
    uuid = "4475ad5a-6f33-4d0b-a2fe-b4b0a4d3a5e8"

    shown = cli.json("inspection rule create --scope rack --phase preprocess --priority 3 --disabled --description new "
                     "--actions actions.yaml --conditions", json.dumps(NOT_EMPTY), "--uuid", uuid)
    cli.run("inspection rule create --sensitive --actions actions.yaml")
    error = cli.refused("inspection rule create --scope rack --actions", '[{"op": "no-such-action", "args": {}}]')

    first, second = stored(endpoint)
    assert shown == {name: value for name, value in first.items() if name != "links"}
    assert (first["uuid"], first["scope"], first["phase"], first["priority"]) == (uuid, "rack", "preprocess", 3)
    assert first["enabled"] is False
    assert (first["description"], first["conditions"], first["actions"]) == ("new", NOT_EMPTY, FAIL)
    assert second["sensitive"] is True
    assert "/actions/0/op: there is no such action" in error


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")
def test_r_77_the_sdk_has_every_call_of_the_document(rules, endpoint):
    created = [rules.create_inspection_rule(actions=FAIL, scope=scope, name=name, bundle="lab", max_nodes=3)
               for name, scope in (("a", "rack"), ("b", None), ("c", "rack"))]
    updated = rules.update_inspection_rule(created[0], description="changed", priority=7, enabled=False)
    patched = rules.patch_inspection_rule(created[0].id, [{"op": "remove", "path": "/scope"}])
    shown = rules.get_inspection_rule(created[0].id)
    summaries = list(rules.inspection_rules())
    detailed = list(rules.inspection_rules(details=True, scope="rack"))
    named = list(rules.inspection_rules(name="b", bundle="lab"))
    rules.delete_inspection_rule(created[1])
    rules.delete_inspection_rule(created[1].id)
    with pytest.raises(exceptions.NotFoundException):
        rules.delete_inspection_rule(created[1].id, ignore_missing=False)
    left = [rule.id for rule in rules.inspection_rules()]
    counted = rules.inspection_rule_statistics(never_matched_since="2026-03-01T00:00:00Z")
    assert [each["uuid"] for each in counted] == left
    assert rules.inspection_rule_statistics(left[0]) == counted[:1]
    rules.delete_all_inspection_rules()

    assert (created[0].scope, created[0].is_built_in, created[0].actions) == ("rack", False, FAIL)
    assert (created[0].name, created[0].bundle, created[0].max_nodes, created[0].is_enabled) == ("a", "lab", 3, True)
    assert (updated.description, updated.priority, updated.scope) == ("changed", 7, "rack")
    assert created[0].nodes_counted == 0
    assert (updated.is_enabled, [rule.id for rule in named]) == (False, [created[1].id])
    assert (patched.description, patched.scope) == ("changed", None)
    assert (shown.description, shown.priority, shown.scope, shown.actions) == ("changed", 7, None, FAIL)
    assert [(rule.id, rule.actions) for rule in summaries] == [(rule.id, None) for rule in created]
    assert [(rule.id, rule.actions) for rule in detailed] == [(created[2].id, FAIL)]
    assert left == [created[0].id, created[2].id]
    assert stored(endpoint) == []
    with pytest.raises(exceptions.NotFoundException, match="could not be found"):
        rules.get_inspection_rule(created[0].id)


def test_warnings_of_the_service_are_on_the_standard_error(cli, endpoint):
    by_position = json.dumps([{"op": "fail", "args": ["no"]}])

    status, output, errors = cli.finish(cli.start("inspection rule create -f json --actions", by_position))
    uuid = json.loads(output)["uuid"]
    others = [cli.finish(cli.start("inspection rule set", uuid, "--priority", "5")),
              cli.finish(cli.start("inspection rule unset", uuid, "--description")),
              cli.finish(cli.start("inspection rule set", uuid, "--scope", "rack"))]

    warning = 'warning: /actions/0/args: Ironic wants arguments by name since August 2026: {"msg": ...}\n'
    assert (status, "warnings" in json.loads(output), errors) == (0, False, warning)
    assert others == [(0, "", warning)] * 3


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")
def test_openstacksdk_ignores_warnings_and_its_companion_has_them(rules):
    by_position = [{"op": "fail", "args": ["no"]}]

    plain = rules._baremetal.create_inspection_rule(actions=by_position)
    created = rules.create_inspection_rule(actions=by_position)
    changed = rules.update_inspection_rule(created, actions=FAIL)

    assert plain.actions == by_position
    assert [warning["pointer"] for warning in created.warnings] == ["/actions/0/args"]
    assert (changed.warnings, rules.get_inspection_rule(created.id).warnings) == (None, None)


@pytest.fixture
def inspections(endpoint: str) -> Iterator[Inspections]:
    with openstack.connect(
            load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=endpoint) as connection:
        yield Inspections(connection.baremetal)


def refused(endpoint: str, index: int) -> machines.Machine:
    """Let the service refuse a machine; return the machine."""
    machine = machines.machine(index)
    assert httpx.post(f"{endpoint}/v1/continue_inspection", content=machine.content).status_code == 404
    return machine


def test_a_machine_of_the_journal_is_enrolled(cli, endpoint):
    machine = refused(endpoint, 901)
    entry, = wait_for("the journal", lambda: cli.json("inspection journal list --mac", machine.pxe_mac))
    shown = cli.json("inspection journal show", entry["uuid"])
    created = cli.json("inspection journal enroll", entry["uuid"], "--driver", "fake-hardware", "--name", "cli-901")
    again = cli.refused("inspection journal enroll", entry["uuid"], "--driver", "fake-hardware")

    assert (entry["reason"], entry["nodes"], shown["report"]) == ("discovery off", [], None)
    assert (created["name"], created["provision_state"]) == ("cli-901", "inspect wait")
    assert f"node {created['uuid']} (inspect wait)" in again
    machines.call(endpoint, "POST", "continue_inspection", json.loads(machine.content))
    machines.wait_for_state(endpoint, "cli-901", "enroll")


def test_shared_addresses_are_listed_and_forgotten(cli, endpoint):
    one, other = machines.machine(907), machines.machine(908)
    usb = "be:3a:f2:00:09:07"
    for name, machine in (("cli-907", one), ("cli-908", other)):
        report = json.loads(machine.content)
        report["inventory"]["interfaces"].append({"name": "usb0", "mac_address": usb, "has_carrier": True})
        machines.enrol(endpoint, name, machine)
        machines.start_inspection(endpoint, name)
        machines.call(endpoint, "POST", "continue_inspection", report)
        machines.wait_for_state(endpoint, name, "manageable")
    listed = cli.json("inspection shared mac list")
    status, output, errors = cli.finish(cli.start("inspection shared mac delete", "nothing", usb))

    assert listed == [{"address": usb, "created_at": listed[0]["created_at"], "nodes": [other.uuid],
                       "port_of": one.uuid}]
    assert (status, output) == (1, f"Deleted shared MAC address {usb}\n")
    assert "nothing: " in errors and "404" in errors
    assert cli.json("inspection shared mac list") == []


def test_an_operation_is_waited_for_and_cancelled(cli, endpoint):
    machines.call(endpoint, "POST", "rules", {"actions": [{"action": "fail", "message": "no"}]})
    uuid = machines.call(endpoint, "DELETE", "rules?cleanup=true")["uuid"]
    status, output, errors = cli.finish(cli.start("inspection operation show --wait -f json", uuid))
    listed = cli.json("inspection operation list")

    assert (status, json.loads(output)["status"]) == (0, "finished")
    assert "nodes done, 0 changed, 0 failed" in errors
    assert [row["uuid"] for row in listed] == [uuid]
    assert cli.run("inspection operation cancel", uuid) == f"Operation {uuid} has already ended: it is finished.\n"
    assert "could not be found" in cli.refused("inspection operation cancel", uuid[:-4] + "0000")


def test_rules_are_tried_on_many_nodes_and_applied_to_them(cli, endpoint, tmp_path):
    for index in (905, 906):
        machine = refused(endpoint, index)
        entry, = wait_for("the journal", lambda mac=machine.pxe_mac: cli.json("inspection journal list --mac", mac))
        cli.run("inspection journal enroll", entry["uuid"], "--driver", "fake-hardware", "--name", f"cli-{index}",
                "--resource-class", "cli-many")
        machines.call(endpoint, "POST", "continue_inspection", json.loads(machine.content))
        machines.wait_for_state(endpoint, f"cli-{index}", "enroll")
    chosen = ("--filter", "resource_class=cli-many")
    (tmp_path / "rules.yaml").write_text(
        "- {name: many, actions: [{op: set-attribute, args: {path: /extra/many, value: true}}]}")
    patch = [{"op": "add", "path": "/extra/many", "value": True}]

    tried, = cli.json("inspection rule test rules.yaml", *chosen)
    cli.run("inspection rule import rules.yaml")
    foretold = cli.json("node inspection reapply --dry-run", *chosen)
    applied = cli.json("node inspection reapply", *chosen)

    assert (tried["data"], tried["outcome"], json.loads(tried["changes"])) == ("2 nodes", "finished", {"node": patch})
    assert [(each["number"], each["result"]["node"]["patch"]) for each in foretold["groups"]] == [(2, patch)]
    assert (applied["status"], applied["progress"]["changed"], applied["errors"]) == ("finished", 2, [])
    assert machines.node(endpoint, "cli-906")["extra"]["many"] is True
    assert "is required" in cli.refused("node inspection reapply")
    assert "is required" in cli.refused("node inspection reapply cli-905 --all")
    assert "--filter must be" in cli.refused("node inspection reapply --filter x")
    assert "nosuch" in cli.refused("node inspection reapply --filter nosuch=1")


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")
def test_inspections_for_users_of_the_sdk(inspections, endpoint):
    machine = refused(endpoint, 902)
    entry, = wait_for("the journal", lambda: list(inspections.journal(mac=machine.pxe_mac)))
    node = inspections.enroll(entry["uuid"], driver="fake-hardware", resource_class="sdk-many")["uuid"]
    with pytest.raises(exceptions.ConflictException, match=node):
        inspections.enroll(entry["uuid"], driver="fake-hardware")
    machines.call(endpoint, "POST", "continue_inspection", json.loads(machine.content))
    machines.wait_for_state(endpoint, node, "enroll")
    past, = inspections.inspections(node)

    assert inspections.journal_entry(entry["uuid"])["reason"] == "discovery off"
    assert inspections.inspection(node, past["uuid"])["outcome"] == "finished"
    assert inspections.dry_run(node=node)["outcome"] == "finished"
    machines.call(endpoint, "POST", "rules", {"actions": [{"action": "fail", "message": "no"}]})
    uuid = machines.call(endpoint, "DELETE", "rules?cleanup=true")["uuid"]
    seen: list[dict[str, Any]] = []
    assert inspections.wait_for_operation(uuid, 0.05, 30, seen.append) == seen[-1] == inspections.operation(uuid)
    assert uuid in [each["uuid"] for each in inspections.operations(limit=1)]
    inspections.cancel_operation(uuid)
    assert inspections.wait_for_operation(
        inspections.reapply_nodes(dry_run=True, resource_class="sdk-many")["uuid"], 0.05, 30)["progress"]["done"] == 1
    many = inspections.dry_run(nodes={"resource_class": "sdk-many"}, rules=[])["uuid"]
    inspections.wait_for_operation(many, 0.05, 30)
    assert [(each["number"], each["result"]["outcome"]) for each in inspections.operation_groups(many)] == [
        (1, "finished")]
    with pytest.raises(exceptions.NotFoundException):
        inspections.cancel_operation(uuid[:-4] + "0000")


def test_readers_are_told_what_is_shown_to_administrators_only(tmp_path):
    with identity.configuration() as keystone, served(tmp_path, keystone) as url:
        admin, reader = (Cli(url, tmp_path, token=token) for token in ("admin", "reader"))
        made = admin.json("inspection rule create", "--description", "d", "--actions", json.dumps(FAIL))["uuid"]
        for command in (f"inspection rule show {made}", "inspection rule list --long",
                        "inspection rule revision show 1"):
            status, output, errors = reader.finish(reader.start(command))
            assert (status, "Conditions and actions are shown to administrators only" in errors) == (0, True), errors
            assert made in output and "fail" not in output
        for command in ("inspection rule export", f"inspection rule show {made} --fields actions",
                        "inspection rule list --op fail"):
            assert "baremetal:inspection_rule:get_details" in reader.refused(command)
        assert admin.json(f"inspection rule show {made}")["actions"][0]["op"] == "fail"
