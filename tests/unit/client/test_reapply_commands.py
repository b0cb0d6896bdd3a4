from __future__ import annotations

import json

import pytest
from osc_lib import exceptions

from ironic_rules.client import dry_run_commands, output
from tests.unit.client.openstack_app import Connection, run
from tests.walking import walking


def service(node_status, operation_status="finished"):
    operation = {"uuid": "o1", "status": "running", "progress": {"total": 1, "done": 0, "changed": 0, "failed": 0}}
    node = {"node": "n1", "status": node_status, "error": None, "result": {"node": {"patch": []}}}

    def answer(method, url, body):
        if method == "POST":
            return operation
        return {"nodes": [node]} if "/nodes" in url else {**operation, "status": operation_status}

    return Connection(answer)


@pytest.mark.parametrize(("node", "operation", "expected"), [
    ("changed", "finished", (0, "changed")), ("unchanged", "finished", (0, "unchanged")),
    ("failed", "finished", (1, "failed")), ("left", "cancelled", (1, "cancelled"))])
def test_the_end_is_waited_for_and_the_result_shown(node, operation, expected, monkeypatch):
    monkeypatch.setattr(output, "PAUSE_S", 0)
    connection = service(node, operation)

    status, printed = run(dry_run_commands.ReapplyRules, connection, "a/b", "--dry-run", "-f", "json")

    shown = json.loads(printed)
    assert (status, shown["status"]) == expected
    assert (shown["operation"], shown["node"], shown["result"]) == ("o1", "n1", {"node": {"patch": []}})
    assert connection.requests == [
        ("POST", "/v1/nodes/a%2Fb/inventory/reapply", {"dry_run": True, "allow_deployed": False}),
        ("GET", "/v1/operations/o1", None), ("GET", "/v1/operations/o1/nodes?", None)]


NOTHING = {"outcome": "finished", "failure": None, "node": {"patch": []}, "plugin_data": {"patch": []}, "ports": [],
           "ports_created": [], "ports_removed": [], "traits": {"added": [], "removed": []}, "would": []}
GROUPS = [
    {"number": 2913, "result": NOTHING},
    {"number": 84, "result": {**NOTHING, "traits": {"added": ["CUSTOM_GPU"], "removed": []}}},
    {"number": 3, "result": {"outcome": "failed", "failure": {"rule": "u1", "reason": "no disk"}, "would": []}}]


def of_many(failed=0, status="finished"):
    counts = {"total": 3000, "done": 3000, "changed": 84, "failed": failed, "left": 0}
    operation = {"uuid": "o1", "status": status, "progress": counts, "filters": {}, "errors": []}

    def answer(method, url, body):
        return {"groups": GROUPS} if url.endswith("/groups") else operation

    return Connection(answer)


def test_many_nodes_are_told_by_what_would_change():
    connection = of_many()

    status, printed = run(dry_run_commands.ReapplyRules, connection, "--filter", "provision_state=manageable",
                          "--filter",
                          "driver=ipmi", "--dry-run", "-f", "json")
    _, table = run(dry_run_commands.ReapplyRules, of_many(), "--all", "--dry-run")

    assert (status, json.loads(printed)["groups"]) == (0, GROUPS)
    assert connection.requests == [
        ("POST", "/v1/nodes/reapply?provision_state=manageable&driver=ipmi",
         {"dry_run": True, "allow_deployed": False}), ("GET", "/v1/operations/o1/groups", None)]
    for line in ("2913 nodes: nothing", '84 nodes: {"traits": {"added": ["CUSTOM_GPU"], "removed": []}}',
                 "3 nodes: failed: no disk"):
        assert line in table


@walking("connection, status", [(of_many(), 0), (of_many(1), 1), (of_many(status="cancelled"), 1)])
def test_a_failure_on_any_node_makes_the_status_1(connection, status):
    assert run(dry_run_commands.ReapplyRules, connection, "--all", "-f", "json")[0] == status
    assert [request[0] for request in connection.requests] == ["POST"]


@walking("arguments", [(), ("n", "--all"), ("n", "--filter", "driver=x"), ("--filter", "x"),
                                       ("--filter", "=x")])
def test_which_nodes_must_be_said_once(arguments):
    with pytest.raises(exceptions.CommandError):
        run(dry_run_commands.ReapplyRules, of_many(), *arguments)
