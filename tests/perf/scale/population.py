"""A cloud of many nodes, written into a database without the service, which would take hours."""

from __future__ import annotations

import datetime
import itertools
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock
from ironic_rules.db import tables as t

PORTS_PER_NODE = 3
_BATCH = 5000
_STATES = ("active",) * 6 + ("available",) * 2 + ("manageable", "inspect wait")
_OWNERS, _CLASSES, _CHASSIS, _SHARDS, _TRAITS, _GROUPS = 50, 20, 10, 10, 200, 4


@dataclass(frozen=True)
class Size:
    """The size of the cloud; a tenth of the nodes waits for its ramdisk."""

    nodes: int
    templates: int


def fill(url: str, size: Size) -> None:
    """Write nodes, their ports, traits and addresses, and deploy templates, and let the server gather statistics."""
    engine = sa.create_engine(url)
    with engine.begin() as conn:
        conn.execute(sa.insert(t.chassis), [
            {"id": number + 1, "uuid": chassis(number), "created_at": clock.now()} for number in range(_CHASSIS)])
    for table, rows in (
            (t.nodes, _nodes(size)), (t.ports, _ports(size)), (t.node_bmc_addresses, _bmc_addresses(size)),
            (t.node_traits, _node_traits(size)), (t.deploy_templates, _templates(size)),
            (t.deploy_template_steps, _steps(size))):
        for batch in _batches(rows):
            with engine.begin() as conn:
                conn.execute(sa.insert(table), batch)
    what = {"postgresql": "ANALYZE", "mysql": f"ANALYZE TABLE {', '.join(t.metadata.tables)}", "sqlite": "ANALYZE"}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql(what[engine.dialect.name])
    engine.dispose()


def name(number: int) -> str:
    """Return the name of a node; their order is not that of creation."""
    return f"rack{number * 7919 % 1000:03d}-{number:06d}"


def node_uuid(number: int) -> str:
    return _uuid("node", number)


def chassis(number: int) -> str:
    return _uuid("chassis", number)


def address(number: int) -> str:
    """Return the MAC address of port ``number``."""
    return "52:54:{:02x}:{:02x}:{:02x}:{:02x}".format(*number.to_bytes(4, "big"))


def trait(number: int) -> str:
    return f"CUSTOM_TRAIT_{number % _TRAITS}"


def _uuid(kind: str, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {number}"))


def _batches(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    rows = iter(rows)
    while batch := list(itertools.islice(rows, _BATCH)):
        yield batch


def _nodes(size: Size) -> Iterator[dict[str, Any]]:
    now = clock.now()
    for number in range(size.nodes):
        state = _STATES[number % len(_STATES)]
        yield {
            "id": number + 1, "uuid": node_uuid(number), "name": name(number), "driver": "fake-hardware",
            "provision_state": state, "power_state": "power on", "inspect_interface": "agent", "created_at": now,
            "updated_at": now + datetime.timedelta(seconds=number * 37 % 100_000), "provision_updated_at": now,
            "inspection_started_at": now if state == "inspect wait" else None,
            "instance_uuid": _uuid("instance", number) if state == "active" else None,
            "resource_class": f"baremetal-{number % _CLASSES}", "owner": f"{number % _OWNERS:032x}",
            "conductor_group": f"group{number % _GROUPS}" if number % 2 else "", "shard": f"shard{number % _SHARDS}",
            "chassis_uuid": chassis(number % _CHASSIS), "maintenance": number % 100 == 0,
            "fault": "power failure" if number % 500 == 0 else None, "description": f"machine {number} of the cloud",
            "driver_info": {"ipmi_address": _bmc(number), "ipmi_username": "admin", "ipmi_password": "secret"},
            "properties": {"cpu_arch": "x86_64", "cpus": 40, "memory_mb": 393216, "local_gb": 3840}}


def _bmc(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _ports(size: Size) -> Iterator[dict[str, Any]]:
    now = clock.now()
    for number in range(size.nodes * PORTS_PER_NODE):
        yield {"id": number + 1, "uuid": _uuid("port", number), "address": address(number), "created_at": now,
               "node_id": number // PORTS_PER_NODE + 1, "physical_network": f"physnet{number % PORTS_PER_NODE}"}


def _bmc_addresses(size: Size) -> Iterator[dict[str, Any]]:
    return ({"node_id": number + 1, "address": _bmc(number)} for number in range(size.nodes))


def _node_traits(size: Size) -> Iterator[dict[str, Any]]:
    return ({"node_id": number + 1, "trait": value} for number in range(size.nodes)
            for value in {trait(number), trait(number * 3 + 1), "CUSTOM_EVERYWHERE"})


def _templates(size: Size) -> Iterator[dict[str, Any]]:
    now = clock.now()
    return ({"id": number + 1, "uuid": _uuid("template", number), "created_at": now, "name": f"CUSTOM_SET_{number}"}
            for number in range(size.templates))


def _steps(size: Size) -> Iterator[dict[str, Any]]:
    return ({"deploy_template_id": number + 1, "position": place, "interface": "bios", "step": "apply_configuration",
             "args": {"settings": [{"name": f"Setting{place}", "value": "on"}]}, "priority": 100 + place}
            for number in range(size.templates) for place in range(5))
