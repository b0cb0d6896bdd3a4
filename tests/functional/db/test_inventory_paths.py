"""The catalogue of the paths that inventories have."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules import samples
from ironic_rules.db import inventory
from ironic_rules.db.session import Database
from ironic_rules.db.tables import inventory_paths as table
from ironic_rules.db.tables import node_inventory
from ironic_rules.models.inventories import MAX_KEYS, MAX_PATHS
from tests.functional.db.concurrency import at_once

MakeNode = Callable[..., Any]


@pytest.fixture(autouse=True)
def new_process(db: Database) -> Iterator[None]:
    """Nothing was read before."""
    inventory._catalogues.clear()
    yield
    inventory._catalogues.clear()


def receive(db: Database, node: Any, data: dict[str, Any]) -> None:
    db.write(lambda conn: inventory.receive(conn, node.id, data, {}, None))


def stored(db: Database) -> list[str]:
    with db.reader() as conn:
        return sorted(conn.scalars(sa.select(table.c.path)))


@contextlib.contextmanager
def statements(db: Database) -> Iterator[list[str]]:
    """Collect the statements about the catalogue."""
    seen: list[str] = []

    def note(*args: Any) -> None:
        if "inventory_paths" in f"{args[2]} {args[3]}":
            seen.append(args[2].split()[0])

    sa.event.listen(db.engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(db.engine, "before_cursor_execute", note)


def test_usual_inventories_cost_no_query(db: Database, make_node: MakeNode) -> None:
    node = make_node()
    with statements(db) as seen:
        for name in samples.inventory_names():
            receive(db, node, samples.inventory(name)["inventory"])
    assert seen == []
    assert stored(db) == []


def test_unknown_paths_are_written_once_and_then_cost_no_query(db: Database, make_node: MakeNode) -> None:
    node, data = make_node(), {"rack": {"unit": 7}, "by_mac": {"52:54:00:00:00:01": {"speed": 1}}, "cpu": {"count": 1}}
    receive(db, node, data)
    assert stored(db) == ["/by_mac/*/speed", "/rack/unit"]
    with statements(db) as seen:
        receive(db, node, data)
        assert seen == ["SELECT"]
        receive(db, node, data)
        assert seen == ["SELECT"]
    with db.reader() as conn:
        known = inventory.known_paths(conn)
    assert [known.unknown_step(path) for path in (("rack", "unit"), ("cpu", "flags", "0"), ("rack", "units"))] == [
        None, None, 1]


def test_what_another_process_has_written_is_only_read(db: Database, make_node: MakeNode) -> None:
    node = make_node()
    receive(db, node, {"rack": {"unit": 7}})
    inventory._catalogues.clear()
    with statements(db) as seen:
        receive(db, node, {"rack": {"unit": 8}})
    assert seen == ["SELECT"]


def test_a_transaction_that_is_rolled_back_teaches_nothing(db: Database, make_node: MakeNode) -> None:
    node = make_node()
    with pytest.raises(ZeroDivisionError), db.writer() as conn:
        inventory.receive(conn, node.id, {"rack": 1}, {}, None)
        raise ZeroDivisionError
    assert stored(db) == []
    receive(db, node, {"rack": 1})
    assert stored(db) == ["/rack"]


def test_the_catalogue_is_bounded(db: Database, make_node: MakeNode) -> None:
    node = make_node()
    with db.writer() as conn:
        conn.execute(sa.insert(table), [
            {"path": f"/a_{number % 50}/b_{number // 50}"} for number in range(MAX_PATHS - 2)])
    receive(db, node, {"a_1": {"x": 1}})
    assert "/a_1/x" in stored(db)
    receive(db, node, {"a_2": {"x": 1}})
    assert "/a_2/x" not in stored(db)
    assert "/**" in stored(db)
    with db.reader() as conn:
        assert inventory.known_paths(conn).is_full
    with statements(db) as seen:
        for number in range(MAX_KEYS):
            receive(db, node, {f"new_{number}": {"x": 1}})
    assert seen == ["SELECT"]
    assert len(stored(db)) == MAX_PATHS


@pytest.mark.parametrize("held", [False, True], ids=["alone", "after other writes"])
def test_inspections_that_find_the_same_paths_at_once_all_succeed(
        db: Database, make_node: MakeNode, held: bool) -> None:
    nodes = [make_node() for _ in range(8)]
    paths = [f"vendor_{letter}" for letter in "abcdefghij"]

    def store(node: Any, names: list[str]) -> None:
        def work(conn: sa.Connection) -> None:
            inventory.receive(conn, node.id, {name: {"x": 1, "y": [2]} for name in names}, {}, None)
            if held:
                inventory.supersede(conn, node.id)

        # In one attempt: a deadlock would be an error here.
        with db.writer() as conn:
            work(conn)

    outcomes = at_once([lambda node=node, turn=turn: store(node, paths[turn:] + paths[:turn])  # type: ignore[misc]
                        for turn, node in enumerate(nodes)])
    assert outcomes == [None] * len(nodes)
    assert stored(db) == sorted(f"/{name}/{rest}" for name in paths for rest in ("x", "y/*"))
    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(node_inventory)) == len(nodes)
