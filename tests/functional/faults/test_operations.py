"""Work on a thousand nodes while a conductor is killed, while a rule changes, and until it is cancelled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import inventory, nodes
from ironic_rules.db import tables as t
from tests.functional import databases
from tests.functional.brokers import temporary_vhost
from tests.functional.faults.conftest import Api, FaultyCluster
from tests.functional.processes import wait_for

pytestmark = pytest.mark.long

NODES = 1000
#: Facts that take some seconds to find on all nodes.
FACTS = 200
RULES = "/v1/inspection_rules"
#: Seconds that an operation may take on a busy machine.
SETTLED_S = 300


class Fleet:
    """Nodes that were inspected, and two conductors of which one can be killed."""

    def __init__(self, cluster: FaultyCluster, api: Api) -> None:
        self.cluster, self.api = cluster, api

    def rule(self, mark: str) -> str:
        """Replace all rules by one that adds a mark to each node at each run; return its UUID."""
        body = {"rules": [{"name": "mark", "actions": [
            {"op": "extend-attribute", "args": {"path": "/extra/runs", "value": mark, "unique": False}}]}]}
        answer = self.api("PUT", RULES, body)
        assert answer.status_code == 200, answer.text
        uuid: str = self.api("GET", RULES).json()["inspection_rules"][0]["uuid"]
        return uuid

    def begin(self) -> str:
        answer = self.api("POST", "/v1/nodes/reapply", {})
        assert answer.status_code == 202, answer.text
        uuid: str = answer.json()["uuid"]
        return uuid

    def operation(self, uuid: str) -> dict[str, Any]:
        found: dict[str, Any] = self.api("GET", f"/v1/operations/{uuid}").json()
        return found

    def wait_until_done(self, uuid: str, number: int) -> None:
        wait_for(f"{number} nodes", lambda: self.operation(uuid)["progress"]["done"] >= number, SETTLED_S)

    def wait_for_end(self, uuid: str) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            shown = self.operation(uuid)
            return shown if shown["status"] != "running" else None

        return wait_for("the end of the operation", ended, SETTLED_S)

    def runs(self) -> dict[str, list[str]]:
        """Return the marks of each node."""
        rows = self.cluster.select(sa.select(t.nodes.c.uuid, t.nodes.c.extra))
        return {row.uuid: row.extra.get("runs", []) for row in rows}

    def locked(self) -> list[Any]:
        return self.cluster.select(sa.select(t.nodes.c.uuid).where(t.nodes.c.reservation.is_not(None)))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder: Path = tmp_path_factory.mktemp("operations")
    with databases.migrated_database("mysql") as database, temporary_vhost() as transport:
        cluster = FaultyCluster(folder, database, transport)
        try:
            _enroll(database)
            cluster.conductor("survivor")
            api = Api(cluster.api("api")[1])
            yield Fleet(cluster, api)
            api.close()
        finally:
            cluster.close()


def _enroll(database: str) -> None:
    """Store nodes that were inspected: what is tested comes after that."""
    db = databases.open_database(database)

    def write(conn: sa.Connection) -> None:
        for number in range(NODES):
            row = nodes.create(conn, {"driver": "fake-hardware", "inspect_interface": "agent",
                                      "provision_state": "manageable"})
            mac = f"52:54:00:01:{number >> 8:02x}:{number & 255:02x}"
            found = {"interfaces": [{"name": "eth0", "mac_address": mac}], "cpu": {"architecture": "x86_64"}}
            received = inventory.receive(conn, row.id, found, {}, None)
            inventory.finish(conn, received, {}, inventory.PROCESSED)

    try:
        db.write(write)
    finally:
        db.dispose()


def test_every_node_is_done_once_if_a_conductor_is_killed(fleet: Fleet) -> None:
    fleet.rule("killed")
    doomed = fleet.cluster.conductor("doomed")
    began = time.monotonic()
    operation = fleet.begin()
    fleet.wait_until_done(operation, NODES // 5)
    doomed.kill()
    ended = fleet.wait_for_end(operation)
    print(f"{NODES} nodes, one of two conductors killed: {time.monotonic() - began:.0f} s, {ended['progress']}")

    assert ended["progress"] == {"total": NODES, "done": NODES, "changed": NODES, "failed": 0, "left": 0}
    assert Counter(map(tuple, fleet.runs().values())) == {("killed",): NODES}
    # Both have worked.
    by = fleet.cluster.select(sa.select(t.node_inspections.c.conductor, sa.func.count()).group_by(
        t.node_inspections.c.conductor))
    assert {row[0] for row in by} == {"survivor", "doomed"}
    assert sum(row[1] for row in by) == NODES
    wait_for("the locks of the dead conductor", lambda: not fleet.locked())


def test_facts_are_found_once_by_two_conductors_of_which_one_is_killed(fleet: Fleet) -> None:
    doomed = fleet.cluster.conductor("doomed-finder")
    answer = fleet.api("PUT", "/v1/facts", {"bundle": "many", "facts": [
        {"name": f"many_{number}", "value": f"{number} {{inventory[cpu][architecture]}}"} for number in range(FACTS)]})
    assert answer.status_code == 200, answer.text
    operation = answer.json()["operation"]
    fleet.wait_until_done(operation, NODES // 5)
    doomed.kill()
    # Nothing is left of a fact that is deleted during the search; the others are found.
    assert fleet.api("DELETE", "/v1/facts/many_0").status_code == 204
    ended = fleet.wait_for_end(operation)

    assert (ended["status"], ended["progress"]["failed"], ended["progress"]["left"]) == ("finished", 0, 0)
    found = sa.select(t.facts.c.name, sa.func.count(), sa.func.min(t.fact_texts.c.value)).join(
        t.fact_texts, t.fact_texts.c.fact_id == t.facts.c.id)
    rows = fleet.cluster.select(found.where(t.facts.c.bundle == "many").group_by(t.facts.c.name))
    assert {tuple(row) for row in rows} == {
        (f"many_{number}", NODES, f"{number} x86_64") for number in range(1, FACTS)}
    assert fleet.api("PUT", "/v1/facts", {"bundle": "many", "facts": [], "prune": True}).status_code == 200


def test_each_node_has_one_set_of_rules_which_is_named_if_a_rule_changes(fleet: Fleet) -> None:
    before = fleet.runs()
    first = fleet.rule("first")
    operation = fleet.begin()
    fleet.wait_until_done(operation, NODES // 4)
    second = fleet.rule("second")
    ended = fleet.wait_for_end(operation)

    assert ended["progress"] == {"total": NODES, "done": NODES, "changed": NODES, "failed": 0, "left": 0}
    added = {uuid: runs[len(before[uuid]):] for uuid, runs in fleet.runs().items()}
    counted = Counter(map(tuple, added.values()))
    assert set(counted) == {("first",), ("second",)}
    print(f"a rule changed in the middle: {dict(counted)}")
    newest = sa.select(sa.func.max(t.node_inspections.c.id)).group_by(t.node_inspections.c.node_id)
    entries = fleet.cluster.select(sa.select(t.nodes.c.uuid, t.node_inspections.c.details).join(
        t.nodes, t.nodes.c.id == t.node_inspections.c.node_id).where(t.node_inspections.c.id.in_(newest)))
    rules = {"first": first, "second": second}
    for uuid, details in entries:
        assert [(rule["rule"], rule["changes"]["node"][0]["value"]) for rule in details["rules"]] == [
            (rules[added[uuid][0]], added[uuid][0])]
    events = fleet.cluster.select(sa.select(t.node_history.c.event).where(
        t.node_history.c.event.like("%applied again (revision %")))
    assert len(events) == 2 * NODES


def test_what_is_left_when_an_operation_is_cancelled_stays_as_it_is(fleet: Fleet) -> None:
    before = fleet.runs()
    fleet.rule("cancelled")
    operation = fleet.begin()
    fleet.wait_until_done(operation, NODES // 5)
    assert fleet.api("DELETE", f"/v1/operations/{operation}").status_code == 204
    wait_for("the locks of the last nodes", lambda: not fleet.locked())
    shown = fleet.operation(operation)
    after = fleet.runs()

    changed = [uuid for uuid, runs in after.items() if runs != before[uuid]]
    assert {tuple(after[uuid][len(before[uuid]):]) for uuid in changed} == {("cancelled",)}
    print(f"cancelled in the middle: {shown['progress']}")
    assert (shown["status"], shown["progress"]["done"]) == ("cancelled", len(changed))
    assert NODES // 5 <= len(changed) < NODES
    assert shown["progress"]["failed"] == 0
