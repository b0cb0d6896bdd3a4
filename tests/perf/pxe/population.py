"""Nodes with four ports each, of which 1 % are on inspection, written without the service, which would take minutes."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock
from ironic_rules.db.tables import nodes, ports

PORTS_PER_NODE = 4
#: PostgreSQL still assigns ids from 1 to rows that are inserted later.
_FIRST = 1_000_000


def address(number: int) -> str:
    """Return the address of port ``number``, counted from 0."""
    return "52:54:{:02x}:{:02x}:{:02x}:{:02x}".format(*number.to_bytes(4, "big"))


def fill(database: Path | str, count: int) -> None:
    """Create ``count`` ports and their nodes. ``database``: a SQLite file, or a URL."""
    engine = sa.create_engine(f"sqlite:///{database}" if isinstance(database, Path) else database)
    now = clock.now()
    owners = [{"id": _FIRST + number + 1, "uuid": str(uuid.uuid4()), "created_at": now, "driver": "fake-hardware",
               "provision_state": "inspect wait" if number % 100 == 0 else "active", "inspect_interface": "agent"}
              for number in range(count // PORTS_PER_NODE)]
    cards = [{"id": _FIRST + number + 1, "uuid": str(uuid.uuid4()), "created_at": now, "address": address(number),
              "node_id": _FIRST + number // PORTS_PER_NODE + 1} for number in range(count)]
    with engine.begin() as conn:
        for table, rows in ((nodes, owners), (ports, cards)):
            for start in range(0, len(rows), 5000):
                conn.execute(sa.insert(table), rows[start:start + 5000])
    engine.dispose()


def owners(url: str, addresses: list[str]) -> list[int]:
    """Return the ids of the nodes that have these addresses."""
    return _column(url, ports.c.node_id, ports.c.address, addresses)


def addresses_of(url: str, node_ids: list[int]) -> list[str]:
    """Return the addresses of these nodes."""
    return _column(url, ports.c.address, ports.c.node_id, node_ids)


def _column(url: str, wanted: sa.Column[Any], known: sa.Column[Any], values: list[Any]) -> list[Any]:
    engine, found = sa.create_engine(url), set()
    with engine.connect() as conn:
        for start in range(0, len(values), 500):
            found |= set(conn.scalars(sa.select(wanted).where(known.in_(values[start:start + 500]))))
    engine.dispose()
    return sorted(found)


def deny(url: str, count: int) -> None:
    """Write what the filter writes for the open policy into a host database of Kea in PostgreSQL, without the filter.

    Reservations of the addresses that are allowed are included; the filter removes them.
    """
    engine = sa.create_engine(url)
    with engine.begin() as conn:
        conn.execute(sa.text(
            "INSERT INTO hosts (dhcp_identifier, dhcp_identifier_type, dhcp4_subnet_id, dhcp6_subnet_id, "
            "dhcp4_client_classes, dhcp6_client_classes, user_context) "
            "SELECT decode('5254' || lpad(to_hex(number), 8, '0'), 'hex'), 0, 0, 0, 'DROP', 'DROP', "
            "'{\"ironic-pxe-filter\"\\: \"all\"}' FROM generate_series(0, :last) AS number"), {"last": count - 1})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(sa.text("ANALYZE hosts"))
    engine.dispose()


def plan_again(url: str) -> None:
    """Let later connections to a PostgreSQL database plan each statement for each execution, as the docs say."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as conn:
        conn.execute(sa.text(f'ALTER DATABASE "{engine.url.database}" SET plan_cache_mode = force_custom_plan'))
    engine.dispose()


def inspect(database: Path, count: int) -> None:
    """Let only the first ``count`` nodes be on inspection."""
    engine = sa.create_engine(f"sqlite:///{database}")
    state = sa.case((nodes.c.id <= _FIRST + count, "inspect wait"), else_="active")
    with engine.begin() as conn:
        conn.execute(sa.update(nodes).where(
            sa.or_(nodes.c.id <= _FIRST + count, nodes.c.provision_state != "active")).values(provision_state=state))
    engine.dispose()


def flip(database: Path | str) -> None:
    """Let 1 % of the nodes change between ``active`` and ``inspect wait``."""
    engine = sa.create_engine(f"sqlite:///{database}" if isinstance(database, Path) else database)
    state = sa.case((nodes.c.provision_state == "inspect wait", "active"), else_="inspect wait")
    with engine.begin() as conn:
        conn.execute(sa.update(nodes).where(nodes.c.id % 100 == 1).values(provision_state=state))
    engine.dispose()


if __name__ == "__main__":
    fill(Path(sys.argv[1]), int(sys.argv[2]))
