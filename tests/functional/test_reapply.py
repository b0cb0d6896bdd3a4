"""Hooks and rules that run again over the data of past inspections, on one node and on many."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.conductor import operations, recovery
from ironic_rules.conductor.inspection import Processing
from ironic_rules.db import operations as operations_db
from ironic_rules.db.tables import operation_items
from ironic_rules.inspection.hooks.base import InspectionHook
from tests.functional.installations import only_in_one_process
from tests.functional.legacy import Machine
from tests.functional.processes import wait_for
from tests.functional.whole import OneProcess, fault, running

RULES = "/v1/inspection_rules"

pytestmark = only_in_one_process("the conductor's parts are looked at")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    with running(tmp_path_factory.mktemp("reapply"), "[inspector]\nhook_timeout = 2\n") as service:
        yield service


@pytest.fixture
def whole(service: OneProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProcess]:
    monkeypatch.setattr(operations_db, "PAUSE_S", 0)
    yield service
    assert service.app.delete(RULES).status_int == 204


def rule(whole: OneProcess, *actions: dict[str, Any], **fields: Any) -> str:
    reply = whole.app.post_json(RULES, {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    uuid: str = reply.json["uuid"]
    return uuid


def sets(path: str = "/extra/a", value: Any = 1) -> dict[str, Any]:
    return {"op": "set-attribute", "args": {"path": path, "value": value}}


def reapply(whole: OneProcess, url: str, **body: bool) -> str:
    """Begin an operation and return its UUID."""
    reply = whole.app.post_json(url, body)
    assert reply.status_int == 202, reply.text
    assert reply.headers["Location"].endswith(reply.json["uuid"])
    uuid: str = reply.json["uuid"]
    return uuid


def of(machine: Machine) -> str:
    return f"/v1/nodes/{machine.uuid}/inventory/reapply"


def done(whole: OneProcess, operation: str) -> dict[str, Any]:
    """Let the conductor work until the operation has ended, and return it."""
    def ended() -> Any:
        operations.work(whole.conductor)
        shown = whole.app.get(f"/v1/operations/{operation}").json
        return shown if shown["status"] != "running" else None

    found: dict[str, Any] = wait_for("the end of the operation", ended)
    return found


def free(whole: OneProcess) -> None:
    """Let the pauses and the leases of all items end."""
    with whole.db.writer() as conn:
        conn.execute(sa.update(operation_items).values(claimed_at=None))


def inspections(whole: OneProcess, machine: Machine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = whole.app.get(f"/v1/nodes/{machine.uuid}/inspections?detail=true").json["inspections"]
    return found


def of_node(node: dict[str, Any]) -> dict[str, Any]:
    """Return what a node has besides what each write changes."""
    return {name: value for name, value in node.items() if name not in ("updated_at",)}


def test_again_right_after_an_inspection_changes_nothing_and_with_another_rule_what_that_does(whole):
    rule(whole, sets(value="{inventory[memory][physical_mb]}"))
    machine = Machine(whole)
    before = machine.inspect()
    ports = whole.app.get(f"/v1/nodes/{machine.uuid}/ports?detail=true").json
    ended = done(whole, reapply(whole, of(machine)))
    assert ended["progress"] == {"total": 1, "done": 1, "changed": 0, "failed": 0, "left": 0}
    assert of_node(whole.show(machine.uuid)) == of_node(before)
    assert whole.app.get(f"/v1/nodes/{machine.uuid}/ports?detail=true").json == ports

    added = rule(whole, sets("/extra/b", 2), {"op": "add-trait", "args": {"name": "CUSTOM_B"}})
    ended = done(whole, reapply(whole, of(machine)))
    after = whole.show(machine.uuid)
    assert ended["progress"]["changed"] == 1
    assert after["extra"] == {**before["extra"], "b": 2}
    assert after["traits"] == ["CUSTOM_B"]
    assert {name for name in after if after[name] != before[name]} == {"extra", "traits", "updated_at"}
    kinds = [(one["kind"], one["outcome"]) for one in inspections(whole, machine)]
    assert kinds == [("ramdisk", "finished"), ("reapply", "finished"), ("reapply", "finished")]
    assert added in [one["rule"] for one in inspections(whole, machine)[-1]["rules"]]
    assert [event for event in machine.events() if "applied again" in event and added in event]


def test_an_address_that_another_node_gets_meanwhile_is_left_to_it(whole, monkeypatch):
    machine, other = Machine(whole), whole.enroll()
    machine.inspect()
    port, *_ = whole.app.get(f"/v1/nodes/{machine.uuid}/ports").json["ports"]
    assert whole.app.delete(f"/v1/ports/{port['uuid']}").status_int == 204
    process, runs = Processing.run, []

    def run_and_lose(self, *given: Any, **named: Any) -> Any:
        outcome = process(self, *given, **named)
        runs.append(whole.app.post_json("/v1/ports", {"node_uuid": other, "address": port["address"]}).status_int)
        return outcome

    monkeypatch.setattr(Processing, "run", run_and_lose)
    ended = done(whole, reapply(whole, of(machine)))

    assert (ended["progress"]["failed"], runs) == (0, [201, 409])
    assert port["address"] not in [one["address"] for one in whole.app.get(
        f"/v1/nodes/{machine.uuid}/ports").json["ports"]]


def test_a_failure_leaves_the_node_as_it_was_and_is_told(whole):
    machine = Machine(whole)
    before = machine.inspect()
    failing = rule(whole, sets(), {"op": "fail", "args": {"msg": "not this one"}})
    ended = done(whole, reapply(whole, of(machine)))

    assert ended["progress"]["failed"] == 1
    assert ended["errors"][0]["node"] == machine.uuid
    assert failing in ended["errors"][0]["error"]
    assert of_node(whole.show(machine.uuid)) == of_node(before)
    assert whole.row(machine.uuid).reservation is None
    last = inspections(whole, machine)[-1]
    assert (last["kind"], last["outcome"], last["failure"]["rule"]) == ("reapply", "failed", failing)
    assert [event for event in machine.events() if "could not be applied again" in event and "not this one" in event]


def test_a_report_whose_inspection_a_rule_has_failed_is_applied_once_that_rule_is_gone(whole):
    failing = rule(whole, {"op": "fail", "args": {"msg": "wrong"}})
    machine = Machine(whole)
    assert machine.inspect()["provision_state"] == "inspect failed"
    whole.app.delete(f"{RULES}/{failing}")
    rule(whole, sets())
    done(whole, reapply(whole, of(machine)))

    after = whole.show(machine.uuid)
    assert (after["provision_state"], after["extra"]["a"]) == ("inspect failed", 1)
    assert whole.inventories(machine.uuid) == ["processed"]


def test_a_dry_run_groups_nodes_by_what_would_change_and_changes_nothing(whole):
    machines = [Machine(whole, owner="dry") for _ in range(3)]
    for machine in machines[:2]:
        machine.inspect(8192)
    machines[2].inspect(1024)
    rule(whole, sets(), conditions=[{"op": "gt", "args": ["{inventory[memory][physical_mb]}", 4096]}])
    before = [whole.show(machine.uuid) for machine in machines]
    ended = done(whole, operation := reapply(whole, "/v1/nodes/reapply?owner=dry", dry_run=True))

    assert ended["progress"] == {"total": 3, "done": 3, "changed": 2, "failed": 0, "left": 0}
    assert ended["filters"] == {"nodes": {"owner": "dry"}, "dry_run": True, "allow_deployed": False}
    assert [whole.show(machine.uuid) for machine in machines] == before
    first, second = whole.app.get(f"/v1/operations/{operation}/groups").json["groups"]
    assert [first["number"], second["number"]] == [2, 1]
    assert first["result"]["node"]["patch"] == [{"op": "add", "path": "/extra/a", "value": 1}]
    assert second["result"]["node"]["patch"] == []
    url = f"/v1/operations/{operation}/nodes?group={first['group']}&limit=1"
    page = whole.app.get(url).json
    rest = whole.app.get(page["next"]).json
    assert [one["node"] for one in page["nodes"] + rest["nodes"]] == [machine.uuid for machine in machines[:2]]
    assert "next" not in rest
    unchanged = whole.app.get(f"/v1/operations/{operation}/nodes?status=unchanged").json["nodes"]
    assert [one["node"] for one in unchanged] == [machines[2].uuid]
    # What was promised is what happens.
    done(whole, reapply(whole, "/v1/nodes/reapply?owner=dry"))
    assert [whole.show(machine.uuid)["extra"].get("a") for machine in machines] == [1, 1, None]


def test_a_dry_run_of_many_nodes_tries_other_rules_which_are_not_shown(whole):
    machines = [Machine(whole, owner="others") for _ in range(2)]
    kept, left_out = rule(whole, sets("/extra/kept")), rule(whole, sets("/extra/left"))
    for memory_mb, machine in zip((8192, 1024), machines, strict=True):
        whole.put(machine.uuid, extra={})
        machine.inspect(memory_mb)
        whole.put(machine.uuid, extra={})
    added = {"actions": [sets("/extra/new", "s3cret")], "sensitive": True,
             "conditions": [{"op": "gt", "args": ["{inventory[memory][physical_mb]}", 4096]}]}
    body = {"nodes": {"owner": "others"}, "as_if": [added, {"uuid": left_out, "left_out": True}]}
    begun = whole.app.post_json(f"{RULES}/dry_run", body)
    assert begun.status_int == 202, begun.text
    ended = done(whole, begun.json["uuid"])
    found = whole.app.get(f"/v1/operations/{begun.json['uuid']}/nodes")

    assert ended["filters"]["rules"] == {
        "removed": sorted([left_out, begun.json["given"]["/as_if/0"]]),
        "added": [begun.json["given"]["/as_if/0"]], "only": False}
    assert [{change["path"] for change in one["result"]["node"]["patch"]} for one in found.json["nodes"]] == [
        {"/extra/kept", "/extra/new"}, {"/extra/kept"}]
    assert [text for text in (found.text, str(ended), whole.app.get("/v1/operations?detail=true").text)
            if "s3cret" in text] == []
    assert whole.show(machines[0].uuid)["extra"] == {}
    for wrong in ({"owner": 5, "colour": "red"}, {"associated": "maybe"}):
        assert whole.app.post_json(f"{RULES}/dry_run", {"nodes": wrong}).status_int == 400
    assert whole.app.post_json(f"{RULES}/dry_run", {"nodes": {}, "compare": True}).status_int == 400
    refused = whole.app.post_json(f"{RULES}/dry_run", {"nodes": {}, "rules": [{"actions": []}]})
    assert (refused.status_int, "/rules/0/actions" in fault(refused)) == (400, True)
    assert kept


def test_a_node_with_an_instance_is_changed_by_rules_only_and_only_if_allowed(whole):
    machine, other = Machine(whole), Machine(whole)
    machine.inspect()
    other.inspect()
    ports = whole.app.get(f"/v1/nodes/{machine.uuid}/ports").json["ports"]
    assert whole.app.delete(f"/v1/ports/{ports[0]['uuid']}").status_int == 204
    # Plug-in data of hooks are there for the rule; properties are what a hook would set.
    rule(whole, sets(value="{plugin_data[macs][0]}"))
    whole.put(machine.uuid, provision_state="active", properties={})
    refused = whole.app.post_json(of(machine), {})
    assert (refused.status_int, "instance" in fault(refused)) == (409, True)
    done(whole, reapply(whole, of(machine), dry_run=True))
    assert "a" not in whole.show(machine.uuid)["extra"]
    done(whole, reapply(whole, of(machine), allow_deployed=True))

    after = whole.show(machine.uuid)
    assert after["provision_state"] == "active"
    assert after["extra"]["a"] == ports[0]["address"]
    assert after["properties"] == {}
    assert whole.app.get(f"/v1/nodes/{machine.uuid}/ports").json["ports"] == []
    whole.put(other.uuid, provision_state="deploying")
    assert whole.app.post_json(of(other), {"allow_deployed": True}).status_int == 400
    whole.put(other.uuid, provision_state="manageable")


def test_what_cannot_be_done_is_refused_or_named(whole, monkeypatch):
    fresh = Machine(whole, owner="refusals")
    locked = Machine(whole, owner="refusals")
    locked.inspect()
    assert whole.app.post_json(of(fresh), {}).status_int == 404
    assert whole.app.post_json(of(fresh), {"dry": True}).status_int == 400
    assert whole.app.post_json("/v1/nodes/reapply?colour=red", {}).status_int == 400
    assert whole.app.post_json("/v1/nodes/no-such-node/inventory/reapply", {}).status_int == 404
    assert whole.app.post_json(of(locked), {}, headers={"X-OpenStack-Ironic-API-Version": "1.95"}).status_int == 405
    rule(whole, sets())
    whole.put(locked.uuid, reservation="conductor-9")
    ended = done(whole, reapply(whole, "/v1/nodes/reapply?owner=refusals"))
    assert {error["node"]: error["error"] for error in ended["errors"]} == {
        fresh.uuid: f"Inspection inventory for node {fresh.uuid} could not be found. (IR-2025)",
        locked.uuid: f"Node {locked.uuid} is locked by host conductor-9, please retry after the current operation is "
                     "completed. (IR-1016)"}
    monkeypatch.setattr(operations_db, "PAUSE_S", 3600)
    operation = reapply(whole, "/v1/nodes/reapply?owner=refusals")
    operations.work(whole.conductor)
    assert whole.app.get(f"/v1/operations/{operation}").json["progress"]["left"] == 1
    whole.put(locked.uuid, reservation=None)
    free(whole)
    assert done(whole, operation)["progress"] == {"total": 2, "done": 2, "changed": 1, "failed": 1, "left": 0}


def test_what_is_left_of_a_cancelled_operation_is_not_done(whole, monkeypatch):
    machines = [Machine(whole, owner="cancelled") for _ in range(2)]
    for machine in machines:
        machine.inspect()
    rule(whole, sets())
    operation = reapply(whole, "/v1/nodes/reapply?owner=cancelled")
    original = Processing.run

    def cancel(*given: Any, **named: Any) -> Any:
        assert whole.app.delete(f"/v1/operations/{operation}").status_int == 204
        return original(*given, **named)

    monkeypatch.setattr(Processing, "run", cancel)
    operations.work(whole.conductor)
    assert whole.app.get(f"/v1/operations/{operation}").json["status"] == "cancelled"
    assert ["a" in whole.show(machine.uuid)["extra"] for machine in machines] == [False, False]
    assert [whole.row(machine.uuid).reservation for machine in machines] == [None, None]


class Died(BaseException):
    """The process ends here."""


def test_every_node_is_done_once_if_a_conductor_dies_before_it_commits(whole, monkeypatch):
    machines = [Machine(whole, owner="killed") for _ in range(3)]
    for machine in machines:
        machine.inspect()
    # Each run adds one more.
    rule(whole, {"op": "extend-attribute", "args": {"path": "/extra/runs", "value": "run", "unique": False}})
    operation = reapply(whole, "/v1/nodes/reapply?owner=killed")
    original, died = operations_db.end, []

    def die(conn: Any, item: Any, *given: Any) -> None:
        original(conn, item, *given)
        if item.node_uuid == machines[1].uuid and not died:
            died.append(item.node_uuid)
            raise Died

    monkeypatch.setattr(operations_db, "end", die)
    # The worker's thread ends with the lock held, as that of a process that dies.
    monkeypatch.setattr("ironic_rules.conductor.bulk._Work.fail", lambda self, error: None)
    operations.work(whole.conductor)
    assert [whole.show(machine.uuid)["extra"].get("runs") for machine in machines] == [["run"], None, ["run"]]
    assert whole.row(machines[1].uuid).reservation == "conductor-1"
    recovery.resume_orphans(whole.conductor)
    assert whole.at_rest(machines[1].uuid).provision_state == "manageable"
    operations.work(whole.conductor)
    assert whole.app.get(f"/v1/operations/{operation}").json["progress"]["left"] == 1
    free(whole)

    assert done(whole, operation)["progress"] == {"total": 3, "done": 3, "changed": 3, "failed": 0, "left": 0}
    assert [whole.show(machine.uuid)["extra"]["runs"] for machine in machines] == [["run"]] * 3


def test_a_hook_that_does_not_end_fails_its_node_and_the_lock_is_released(whole):
    machine = Machine(whole)
    machine.inspect()
    rule(whole, sets())
    gate = threading.Event()

    class Hangs(InspectionHook):
        def __call__(self, task: Any, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
            gate.wait()

    with whole.with_hooks(Hangs()):
        ended = done(whole, reapply(whole, of(machine)))
        gate.set()
    assert "added-0" in ended["errors"][0]["error"]
    assert "[inspector]hook_timeout" in ended["errors"][0]["error"]
    assert whole.row(machine.uuid).reservation is None
    assert done(whole, reapply(whole, of(machine)))["progress"]["changed"] == 1


def test_what_a_sensitive_rule_writes_is_not_told(whole):
    machine = Machine(whole)
    machine.inspect()
    rule(whole, sets("/driver_info/ipmi_password", "s3cret-of-a-rule"), sets("/extra/copy", "s3cret-of-a-rule"),
         sensitive=True, priority=10)
    dry = reapply(whole, of(machine), dry_run=True)
    done(whole, dry)
    assert "/extra/copy" in whole.app.get(f"/v1/operations/{dry}/nodes").text
    done(whole, reapply(whole, of(machine)))
    assert whole.row(machine.uuid).extra["copy"] == "s3cret-of-a-rule"
    failing = rule(whole, {"op": "fail", "args": {"msg": "{node.extra[copy]}"}})
    ended = done(whole, reapply(whole, of(machine)))
    assert failing in ended["errors"][0]["error"]
    told = [str(ended), str(inspections(whole, machine)[1]), str(machine.events())]
    told += [whole.app.get(f"/v1/operations/{dry}/{below}").text for below in ("nodes", "groups")]
    assert [text for text in told if "s3cret" in text] == []
