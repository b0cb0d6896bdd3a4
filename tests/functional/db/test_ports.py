"""Ports and port groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import nodes, portgroups, ports
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.exceptions import (
    Conflict,
    DuplicatePortName,
    MACAlreadyExists,
    NodeNotFound,
    duplicate_portgroup_name,
    port_already_exists,
    port_not_found,
    portgroup_already_exists,
    portgroup_mac_already_exists,
    portgroup_not_empty,
    portgroup_not_found,
)
from ironic_rules.models.task import PortChanges
from tests.wordings import refused

MakeNode = Callable[..., Any]
EVERYTHING = Page(limit=1000)
MAC, MAC2, MAC3 = "52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:00:00:03"
NOBODY = 999_999_999


@pytest.fixture
def node(make_node: MakeNode) -> Any:
    return make_node(shard="s1", owner="p1")


def test_a_port_is_found_by_uuid_and_by_address(db: Database, node: Any) -> None:
    with db.writer() as conn:
        port = ports.create(conn, {"node_id": node.id, "address": MAC, "extra": {"a": [1]}})
        assert ports.get(conn, port.uuid) == ports.get(conn, MAC) == port
    assert (port.node_uuid, port.portgroup_uuid, port.extra, port.pxe_enabled) == (node.uuid, None, {"a": [1]}, True)


@pytest.mark.parametrize("ident", [MAC3, "0e2afe2d-8a0a-4d1e-9b3b-0d3d0f1d2c3b", "x\0"])
def test_a_missing_port_is_said_to_be_missing(conn: sa.Connection, ident: str) -> None:
    with refused(port_not_found, match=ident):
        ports.get(conn, ident)
    with refused(port_not_found):
        ports.update(conn, NOBODY, {"extra": {}})
    with refused(port_not_found):
        ports.destroy(conn, NOBODY)


@pytest.mark.parametrize(("values", "error"), [
    ({"address": MAC}, MACAlreadyExists),
    ({"uuid": "11111111-1111-4111-8111-111111111111", "address": MAC2}, port_already_exists),
    ({"name": "taken", "address": MAC2}, Conflict)])
def test_create_names_the_value_that_is_taken(db: Database, node: Any, values: dict[str, Any],
                                              error: Any) -> None:
    db.write(lambda conn: ports.create(conn, {
        "node_id": node.id, "address": MAC, "name": "taken", "uuid": "11111111-1111-4111-8111-111111111111"}))
    with refused(error, match=next(iter(values.values()))):
        db.write(lambda conn: ports.create(conn, {"node_id": node.id, **values}))


@pytest.mark.parametrize(("values", "error"), [({"node_id": NOBODY}, NodeNotFound),
                                               ({"portgroup_id": NOBODY}, portgroup_not_found)])
def test_create_names_the_reference_that_leads_nowhere(db: Database, node: Any, values: dict[str, int],
                                                       error: Any) -> None:
    with refused(error, match=str(NOBODY)):
        db.write(lambda conn: ports.create(conn, {"node_id": node.id, "address": MAC, **values}))


def test_update_writes_and_stamps(db: Database, node: Any) -> None:
    with db.writer() as conn:
        group = portgroups.create(conn, {"node_id": node.id})
        port = ports.create(conn, {"node_id": node.id, "address": MAC})
        changed = ports.update(conn, port.id, {"portgroup_id": group.id, "pxe_enabled": False})
    assert (changed.portgroup_uuid, changed.pxe_enabled, changed.created_at) == (group.uuid, False, port.created_at)
    assert changed.updated_at >= port.created_at


def test_update_to_a_taken_address_is_refused(db: Database, node: Any) -> None:
    with db.writer() as conn:
        ports.create(conn, {"node_id": node.id, "address": MAC})
        port = ports.create(conn, {"node_id": node.id, "address": MAC2})
    with pytest.raises(MACAlreadyExists, match=MAC):
        db.write(lambda conn: ports.update(conn, port.id, {"address": MAC}))
    with refused(portgroup_not_found):
        db.write(lambda conn: ports.update(conn, port.id, {"portgroup_id": NOBODY}))


def test_destroy_deletes_the_port(conn: sa.Connection) -> None:
    node = nodes.create(conn, {"driver": "d"})
    port = ports.create(conn, {"node_id": node.id, "address": MAC})
    ports.destroy(conn, port.id)
    assert ports.for_node(conn, node.id) == []


def test_list_filters(db: Database, node: Any, make_node: MakeNode) -> None:
    other = make_node(shard="s2", lessee="p1")
    stranger = make_node()
    with db.writer() as conn:
        group = portgroups.create(conn, {"node_id": node.id})
        ports.create(conn, {"node_id": node.id, "address": MAC, "portgroup_id": group.id})
        ports.create(conn, {"node_id": other.id, "address": MAC2})
        ports.create(conn, {"node_id": stranger.id, "address": MAC3})

        def found(**filters: Any) -> list[str]:
            return [row.address for row in ports.list_ports(conn, filters, EVERYTHING)]

        assert found() == [MAC, MAC2, MAC3]
        assert found(node_id=other.id) == found(node_uuid=other.uuid) == found(address=MAC2) == [MAC2]
        assert found(portgroup_id=group.id) == found(shard=["s1"]) == [MAC]
        assert found(shard=["s1", "s2"]) == found(project="p1") == [MAC, MAC2]
        with pytest.raises(ValueError, match="no such filter"):
            found(colour="red")


def test_list_returns_the_columns_asked_for(db: Database, node: Any) -> None:
    with db.writer() as conn:
        ports.create(conn, {"node_id": node.id, "address": MAC, "extra": {"a": 1}})
        for names, raw, expected in (
                (["address"], False, {"address": MAC}),
                (["extra", "node_uuid"], False, {"extra": {"a": 1}, "node_uuid": node.uuid}),
                (["extra", "portgroup_uuid"], True, {"extra": '{"a":1}', "portgroup_uuid": None})):
            row, = ports.list_ports(conn, {"shard": ["s1"]}, EVERYTHING, names, raw_json=raw)
            assert dict(row._mapping) == expected


def test_addresses_lead_to_nodes(db: Database, node: Any, make_node: MakeNode) -> None:
    other = make_node()
    with db.writer() as conn:
        ports.create(conn, {"node_id": node.id, "address": MAC})
        ports.create(conn, {"node_id": other.id, "address": MAC2})
        assert ports.node_ids_by_addresses(conn, [MAC, MAC2, MAC3]) == {MAC: node.id, MAC2: other.id}
        assert ports.node_ids_by_addresses(conn, []) == {}


def test_changes_of_an_inspection_are_written_together(db: Database, node: Any, make_node: MakeNode) -> None:
    other = make_node()
    with db.writer() as conn:
        gone = ports.create(conn, {"node_id": node.id, "address": MAC})
        kept = ports.create(conn, {"node_id": node.id, "address": MAC2, "pxe_enabled": True})
        strange = ports.create(conn, {"node_id": other.id, "address": "52:54:00:00:00:09"})
        ports.apply_changes(conn, node.id, PortChanges(
            created=[{"address": MAC, "pxe_enabled": False, "id": None, "node_uuid": "ignored"},
                     {"address": MAC3, "extra": {"a": 1}, "uuid": "11111111-1111-4111-8111-111111111111"}],
            updated={kept.id: {"pxe_enabled": False, "extra": {"b": 2}}, strange.id: {"pxe_enabled": False}},
            deleted=[gone.id, strange.id]))
        found = {row.address: row for row in ports.for_node(conn, node.id)}
        assert found.keys() == {MAC, MAC2, MAC3}
        assert found[MAC].uuid != gone.uuid
        assert (found[MAC].pxe_enabled, found[MAC].extra, found[MAC].is_smartnic) == (False, {}, False)
        assert (found[MAC2].pxe_enabled, found[MAC2].extra) == (False, {"b": 2})
        assert (found[MAC3].pxe_enabled, found[MAC3].extra) == (True, {"a": 1})
        assert found[MAC3].uuid == "11111111-1111-4111-8111-111111111111"
        assert ports.get(conn, strange.uuid).pxe_enabled


def test_no_changes_write_nothing(db: Database, node: Any) -> None:
    with db.writer() as conn:
        port = ports.create(conn, {"node_id": node.id, "address": MAC})
        ports.apply_changes(conn, node.id, PortChanges(updated={port.id: {}}))
        assert ports.for_node(conn, node.id) == [port]


def test_changes_name_the_address_that_another_node_has(db: Database, node: Any, make_node: MakeNode) -> None:
    other = make_node()
    with db.writer() as conn:
        ports.create(conn, {"node_id": other.id, "address": MAC2})
        own = ports.create(conn, {"node_id": node.id, "address": MAC})
    with pytest.raises(MACAlreadyExists, match=MAC2):
        db.write(lambda conn: ports.apply_changes(conn, node.id, PortChanges(
            created=[{"address": MAC3}, {"address": MAC2}])))
    with pytest.raises(MACAlreadyExists, match=MAC2):
        db.write(lambda conn: ports.apply_changes(conn, node.id, PortChanges(updated={own.id: {"address": MAC2}})))
    with pytest.raises(NodeNotFound):
        db.write(lambda conn: ports.apply_changes(conn, NOBODY, PortChanges(created=[{"address": MAC3}])))
    with db.reader() as conn:
        assert [row.address for row in ports.for_node(conn, node.id)] == [MAC]


@pytest.mark.parametrize("new", [True, False])
def test_changes_name_the_name_that_another_port_has(db: Database, node: Any, make_node: MakeNode, new: bool) -> None:
    other = make_node()
    with db.writer() as conn:
        ports.create(conn, {"node_id": other.id, "address": MAC2, "name": "taken"})
        own = [ports.create(conn, {"node_id": node.id, "address": address}) for address in (MAC, MAC3)]
    created = [{"address": "52:54:00:00:00:0a"}, {"address": "52:54:00:00:00:0b", "name": "taken"}]
    updated = {own[0].id: {"name": "free"}, own[1].id: {"name": "taken"}}
    changes = PortChanges(created=created) if new else PortChanges(updated=updated)
    with pytest.raises(DuplicatePortName) as caught:
        db.write(lambda conn: ports.apply_changes(conn, node.id, changes))
    assert caught.value.facts == {"name": "taken"}


def test_many_ports_change_with_few_statements(db: Database, node: Any) -> None:
    statements: list[str] = []
    with db.writer() as conn:
        addresses = [f"52:54:00:00:01:{index:02x}" for index in range(50)]
        ports.apply_changes(conn, node.id, PortChanges(created=[{"address": address} for address in addresses]))
        rows = ports.for_node(conn, node.id)
        sa.event.listen(conn, "before_cursor_execute", lambda *args: statements.append(args[2]))
        updated: dict[int, dict[str, Any]] = {row.id: {"pxe_enabled": False} for row in rows[:20]}
        updated |= {row.id: {"extra": {}} for row in rows[20:40]}
        ports.apply_changes(conn, node.id, PortChanges(updated=updated, deleted=[row.id for row in rows[40:]]))
    # One for each kind of change, and one that notifies the PXE filter of the deleted ones.
    assert len(statements) == 4


def test_a_port_group_is_found_by_uuid_and_by_name(db: Database, node: Any) -> None:
    with db.writer() as conn:
        group = portgroups.create(conn, {"node_id": node.id, "name": "bond0", "address": MAC})
        assert portgroups.get(conn, group.uuid) == portgroups.get(conn, "bond0") == group
        assert portgroups.for_node(conn, node.id) == [group]
    assert (group.node_uuid, group.mode, group.standalone_ports_supported) == (node.uuid, "active-backup", True)


def test_a_missing_port_group_is_said_to_be_missing(conn: sa.Connection) -> None:
    with refused(portgroup_not_found, match="bond9"):
        portgroups.get(conn, "bond9")
    with refused(portgroup_not_found):
        portgroups.update(conn, NOBODY, {"extra": {}})
    with refused(portgroup_not_found):
        portgroups.destroy(conn, NOBODY)


@pytest.mark.parametrize(("values", "error"), [
    ({"address": MAC}, portgroup_mac_already_exists), ({"name": "taken"}, duplicate_portgroup_name),
    ({"uuid": "11111111-1111-4111-8111-111111111111"}, portgroup_already_exists), ({"node_id": NOBODY}, NodeNotFound)])
def test_creating_a_port_group_names_what_is_wrong(db: Database, node: Any, values: dict[str, Any],
                                                   error: Any) -> None:
    db.write(lambda conn: portgroups.create(conn, {
        "node_id": node.id, "address": MAC, "name": "taken", "uuid": "11111111-1111-4111-8111-111111111111"}))
    with refused(error, match=str(next(iter(values.values())))):
        db.write(lambda conn: portgroups.create(conn, {"node_id": node.id, **values}))


def test_updating_a_port_group(db: Database, node: Any) -> None:
    with db.writer() as conn:
        portgroups.create(conn, {"node_id": node.id, "name": "taken"})
        group = portgroups.create(conn, {"node_id": node.id, "name": "free"})
        assert portgroups.update(conn, group.id, {"mode": "802.3ad"}).mode == "802.3ad"
    with refused(duplicate_portgroup_name, match="taken"):
        db.write(lambda conn: portgroups.update(conn, group.id, {"name": "taken"}))


def test_a_port_group_with_ports_stays(db: Database, node: Any) -> None:
    with db.writer() as conn:
        group = portgroups.create(conn, {"node_id": node.id})
        port = ports.create(conn, {"node_id": node.id, "address": MAC, "portgroup_id": group.id})
    with refused(portgroup_not_empty, match=group.uuid):
        db.write(lambda conn: portgroups.destroy(conn, group.id))
    with db.writer() as conn:
        ports.destroy(conn, port.id)
        portgroups.destroy(conn, group.id)
        assert portgroups.for_node(conn, node.id) == []


def test_port_groups_are_filtered(db: Database, node: Any, make_node: MakeNode) -> None:
    other = make_node()
    with db.writer() as conn:
        group = portgroups.create(conn, {"node_id": node.id, "address": MAC})
        portgroups.create(conn, {"node_id": other.id})
        for filters in ({"node_id": node.id}, {"node_uuid": node.uuid}, {"address": MAC}, {"shard": ["s1"]},
                        {"project": "p1"}):
            assert [row.uuid for row in portgroups.list_portgroups(conn, filters, EVERYTHING)] == [group.uuid]
        row, = portgroups.list_portgroups(conn, {"address": MAC}, EVERYTHING, ["extra", "node_uuid"], raw_json=True)
        assert dict(row._mapping) == {"extra": "{}", "node_uuid": node.uuid}
