"""Inventories and histories of nodes."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock, inspection_journal, inventory, node_records, nodes
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.db.tables import node_inventory
from ironic_rules.exceptions import MarkerNotFound, NodeNotFound, NotFound, history_not_found
from ironic_rules.models.rejected_reports import UNKNOWN, RejectedReport
from tests.wordings import refused

NOBODY = 999_999_999


@pytest.fixture
def node(conn: sa.Connection) -> Any:
    return nodes.create(conn, {"driver": "d"})


def finished(conn: sa.Connection, node_id: int, status: str = "processed") -> int:
    received = inventory.receive(conn, node_id, {"status": status}, {}, None)
    inventory.finish(conn, received, {}, status)
    return received


def test_received_data_waits_until_it_is_finished(conn: sa.Connection, node: Any) -> None:
    received = inventory.receive(conn, node.id, {"cpu": {"count": 4}}, {"a": 1}, "req-1")
    waiting = inventory.pending(conn, node.id)
    assert waiting is not None
    assert (waiting.id, waiting.status, waiting.request_id) == (received, "received", "req-1")
    assert (waiting.inventory_data, waiting.received_plugin_data, waiting.plugin_data) == (
        {"cpu": {"count": 4}}, {"a": 1}, None)
    assert inventory.latest(conn, node.id, "processed") is None
    inventory.finish(conn, received, {"a": 2}, "processed")
    assert inventory.pending(conn, node.id) is None
    latest = inventory.latest(conn, node.id)
    assert latest is not None
    assert (latest.id, latest.status, latest.received_plugin_data, latest.plugin_data) == (
        received, "processed", {"a": 1}, {"a": 2})


def test_the_stored_json_can_be_had_as_it_is(conn: sa.Connection, node: Any) -> None:
    finished(conn, node.id)
    latest = inventory.latest(conn, node.id, raw_json=True)
    assert latest is not None
    assert (latest.inventory_data, latest.plugin_data) == ('{"status":"processed"}', "{}")


def test_a_large_inventory_fits(conn: sa.Connection, node: Any) -> None:
    received = inventory.receive(conn, node.id, {"blob": "x" * 5_000_000}, None, None)
    waiting = inventory.pending(conn, node.id)
    assert waiting is not None
    assert (waiting.id, len(waiting.inventory_data["blob"])) == (received, 5_000_000)


@pytest.mark.parametrize(("statuses", "latest"), [
    ([], None), (["failed"], 0), (["failed", "failed"], 1), (["failed", "received"], 1), (["processed", "failed"], 0),
    (["processed", "received"], 0), (["failed", "processed", "processed", "failed", "received"], 2),
])
def test_the_latest_data_are_processed_ones_if_there_are_any(
        conn: sa.Connection, node: Any, statuses: list[str], latest: int | None) -> None:
    other = nodes.create(conn, {"driver": "d"})
    rows = [inventory.receive(conn, node.id, {}, {}, None) if status == "received" else finished(conn, node.id, status)
            for status in statuses]
    finished(conn, other.id)
    found = inventory.latest(conn, node.id)
    assert (found and found.id) == (None if latest is None else rows[latest])
    for status in ("processed", "failed", "received"):
        newest = inventory.latest(conn, node.id, status)
        ids = [row for row, of_row in zip(rows, statuses, strict=True) if of_row == status]
        assert (newest and newest.id) == (ids[-1] if ids else None)


def test_the_last_successful_inventory_alone(conn: sa.Connection, node: Any) -> None:
    other = nodes.create(conn, {"driver": "d"})
    assert inventory.latest_inventory(conn, node.id) is None
    for number in (1, 2):
        received = inventory.receive(conn, node.id, {"number": number}, {}, None)
        inventory.finish(conn, received, {}, "processed")
    finished(conn, node.id, "failed")
    finished(conn, other.id)
    inventory.receive(conn, node.id, {"number": 3}, {}, None)
    assert inventory.latest_inventory(conn, node.id) == {"number": 2}


def test_versions_are_paged_and_found_by_their_numbers(conn: sa.Connection, node: Any) -> None:
    first, second, third = (finished(conn, node.id, status) for status in ("processed", "failed", "processed"))
    of_other = finished(conn, nodes.create(conn, {"driver": "d"}).id)

    def listed(**page: Any) -> list[int]:
        return [row.id for row in inventory.versions(conn, node.id, Page(**{"limit": 9, **page}))]

    assert listed() == [first, second, third]
    assert listed(limit=1, marker=str(first)) == [second]
    assert listed(sort_key="status", marker=str(second), sort_dir="asc") == [first, third]
    for marker in (of_other, 2**62):
        with pytest.raises(MarkerNotFound):
            listed(marker=str(marker))
    assert [inventory.get(conn, node.id, number) for number in (of_other, 2**62)] == [None, None]
    found = inventory.successful_before(conn, node.id, third)
    assert found is not None and found.id == first
    assert inventory.successful_before(conn, node.id, first) is None
    assert inventory.latest_inventory(conn, node.id, third) == {"status": "processed"}
    assert inventory.latest_inventory(conn, node.id, first) is None


def test_newer_data_supersedes_what_waits(conn: sa.Connection, node: Any) -> None:
    inventory.receive(conn, node.id, {"n": 1}, {}, None)
    second = inventory.receive(conn, node.id, {"n": 2}, {}, None)
    inventory.finish(conn, second, {}, "processed")
    assert inventory.pending(conn, node.id) is None


def test_data_of_a_missing_node_is_refused(db: Database) -> None:
    with pytest.raises(NodeNotFound):
        db.write(lambda conn: inventory.receive(conn, NOBODY, {}, {}, None))
    with pytest.raises(NotFound, match=f"^Inspection inventory {NOBODY} could not be found"):
        db.write(lambda conn: inventory.finish(conn, NOBODY, {}, "processed"))


def test_prune_keeps_the_newest_and_what_waits(conn: sa.Connection, node: Any) -> None:
    other = nodes.create(conn, {"driver": "d"})
    kept_of_other = finished(conn, other.id)
    rows = [finished(conn, node.id) for _ in range(5)]
    waiting = inventory.receive(conn, node.id, {}, {}, None)
    inventory.prune(conn, node.id, 2)
    inventory.prune(conn, node.id, 2)
    assert set(conn.scalars(sa.select(node_inventory.c.id))) == {kept_of_other, *rows[-2:], waiting}


def test_prune_keeps_the_last_successful_one(conn: sa.Connection, node: Any) -> None:
    finished(conn, node.id)
    good = finished(conn, node.id)
    failed = [finished(conn, node.id, "failed") for _ in range(3)]
    inventory.prune(conn, node.id, 2)
    assert set(conn.scalars(sa.select(node_inventory.c.id))) == {good, *failed[-2:]}


def test_discard_deletes_one(conn: sa.Connection, node: Any) -> None:
    received = inventory.receive(conn, node.id, {}, {}, None)
    inventory.discard(conn, received)
    inventory.discard(conn, received)
    assert inventory.pending(conn, node.id) is None


def test_history_entries_are_found_by_uuid(conn: sa.Connection, node: Any) -> None:
    other = nodes.create(conn, {"driver": "d"})
    node_records.add_history(conn, node.id, "inspection", "it failed", "ERROR", "host-1", "user-1")
    entry, = node_records.list_history(conn, node.id, Page(limit=10))
    assert (entry.event_type, entry.event, entry.severity, entry.conductor, entry.user) == (
        "inspection", "it failed", "ERROR", "host-1", "user-1")
    assert node_records.get_history(conn, node, entry.uuid) == entry
    with refused(history_not_found, match=other.uuid):
        node_records.get_history(conn, other, entry.uuid)
    with refused(history_not_found):
        node_records.get_history(conn, node, uuidutils.generate_uuid())


def test_what_others_choose_is_cut_to_what_the_columns_can_have(conn: sa.Connection, node: Any) -> None:
    node_records.add_history(conn, node.id, "inspection", "it failed", "ERROR", "host-1", "u" * 300)
    node_records.add_inspection(conn, node.id,
                                {"kind": "ramdisk", "outcome": "failed", "user": "u" * 300, "source": "a" * 100,
                                                "details": {}})
    noted = RejectedReport(UNKNOWN, "x", "a" * 100, clock.now(), None, ("52:54:00:00:00:01",))
    for _ in range(2):
        inspection_journal.add(conn, [(noted, 1)])
    event, = node_records.list_history(conn, node.id, Page(limit=10))
    entry, = node_records.list_inspections(conn, node.id, Page(limit=10))
    callback, = inspection_journal.list_entries(conn, {}, Page(limit=10))
    assert [event.user, entry.user, entry.source, callback.source] == ["u" * 64, "u" * 255, "a" * 64, "a" * 64]


def test_history_of_a_missing_node_is_refused(db: Database) -> None:
    with pytest.raises(NodeNotFound):
        db.write(lambda conn: node_records.add_history(conn, NOBODY, "inspection", "x", "INFO", None))


def test_history_is_pruned_to_the_newest(conn: sa.Connection, node: Any) -> None:
    for index in range(5):
        node_records.add_history(conn, node.id, "inspection", str(index), "INFO", None)
    node_records.prune(conn, node.id, "inspection", 2)
    node_records.prune(conn, node.id, "inspection", 2)
    assert [row.event for row in node_records.list_history(conn, node.id, Page(limit=10))] == ["3", "4"]
    node_records.prune(conn, node.id, "provisioning", 0)
    node_records.prune(conn, node.id)
    assert len(node_records.list_history(conn, node.id, Page(limit=10))) == 2
    node_records.prune(conn, node.id, "inspection", 0)
    assert node_records.list_history(conn, node.id, Page(limit=10)) == []


@pytest.mark.parametrize(("keep", "left"), [
    ({}, (4, 4)), ({"history": 3}, (3, 4)), ({"inspections": 1}, (4, 1)), ({"history": 2, "inspections": 3}, (2, 3)),
    ({"history": 9, "inspections": 9}, (4, 4))])
def test_history_and_inspections_are_pruned_together(conn: sa.Connection, node: Any, keep: dict[str, int],
                                                     left: tuple[int, int]) -> None:
    other = nodes.create(conn, {"driver": "d"})
    for each in (other, node):
        for index in range(4):
            node_records.add_history(conn, each.id, "inspection", str(index), "INFO", None)
            node_records.add_inspection(conn, each.id, {"kind": "ramdisk", "outcome": str(index), "details": {}})
    node_records.prune(conn, node.id, "inspection", **keep)
    found = ([row.event for row in node_records.list_history(conn, node.id, Page(limit=10))],
             [row.outcome for row in node_records.list_inspections(conn, node.id, Page(limit=10))])
    assert found == tuple(["0", "1", "2", "3"][-most:] for most in left)
    assert len(node_records.list_inspections(conn, other.id, Page(limit=10))) == 4
