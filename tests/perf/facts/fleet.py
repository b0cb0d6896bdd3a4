"""A fleet of many nodes with forty facts each, which the database itself writes: INSERT .. SELECT over numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock
from ironic_rules.db import tables as t

Number = sa.ColumnElement[Any]
Make = Callable[[Number], Any]


def _text(number: Number) -> sa.ColumnElement[str]:
    return sa.cast(number, sa.String(20))


def _mixed(number: Number, prime: int, most: int) -> Number:
    """Return a number below ``most``; those of different primes are independent."""
    # The product is one of 32 bits for 100,000 nodes.
    return (number * (prime % 20011) % 99991) % most


def _one_of(prime: int, *values: Any) -> Make:
    def make(number: Number) -> Any:
        place = _mixed(number, prime, len(values))
        return sa.case(*((place == at, sa.literal(value)) for at, value in enumerate(values)))
    return make


def _numbered(prefix: str, prime: int, most: int) -> Make:
    return lambda number: sa.literal(prefix) + _text(_mixed(number, prime, most))


def _unique(prefix: str) -> Make:
    return lambda number: sa.literal(prefix) + _text(number + 1000000)


def _mac(octets: str) -> Make:
    def make(number: Number) -> Any:
        digits = _text(number + 10000000)
        return sa.literal(octets) + sum_texts(*(part for at in (3, 5, 7) for part in (
            sa.literal(":"), sa.func.substr(digits, at, 2))))
    return make


def sum_texts(*parts: Any) -> Any:
    """Return the texts joined."""
    first, *rest = parts
    for part in rest:
        first = first + part
    return first


def _address(number: Number) -> Any:
    return sum_texts(sa.literal("10."), _text(number // 65536), sa.literal("."), _text(number // 256 % 256),
                     sa.literal("."), _text(number % 256))


#: Facts in fact_texts: name, type, and the values of one node; a list has several.
TEXTS: list[tuple[str, str, list[Make]]] = [
    ("vendor", "text", [_one_of(7919, "Dell", "Dell", "Dell", "HPE", "HPE", "Lenovo", "Supermicro")]),
    ("product", "text", [_numbered("PowerEdge R", 104729, 40)]),
    ("product_family", "text", [_numbered("Family ", 1299709, 8)]),
    ("serial", "text", [_unique("SN")]),
    ("system_uuid", "text", [_unique("4c4c4544-0042-3510-8054-b4c04f")]),
    ("asset_tag", "text", [_unique("asset-")]),
    ("bios_vendor", "text", [_one_of(15485863, "Dell Inc.", "HPE", "AMI")]),
    ("bios_version", "text", [_numbered("2.", 32452843, 60)]),
    ("bios_date", "text", [_numbered("2025-01-", 49979687, 200)]),
    ("bmc_address", "address", [_address]),
    ("bmc_mac", "mac", [_mac("aa:bb:cc")]),
    ("cpu_model", "text", [_numbered("Intel(R) Xeon(R) Gold 63", 67867967, 25)]),
    ("cpu_arch", "text", [_one_of(86028121, *["x86_64"] * 9, "aarch64")]),
    ("cpu_flags", "text", [lambda _, flag=flag: sa.literal(flag) for flag in ("aes", "avx2", "avx512f", "vmx")]),
    ("nic_vendors", "text", [_one_of(122949823, "0x8086", "0x15b3", "0x14e4")]),
    ("macs", "mac", [_mac("52:54:00"), _mac("52:54:01")]),
    ("boot_mode", "text", [_one_of(141650939, "uefi", "uefi", "bios")]),
    ("pci", "text", [_numbered("8086:15", 160481183, 50), _numbered("10de:20", 179424673, 50)]),
    ("switch", "text", [_numbered("leaf-", 198491317, 500)]),
    ("switch_port", "text", [_numbered("Ethernet1/", 217645177, 48)]),
    ("firmware", "text", [_numbered("fw-", 236887691, 30)]),
    ("rack", "text", [lambda number: sa.literal("rack-") + _text(number // 40)]),
]
#: As TEXTS, in fact_numbers.
NUMBERS: list[tuple[str, str, list[Make]]] = [
    ("cpu_count", "integer", [_one_of(256203161, 32, 64, 96, 128)]),
    ("cpu_sockets", "integer", [_one_of(275604541, 1, 2)]),
    ("memory_gib", "integer", [_one_of(295075147, 64, 128, 128, 256, 256, 256, 384, 512, 768, 1024)]),
    ("disk_count", "integer", [lambda number: _mixed(number, 314606869, 24) + 1]),
    ("disk_gb", "number", [lambda number: _mixed(number, 334214459, 400) * 0.5]),
    ("largest_disk_gb", "number", [_one_of(353868013, 480.1, 960.2, 1920.4, 3840.8)]),
    ("nvme_count", "integer", [lambda number: _mixed(number, 373587883, 9)]),
    ("ssd_count", "integer", [lambda number: _mixed(number, 393342739, 9)]),
    ("hdd_count", "integer", [lambda number: _mixed(number, 413158511, 13)]),
    ("nic_count", "integer", [_one_of(433024223, 2, 4, 6)]),
    ("nic_speed", "integer", [_one_of(452930459, 1000, 10000, 25000, 25000, 100000)]),
    ("secure_boot", "boolean", [_one_of(472882027, 0, 1)]),
    ("virtual", "boolean", [lambda number: sa.case((number % 1000 == 0, sa.literal(1)), else_=sa.literal(0))]),
    ("gpu_count", "integer", [lambda number: sa.case((number % 20 == 0, sa.literal(8)), else_=sa.literal(0))]),
    ("psu_count", "integer", [_one_of(492876847, 1, 2)]),
    ("power_w", "integer", [lambda number: _mixed(number, 512927357, 1500)]),
    ("age_days", "integer", [lambda number: _mixed(number, 533000389, 2500)]),
    ("temperature", "number", [lambda number: _mixed(number, 553105243, 600) * 0.1]),
]


#: The indexes of values take less time if they are created last, and references if they are not checked.
_INDEXES = [index for table in (t.fact_texts, t.fact_numbers) for index in table.indexes]
_UNCHECKED = {"mysql": "SET SESSION foreign_key_checks = 0, max_recursive_iterations = 100000000",
              "postgresql": "SET LOCAL session_replication_role = replica"}


def fill(engine: sa.Engine, count: int) -> None:
    """Write nodes, their ports, traits and facts, and let the server gather statistics."""
    unchecked = _UNCHECKED.get(engine.dialect.name, "SELECT 1")
    with engine.begin() as conn:
        conn.exec_driver_sql(unchecked)
        numbers = sa.select(sa.literal(1).label("i")).cte("numbers", recursive=True)
        numbers = numbers.union_all(sa.select(numbers.c.i + 1).where(numbers.c.i < count))
        i = numbers.c.i
        now = sa.literal(clock.now(), t.UTCDateTime)
        _insert(conn, t.nodes, {
            "id": i, "uuid": sa.literal("00000000-0000-4000-8000-0000") + _text(i + 10000000),
            "name": sa.literal("node-") + _text(i * 7919 % 99991 + 100000) + sa.literal("-") + _text(i),
            # All numbers in it have the same length.
            "natural_name": sa.literal("node-") + _text(i * 7919 % 99991 + 100000) + sa.literal("-") + _text(i),
            "driver": sa.literal("fake-hardware"),
            "provision_state": _one_of(573259391, *["active"] * 6, "available", "manageable")(i),
            "created_at": now, "maintenance": i % 100 == 0, "conductor_group": sa.literal(""),
            "owner": sa.literal("project-") + _text(_mixed(i, 593441843, 50)),
            **{column.name: sa.literal("{}", sa.Text) for column in t.nodes.c
               if isinstance(column.type, t.Json) and not column.nullable},
            **{name: sa.literal(False) for name in (
                "console_enabled", "protected", "retired", "disable_power_off", "auto_discovered")},
            "revision": sa.literal(1)})
        _insert(conn, t.ports, {
            "id": i, "uuid": sa.literal("00000000-0000-4000-9000-0000") + _text(i + 10000000),
            "address": _mac("52:54:00")(i), "node_id": i, "created_at": now, "pxe_enabled": sa.literal(True),
            "is_smartnic": sa.literal(False),
            **{name: sa.literal("{}", sa.Text) for name in ("local_link_connection", "internal_info", "extra")}})
        _insert(conn, t.node_traits, {"node_id": i, "trait": _numbered("CUSTOM_TRAIT_", 613651349, 200)(i)})
        _insert(conn, t.node_bmc_addresses, {"node_id": i, "address": _address(i)})
        # MariaDB's references need them.
        indexes = [] if engine.dialect.name == "mysql" else _INDEXES
        for index in indexes:
            index.drop(conn)
    number = 0
    for table, made in ((t.fact_texts, TEXTS), (t.fact_numbers, NUMBERS)):
        for name, kind, values in made:
            number += 1
            with engine.begin() as conn:
                conn.exec_driver_sql(unchecked)
                conn.execute(sa.insert(t.facts), {
                    "id": number, "name": name, "revision": 1, "defined": 1,
                    "value": "{inventory[x]}", "origin": "operator", "type": kind, "is_list": len(values) > 1,
                    "conditions": [], "created_at": clock.now()})
                for position, value in enumerate(values):
                    _insert(conn, table, {"node_id": i, "fact_id": sa.literal(number), "position": sa.literal(position),
                                          "value": value(i)})
    with engine.begin() as conn:
        for index in indexes:
            index.create(conn)
    if engine.dialect.name == "sqlite":
        return  # no user lets it gather statistics
    what = {"postgresql": "VACUUM ANALYZE", "mysql": f"ANALYZE TABLE {', '.join(t.metadata.tables)}"}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql(what[engine.dialect.name])


def _insert(conn: sa.Connection, table: sa.Table, columns: dict[str, Any]) -> None:
    query = sa.select(*columns.values())
    conn.execute(sa.insert(table).from_select(list(columns), query, include_defaults=False))
