"""A walk along the markers sees every row exactly once, in the same order on every database."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import inspection_rules, node_records, nodes, portgroups, ports
from ironic_rules.db.paging import Page, sort_keys
from ironic_rules.db.tables import nodes as nodes_table
from ironic_rules.db.tables import ports as ports_table
from ironic_rules.models.rules import RULE

TIMES = [datetime.datetime(2026, 1, 1, 0, 0, 0, micro, tzinfo=datetime.UTC) for micro in (5, 0, 7)]
TEXTS = ["b", "B", "a", "ä", "", "a_b", "aab", "a b", "𝄞", "ￜ"]


def walk(list_page: Callable[[Page], list[Any]], sort_key: str, sort_dir: str, limit: int = 3) -> list[Any]:
    rows: list[Any] = []
    while page := list_page(Page(limit, rows[-1].uuid if rows else None, sort_key, sort_dir)):
        assert len(page) <= limit
        rows += page
        assert len(rows) < 1000
    return rows


def expected(rows: list[Any], sort_key: str, sort_dir: str, unique: str = "id") -> list[str]:
    def place(row: Any) -> tuple[Any, ...]:
        value = getattr(row, sort_key)
        key = value.encode() if isinstance(value, str) else value
        return (False, None, getattr(row, unique)) if value is None else (True, key, getattr(row, unique))

    return [row.uuid for row in sorted(rows, key=place, reverse=sort_dir == "desc")]


@pytest.fixture
def many_nodes(conn: sa.Connection) -> list[Any]:
    """Nodes with ties, NULLs and texts that languages sort differently, in every column that may have them."""
    rows = []
    for index in range(20):
        text = None if index % 4 == 3 else TEXTS[index % len(TEXTS)]
        rows.append(nodes.create(conn, {
            "driver": TEXTS[index % 3], "name": f"{text}{index}" if text is not None else None,
            "resource_class": text, "owner": text, "description": text, "conductor_group": text or "",
            "power_state": ("power on", "power off", None)[index % 3], "maintenance": index % 2 == 0,
            "automated_clean": (True, False, None)[index % 3], "created_at": TIMES[index % 3],
            "updated_at": None if index % 5 == 0 else TIMES[index % 3], "revision": index % 4,
            "provision_state": ("enroll", "manageable")[index % 2], "last_error": text}))
    return rows


@pytest.mark.parametrize("sort_dir", ["asc", "desc"])
def test_nodes_are_walked_once_by_every_sort_key(conn: sa.Connection, many_nodes: list[Any], sort_dir: str) -> None:
    for key in sorted(sort_keys(nodes_table)):
        walked = walk(lambda page: nodes.list_nodes(conn, {}, page), key, sort_dir)
        assert [row.uuid for row in walked] == expected(many_nodes, key, sort_dir), key


def test_filters_and_columns_go_with_pages(conn: sa.Connection, many_nodes: list[Any]) -> None:
    walked = walk(lambda page: nodes.list_nodes(conn, {"maintenance": True}, page, ["uuid"]), "owner", "asc")
    wanted = [row for row in many_nodes if row.maintenance]
    assert [row.uuid for row in walked] == expected(wanted, "owner", "asc")


def test_rows_that_come_and_go_do_not_disturb_a_walk(conn: sa.Connection, many_nodes: list[Any]) -> None:
    order = expected(many_nodes, "id", "asc")
    first = nodes.list_nodes(conn, {}, Page(5))
    nodes.destroy(conn, first[0].id)
    nodes.create(conn, {"driver": "d", "uuid": "00000000-0000-4000-8000-000000000000"})
    rest = nodes.list_nodes(conn, {}, Page(100, marker=first[-1].uuid))
    assert [row.uuid for row in rest] == [*order[5:], "00000000-0000-4000-8000-000000000000"]


@pytest.mark.parametrize("sort_dir", ["asc", "desc"])
def test_ports_and_groups_are_walked_once_by_every_sort_key(conn: sa.Connection, sort_dir: str) -> None:
    node = nodes.create(conn, {"driver": "d"})
    groups = [portgroups.create(conn, {"node_id": node.id, "name": name}) for name in ("b", "a", None, None, "B")]
    rows = [ports.create(conn, {
        "node_id": node.id, "address": f"52:54:00:00:00:0{index}", "portgroup_id": (None, groups[0].id)[index % 2],
        "physical_network": (None, "b", "B")[index % 3], "pxe_enabled": index % 2 == 0}) for index in range(7)]
    for key in sorted(sort_keys(ports_table)):
        walked = walk(lambda page: ports.list_ports(conn, {"node_uuid": node.uuid}, page), key, sort_dir)
        assert [row.uuid for row in walked] == expected(rows, key, sort_dir), key
    for key in ("id", "name", "address"):
        walked = walk(lambda page: portgroups.list_portgroups(conn, {}, page), key, sort_dir)
        assert [row.uuid for row in walked] == expected(groups, key, sort_dir), key


@pytest.mark.parametrize("sort_dir", ["asc", "desc"])
def test_rules_are_walked_once_by_every_sort_key(conn: sa.Connection, sort_dir: str) -> None:
    rules = [inspection_rules.create(conn, {
        "priority": index % 3, "scope": (None, "b", "B")[index % 3], "phase": ("main", "early")[index % 2],
        "sensitive": index % 2 == 1, "description": TEXTS[index], "actions": []}) for index in range(8)]
    for key in sorted(RULE.sort_keys):
        walked = walk(lambda page: inspection_rules.list_rules(conn, {}, page), key, sort_dir)
        column = "position" if key == "id" else key
        assert [row.uuid for row in walked] == expected(rules, column, sort_dir, "position"), key


def test_history_is_walked_once(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d"})
    for index in range(5):
        node_records.add_history(conn, node.id, "test", f"event {index}", "INFO", None)
    walked = walk(lambda page: node_records.list_history(conn, node.id, page), "id", "asc", limit=2)
    assert [row.event for row in walked] == [f"event {index}" for index in range(5)]
