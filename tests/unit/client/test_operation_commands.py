from __future__ import annotations

import io
import json

import pytest

from ironic_rules.client import inspection_commands, output
from tests.unit.client.openstack_app import Connection, run


def operation(done, status="running", failed=0):
    return {**dict.fromkeys(inspection_commands._OPERATION_SHOWN), "uuid": "o1", "kind": "reapply", "status": status,
            "progress": {"total": 4, "done": done, "changed": 1, "failed": failed, "left": 4 - done},
            "errors": [{"node": "n1", "error": "it is locked"}] * failed}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(output, "PAUSE_S", 0)


def test_operations_are_listed():
    service = Connection(lambda *request: {"operations": [operation(4, "finished")]})

    status, printed = run(inspection_commands.ListOperations, service, "--limit", "5")

    assert (status, "4 of 4 nodes done, 1 changed, 0 failed" in printed) == (0, True)
    assert service.requests == [("GET", "/v1/operations?detail=True&limit=5", None)]


def test_an_operation_is_shown_with_its_errors():
    service = Connection(lambda *request: operation(2, failed=1))

    status, printed = run(inspection_commands.ShowOperation, service, "o1", "-f", "json")

    assert (status, json.loads(printed)["errors"]) == (0, [{"node": "n1", "error": "it is locked"}])


@pytest.mark.parametrize(("last", "expected"), [
    (operation(4, "finished"), 0), (operation(4, "finished", failed=1), 1), (operation(3, "cancelled"), 1)])
def test_its_end_is_waited_for(last, expected, capsys):
    states = iter([operation(0), operation(0), operation(2), last])
    service = Connection(lambda *request: next(states))

    status, printed = run(inspection_commands.ShowOperation, service, "o1", "--wait", "-f", "json")

    assert (status, json.loads(printed)["status"]) == (expected, last["status"])
    told = capsys.readouterr().err.splitlines()
    assert [line.split(" nodes")[0] for line in told] == ["0 of 4", "2 of 4", f"{last['progress']['done']} of 4"]


def test_a_terminal_has_one_line_with_a_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal, states = Terminal(), iter([operation(2), operation(4, "finished")])

    output.wait_for_operation(operation(0), lambda: next(states), terminal)

    drawn = terminal.getvalue()
    assert (drawn.count("\r"), drawn.count("\n"), drawn.endswith("\n")) == (3, 1, True)
    assert [part.count("#") for part in drawn.split("\r")[1:]] == [0, 15, 30]


def test_an_operation_without_nodes_ends():
    nothing = {**operation(0, "finished"), "progress": dict.fromkeys(("total", "done", "changed", "failed", "left"), 0)}

    assert output.wait_for_operation(nothing, dict, io.StringIO()) is nothing


def test_operations_are_cancelled():
    def answer(method, url, body):
        return None if method == "DELETE" else operation(4, "finished") if url.endswith("o2") else operation(1)

    service = Connection(answer)

    status, printed = run(inspection_commands.CancelOperations, service, "o1", "o2")

    assert (status, printed) == (
        0, "Cancelled operation o1.\nOperation o2 has already ended: it is finished.\n")
    assert [request for request in service.requests if request[0] == "DELETE"] == [
        ("DELETE", "/v1/operations/o1", None), ("DELETE", "/v1/operations/o2", None)]
