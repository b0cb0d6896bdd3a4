"""Definitions and values of facts, on each database."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import clock, facts, nodes
from ironic_rules.db.facts import Change, Found
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.db.tables import fact_changes, fact_numbers, fact_texts
from ironic_rules.db.tables import nodes as nodes_table
from ironic_rules.exceptions import Conflict, IronicRulesError, MarkerNotFound, NotFound
from ironic_rules.models.facts import BUILT_IN, Fact, FactValue
from tests.functional.db.concurrency import at_once

TEXT = FactValue("text", ("Dell", "HPE"), True)


def fact(name: str = "vendor", **values: Any) -> dict[str, Any]:
    return {"name": name, "value": "{inventory[hostname]}", **values}


def values(conn: sa.Connection, node_id: int, digest: str, given: Sequence[tuple[Fact, FactValue | None]],
           problem: str | None = None, revision: int | None = None) -> list[Change]:
    """Save values as an inspection does."""
    return facts.save(conn, node_id, {each.id: Found(value, problem, each.defined) for each, value in given},
                      digest, facts.revision(conn) if revision is None else revision,
                      {each.id: (each.type or "text", each.is_list) for each in facts.all_facts(conn)})


def test_definitions_are_written_with_revisions_and_found_by_name(conn: sa.Connection) -> None:
    first = facts.create(conn, fact(unit="GiB", conditions=[{"op": "is-true", "args": [1]}]))
    second = facts.create(conn, fact("a", loop="{inventory[disks]}", combine="count", bundle="site", watched=True))
    assert (second.id, second.loop, second.combine) == (first.id + 1, "{inventory[disks]}", "count")
    with pytest.raises(Conflict, match="already exists"), conn.begin_nested():
        facts.create(conn, fact())
    assert facts.update(conn, "a", {"watched": True}) == second
    told = facts.update(conn, "a", {"unit": "GB"})
    assert (told.revision > second.revision, told.defined) == (True, second.defined)
    facts.learn_types(conn, {second.id: ("integer", True)})
    again = facts.update(conn, "a", {"value": "{item[size]}"}, revision=told.revision)
    assert (again.type, again.is_list, again.defined) == (None, False, again.revision)
    with pytest.raises(IronicRulesError, match="Another request changed fact"):
        facts.destroy(conn, "a", revision=told.revision)
    assert [row.name for row in facts.list_facts(conn, {}, Page(1, sort_key="name"))] == ["a"]
    assert [row.name for row in facts.list_facts(conn, {}, Page(9, marker="a", sort_key="name"))] == ["vendor"]
    assert [row.name for row in facts.list_facts(conn, {"bundle": "site"}, Page(9))] == ["a"]
    with pytest.raises(MarkerNotFound):
        facts.list_facts(conn, {}, Page(9, marker="b"))
    facts.destroy(conn, "a")
    with pytest.raises(NotFound, match="Fact a could not be found"):
        facts.get(conn, "a")


def test_ids_are_given_again_only_when_all_are_used(conn: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_MAX_ID", 3)
    names = [facts.create(conn, fact(name)) for name in ("a", "b", "c")]
    facts.destroy(conn, "b")
    assert [each.id for each in names] == [1, 2, 3]
    assert facts.create(conn, fact("d")).id == 2


def test_only_what_differs_is_written_and_changes_are_those_of_inspections(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "fake-hardware"}).id
    vendor, memory = facts.create(conn, fact()), facts.create(conn, fact("memory"))
    facts.learn_types(conn, {vendor.id: ("text", True), memory.id: ("integer", False)})
    assert values(conn, node, "1", [(vendor, TEXT), (memory, FactValue("integer", (512,)))], problem="long") == []
    assert facts.of_node(conn, node) == ({"memory": 512, "vendor": ["Dell", "HPE"]},
                                         {"memory": "long", "vendor": "long"})
    changed = values(conn, node, "2", [(vendor, TEXT), (memory, FactValue("number", (511.5,)))])
    assert changed == [Change(memory.id, 512, 511.5)]
    assert facts.of_node(conn, node)[1] == {}
    assert values(conn, node, "3", [(vendor, None), (memory, FactValue("text", ("much",)))]) == [
        Change(vendor.id, ["Dell", "HPE"], None), Change(memory.id, 511.5, "much")]
    assert conn.execute(sa.select(fact_numbers)).all() == []
    # The digest says that nothing is new.
    assert values(conn, node, "3", [(vendor, TEXT)]) == []
    # A value by another definition is no change of the machine.
    defined = facts.update(conn, "memory", {"value": "{inventory[a]}"})
    assert values(conn, node, "4", [(defined, FactValue("integer", (3,)))]) == []
    assert values(conn, node, "5", [(defined, FactValue("integer", (2,)))]) == [Change(memory.id, 3, 2)]


def test_a_process_that_does_not_know_of_a_change_writes_nothing_for_it(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "fake-hardware"}).id
    gone, changed, kept = (facts.create(conn, fact(name)) for name in ("gone", "changed", "kept"))
    facts.destroy(conn, "gone")
    facts.update(conn, "changed", {"value": "{inventory[b]}"})
    values(conn, node, "1", [(each, TEXT) for each in (gone, changed, kept)], revision=kept.revision)
    assert set(facts.of_node(conn, node)[0]) == {"kept"}


def test_values_go_with_the_node_and_with_the_fact(conn: sa.Connection) -> None:
    first, second = (nodes.create(conn, {"driver": "fake-hardware"}).id for _ in range(2))
    vendor = facts.create(conn, fact())
    for node in (first, second):
        values(conn, node, "1", [(vendor, TEXT)], problem="x")
        facts.add_changes(conn, node, [Change(vendor.id, 1, [2])], None)
    nodes.destroy(conn, first)
    assert set(conn.scalars(sa.select(fact_texts.c.node_id))) == {second}
    facts.destroy(conn, "vendor")
    assert [conn.execute(sa.select(table)).all() for table in (fact_texts, fact_changes)] == [[], []]


def test_changes_are_listed_by_time_fact_and_node_and_deleted_when_old(
        conn: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    node, other = (nodes.create(conn, {"driver": "fake-hardware"}) for _ in range(2))
    vendor, memory = facts.create(conn, fact()), facts.create(conn, fact("memory", unit="GiB"))
    now = datetime.datetime.now(datetime.UTC)
    for days, (row, change) in enumerate((
            (node, Change(vendor.id, None, "Dell")), (other, Change(memory.id, 512, 480)),
            (node, Change(memory.id, [1], None)))):
        monkeypatch.setattr(clock, "now", lambda days=days: now + datetime.timedelta(days))
        facts.add_changes(conn, row.id, [change], node.uuid)
    found = facts.list_changes(conn, Page(9, sort_dir="desc"))
    assert [(row.fact, row.unit, row.before, row.after, row.node_uuid) for row in found] == [
        ("memory", "GiB", [1], None, node.uuid), ("memory", "GiB", 512, 480, other.uuid),
        ("vendor", None, None, "Dell", node.uuid)]
    assert facts.list_changes(conn, Page(9, marker=found[0].uuid, sort_dir="desc")) == found[1:]
    assert facts.list_changes(conn, Page(1, marker=found[2].uuid)) == [found[1]]
    assert facts.list_changes(conn, Page(9, sort_dir="desc"), since=now + datetime.timedelta(hours=1)) == found[:2]
    assert facts.list_changes(conn, Page(9), fact="memory", node_id=other.id) == [found[1]]
    hidden = [nodes_table.c.id != other.id]
    assert facts.list_changes(conn, Page(9, sort_dir="desc"), conditions=hidden) == [found[0], found[2]]
    with pytest.raises(MarkerNotFound):
        facts.list_changes(conn, Page(9, marker=found[1].uuid), conditions=hidden)
    monkeypatch.setattr(clock, "now", lambda: now + datetime.timedelta(days=11, hours=1))
    assert facts.prune_changes(conn, 10) == 2
    assert facts.prune_changes(conn, 10) == 0


def test_built_in_facts_follow_the_version_and_leave_those_of_operators(conn: sa.Connection) -> None:
    facts.create(conn, fact("mine"))
    first = [Fact(name="vendor", value="{inventory[a]}"), Fact(name="mine", value="{inventory[b]}"),
             Fact(name="gone", value="{inventory[c]}")]
    assert facts.install_built_in(conn, first) == ["vendor", "gone"]
    second = [Fact(name="vendor", value="{inventory[a]}", unit="GiB"), Fact(name="new", value="{inventory[c]}")]
    assert facts.install_built_in(conn, second) == ["new"]
    assert {each.name: (each.origin, each.unit) for each in facts.all_facts(conn)} == {
        "mine": ("operator", None), "new": (BUILT_IN, None), "vendor": (BUILT_IN, "GiB")}


def test_facts_are_created_and_values_written_at_the_same_time(
        db: Database, make_node: Callable[..., Any]) -> None:
    vendor = db.write(lambda conn: facts.create(conn, fact()))
    rows = [make_node() for _ in range(3)]

    def inspect(number: int) -> None:
        for turn in range(5):
            value = FactValue("text", (f"a{turn}",))
            db.write(functools.partial(values, node_id=rows[number].id, digest=f"{turn}", given=[(vendor, value)]))

    def define() -> None:
        for turn in range(5):
            db.write(functools.partial(facts.create, values=fact(f"f{turn}")))
            db.write(lambda conn: facts.learn_types(conn, {vendor.id: ("text", False)}))

    work: list[Callable[[], None]] = [*(functools.partial(inspect, number) for number in range(3)), define]
    assert at_once(work) == [None] * 4
    with db.reader() as conn:
        assert [facts.of_node(conn, row.id)[0] for row in rows] == [{"vendor": "a4"}] * 3
