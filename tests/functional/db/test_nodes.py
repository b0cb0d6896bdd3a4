"""Node records."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.context import Mark
from ironic_rules.db import (
    accepted_requests,
    clock,
    discovery,
    inventory,
    node_queries,
    node_records,
    node_sets,
    nodes,
    portgroups,
    ports,
)
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.db.tables import metadata, pxe_filter_changes, revisions
from ironic_rules.exceptions import (
    DuplicateNodeName,
    Invalid,
    MarkerNotFound,
    NodeLocked,
    NodeNotFound,
    instance_associated,
    node_already_exists,
    node_changed,
)
from tests.functional.db.concurrency import at_once
from tests.walking import walking
from tests.wordings import refused, says

MakeNode = Callable[..., Any]
EVERYTHING = Page(limit=1000)


def names(rows: list[Any]) -> set[str]:
    return {row.name for row in rows}


def test_create_fills_in_what_is_not_given(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "fake-hardware"})
    assert uuidutils.is_uuid_like(node.uuid)
    assert (node.provision_state, node.conductor_group, node.revision) == ("enroll", "", 1)
    assert (node.properties, node.maintenance, node.name, node.updated_at) == ({}, False, None, None)
    assert abs(clock.now() - node.created_at) < datetime.timedelta(minutes=1)


def test_values_come_back_as_they_went_in(conn: sa.Connection) -> None:
    values = {"uuid": uuidutils.generate_uuid(), "name": "Knoten-ü-𝄞", "driver": "d", "automated_clean": False,
              "properties": {"a": [1, 2.5, None, {"ü": "𝄞"}]}, "last_error": "x" * 10000,
              "inspection_started_at": datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)}
    node = nodes.create(conn, values)
    assert {name: node._mapping[name] for name in values} == values


def test_get_finds_by_uuid_in_any_spelling_and_by_name(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d", "name": "n1", "uuid": "0E2AFE2D-8A0A-4D1E-9B3B-0D3D0F1D2C3B"})
    assert node.uuid == "0e2afe2d-8a0a-4d1e-9b3b-0d3d0f1d2c3b"
    assert nodes.get(conn, "0E2AFE2D-8A0A-4D1E-9B3B-0D3D0F1D2C3B").id == nodes.get(conn, "n1").id == node.id


def test_names_differ_by_case(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d", "name": "NAME"})
    other = nodes.create(conn, {"driver": "d", "name": "name"})
    assert nodes.get(conn, "name").id == other.id != node.id


@pytest.mark.parametrize("ident", ["nobody", "no\0body", "\ud800", "0e2afe2d-8a0a-4d1e-9b3b-0d3d0f1d2c3b"])
def test_get_of_a_missing_node_says_so(conn: sa.Connection, ident: str) -> None:
    with pytest.raises(NodeNotFound, match=ident):
        nodes.get(conn, ident)
    with pytest.raises(NodeNotFound):
        nodes.get_by_id(conn, 999_999_999)


@pytest.mark.parametrize(("values", "error"), [
    ({"uuid": "11111111-1111-4111-8111-111111111111"}, node_already_exists),
    ({"name": "taken"}, DuplicateNodeName),
    ({"instance_uuid": "22222222-2222-4222-8222-222222222222"}, instance_associated)])
def test_create_names_the_value_that_is_taken(db: Database, make_node: MakeNode, values: dict[str, str],
                                              error: Any) -> None:
    make_node(uuid="11111111-1111-4111-8111-111111111111", name="taken",
              instance_uuid="22222222-2222-4222-8222-222222222222")
    with refused(error, match=next(iter(values.values()))):
        make_node(**values)


@pytest.mark.parametrize(("values", "error"), [
    ({"name": "taken"}, DuplicateNodeName),
    ({"instance_uuid": "22222222-2222-4222-8222-222222222222"}, instance_associated)])
def test_update_names_the_value_that_is_taken(db: Database, make_node: MakeNode, values: dict[str, str],
                                              error: Any) -> None:
    make_node(name="taken", instance_uuid="22222222-2222-4222-8222-222222222222")
    node = make_node(name="other")
    with refused(error, match=next(iter(values.values()))):
        db.write(lambda conn: nodes.update(conn, node.id, values))


def test_instance_conflict_names_the_node_that_wanted_it(db: Database, make_node: MakeNode) -> None:
    instance = uuidutils.generate_uuid()
    make_node(instance_uuid=instance)
    node = make_node()
    with refused(instance_associated, match=node.uuid):
        db.write(lambda conn: nodes.update(conn, node.id, {"instance_uuid": instance}))


def test_two_creations_of_one_name_at_once_make_one_node(db: Database, make_node: MakeNode) -> None:
    results = at_once([lambda: make_node(name="same")] * 4)
    assert sorted(type(result).__name__ for result in results) == ["DuplicateNodeName"] * 3 + ["Row"]


def test_update_counts_and_stamps_the_change(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d", "extra": {"a": 1}})
    changed = nodes.update(conn, node.id, {"extra": {"b": 2}, "name": None})
    assert (changed.extra, changed.revision, changed.provision_updated_at) == ({"b": 2}, node.revision + 1, None)
    assert changed.updated_at >= changed.created_at


def test_update_of_the_state_stamps_it(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d"})
    changed = nodes.update(conn, node.id, {"provision_state": "manageable"})
    assert changed.provision_updated_at == changed.updated_at


def test_update_of_a_missing_node_says_so(conn: sa.Connection) -> None:
    with pytest.raises(NodeNotFound):
        nodes.update(conn, 999_999_999, {"name": "x"})


def test_update_leaves_a_locked_node_to_the_holder_of_the_lock(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d", "reservation": "host-1"})
    with pytest.raises(NodeLocked, match=f"{node.uuid} is locked by host host-1"):
        nodes.update(conn, node.id, {"name": "x"})
    assert nodes.update(conn, node.id, {"name": "y"}, unlocked=False).name == "y"


def test_update_with_an_old_revision_is_refused(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d"})
    nodes.update(conn, node.id, {"name": "first"}, revision=node.revision)
    with refused(node_changed, match=node.uuid):
        nodes.update(conn, node.id, {"name": "second"}, revision=node.revision)
    assert nodes.get_by_id(conn, node.id).name == "first"


def test_of_two_updates_with_one_revision_one_wins(db: Database, make_node: MakeNode) -> None:
    node = make_node()

    def update(name: str) -> Callable[[], Any]:
        return lambda: db.write(lambda conn: nodes.update(conn, node.id, {"name": name}, revision=node.revision))

    results = at_once([update("a"), update("b"), update("c")])
    assert [says(result, node_changed) for result in results].count(True) == 2


def test_updates_without_a_revision_all_count(db: Database, make_node: MakeNode) -> None:
    node = make_node()
    at_once([lambda: db.write(lambda conn: nodes.update(conn, node.id, {"extra": {}}))] * 8)
    with db.reader() as conn:
        assert nodes.get_by_id(conn, node.id).revision == node.revision + 8


def test_a_lock_that_comes_after_the_first_look_is_noticed(db: Database, make_node: MakeNode) -> None:
    if db.dialect == "sqlite":
        pytest.skip("one writer at a time")
    node = make_node()
    with db.writer() as conn:
        nodes.get_by_id(conn, node.id)
        db.write(lambda other: nodes.reserve(other, nodes.Lock(node.id, "host-1", "run:1"), "test"))
        with pytest.raises(NodeLocked, match="host-1"):
            nodes.update(conn, node.id, {"name": "x"})


def has_rows(conn: sa.Connection, table: sa.Table) -> bool:
    return conn.scalar(sa.select(sa.literal(1)).select_from(table).limit(1)) is not None


def test_destroy_takes_along_all_that_hangs_on_the_node(conn: sa.Connection) -> None:
    node, other = (nodes.create(conn, {"driver": "d"}) for _ in range(2))
    for index, owner in enumerate((node, other)):
        group = portgroups.create(conn, {"node_id": owner.id})
        ports.create(conn, {"node_id": owner.id, "address": f"52:54:00:00:00:0{index}", "portgroup_id": group.id})
        node_sets.set_traits(conn, owner.id, ["CUSTOM_A"])
        node_sets.set_bmc_addresses(conn, owner.id, [f"10.0.0.{index}"])
        node_sets.set_machine_ids(conn, owner.id, {f"serial:{index}"})
        inventory.receive(conn, owner.id, {}, {}, None)
        node_records.add_history(conn, owner.id, "test", "event", "INFO", "host")
        discovery.begin(conn, owner.id, [f"52:54:00:00:01:0{index}"])
        accepted_requests.note(conn, owner.id, Mark(f"digest-{index}", "", None))
    filled = {table for table in metadata.sorted_tables if "node_id" in table.c and has_rows(conn, table)}
    assert len(filled) >= 11
    nodes.destroy(conn, node.id)
    for table in metadata.sorted_tables:
        # The list of changed ports also contains deleted nodes.
        if table in filled and table is not pxe_filter_changes:
            assert set(conn.scalars(sa.select(table.c.node_id))) == {other.id}, table.name
    with pytest.raises(NodeNotFound):
        nodes.destroy(conn, node.id)
    assert set(conn.scalars(sa.select(revisions.c.name))) == {
        "auto_discovery", "facts", "inspection_rules", "inventory_paths", "legacy_rules"}


def test_destroy_frees_ports_of_other_nodes_in_its_groups(conn: sa.Connection) -> None:
    node, other = (nodes.create(conn, {"driver": "d"}) for _ in range(2))
    group = portgroups.create(conn, {"node_id": node.id})
    port = ports.create(conn, {"node_id": other.id, "address": "52:54:00:00:00:01", "portgroup_id": group.id})
    nodes.destroy(conn, node.id)
    assert ports.get(conn, port.uuid).portgroup_id is None


@pytest.fixture
def four(conn: sa.Connection) -> sa.Connection:
    """Four nodes, ``a`` to ``d``, in the transaction of the test."""
    parent = "11111111-1111-4111-8111-111111111111"
    fake = {"driver": "fake-hardware"}
    nodes.create(conn, {**fake, "name": "a", "uuid": parent, "resource_class": "gold", "owner": "p1", "shard": "s1",
                        "description": "100% sure éCLAIR", "inspection_scope": "rack1"})
    b = nodes.create(conn, {**fake, "name": "b", "provision_state": "manageable", "maintenance": True, "shard": "s2",
                            "conductor_group": "east", "lessee": "p1", "parent_node": parent, "description": "1000"})
    c = nodes.create(conn, {**fake, "name": "c", "provision_state": "active", "fault": "power failure",
                            "instance_uuid": "22222222-2222-4222-8222-222222222222", "auto_discovered": True})
    node_sets.set_traits(conn, b.id, ["CUSTOM_A", "CUSTOM_B"])
    node_sets.set_traits(conn, c.id, ["CUSTOM_A"])
    nodes.create(conn, {"driver": "redfish", "name": "d", "retired": True, "reservation": "host-1"})
    return conn


@walking("filters, expected", [
    ({}, {"a", "b", "c", "d"}),
    ({"provision_state": "manageable"}, {"b"}),
    ({"provision_state": ["manageable", "active"]}, {"b", "c"}),
    ({"maintenance": True}, {"b"}),
    ({"maintenance": False}, {"a", "c", "d"}),
    ({"associated": True}, {"c"}),
    ({"associated": False}, {"a", "b", "d"}),
    ({"instance_uuid": "22222222-2222-4222-8222-222222222222"}, {"c"}),
    ({"driver": "redfish"}, {"d"}),
    ({"resource_class": "gold"}, {"a"}),
    ({"conductor_group": "east"}, {"b"}),
    ({"conductor_group": ""}, {"a", "c", "d"}),
    ({"owner": "p1"}, {"a"}),
    ({"lessee": "p1"}, {"b"}),
    ({"project": "p1"}, {"a", "b"}),
    ({"fault": "power failure"}, {"c"}),
    ({"fault": None}, {"a", "b", "d"}),
    ({"shard": ["s1", "s2"]}, {"a", "b"}),
    ({"shard": []}, set()),
    ({"sharded": True}, {"a", "b"}),
    ({"sharded": False}, {"c", "d"}),
    ({"retired": True}, {"d"}),
    ({"conductor": ("host-1", {})}, {"d"}),
    ({"reserved": True}, {"d"}),
    ({"reserved": False}, {"a", "b", "c"}),
    ({"description_contains": "100%"}, {"a"}),
    ({"description_contains": "SURE Éclair"}, {"a"}),
    ({"description_contains": "_"}, set()),
    ({"parent_node": "11111111-1111-4111-8111-111111111111"}, {"b"}),
    ({"include_children": False}, {"a", "c", "d"}),
    ({"include_children": True}, {"a", "b", "c", "d"}),
    ({"auto_discovered": True}, {"c"}),
    ({"inspection_scope": "rack1"}, {"a"}),
    ({"trait": "CUSTOM_A"}, {"b", "c"}),
    ({"trait": "CUSTOM_A", "driver": "redfish"}, set()),
    ({"id_in": [999_999_999]}, set()),
    ({"maintenance": False, "driver": "fake-hardware", "owner": "p1"}, {"a"})])
def test_list_filters(four: sa.Connection, filters: dict[str, Any], expected: set[str]) -> None:
    assert names(nodes.list_nodes(four, filters, EVERYTHING)) == expected


def test_an_unknown_filter_is_a_fault_of_the_caller(conn: sa.Connection) -> None:
    with pytest.raises(ValueError, match="no such filter: nmae"):
        nodes.list_nodes(conn, {"nmae": "x"}, EVERYTHING)


def test_list_returns_the_columns_asked_for(conn: sa.Connection) -> None:
    nodes.create(conn, {"driver": "d", "extra": {"a": 1}})
    row, = nodes.list_nodes(conn, {}, EVERYTHING, ["name", "extra"])
    assert dict(row._mapping) == {"name": None, "extra": {"a": 1}}
    raw, = nodes.list_nodes(conn, {}, EVERYTHING, ["extra", "driver"], raw_json=True)
    assert dict(raw._mapping) == {"extra": '{"a":1}', "driver": "d"}
    with pytest.raises(ValueError, match="no column colour"):
        nodes.list_nodes(conn, {}, EVERYTHING, ["colour"])


def test_raw_lists_have_every_column(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d"})
    raw, = nodes.list_nodes(conn, {}, EVERYTHING, raw_json=True)
    assert raw._mapping.keys() == node._mapping.keys()
    assert (raw.properties, raw.created_at) == ("{}", node.created_at)


def test_list_is_one_query(db: Database, make_node: MakeNode) -> None:
    make_node()
    statements: list[str] = []
    with db.reader() as conn:
        sa.event.listen(conn, "before_cursor_execute", lambda *args: statements.append(args[2]))
        nodes.list_nodes(conn, {"maintenance": False, "project": "p"}, Page(limit=5, sort_key="name", sort_dir="desc"))
    assert len([text for text in statements if "SELECT" in text]) == 1


@pytest.mark.parametrize("marker", ["0e2afe2d-8a0a-4d1e-9b3b-0d3d0f1d2c3b", "nobody"])
def test_list_refuses_a_marker_that_is_no_node(conn: sa.Connection, marker: str) -> None:
    with pytest.raises(MarkerNotFound):
        nodes.list_nodes(conn, {}, Page(limit=1, marker=marker))


@pytest.mark.parametrize("page", [
    Page(limit=1, sort_key="properties"), Page(limit=1, sort_key="agent_token_hash"), Page(limit=1, sort_key="x"),
    Page(limit=1, sort_dir="up")])
def test_list_refuses_a_page_that_does_not_exist(conn: sa.Connection, page: Page) -> None:
    with pytest.raises(Invalid):
        nodes.list_nodes(conn, {}, page)


def test_waiting_nodes_come_longest_first(conn: sa.Connection) -> None:
    now = clock.now()
    for minutes, state in ((1, "inspect wait"), (30, "inspect wait"), (20, "inspect wait"), (30, "clean wait")):
        nodes.create(conn, {"driver": "d", "name": f"{state}-{minutes}", "provision_state": state,
                            "provision_updated_at": now - datetime.timedelta(minutes=minutes)})
    assert names_of_overdue(conn, now - datetime.timedelta(minutes=10)) == ["inspect wait-30", "inspect wait-20"]


def names_of_overdue(conn: sa.Connection, before: datetime.datetime) -> list[str | None]:
    found = nodes.overdue(conn, "", "inspect wait", before, 100)
    return [nodes.get_by_id(conn, row.id).name for row in found]


def test_overdue_nodes_are_those_of_the_group_that_can_be_locked(conn: sa.Connection) -> None:
    now = clock.now()
    for name, values in (("free", {}), ("locked", {"reservation": "host-1"}), ("away", {"conductor_group": "east"}),
                         ("kept", {"maintenance": True}), ("new", {"provision_updated_at": now})):
        nodes.create(conn, {"driver": "d", "name": name, "provision_state": "inspect wait",
                            "created_at": now - datetime.timedelta(hours=1), **values})
    assert names_of_overdue(conn, now - datetime.timedelta(minutes=10)) == ["free"]


def test_overdue_nodes_come_in_pages(conn: sa.Connection) -> None:
    now = clock.now()
    ids = [nodes.create(conn, {"driver": "d", "provision_state": "inspect wait", "provision_updated_at": since}).id
           for since in (now - datetime.timedelta(hours=1 + index // 3) for index in range(10))]
    expected = sorted(ids, key=lambda node_id: (-(ids.index(node_id) // 3), node_id))
    found: list[nodes.Overdue] = []
    while page := nodes.overdue(conn, "", "inspect wait", now, 4, found[-1] if found else None):
        assert len(page) <= 4
        found += page
    assert [row.id for row in found] == expected


def test_the_first_caller_gets_the_agent_token(db: Database, make_node: MakeNode) -> None:
    node = make_node()

    def claim(token: str) -> Callable[[], bool]:
        return lambda: db.write(lambda conn: nodes.claim_agent_token(conn, node.id, token))

    results = at_once([claim("a"), claim("b"), claim("c")])
    assert sorted(map(str, results)) == ["False", "False", "True"]
    with db.reader() as conn:
        assert nodes.get_by_id(conn, node.id).agent_token_hash == "abc"[results.index(True)]


def test_the_fleet_is_counted_and_the_longest_waits_are_found(db: Database, make_node: Callable[..., Any]) -> None:
    now = clock.now().replace(microsecond=0)

    def ago(seconds: int) -> datetime.datetime:
        return now - datetime.timedelta(seconds=seconds)

    with db.reader() as conn:
        empty = node_queries.fleet_counts(conn, now)
    for fields in ({"provision_state": "available"}, {"provision_state": "available", "conductor_group": "rack-7"},
                   {"provision_state": "inspect wait", "provision_updated_at": ago(50), "maintenance": True},
                   {"provision_state": "inspect wait", "provision_updated_at": ago(90), "maintenance": True,
                    "fault": "power failure", "reservation": "host", "reserved_at": ago(30)},
                   {"provision_state": "clean wait", "provision_updated_at": ago(-5), "reservation": "host",
                    "reserved_at": ago(70)}):
        make_node(**fields)

    with db.reader() as conn:
        found = node_queries.fleet_counts(conn, now)

    assert (empty.states, empty.maintenance, empty.lock_s, set(empty.waiting_s.values())) == ({}, 0, 0, {0})
    assert found.states == {"available": 2, "inspect wait": 2, "clean wait": 1}
    assert (found.maintenance, found.faults, found.groups) == (2, {"power failure": 1}, {"": 4, "rack-7": 1})
    assert {state: wait for state, wait in found.waiting_s.items() if wait} == {"inspect wait": 90}
    assert found.lock_s == 70


def test_nodes_that_are_alike_in_what_decides_are_one_group(conn: sa.Connection) -> None:
    def make(name: str, **values: Any) -> Any:
        return nodes.create(conn, {"driver": "fake-hardware", "name": name, **values})

    first = make("a", owner="x")
    make("b", owner="y", properties={"a": 1})
    parent, used = make("parent"), make("used", instance_uuid=uuidutils.generate_uuid(), maintenance=True)
    make("child", parent_node=parent.uuid, target_provision_state="available")
    inventory.receive(conn, used.id, {}, {}, None)
    found = node_queries.decisive({})
    groups = node_queries.alike(conn, found)
    members = {tuple(sorted(conn.scalars(sa.select(found.c.name).where(group.condition)))): group for group in groups}
    assert {of: (group.number, group.has_data) for of, group in members.items()} == {
        ("a", "b"): (2, False), ("parent",): (1, False), ("used",): (1, True), ("child",): (1, False)}
    assert groups[0] is members["a", "b"]
    assert groups[0].example == first.id
