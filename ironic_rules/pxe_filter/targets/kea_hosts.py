"""Reservations in the host database of Kea, in the table that ``kea-admin db-init`` creates.

The rows are global reservations (subnet 0) for DHCPv4 and DHCPv6 at once. Rows of the filter have a ``user_context`` of
its own, or of a former name of it; others are neither changed nor removed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ironic_rules.db import deadlines
from ironic_rules.pxe_filter import identifiers

#: Identifiers by which Kea finds a client's reservation, and their numbers in ``host_identifier_type``.
IDENTIFIERS = {"hw-address": 0, "duid": 1, "client-id": 3}
#: The class of a client whose packets Kea ignores.
DROP = "DROP"
_GLOBAL = 0
#: Seconds after which a statement is given up.
_LIMIT_S = 20
_DUID_LL = b"\0\3\0\1"
_CHUNK = 500

_HOSTS = sa.table("hosts", *(sa.column(name) for name in (
    "dhcp_identifier", "dhcp_identifier_type", "dhcp4_subnet_id", "dhcp6_subnet_id", "dhcp4_client_classes",
    "dhcp6_client_classes", "user_context")))


def identifier(key: str, kind: str) -> bytes | None:
    """Return the identifier of a client with that address, or of that key; None if it has none of that kind.

    The DUID of an address is the one of RFC 8415 §11.4, for Ethernet. Other DUIDs, and client identifiers, are keys.
    """
    if identifiers.is_one(key):
        return None if kind == "hw-address" else identifiers.octets(key)
    if kind == "client-id":
        return None
    address = bytes.fromhex(key.replace(":", ""))
    return address if kind == "hw-address" else _DUID_LL + address


def _context(owner: str) -> str:
    return json.dumps({"ironic-pxe-filter": owner})


def _key(found: bytes, kind: int) -> str | None:
    octets = bytes(found)
    if kind == IDENTIFIERS["duid"] and octets[:4] == _DUID_LL and len(octets) == 10:
        return octets[4:].hex(":")
    if kind == IDENTIFIERS["hw-address"]:
        return octets.hex(":") if len(octets) == 6 else None
    return identifiers.key_of(octets.hex(":"))


class Hosts:
    """The filter's reservations.

    :param url: of the database, for SQLAlchemy; MySQL, MariaDB or PostgreSQL
    :param kinds: the identifiers that each address gets a reservation for
    :param owner: name in the ``user_context`` of the rows, to tell those of several filters
    :param former: names that it had before
    :raises sa.exc.SQLAlchemyError: every method, if the database is unavailable or refuses something
    """

    def __init__(self, url: str, kinds: Sequence[str], owner: str, former: Sequence[str] = ()) -> None:
        self._kinds = {kind: IDENTIFIERS[kind] for kind in kinds}
        self._context = _context(owner)
        self._contexts = [self._context, *map(_context, former)]
        self.former = frozenset(former)
        parsed = sa.make_url(url)
        mysql = parsed.get_backend_name() == "mysql"
        arguments: dict[str, Any] = {"connect_timeout": 5}
        # Nothing waits without limit for a database that does not answer, or for a lock.
        arguments |= ({"read_timeout": _LIMIT_S, "write_timeout": _LIMIT_S} if mysql else
                      {"options": f"-c statement_timeout={1000 * _LIMIT_S} -c synchronous_commit=on",
                       "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
                       "tcp_user_timeout": 1000 * _LIMIT_S})
        self._engine = sa.create_engine(parsed, pool_size=1, max_overflow=1, pool_recycle=3600,
                                        connect_args=arguments, hide_parameters=True)
        if not mysql:  # its driver waits for a server that is stopped as long as that is
            deadlines.Watchdog(_LIMIT_S + 1, setting="[pxe_filter]kea_connection").watch(self._engine)
        # Another filter may have added the same rows, and the operator a reservation of the same client.
        insert: sa.Insert = (sa.insert(_HOSTS).prefix_with("IGNORE") if mysql else
                             postgresql.insert(_HOSTS).on_conflict_do_nothing())
        self._insert = insert.execution_options(preserve_rowcount=True)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def names(self) -> dict[str, int]:
        """Return how many reservations filters with other names have, by name."""
        start, end = _context("")[:-2], _context("")[-2:]
        context = _HOSTS.c.user_context
        query = sa.select(context, sa.func.count()).where(
            context.startswith(start, autoescape=True), context != self._context).group_by(context)
        with self._engine.connect() as conn:
            self._check(conn)
            return {text.removeprefix(start).removesuffix(end): number for text, number in conn.execute(query)}

    def read(self) -> Iterator[tuple[str, bool | None, bool]]:
        """Yield (address, whether it is dropped, whether by a former name) of every address with rows of the filter.

        None instead: its rows are incomplete, contradictory, or of other kinds than the configured ones.
        """
        seen: dict[str, list[bool | None]] = {}
        former = set()
        query = sa.select(_HOSTS.c.dhcp_identifier, _HOSTS.c.dhcp_identifier_type, _HOSTS.c.dhcp4_client_classes,
                          _HOSTS.c.dhcp6_client_classes, _HOSTS.c.user_context != self._context).where(
            _HOSTS.c.user_context.in_(self._contexts))
        with self._engine.connect() as conn:
            self._check(conn)
            for found, kind, first, second, is_former in conn.execute(query):
                mac = _key(found, kind)
                if mac is not None:
                    is_right = first == second and kind in self._kinds.values()
                    seen.setdefault(mac, []).append(first == DROP if is_right else None)
                    if is_former:
                        former.add(mac)
        for mac, verdicts in seen.items():
            is_right = len(verdicts) == len(self._of(mac)) and len(set(verdicts)) == 1
            yield mac, verdicts[0] if is_right else None, mac in former

    def _check(self, conn: sa.Connection) -> None:
        """Replace a connection that the server has closed since it was used."""
        try:
            conn.execute(sa.text("SELECT 1"))
        except sa.exc.DBAPIError as exc:
            if not exc.connection_invalidated:
                raise
            conn.rollback()

    def change(self, remove: Collection[str], add: Collection[str], *, drop: bool) -> list[str]:
        """Remove and add the reservations of addresses, in one transaction.

        :param drop: whether the added ones make Kea ignore the client
        :returns: the addresses with reservations of others, which remain as they are
        """
        classes = DROP if drop else None
        rows = [self._row(found, kind, classes) for mac in add for kind, found in self._of(mac).items()]
        def work() -> list[str]:
            with self._engine.begin() as conn:
                self._delete(conn, sorted(remove))
                # A list of rows: one statement with the values of all takes ten times as long to make.
                inserted = conn.execute(self._insert, rows).rowcount if rows else 0
                return self._foreign(conn, add) if inserted < len(rows) else []

        began = time.monotonic()
        try:
            return work()
        except sa.exc.DBAPIError as exc:
            # The server has been restarted since: once more, which changes nothing that is done already. A check of the
            # connection before each transaction would cost as much as the transaction.
            if not exc.connection_invalidated or time.monotonic() - began > 1:
                raise
        return work()

    def foreign(self, macs: Collection[str]) -> list[str]:
        """Return which of the addresses have reservations of others."""
        with self._engine.connect() as conn:
            return self._foreign(conn, macs)

    def can_tell(self, key: str) -> bool:
        """Return whether there is an identifier of the address, or of the key, among the configured kinds."""
        return bool(self._of(key))

    def _of(self, key: str) -> dict[str, bytes]:
        """Return the identifiers of an address or a key, by kind."""
        return {kind: found for kind in self._kinds if (found := identifier(key, kind)) is not None}

    def _row(self, found: bytes, kind: str, classes: str | None) -> dict[str, Any]:
        return {"dhcp_identifier": found, "dhcp_identifier_type": self._kinds[kind],
                "dhcp4_subnet_id": _GLOBAL, "dhcp6_subnet_id": _GLOBAL, "dhcp4_client_classes": classes,
                "dhcp6_client_classes": classes, "user_context": self._context}

    def _delete(self, conn: sa.Connection, macs: Sequence[str]) -> None:
        for kind, number in IDENTIFIERS.items():  # also those that are not configured any more
            for start in range(0, len(macs), _CHUNK):
                found = [one for mac in macs[start:start + _CHUNK] if (one := identifier(mac, kind)) is not None]
                if not found:
                    continue
                conn.execute(sa.delete(_HOSTS).where(
                    _HOSTS.c.dhcp_identifier.in_(found), _HOSTS.c.dhcp_identifier_type == number,
                    _HOSTS.c.user_context.in_(self._contexts)))

    def _foreign(self, conn: sa.Connection, macs: Collection[str]) -> list[str]:
        ordered, found = sorted(macs), set()
        for kind, number in self._kinds.items():
            for start in range(0, len(ordered), _CHUNK):
                chunk = [one for mac in ordered[start:start + _CHUNK] if (one := identifier(mac, kind)) is not None]
                rows = conn.execute(sa.select(_HOSTS.c.dhcp_identifier).where(
                    _HOSTS.c.dhcp_identifier.in_(chunk), _HOSTS.c.dhcp_identifier_type == number,
                    sa.or_(_HOSTS.c.dhcp4_subnet_id == _GLOBAL, _HOSTS.c.dhcp6_subnet_id == _GLOBAL),
                    sa.or_(_HOSTS.c.user_context.is_(None), _HOSTS.c.user_context != self._context)))
                found |= {_key(row[0], number) for row in rows}
        return sorted(mac for mac in found if mac)
