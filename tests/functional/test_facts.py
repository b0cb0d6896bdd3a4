"""Facts: defined over HTTP, found by inspections and in stored inventories, read by rules, kept as changes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules import facts as compiled
from ironic_rules.conductor import facts as find_facts
from ironic_rules.conductor import operations, periodics
from ironic_rules.db import clock, facts
from ironic_rules.db.tables import fact_changes, fact_numbers, fact_states
from tests.functional.installations import only_in_one_process
from tests.functional.legacy import Machine
from tests.functional.processes import wait_for
from tests.functional.whole import OneProcess, fault, running

FACTS = "/v1/facts"
RULES = "/v1/inspection_rules"

pytestmark = only_in_one_process("the conductor's parts are looked at")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    with running(tmp_path_factory.mktemp("facts"), "[facts]\nmax_facts = 60\n") as service:
        yield service


@pytest.fixture
def whole(service: OneProcess) -> Iterator[OneProcess]:
    yield service
    assert service.app.delete(RULES).status_int == 204
    for fact in service.app.get(f"{FACTS}?origin=operator").json["facts"]:
        assert service.app.delete(f"{FACTS}/{fact['name']}").status_int == 204


def fact(whole: OneProcess, name: str, value: Any, **fields: Any) -> dict[str, Any]:
    reply = whole.app.post_json(FACTS, {"name": name, "value": value, **fields})
    assert reply.status_int == 201, reply.text
    shown: dict[str, Any] = reply.json
    return shown


def found(whole: OneProcess, machine: Machine) -> dict[str, Any]:
    facts: dict[str, Any] = whole.app.get(f"/v1/nodes/{machine.uuid}/facts").json["facts"]
    return facts


def done(whole: OneProcess, operation: str) -> dict[str, Any]:
    """Let the conductor work until the operation has ended, and return it."""
    def ended() -> Any:
        operations.work(whole.conductor)
        shown = whole.app.get(f"/v1/operations/{operation}").json
        return shown if shown["status"] != "running" else None

    shown: dict[str, Any] = wait_for("the end of the operation", ended)
    return shown


def test_an_inspection_finds_the_built_in_facts(whole: OneProcess) -> None:
    machine = Machine(whole)
    machine.inspect(8192)
    shown = found(whole, machine)
    assert (shown["memory_gib"], shown["cpu_count"], shown["vendor"]) == (8, 128, "Dell Inc.")
    assert shown["macs"] and shown["nic_count"] == 1
    listed = whole.app.get(f"{FACTS}?limit=2&sort_key=name&fields=name,type,origin").json
    assert [one["name"] for one in listed["facts"]] == ["accelerator_count", "accelerator_models"]
    assert [one["name"] for one in whole.app.get(listed["next"]).json["facts"]] == ["accelerators", "asset_tag"]
    assert len(whole.app.get(FACTS).json["facts"]) == len(compiled.built_in())
    one = whole.app.get(f"{FACTS}/memory_gib").json
    assert (one["type"], one["unit"], one["watched"], one["problems"]) == ("integer", "GiB", True, [])
    for method, args in (("patch_json", [[]]), ("delete", [])):
        reply = getattr(whole.app, method)(f"{FACTS}/memory_gib", *args)
        assert (reply.status_int, "the built-in fact memory_gib" in fault(reply)) == (409, True)


def test_the_same_data_write_nothing_and_other_data_what_differs(
        whole: OneProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(whole)
    machine.inspect(8192)
    saved: list[Any] = []
    save = facts.save
    monkeypatch.setattr(facts, "save", lambda *args: saved.append(save(*args)) or saved[-1])  # type: ignore[func-returns-value]
    machine.inspect(8192)
    assert saved == []
    machine.inspect(4096)
    change, = saved[0]
    assert (change.before, change.after) == (8, 4)
    shown = whole.app.get(f"/v1/fact_changes?node={machine.uuid}").json["fact_changes"]
    assert [(one["fact"], one["unit"], one["before"], one["after"], one["node_uuid"]) for one in shown] == [
        ("memory_gib", "GiB", 8, 4, machine.uuid)]
    inspection = whole.app.get(f"/v1/nodes/{machine.uuid}/inspections/{shown[0]['inspection_uuid']}")
    assert inspection.json["outcome"] == "finished"
    assert ("WARNING", "The machine has less than before: memory_gib 8 → 4 GiB") in whole.events(machine.uuid)
    machine.inspect(8192)
    assert [one["after"] for one in whole.app.get("/v1/fact_changes?fact=memory_gib&limit=2").json["fact_changes"]] == [
        8, 4]
    with whole.db.writer() as conn:
        conn.execute(sa.update(fact_changes).values(created_at=clock.now().replace(year=2020)))
    periodics.prune_fact_changes(whole.conductor)
    assert whole.app.get("/v1/fact_changes").json["fact_changes"] == []


def test_a_disk_that_is_gone_is_told(whole: OneProcess) -> None:
    machine = Machine(whole)
    machine.inspect()
    fact(whole, "serials", "{item[serial]}", loop="{inventory[disks]}", watched=True)
    machine.inspect()
    disks = machine.body["inventory"]["disks"]
    machine.body["inventory"]["disks"] = disks[:-1]
    machine.inspect()
    told = [event for severity, event in whole.events(machine.uuid) if severity == "WARNING"][-1]
    assert f"disk_count {len(disks)} → {len(disks) - 1}" in told
    assert f"serials {len(disks)} values → {len(disks) - 1}" in told


def test_a_new_fact_is_found_in_stored_inventories_and_another_definition_too(whole: OneProcess) -> None:
    machines = [Machine(whole) for _ in range(3)]
    for number, machine in enumerate(machines):
        machine.inspect(1024 * (number + 1))
    made = fact(whole, "memory_mb", "{inventory[memory][physical_mb]}", unit="MiB")
    assert "memory_mb" not in found(whole, machines[0])
    ended = done(whole, made["operation"])
    assert (ended["kind"], ended["status"], ended["progress"]["failed"]) == ("find_facts", "finished", 0)
    assert [found(whole, machine)["memory_mb"] for machine in machines] == [1024, 2048, 3072]
    changed = whole.app.patch_json(f"{FACTS}/memory_mb", [
        {"op": "replace", "path": "/value", "value": "m{inventory[memory][physical_mb]}"}]).json
    assert done(whole, changed["operation"])["status"] == "finished"
    assert found(whole, machines[1])["memory_mb"] == "m2048"
    with whole.db.reader() as conn:
        left = sa.select(fact_numbers.c.value).where(fact_numbers.c.fact_id == facts.get(conn, "memory_mb").id)
        assert conn.execute(left).all() == []
    # It is no change of the machine, and the next inspection agrees.
    machines[1].inspect(2048)
    assert whole.app.get(f"/v1/fact_changes?node={machines[1].uuid}").json["fact_changes"] == []
    same = whole.app.patch_json(f"{FACTS}/memory_mb", [{"op": "add", "path": "/unit", "value": "GB"}]).json
    assert (same["operation"], same["unit"], same["type"]) == (None, "GB", "text")


def test_a_fact_that_is_deleted_meanwhile_ends_its_operation(
        whole: OneProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(whole).inspect()
    made = fact(whole, "gone", "{inventory[hostname]}")
    assert whole.app.delete(f"{FACTS}/gone").status_int == 204
    assert done(whole, made["operation"])["status"] == "cancelled"
    # A conductor that dies in the middle leaves nothing done and nothing lost.
    made = fact(whole, "again", "{inventory[memory][physical_mb]}")

    class Killed(BaseException):
        """The process ends."""

    def killed(*args: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(find_facts.facts, "replace_values", killed)
        with pytest.raises(Killed):
            operations.work(whole.conductor)
    monkeypatch.setattr(operations.operations, "LEASE_S", 0)
    ended = done(whole, made["operation"])
    assert (ended["status"], ended["progress"]["left"]) == ("finished", 0)


def test_what_is_wrong_with_a_value_is_told_and_the_rest_is_there(whole: OneProcess) -> None:
    machine = Machine(whole)
    machine.body["inventory"]["odd"] = {
        "many": [str(number) for number in range(10_000)], "long": "x" * 256, "great": 2**60, "mixed": [1, "a"],
        "object": {}, "changing": 7}
    for name in ("many", "long", "great", "mixed", "object", "changing"):
        fact(whole, name, f"{{inventory[odd][{name}]}}")
    fact(whole, "failing", "{inventory[odd][long]|int}")
    machine.inspect()
    reply = whole.app.get(f"/v1/nodes/{machine.uuid}/facts").json
    assert len(reply["facts"]["many"]) == 1000
    assert reply["problems"] == {
        "many": "more than 1000 values; the others are left out", "long": "a text is longer than 255 characters",
        "great": "a number is not between -2^53 and 2^53", "mixed": "the values have several types: integer, text",
        "object": "a value is neither text nor a number, true or false",
        "failing": "{inventory[odd][long]|int}: the value must be an integer of 64 bits, or its digits 0 to 9 as text"}
    assert whole.app.get(f"{FACTS}/many").json["problems"] == [
        {"node_uuid": machine.uuid, "problem": reply["problems"]["many"]}]
    machine.body["inventory"]["odd"]["changing"] = "seven"
    machine.inspect()
    reply = whole.app.get(f"/v1/nodes/{machine.uuid}/facts").json
    assert reply["facts"]["changing"] == "seven"
    assert reply["problems"]["changing"] == "the type was integer until now, and is text"
    listed = {one["name"]: one for one in whole.app.get(f"{FACTS}?origin=operator").json["facts"]}
    assert (listed["changing"]["type"], listed["changing"]["problems"]) == ("text", 1)


def test_secrets_are_no_facts(whole: OneProcess) -> None:
    reply = whole.app.post_json(FACTS, {"name": "secret", "value": "{node[driver_info][ipmi_password]}"})
    assert (reply.status_int, "cannot be a fact" in fault(reply)) == (400, True)
    machine = Machine(whole, driver_info={"ipmi_password": "hunter2", "ipmi_username": "root"})
    machine.body["inventory"] |= {"token": {"a": "hunter2"}, "url": "http://root:hunter2@192.0.2.1/"}
    rule = {"sensitive": True, "actions": [
        {"op": "set-plugin-data", "args": {"path": "hidden", "value": "hunter2"}}]}
    assert whole.app.post_json(RULES, rule).status_int == 201
    for name, fields in {"all": {"value": "{item[value]}", "loop": "{node[driver_info]}"},
                         "tokens": {"value": "{item[value]}", "loop": "{inventory}"},
                         "url": {"value": "{inventory[url]}"}, "hidden": {"value": "{plugin_data[hidden]}"}}.items():
        done(whole, fact(whole, name, **fields)["operation"])
    machine.inspect()
    assert "hunter2" not in whole.app.get(f"/v1/nodes/{machine.uuid}/facts").text
    assert "hidden" not in found(whole, machine)
    again = whole.app.patch_json(f"{FACTS}/hidden", [
        {"op": "replace", "path": "/value", "value": "a{plugin_data[hidden]}"}]).json
    done(whole, again["operation"])
    assert "hidden" not in found(whole, machine)


def test_rules_read_facts_and_what_they_were(whole: OneProcess) -> None:
    made = whole.app.post_json(RULES, {
        "name": "shrunk", "conditions": [{"op": "changed", "args": {"fact": "memory_gib"}},
                                         {"op": "lt", "args": ["{fact[memory_gib]}", "{previous_fact[memory_gib]}"]}],
        "actions": [{"op": "set-attribute", "args": {
            "path": "/extra/memory", "value": "{previous_fact[memory_gib]} to {fact[memory_gib]}"}}]})
    assert made.status_int == 201, made.text
    later = {"conditions": [{"op": "eq", "args": ["{fact[rack]}", "b7"]}], "actions": [
        {"op": "set-attribute", "args": {"path": "/extra/rack", "value": "{fact[rack]}"}}]}
    refused = whole.app.post_json(RULES, later)
    assert (refused.status_int, "there is no such fact" in fault(refused)) == (400, True)
    fact(whole, "rack", "{plugin_data[rack]}")
    for rule in ({"conditions": [{"op": "eq", "args": ["{fact[rack]}", "a1"]}], "priority": 9,
                  "actions": [{"op": "set-plugin-data", "args": ["rack", "b7"]}]}, later):
        reply = whole.app.post_json(RULES, rule)
        assert reply.status_int == 201, reply.text
    machine = Machine(whole)
    machine.body["rack"] = "a1"
    # A fact follows what rules write.
    assert machine.inspect(8192)["extra"] == {"rack": "b7"}
    assert machine.inspect(4096)["extra"]["memory"] == "8 to 4"
    trial = whole.app.post_json(f"{RULES}/dry_run", {"node": machine.uuid}).json
    assert trial["outcome"] == "finished", trial
    refused = whole.app.delete(f"{FACTS}/rack")
    assert (refused.status_int, made.json["uuid"] in fault(refused)) == (409, False)
    assert "change its users" in fault(refused)


def test_definitions_are_checked_as_a_whole(whole: OneProcess) -> None:
    wrong = {"name": "Vendor", "value": "{inventori[a]}", "loop": "{inventory[a]", "unit": 3, "combine": "summ",
             "conditions": [{"op": "eqq", "args": [1, 1]}], "watched": "yes", "colour": "red"}
    text = fault(whole.app.post_json(FACTS, wrong))
    for part in ("/name:", "/value:", "/loop:", "/unit:", "/combine:", "/conditions/0/op:", "/watched:", "/colour:",
                 "did you mean 'sum'?", "did you mean 'eq'?"):
        assert part in text
    assert whole.app.post_json(FACTS, {"name": "vendor", "value": "{inventory[a]}"}).status_int == 409
    for name in ("vocabulary", "values", "a" * 64, "a-b", ""):
        assert whole.app.post_json(FACTS, {"name": name, "value": "{inventory[a]}"}).status_int == 400
    made = whole.app.post_json(FACTS, {"name": "mine", "value": "{inventory[a]}"})
    assert whole.app.patch_json(f"{FACTS}/mine", [{"op": "add", "path": "/unit", "value": "A"}],
                                headers={"If-Match": '"x"'}).status_int == 412
    assert whole.app.delete(f"{FACTS}/mine", headers={"If-Match": made.headers["ETag"]}).status_int == 204
    for number in range(60 - len(compiled.built_in())):
        fact(whole, f"f{number}", "{inventory[hostname]}")
    assert "There are 60 facts already" in fault(whole.app.post_json(FACTS, {"name": "f", "value": "{node[name]}"}))


def test_a_bundle_becomes_what_a_request_says(whole: OneProcess) -> None:
    def put(facts: list[Any], status: int = 200, **more: Any) -> Any:
        reply = whole.app.put_json(FACTS, {"bundle": "site", "facts": facts, **more})
        assert reply.status_int == status, reply.text
        return reply.json if status == 200 else fault(reply)

    machine = Machine(whole)
    machine.inspect()
    fact(whole, "own", "{inventory[hostname]}")
    rack, row = ({"name": name, "value": "{inventory[memory][physical_mb]}"} for name in ("rack", "row"))
    assert put([rack], dry_run=True)["created"] == ["rack"]
    made = put([rack, row])
    assert (made["created"], made["changed"]) == (["rack", "row"], [])
    done(whole, made["operation"])
    assert found(whole, machine)["row"] == 8192
    made = put([{**rack, "unit": "U"}, row], prune=True)
    assert (made["changed"], made["unchanged"], made["removed"], made["operation"]) == (["rack"], ["row"], [], None)
    assert put([{**row, "unit": None}], prune=True)["removed"] == ["rack"]
    assert put([row])["unchanged"] == ["row"]
    assert {one["name"] for one in whole.app.get(f"{FACTS}?bundle=site").json["facts"]} == {"row"}
    text = put([row, row, 1, {"name": "x", "value": 1, "combine": "y"}], 400)
    for part in ("/facts/1/name: is that of /facts/0", "/facts/2: must be an object", "/facts/3/combine"):
        assert part in text
    text = put([{**row, "name": "own"}, {**row, "name": "vendor"}], 400)
    assert "/facts/0/name: is that of a fact without a bundle; /facts/1/name: is that of a built-in fact" in text
    tag = whole.app.get(FACTS).headers["ETag"]
    assert whole.app.put_json(FACTS, {"facts": []}, headers={"If-Match": tag}).status_int == 200
    assert whole.app.put_json(FACTS, {"facts": []}, headers={"If-Match": '"old"'}).status_int == 412


def test_hooks_and_rules_that_run_again_keep_the_facts(whole: OneProcess) -> None:
    machine = Machine(whole)
    machine.inspect()
    before = copy.deepcopy(found(whole, machine))
    with whole.db.writer() as conn:
        conn.execute(sa.delete(fact_states))
        conn.execute(sa.delete(fact_numbers))
    again = whole.app.post_json(f"/v1/nodes/{machine.uuid}/inventory/reapply", {}).json
    assert done(whole, again["uuid"])["status"] == "finished"
    assert found(whole, machine) == before
