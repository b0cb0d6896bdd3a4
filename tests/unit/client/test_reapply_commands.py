from __future__ import annotations

import json

import pytest

from ironic_rules.client import progress
from ironic_rules.client import reapply_commands as commands
from tests.unit.client.openstack_app import Connection, run


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
    monkeypatch.setattr(progress, "PAUSE_S", 0)
    connection = service(node, operation)

    status, printed = run(commands.ReapplyRules, connection, "a/b", "--dry-run", "-f", "json")

    shown = json.loads(printed)
    assert (status, shown["status"]) == expected
    assert (shown["operation"], shown["node"], shown["result"]) == ("o1", "n1", {"node": {"patch": []}})
    assert connection.requests == [
        ("POST", "/v1/nodes/a%2Fb/inventory/reapply", {"dry_run": True, "allow_deployed": False}),
        ("GET", "/v1/operations/o1", None), ("GET", "/v1/operations/o1/nodes?", None)]
