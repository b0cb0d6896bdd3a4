from __future__ import annotations

import json

import pytest
from osc_lib import exceptions

from ironic_rules.client import node_commands
from tests.unit.client.openstack_app import Connection, refusal, run
from tests.walking import walking

PROBLEM = {"kind": "unknown", "key": "hw:cpu", "text": "There is none."}
NODE = {"uuid": "u1", "name": "one"}
STEP = {"priority": 50, "interface": "raid", "step": "create_configuration", "args": {"a": 1}, "source": "template X"}
TOLD = {
    "flavor": {"id": "g", "name": "gold"}, "resource_class": {"name": "CUSTOM_GOLD"},
    "required_traits": [{"trait": "X", "nodes": 2, "deploy_template": {"name": "X"}},
                        {"trait": "Y", "nodes": 0, "deploy_template": None}],
    "forbidden_traits": [], "capabilities": [{"name": "boot_mode", "value": "uefi", "nodes": 30}], "schedulable": True,
    "fitting": {"count": 30, "nodes": [NODE]},
    "nearly_fitting": [{"lacks": {"kind": "state", "name": "active"}, "count": 1, "nodes": [{**NODE, "name": None}]}],
    "deployment": {"node": NODE, "deploy_steps": [STEP], "problems": ["a problem"], "reason": None},
    "warnings": [{"pointer": "/extra_specs/trait:Y", "text": "No node."}]}


@walking("problems, status", [([PROBLEM], 1), ([], 0)])
def test_problems_make_the_status_1_and_warnings_do_not(problems, status):
    service = Connection(lambda method, url, body: {"extra_specs": {"hw:cpu": "1"}} if method == "GET" else {
        "problems": problems, "warnings": [{**PROBLEM, "kind": "deprecated"}]})

    found = run(node_commands.CheckFlavor, service, "a/b", "--permissive", "-f", "json")

    assert found[0] == status
    assert [(item["severity"], item["kind"]) for item in json.loads(found[1])] == [
        *[("problem", "unknown")] * len(problems), ("warning", "deprecated")]
    assert service.requests == [
        ("GET", "/v1/flavors/a%2Fb/os-extra_specs", None),
        ("POST", "/v1/extra_specs/validate?validation=permissive", {"extra_specs": {"hw:cpu": "1"}})]


def test_an_explanation_is_shown_and_its_warnings_are_printed(capsys):
    service = Connection(lambda *request: TOLD)

    status, printed = run(node_commands.ExplainFlavor, service, "gold", "-f", "json")

    shown = json.loads(printed)
    assert (status, capsys.readouterr().err) == (0, "/extra_specs/trait:Y: No node.\n")
    assert shown["required_traits"] == "X: 2 nodes, deploy template X\nY: 0 nodes, no deploy template"
    assert (shown["fitting"], shown["nearly_fitting"]) == ("30 (one, …)", "state active: 1 (u1)")
    assert shown["deploy_steps"] == '50 raid.create_configuration {"a": 1} (template X)'
    assert (shown["deploy_node"], shown["deploy_problems"]) == ("one", "a problem")


@walking("command", [node_commands.CheckFlavor, node_commands.ExplainFlavor])
def test_a_refusal_gives_the_reason_of_the_service(command):
    def answer(*request):
        raise refusal("Flavor gold could not be found.", 404)

    with pytest.raises(exceptions.CommandError, match="could not be found"):
        run(command, Connection(answer), "gold")
