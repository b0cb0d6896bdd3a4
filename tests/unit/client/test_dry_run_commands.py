from __future__ import annotations

import json

import pytest
from osc_lib import exceptions

from ironic_rules.client import dry_run_commands as commands
from tests.unit.client.openstack_app import Connection, refusal, run
from tests.unit.client.test_reapply_commands import of_many

CONDITION = {"pointer": "/conditions/0", "op": "eq", "outcome": False, "why": "missing", "detail": "inventory[a]",
             "short_circuited": False, "arguments": [{"name": "values/0", "value": None, "type": "missing"}]}
STEP = {"rule": "u1", "description": "gpu", "matched": False, "conditions": [CONDITION], "changes": {}}
REPLY = {"outcome": "finished", "failure": None, "steps": [{"hook": "ports"}, STEP], "node": {"patch": []}}


@pytest.fixture
def file(tmp_path):
    (tmp_path / "rules.yaml").write_text("- {actions: [{op: log, args: {msg: x}}]}")
    (tmp_path / "report.json").write_text('{"inventory": {}}')
    (tmp_path / "expect.yaml").write_text("outcome: failed")
    return tmp_path / "rules.yaml"


def test_rules_of_a_file_are_tried_on_nodes(file):
    service = Connection(lambda *request: REPLY)

    status, printed = run(commands.TestRules, service, str(file), "--node", "a", "b", "-f", "json")

    assert status == 0
    assert [(row["data"], row["step"], row["outcome"], row["why"]) for row in json.loads(printed)] == [
        row for node in "ab" for row in (
            (node, "gpu", "not matched", "/conditions/0 eq missing inventory[a]"),
            (node, "the inspection", "finished", ""))]
    assert service.requests[0] == ("POST", "/v1/inspection_rules/dry_run", {
        "node": "a", "rules": [{"actions": [{"op": "log", "args": {"msg": "x"}}]}]})


def test_an_early_rule_is_said_to_be_untried_without_a_report(file):
    file.write_text("- {phase: early, description: no VMs, actions: [{op: fail, args: {msg: x}}]}")
    untried = ("no VMs", "not tried", "an early rule needs --inventory")

    for chosen, name, service in ((("--node", "a"), "a", Connection(lambda *request: REPLY)),
                                  (("--filter", "driver=ipmi"), "all nodes", of_many())):
        rows = json.loads(run(commands.TestRules, service, str(file), *chosen, "-f", "json")[1])
        assert (rows[0]["data"], rows[0]["step"], rows[0]["outcome"], rows[0]["why"]) == (name, *untried)

    tried = run(commands.TestRules, Connection(lambda *request: REPLY), str(file), "--inventory",
                str(file.with_name("report.json")), "-f", "json")[1]
    assert "not tried" not in tried


def test_what_is_not_as_expected_makes_the_status_1(file):
    service = Connection(lambda *request: REPLY)

    status, printed = run(commands.TestRules, service, str(file), "--inventory", str(file.with_name("report.json")),
                          "--expect", str(file.with_name("expect.yaml")), "-f", "json")

    assert status == 1
    assert json.loads(printed)[-1]["step"] == "expected outcome"
    assert service.requests[0][2]["report"] == {"inventory": {}}


def test_a_rule_is_explained_for_a_node():
    status, printed = run(commands.ExplainRule, Connection(lambda *request: REPLY), "u1", "--node", "n", "-f", "value")

    assert (status, printed.strip()) == (0, "/conditions/0 eq False missing inventory[a] values/0=null")


@pytest.mark.parametrize("node", [(), ("--node", "n")])
def test_an_early_rule_is_explained_over_a_report(file, node):
    report = file.with_name("report.json")
    report.write_text('{"inventory": {}}')
    connection = Connection(lambda *request: REPLY)

    assert run(commands.ExplainRule, connection, "u1", *node, "--inventory", str(report), "-f", "value")[0] == 0
    asked = {"node": "n"} if node else {}
    assert connection.requests == [
        ("POST", "/v1/inspection_rules/dry_run", {**asked, "report": {"inventory": {}}})]


def test_a_rule_is_not_explained_without_data():
    with pytest.raises(exceptions.CommandError, match="--inventory"):
        run(commands.ExplainRule, Connection(lambda *request: REPLY), "u1")


def test_a_rule_that_is_not_evaluated_is_told_so():
    with pytest.raises(exceptions.CommandError, match="not evaluated"):
        run(commands.ExplainRule, Connection(lambda *request: REPLY), "u2", "--node", "n")


def test_inspections_are_listed_and_shown():
    entry = {**dict.fromkeys(commands._SHOWN), "uuid": "i1", "outcome": "finished", "kind": "ramdisk"}
    listing = Connection(lambda *request: {"inspections": [entry]})

    status, printed = run(commands.ListInspections, listing, "a/b", "-f", "value")

    assert (status, printed.strip()) == (0, "i1 None ramdisk finished")
    assert listing.requests == [("GET", "/v1/nodes/a%2Fb/inspections?", None)]
    showing = Connection(lambda *request: entry)
    assert run(commands.ShowInspection, showing, "n", "i1", "-f", "json")[0] == 0
    assert showing.requests == [("GET", "/v1/nodes/n/inspections/i1", None)]


def test_a_file_that_cannot_be_read_is_named(file):
    with pytest.raises(exceptions.CommandError, match=r"nosuch\.json"):
        run(commands.TestRules, Connection(lambda *request: REPLY), str(file), "--inventory", "nosuch.json")


def test_rules_of_a_file_are_tried_on_many_nodes(file):
    connection = of_many()

    found, printed = run(commands.TestRules, connection, str(file), "--filter", "driver=ipmi", "-f", "json")

    assert found == 1  # an inspection of three nodes fails
    assert [(row["data"], row["outcome"], row["why"]) for row in json.loads(printed)] == [
        ("2913 nodes", "finished", ""), ("84 nodes", "finished", ""), ("3 nodes", "failed", "no disk")]
    assert connection.requests[0] == ("POST", "/v1/inspection_rules/dry_run", {
        "nodes": {"driver": "ipmi"}, "rules": [{"actions": [{"op": "log", "args": {"msg": "x"}}]}]})


def test_a_rule_that_does_not_exist_is_not_called_disabled():
    def answer(method, url, body):
        if method == "GET":
            raise refusal("Inspection rule u2 could not be found.", 404)
        return REPLY

    with pytest.raises(exceptions.CommandError, match="could not be found"):
        run(commands.ExplainRule, Connection(answer), "u2", "--node", "n")
