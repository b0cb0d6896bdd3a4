"""Dry runs over HTTP: what they tell, what they refuse, that they write nothing, and that inspections do the same."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.api.v1 import trials
from ironic_rules.api.v1.trials import DryRuns
from ironic_rules.db.tables import metadata
from ironic_rules.exceptions import Invalid, dry_run_too_long, too_many_dry_runs
from ironic_rules.inspection.pipeline import Pipeline
from tests.functional import legacy
from tests.functional import whole as wholes
from tests.functional.whole import Whole, fault
from tests.unit.rules import world
from tests.walking import walking
from tests.wordings import refused

RULES = "/v1/inspection_rules"
TRY = f"{RULES}/dry_run"
SECRET = "Xyzzy-27182818"
GPU = {"op": "add-trait", "args": {"name": "CUSTOM_GPU"}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    text = ("[inspection_rules]\nmask_secrets = sensitive\ndry_run_timeout = 5\n"
            "[auto_discovery]\nenabled = true\ndriver = fake-hardware\n")
    with wholes.running(tmp_path_factory.mktemp("dry"), text) as found:
        yield found


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    yield service
    assert service.app.delete(RULES).status_int == service.app.delete(legacy.RULES).status_int == 204


def tried(whole: Whole, **body: Any) -> dict[str, Any]:
    before = tables(whole)
    reply = whole.app.post_json(TRY, body)
    assert reply.status_int == 200, reply.text
    assert tables(whole) == before
    shown: dict[str, Any] = reply.json
    return shown


def tables(whole: Whole) -> dict[str, list[Any]]:
    """Return every row of every table, but of conductors, which report that they are alive."""
    with whole.db.reader() as conn:
        return {table.name: [tuple(row) for row in conn.execute(sa.select(table))]
                for table in metadata.sorted_tables if table.name not in ("conductors", "periodic_tasks")}


def rule(whole: Whole, *actions: Any, **fields: Any) -> str:
    reply = whole.app.post_json(RULES, {"actions": list(actions), **fields})
    assert reply.status_int == 201, reply.text
    return str(reply.json["uuid"])


def inspected(whole: Whole, **fields: Any) -> str:
    uuid = whole.enroll("manageable")
    whole.put(uuid, **fields)
    _, body = whole.machine()
    whole.inspect(uuid, body)
    return uuid


def steps_of(shown: dict[str, Any], uuid: str) -> dict[str, Any]:
    found, = (step for step in shown["steps"] if step.get("rule") == uuid)
    return dict(found)


def test_a_stored_rule_is_explained_over_a_stored_inventory(whole: Whole) -> None:
    node = inspected(whole)
    uuid = rule(whole, GPU, {"op": "set-attribute", "args": ["/extra/x", 1]}, description="gpu",
                conditions=[{"op": "eq", "args": ["{inventory[cpu][nope]}", 1], "multiple": None}])
    step = steps_of(tried(whole, node=node), uuid)
    assert (step["matched"], step["conditions"][0]["why"], step["conditions"][0]["detail"]) == (
        False, "missing", "inventory[cpu][nope]")
    shown = tried(whole, node=node, as_if=[{"uuid": uuid, "patch": [{"op": "remove", "path": "/conditions/0"}]}])
    assert (shown["outcome"], shown["admitted"], shown["failure"]) == ("finished", True, None)
    assert shown["traits"] == {"added": ["CUSTOM_GPU"], "removed": []}
    assert {"op": "add", "path": "/extra/x", "value": 1} in shown["node"]["patch"]
    assert [step["hook"] for step in shown["steps"] if "hook" in step][:2] == ["ramdisk-error", "validate-interfaces"]
    assert shown["given"] == {"/as_if/0": uuid}
    warned = tried(whole, node=node, as_if=[{"actions": [GPU], "conditions": [
        {"op": "is-true", "args": {"value": "{inventory[cpu][cuont]}"}}]}])["warnings"]
    assert [(found["pointer"], found["nearest"]) for found in warned] == [
        ("/as_if/0/conditions/0/args/value", "inventory[cpu][count]")]


def test_an_inspection_does_what_the_dry_run_said(whole: Whole) -> None:
    rule(whole, GPU, {"op": "set-attribute", "args": ["/extra/serial", "{inventory[system_vendor][serial_number]}"]},
         {"op": "set-port-attribute", "args": ["{inventory[interfaces][0][mac_address]}", "/extra/x", 1]},
         {"op": "set-plugin-data", "args": ["seen", True]})
    node = whole.enroll("manageable", extra={"kept": 1})
    _, body = whole.machine()
    shown = tried(whole, node=node, report=body)
    before = whole.show(node)
    after = whole.inspect(node, body)
    changed = world.patched(before, shown["node"]["patch"])
    for name in ("properties", "extra", "driver", "name", "boot_interface", "description", "resource_class"):
        assert changed[name] == after[name], name
    assert whole.app.get(f"/v1/nodes/{node}/traits").json["traits"] == shown["traits"]["added"]
    ports = whole.app.get(f"/v1/ports?node_uuid={node}&detail=true").json["ports"]
    assert [port["address"] for port in ports] == [port["address"] for port in shown["ports_created"]]
    assert [port["extra"] for port in ports] == [port["extra"] for port in shown["ports_created"]]
    stored = whole.app.get(f"/v1/nodes/{node}/inventory").json["plugin_data"]
    sent = {name: value for name, value in body.items() if name not in ("inventory", "logs")}
    assert world.patched(sent, shown["plugin_data"]["patch"]) == stored


def test_a_machine_that_does_not_exist_yet_is_tried_too(whole: Whole) -> None:
    _, body = whole.machine()
    shown = tried(whole, report=body)
    assert (shown["outcome"], shown["new_node"]["driver"]) == ("finished", "fake-hardware")
    assert [port["address"] for port in shown["ports_created"]]
    uuid = rule(whole, {"op": "fail", "args": ["not this one"]}, phase="early")
    shown = tried(whole, report=body)
    assert (shown["outcome"], shown["admitted"]) == ("refused", False)
    assert shown["failure"] == {"rule": uuid, "pointer": "/actions/0", "reason": "not this one"}
    assert shown["steps"][0]["error"]


def test_a_known_machine_that_does_not_wait_is_refused_with_the_reason(whole: Whole) -> None:
    node = whole.enroll("manageable")
    mac, body = whole.machine()
    whole.app.post_json("/v1/ports", {"node_uuid": node, "address": mac})
    shown = tried(whole, report=body)
    assert (shown["outcome"], shown["failure"]) == ("refused", {"reason": "the node does not wait for inspection"})
    assert tried(whole, node=node, report=body)["outcome"] == "finished"


def test_a_rule_that_fails_changes_nothing_and_is_named(whole: Whole) -> None:
    node = inspected(whole)
    first = rule(whole, GPU, priority=2)
    uuid = rule(whole, {"op": "log", "args": ["x"]}, {"op": "fail", "args": ["no"]}, priority=1)
    shown = tried(whole, node=node)
    assert shown["failure"] == {"rule": uuid, "pointer": "/actions/1", "reason": "no"}
    assert "node" not in shown
    assert steps_of(shown, first)["changes"]["node"]
    assert steps_of(shown, uuid)["error"]


def test_rules_can_be_added_replaced_and_left_out_and_compared(whole: Whole) -> None:
    node = inspected(whole)
    one = rule(whole, {"op": "set-attribute", "args": ["/extra/one", 1]})
    two = rule(whole, {"op": "set-attribute", "args": ["/extra/two", 2]})
    added = {"actions": [{"op": "set-attribute", "args": ["/extra/three", 3]}]}
    shown = tried(whole, node=node, compare=True, as_if=[
        {"uuid": one, "left_out": True}, {"uuid": two, "actions": [{"op": "set-attribute", "args": ["/extra/two", 0]}]},
        added])
    assert {"op": "add", "path": "/extra/one", "value": 1} in shown["stored"]["node"]["patch"]
    assert shown["difference"]["node"] == [
        {"op": "remove", "path": "/extra/one"}, {"op": "replace", "path": "/extra/two", "value": 0},
        {"op": "add", "path": "/extra/three", "value": 3}]
    alone = tried(whole, node=node, rules=[added])
    assert [step["rule"] for step in alone["steps"] if "rule" in step] == [alone["given"]["/rules/0"]]


def test_every_problem_of_every_rule_is_told(whole: Whole) -> None:
    node = inspected(whole)
    sensitive = rule(whole, GPU, sensitive=True)
    reply = whole.app.post_json(TRY, {"node": node, "as_if": [
        {"actions": [{"op": "nope"}], "conditions": [{"op": "eq", "args": []}]}, 5,
        {"uuid": sensitive, "patch": [{"op": "test", "path": "/actions/0/op", "value": "add-trait"}]},
        {"uuid": "6a1f5b9e-0d5c-4a0e-9f59-0c1c39a6f0d1", "left_out": True},
        {"uuid": sensitive, "left_out": False}]})
    assert reply.status_int == 400
    for place in ("/as_if/0/actions/0/op", "/as_if/0/conditions/0/args", "/as_if/1", "/as_if/2", "/as_if/3/uuid",
                  "/as_if/4/left_out"):
        assert place in fault(reply), place


@walking("body, status", [
    ({}, 400), ({"node": "nope-1"}, 404), ({"report": {"inventory": {"interfaces": 5}}}, 400),
    ({"report": {}, "version": 1}, 400), ({"node": "x", "rules": [], "as_if": [{}]}, 400), ({"else": 1}, 400),
])
def test_bad_requests_are_refused(whole: Whole, body: dict[str, Any], status: int) -> None:
    assert whole.app.post_json(TRY, body).status_int == status


def test_a_version_that_is_not_kept_is_not_found(whole: Whole) -> None:
    node = inspected(whole)
    assert whole.app.post_json(TRY, {"node": node, "version": 999_999_999}).status_int == 404
    assert whole.app.post_json(TRY, {"node": whole.enroll()}).status_int == 404


def test_a_planted_secret_is_nowhere_in_the_reply(whole: Whole) -> None:
    node = inspected(whole, driver_info={"ipmi_password": SECRET}, extra={"plain": "x"})
    rule(whole, {"op": "set-attribute", "args": ["/extra/x", "{node[driver_info][ipmi_password]}"]},
         {"op": "set-attribute", "args": ["/extra/n", 12]}, sensitive=True, priority=5)
    rule(whole, {"op": "set-attribute", "args": ["/extra/y", "{node[extra][x]}"]},
         {"op": "log", "args": ["{node[extra]}"]}, {"op": "set-plugin-data", "args": ["x", "{node[extra]}"]},
         conditions=[{"op": "!is-empty", "args": ["{node[extra][plain]}"]}], priority=4)
    _, body = whole.machine()
    body["site_token"] = SECRET + "-too"
    shown = tried(whole, node=node, report=body, compare=True,
                  as_if=[{"actions": [{"op": "fail", "args": ["because of {node[extra][y]}"]}]}])
    assert SECRET not in str(shown)
    assert "plain" not in shown["failure"]["reason"] and "the rule reads a secret" in shown["failure"]["reason"]
    patch = {each["path"]: each.get("value") for each in shown["stored"]["node"]["patch"]}
    assert (patch["/extra/x"], patch["/extra/y"], patch["/extra/n"]) == ("******", "******", "******")


def test_a_dry_run_that_takes_too_long_ends() -> None:
    runs = DryRuns(0.2, lambda: Pipeline([]))
    ended = threading.Event()

    def work(tick: Callable[[], None]) -> None:
        try:
            while True:
                tick()
        finally:
            ended.set()

    with refused(dry_run_too_long):
        runs.run(work)
    assert ended.wait(60)


def test_no_more_dry_runs_than_there_is_room_for() -> None:
    runs = DryRuns(0.4, lambda: Pipeline([]))
    release, begun = threading.Event(), threading.Barrier(trials.MOST + 1)

    def work(tick: Callable[[], None]) -> str:
        begun.wait(60)
        release.wait(60)
        return "done"

    def run() -> None:
        with contextlib.suppress(Invalid):
            runs.run(work)

    threads = [threading.Thread(target=run) for _ in range(trials.MOST)]
    for thread in threads:
        thread.start()
    begun.wait(60)
    with refused(too_many_dry_runs):
        runs.run(work)
    release.set()
    for thread in threads:
        thread.join(60)
    assert runs.run(lambda tick: "next") == "next"


@pytest.mark.slow
def test_a_rule_that_takes_long_is_ended(whole: Whole) -> None:
    """Thousands of items of a loop, each with an expression at its limit, a thousand times over."""
    body = {**whole.machine()[1], "l": ["x" * 2000] * 4000}
    slow = [{"op": "contains", "args": ["{item}", f"(a?){{100}}b{number}"], "loop": "{plugin_data[l]}"}
            for number in range(1000)]
    reply = whole.app.post_json(TRY, {"node": whole.enroll("manageable"), "report": body, "rules": [
        {"conditions": slow[first:first + 100], "actions": [GPU]} for first in range(0, len(slow), 100)]})
    assert reply.status_int == 400
    assert "dry_run_timeout" in fault(reply)


def test_legacy_rules_do_in_an_inspection_what_the_dry_run_said(whole: Whole) -> None:
    kept = legacy.rule(whole, legacy.sets("/extra/memory", "{data[memory_mb]}"), conditions=legacy.at_least(4096))
    cleaned = legacy.rule(whole, legacy.sets("/extra/small", True, cleanup=False), conditions=[
        {"field": "memory_mb", "op": "lt", "value": 1024},
        {"field": "inventory.disk[*].size", "op": "gt", "value": 5, "multiple": "all"}])
    machine = legacy.Machine(whole)
    for memory_mb in (8192, 2048, 512):
        shown = tried(whole, node=machine.uuid, report=machine.report(memory_mb))
        before = whole.show(machine.uuid)
        after = machine.inspect(memory_mb)
        assert world.patched(before, shown["node"]["patch"])["extra"] == after["extra"]
        steps = [step["rule"] for step in shown["steps"] if step.get("phase") == "legacy" and "rule" in step]
        assert steps == [kept, cleaned]
        assert steps_of(shown, kept)["matched"] is (memory_mb >= 4096)
    # What was written for the second report is taken back for the third one, and again in the next inspection.
    first = next(step for step in shown["steps"] if step.get("phase") == "legacy")
    assert first["taken_back"]["node"][0]["path"].startswith("/extra")
    condition, items = steps_of(shown, cleaned)["conditions"]
    assert (condition["why"], condition["short_circuited"]) == ("less", False)
    assert [(argument["name"], argument["value"]) for argument in condition["arguments"]] == [
        ("field", 512), ("value", 1024)]
    assert [(item["outcome"], item["why"], item["arguments"][0]["value"]) for item in items["items"]] == [
        (False, "not greater", 2), (True, "greater", 8)]
    assert steps_of(shown, cleaned)["actions"][0]["times"] == 1
    assert steps_of(shown, cleaned)["note"] == "it cleans up"


def test_a_legacy_rule_can_be_left_out_and_compared_with_what_takes_its_place(whole: Whole) -> None:
    old = legacy.rule(whole, legacy.sets("/extra/a", "x"))
    machine = legacy.Machine(whole)
    machine.inspect()

    def instead(*rules: Any) -> list[Any]:
        shown = tried(whole, node=machine.uuid, compare=True, as_if=[{"uuid": old, "left_out": True}, *rules])
        assert not [step for step in shown["steps"] if step.get("rule") == old]
        assert steps_of(shown["stored"], old)["matched"]
        return list(shown["difference"]["node"])

    # As after its deletion: what it has written stays.
    assert instead() == []
    assert instead({"actions": [{"op": "set-attribute", "args": ["/extra/a", "x"]}]}) == []
    assert instead({"actions": [{"op": "set-attribute", "args": ["/extra/a", "y"]}]}) == [
        {"op": "replace", "path": "/extra/a", "value": "y"}]
    # Given rules only: legacy rules do not run, and leave alone what they own.
    assert tried(whole, node=machine.uuid, rules=[])["node"]["patch"] == []
    reply = whole.app.post_json(TRY, {"node": machine.uuid, "as_if": [
        {"uuid": old, "patch": [{"op": "remove", "path": "/description"}]}]})
    assert "/as_if/0/uuid" in fault(reply)


def test_a_legacy_rule_that_fails_is_named_with_what_it_would_do_to_the_node(whole: Whole) -> None:
    first = legacy.rule(whole, legacy.sets())
    uuid = legacy.rule(whole, {"action": "fail", "message": "only {data[memory_mb]} MB", "maintenance": True},
                       conditions=[{"field": "memory_mb", "op": "lt", "value": 4096}])
    machine = legacy.Machine(whole)
    shown = tried(whole, node=machine.uuid, report=machine.report(1024))
    assert (shown["outcome"], shown["failure"]) == ("failed", {
        "rule": uuid, "pointer": "/actions/0", "reason": "only 1024 MB", "maintenance_reason": "only 1024 MB"})
    assert steps_of(shown, first)["changes"]["node"] == [{"op": "add", "path": "/extra/a", "value": 1}]
    assert steps_of(shown, uuid)["error"]
