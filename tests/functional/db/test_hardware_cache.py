"""BIOS settings and firmware components on each database."""

from __future__ import annotations

import dataclasses

from ironic_rules.db import hardware_cache, nodes
from ironic_rules.models.nodes import BIOSSetting, FirmwareComponent


def test_settings_and_components_are_replaced_and_go_with_their_node(db):
    node = db.write(lambda conn: nodes.create(conn, {"driver": "fake-hardware"})).id
    full = BIOSSetting("Boot", "Uefi", "Enumeration", ("Bios", "Uefi"), 0, 2**40, 1, False, True, True, -1)
    many = [BIOSSetting(f"Setting{number:03}", str(number)) for number in range(600)]

    db.write(lambda conn: hardware_cache.save_settings(conn, node, [full, BIOSSetting("boot", "é "), *many]))
    db.write(lambda conn: hardware_cache.save_components(conn, node, [FirmwareComponent("bios", "1.0")]))

    with db.reader() as conn:
        shown = {row.name: row for row in hardware_cache.list_settings(conn, node)}
        assert len(shown) == 602
        assert {field.name: getattr(shown["Boot"], field.name) for field in dataclasses.fields(full)} == {
            **dataclasses.asdict(full), "allowable_values": ["Bios", "Uefi"]}
        assert hardware_cache.get_setting(conn, node, "boot").value == "é "
    db.write(lambda conn: hardware_cache.save_settings(conn, node, [full, BIOSSetting("boot", None)]))
    with db.reader() as conn:
        first, second = hardware_cache.list_settings(conn, node)
    assert {(row.name, row.value, row.updated_at is None) for row in (first, second)} == {
        ("Boot", "Uefi", True), ("boot", None, False)}
    db.write(lambda conn: nodes.destroy(conn, node))
    with db.reader() as conn:
        assert not hardware_cache.list_settings(conn, node)
        assert not hardware_cache.list_components(conn, node)
