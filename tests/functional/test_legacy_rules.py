"""Legacy rules in inspections: what they write, what they take back, and what belongs to someone else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.conductor import legacy_rules as work
from ironic_rules.conductor import operations, recovery
from ironic_rules.db import legacy_rules, legacy_values
from ironic_rules.db.tables import legacy_values as table
from tests.functional.installations import only_in_one_process
from tests.functional.legacy import EXAMPLE, RULES, Machine, at_least, capabilities, rule, sets
from tests.functional.processes import wait_for
from tests.functional.whole import OneProcess, running

GUIDE = Path(__file__).resolve().parents[2] / "doc" / "source" / "user"

pytestmark = only_in_one_process("the conductor's parts are looked at")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneProcess]:
    with running(tmp_path_factory.mktemp("legacy")) as service:
        yield service


@pytest.fixture
def whole(service: OneProcess) -> Iterator[OneProcess]:
    yield service
    assert service.app.delete(RULES).status_int == 204


def test_the_documents_example_is_applied_taken_back_and_applied_again(whole):
    whole.app.post_json(RULES, EXAMPLE)
    machine = Machine(whole, properties={"capabilities": "shelf:3"}, extra={"matched": ["by hand"]})
    first = machine.inspect(8192)
    less = machine.inspect(2048)
    assert machine.owned() == []
    again = machine.inspect(8192)
    same = machine.inspect(8192)

    for node in (first, again, same):
        assert {"shelf:3", "much-memory:wow"} <= capabilities(node)
        assert node["extra"]["matched"] == ["by hand", "much-memory"]
    assert capabilities(less) == capabilities(first) - {"much-memory:wow"}
    assert less["extra"]["matched"] == ["by hand"]
    assert len(machine.owned()) == 2


def test_the_rules_of_the_guide_work_and_stay_applied(whole):
    for given in json.loads((GUIDE / "inspector-rules.json").read_text(encoding="utf-8")):
        assert whole.app.post_json(RULES, given).status_int == 201
    machine = Machine(whole)
    machine.body["inventory"]["disks"] = [{"name": "/dev/sda", "size": 2 * 10**11}]
    for _ in range(2):
        node = machine.inspect(8192)
        assert "profile:compute" in capabilities(node)
        assert node["extra"]["memory"] == "8192"
        assert node["driver_info"] == {"ipmi_username": "admin", "ipmi_password": "******"}
        assert whole.row(machine.uuid).driver_info["ipmi_password"] == "change-me"
    assert ("/driver_info/ipmi_password", "******") in machine.owned()
    # Who has credentials of their own keeps them.
    with_own = Machine(whole, driver_info={"ipmi_username": "root", "ipmi_password": "own"})
    with_own.inspect()
    assert whole.row(with_own.uuid).driver_info == {"ipmi_username": "root", "ipmi_password": "own"}


@pytest.mark.parametrize("reads", [{"conditions": at_least(4096)}, {"value": "{data[memory_mb]}"}])
def test_the_data_are_read_after_rules_have_written(whole, reads):
    written = {"op": "set-attribute", "args": {"path": "/extra/by_rule", "value": 1}}
    assert whole.app.post_json("/v1/inspection_rules", {"actions": [written]}).status_int == 201
    rule(whole, sets("/extra/first"), sets("/extra/a", reads.get("value", "8192")),
         conditions=reads.get("conditions", ()))
    node = Machine(whole).inspect(8192)
    whole.app.delete("/v1/inspection_rules")

    assert node["last_error"] is None
    assert (node["extra"]["by_rule"], node["extra"]["first"], node["extra"]["a"]) == (1, 1, "8192")


def test_the_same_hardware_twice_writes_nothing_that_is_owned_again(whole):
    rule(whole, sets(value="{data[memory_mb]}"), conditions=at_least(1))
    machine = Machine(whole)
    machine.inspect()
    with whole.db.reader() as conn:
        before = conn.execute(sa.select(table)).all()
    node = machine.inspect()
    with whole.db.reader() as conn:
        assert conn.execute(sa.select(table)).all() == before != []
    assert node["extra"]["a"] == "8192"


def test_a_rule_that_is_replaced_between_inspections_takes_back_what_the_old_one_wrote(whole):
    uuid = rule(whole, sets("/extra/old"))
    machine = Machine(whole)
    assert machine.inspect()["extra"] == {"old": 1}
    whole.app.put_json(f"{RULES}/{uuid}", {"actions": [sets("/extra/new", 2)]})

    assert machine.inspect()["extra"] == {"new": 2}
    assert machine.owned() == [("/extra/new", 2)]


def test_a_value_that_an_operator_has_changed_is_theirs_and_the_history_says_so(whole):
    rule(whole, sets(value="rule"), conditions=at_least(4096))
    machine = Machine(whole)
    machine.inspect()
    whole.app.patch_json(f"/v1/nodes/{machine.uuid}", [{"op": "replace", "path": "/extra/a", "value": "hand"}])
    node = machine.inspect(1024)

    assert node["extra"]["a"] == "hand"
    assert machine.owned() == []
    assert [event for event in machine.events() if "/extra/a" in event]


def test_of_two_rules_that_write_the_same_capability_the_last_wins_and_both_are_taken_back(whole):
    for value in ("one", "two"):
        rule(whole, {"action": "set-capability", "name": "profile", "value": value}, conditions=at_least(4096))
    machine = Machine(whole, properties={"capabilities": "profile:by-hand"})

    for _ in range(2):
        assert "profile:two" in capabilities(machine.inspect())
    assert "profile:by-hand" in capabilities(machine.inspect(1024))
    assert machine.owned() == []


def test_a_deleted_rule_leaves_its_values_and_forgets_that_they_are_its_own(whole):
    uuid = rule(whole, sets())
    machine = Machine(whole)
    machine.inspect()
    assert whole.app.delete(f"{RULES}/{uuid}").status_int == 204

    assert machine.owned() == []
    assert machine.inspect()["extra"]["a"] == 1


def test_fail_ends_the_inspection_and_puts_the_node_in_maintenance_if_asked(whole):
    uuid = rule(whole, sets(),
                {"action": "fail", "message": "only {data[memory_mb]} MB", "maintenance": True},
                conditions=[{"field": "memory_mb", "op": "lt", "value": 4096}])
    machine = Machine(whole)
    failed = machine.inspect(1024)

    assert failed["provision_state"] == "inspect failed"
    assert (failed["maintenance"], failed["maintenance_reason"]) == (True, "only 1024 MB")
    assert all(part in failed["last_error"] for part in (uuid, "/actions/1", "only 1024 MB")), failed["last_error"]
    assert failed["extra"] == {}
    assert machine.owned() == []


def test_cleanup_off_and_any_differ_from_the_default(whole):
    set_a = sets()
    rule(whole, set_a, conditions=at_least(4096))
    kept, deleted = Machine(whole), Machine(whole, extra={"a": "hand"})
    with whole.option("legacy_rules", "cleanup", "off"):
        kept.inspect()
        assert kept.inspect(1024)["extra"]["a"] == 1
    assert deleted.inspect(1024)["extra"] == {"a": "hand"}
    with whole.option("legacy_rules", "cleanup", "any"):
        assert deleted.inspect(1024)["extra"] == {}


def test_an_inspection_without_legacy_rules_makes_no_query_about_them(whole):
    machine = Machine(whole)
    machine.inspect()  # reads the set, as rules of other tests were deleted
    statements: list[str] = []

    def note(*given: Any) -> None:
        statements.append(given[2])

    sa.event.listen(whole.db.engine, "before_cursor_execute", note)
    machine.inspect()
    sa.event.remove(whole.db.engine, "before_cursor_execute", note)

    # The revision of the set, and whether rules own anything, are columns of the query of the node.
    assert [text for text in statements if "legacy" in text and "reservation_token" not in text] == []
    assert len(statements) > 20


def test_a_rule_that_is_deleted_while_it_runs_is_not_applied(whole, monkeypatch):
    uuid = rule(whole, sets())
    machine = Machine(whole)
    original = work.LegacyWork.run
    deleted: list[int] = []

    def run(self: Any, task: Any, data: Any) -> Any:
        outcome = original(self, task, data)
        if not deleted:
            deleted.append(whole.app.delete(f"{RULES}/{uuid}").status_int)
        return outcome

    monkeypatch.setattr(work.LegacyWork, "run", run)
    node = machine.inspect()

    assert deleted == [204]
    assert node["provision_state"] == "manageable"
    assert "a" not in node["extra"]
    assert machine.owned() == []


class Died(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("place", ["passes", "save"])
def test_what_is_owned_and_the_node_agree_if_a_conductor_dies_before_it_commits(whole, monkeypatch, place):
    rule(whole, sets(value="{data[memory_mb]}"))
    machine = Machine(whole)
    machine.inspect(1000)
    owner, name = (work.LegacyWork, "run") if place == "passes" else (legacy_values, "save")
    original = getattr(owner, name)
    alive: list[bool] = [True]

    def die(*given: Any) -> Any:
        outcome = original(*given)
        if alive[0]:
            alive[0] = False
            raise Died
        return outcome

    monkeypatch.setattr(owner, name, die)
    # The worker's thread ends with the lock held, as that of a process that dies.
    monkeypatch.setattr("ironic_rules.conductor.state_machine.failure_of", lambda action, task: action())
    node_id = whole.row(machine.uuid).id
    for number in range(1, 11):
        before, after = str(number * 1000), str((number + 1) * 1000)
        whole.provision(machine.uuid, "inspect")
        alive[0] = True
        whole.callback(machine.uuid, machine.report(int(after)))
        wait_for("the death", lambda: not alive[0] and not whole.conductor.workers.is_active(node_id))
        assert whole.row(machine.uuid).extra["a"] == before
        assert machine.owned() == [("/extra/a", before)]
        recovery.resume_orphans(whole.conductor)
        whole.at_rest(machine.uuid)
        assert whole.row(machine.uuid).extra["a"] == after
        assert machine.owned() == [("/extra/a", after)]


def test_cleanup_takes_back_on_every_node_but_those_that_are_locked(whole):
    doomed = rule(whole, sets(),
                  {"action": "set-capability", "name": "profile", "value": "x"})
    rule(whole, sets("/extra/b", 2))
    machines = [Machine(whole, extra={"own": 0}) for _ in range(3)]
    for machine in machines:
        machine.inspect()
    changed, locked, theirs = machines
    whole.put(locked.uuid, reservation="conductor-9")
    whole.app.patch_json(f"/v1/nodes/{theirs.uuid}", [{"op": "replace", "path": "/extra/a", "value": "hand"}])
    begun = whole.app.delete(f"{RULES}/{doomed}?cleanup=true")
    assert begun.status_int == 202, begun.text
    assert operations.work(whole.conductor) == 3
    ended = whole.app.get(f"/v1/operations/{begun.json['uuid']}").json
    whole.put(locked.uuid, reservation=None)

    assert ended["status"] == "finished"
    assert ended["progress"] == {"total": 3, "done": 3, "changed": 2, "failed": 1, "left": 0}
    assert [error["node"] for error in ended["errors"]] == [locked.uuid]
    assert "conductor-9" in ended["errors"][0]["error"]
    assert whole.show(changed.uuid)["extra"] == {"own": 0, "b": 2}
    assert "profile:x" not in capabilities(whole.show(changed.uuid))
    assert whole.show(theirs.uuid)["extra"] == {"own": 0, "a": "hand", "b": 2}
    assert [machine.owned() for machine in machines] == [
        [("/extra/b", 2)], [("/extra/a", 1), ("profile", "x"), ("/extra/b", 2)], [("/extra/b", 2)]]
    assert [event for event in theirs.events() if "/extra/a" in event]
    # The next inspection of the one that was locked does what was left.
    assert locked.inspect()["extra"] == {"own": 0, "b": 2}
    assert operations.work(whole.conductor) == 0


def test_cleanup_of_one_of_two_rules_for_the_same_value_leaves_the_other_ones(whole):
    first = rule(whole, {"action": "set-capability", "name": "profile", "value": "one"}, sets(value=1))
    rule(whole, {"action": "set-capability", "name": "profile", "value": "two"}, sets(value=2),
         conditions=at_least(4096))
    machine = Machine(whole, properties={"capabilities": "profile:by-hand"}, extra={"a": "own"})
    machine.inspect()
    whole.app.delete(f"{RULES}/{first}?cleanup=true")
    assert operations.work(whole.conductor) == 1
    between = whole.show(machine.uuid)
    after = machine.inspect(1024)

    assert ("profile:two" in capabilities(between), between["extra"]) == (True, {"a": 2})
    assert ("profile:by-hand" in capabilities(after), after["extra"]) == (True, {"a": "own"})


@pytest.mark.parametrize("written", [None, "x", "a:1, b:2"])
def test_cleanup_returns_capabilities_that_a_rule_has_replaced(whole, written):
    doomed = rule(whole, sets("/properties/capabilities", written),
                  {"action": "set-capability", "name": "boot_mode", "value": "uefi"})
    machine = Machine(whole, properties={"capabilities": "profile:old, boot_mode:bios"})
    once, twice = machine.inspect(), machine.inspect()
    whole.app.delete(f"{RULES}/{doomed}?cleanup=true")
    assert operations.work(whole.conductor) == 1

    assert once["properties"] == twice["properties"]
    assert "profile:old" not in capabilities(twice)
    assert "profile:old" in capabilities(whole.show(machine.uuid))
    assert not [event for event in machine.events() if "does not own" in event]


def test_a_rule_that_is_no_longer_valid_fails_the_nodes_in_its_scope_and_one_whose_plug_in_is_gone_is_disabled(whole):
    invalid, disabled = rule(whole, sets(), scope="hall-1"), rule(whole, sets("/extra/b"))
    rule(whole, sets("/extra/c"))
    machine, inside = Machine(whole), Machine(whole, inspection_scope="hall-1")
    assert machine.inspect()["extra"] == {"b": 1, "c": 1}
    with whole.db.writer() as conn:
        legacy_rules.update(conn, invalid, {"actions": [sets("/uuid")]})
        legacy_rules.update(conn, disabled, {"actions": [{"action": "of-a-removed-plug-in"}]})
    failed = inside.inspect()

    assert failed["provision_state"] == "inspect failed"
    assert invalid in failed["last_error"]
    assert "/actions/0/path" in failed["last_error"]
    # What the disabled rule has written stays.
    assert machine.inspect()["extra"] == {"b": 1, "c": 1}
    assert machine.owned() == [("/extra/b", 1), ("/extra/c", 1)]
    assert whole.app.get("/healthcheck").json["invalid_rules"] == 2


def test_cleanup_of_all_rules_is_continued_by_another_conductor(whole, monkeypatch):
    rule(whole, sets())
    machines = [Machine(whole) for _ in range(3)]
    for machine in machines:
        machine.inspect()
    begun = whole.app.delete(f"{RULES}?cleanup=true").json["uuid"]
    original = operations.KINDS["legacy-rule-cleanup"]
    seen: list[str] = []

    def die_at_the_second(conn: Any, conductor: Any, operation: Any, item: Any) -> bool:
        done = original(conn, conductor, operation, item)
        seen.append(item.node_uuid)
        if len(seen) == 2:
            raise Died
        return done

    monkeypatch.setattr(operations, "KINDS", {"legacy-rule-cleanup": die_at_the_second})
    with pytest.raises(Died):
        operations.work(whole.conductor)
    assert [whole.show(machine.uuid)["extra"] for machine in machines] == [{}, {"a": 1}, {"a": 1}]
    assert operations.work(whole.conductor) == 0
    monkeypatch.setattr("ironic_rules.db.operations.LEASE_S", 0)
    assert operations.work(whole.conductor) == 2

    assert [whole.show(machine.uuid)["extra"] for machine in machines] == [{}] * 3
    assert whole.app.get(f"/v1/operations/{begun}").json["progress"]["changed"] == 3
