"""The journal of rejected reports: one row for each machine and reason, with a counter."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import discovery, identity, outbox
from ironic_rules.db.discovery import Match
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.tables import inspection_journal as table
from ironic_rules.db.tables import inspection_journal_keys as keys
from ironic_rules.exceptions import journal_entry_not_found
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.events import Event, of_refused_report
from ironic_rules.models.rejected_reports import (
    DISCOVERY_OFF,
    UNKNOWN,
    WRONG_STATE,
    JournalEntry,
    RejectedReport,
)
from ironic_rules.text import MAX_MESSAGE, printable

#: Nodes and addresses of an entry by which it is found: anyone may send entries of a thousand addresses.
_MOST_KEYS = 128
#: The greatest number that the column can have: a machine can call for years.
_MOST_TIMES = 2 ** 31 - 1
#: Characters of the address that a report came from: a proxy may send any text as the address.
_MAX_SOURCE = 64
#: Near matches.
_MOST_NODES = 16
_KNOWN = sa.select(table.c.id, table.c.machine, table.c.nodes).where(
    table.c.machine.in_(sa.bindparam("machines", expanding=True)))
_OLDEST_KEPT = sa.select(table.c.seen_at).order_by(table.c.seen_at.desc()).offset(
    sa.bindparam("keep", type_=sa.Integer)).limit(1)


def add(conn: sa.Connection, reports: Sequence[tuple[RejectedReport, int]]) -> None:
    """Add reports of different machines, each with how often it came: to the entry of its machine, if there is one.

    With few statements for all of them, in the order given: others may write the same machines.
    """
    matches_of = discovery.find_all_matches(
        conn, [(rejected.node_uuid, rejected.macs, rejected.bmc_addresses) for rejected, _ in reports])
    machines = [rejected.machine for rejected, _ in reports]
    stored = {row.machine: row for row in conn.execute(_KNOWN, {"machines": machines}).all()}
    new: list[JSONObject] = []
    renamed: dict[str, list[str]] = {}
    for (rejected, times), machine, matches in zip(reports, machines, matches_of, strict=True):
        values: JSONObject = {
            "seen_at": rejected.at, "reason": _reason(rejected.reason, matches),
            "source": rejected.source and rejected.source[:_MAX_SOURCE],
            "detail": printable(rejected.detail, MAX_MESSAGE),
            "node_uuid": identity.canonical(rejected.node_uuid) if rejected.node_uuid else None,
            "nodes": [_node(match) for match in matches[:_MOST_NODES]]}
        entry = stored.get(machine)
        if entry is None:
            new.append({"uuid": uuidutils.generate_uuid(), "created_at": rejected.at, "machine": machine,
                        "times": times, "macs": list(rejected.macs), "bmc_addresses": list(rejected.bmc_addresses),
                        "report": rejected.report, **values})
        else:
            if rejected.report is not None:
                values["report"] = rejected.report
            counted = sa.case((table.c.times > _MOST_TIMES - times, _MOST_TIMES), else_=table.c.times + times)
            conn.execute(sa.update(table).where(table.c.id == entry.id).values(**values, times=counted))
            if [shown["node"] for shown in entry.nodes] == [match.uuid for match in matches]:
                continue  # it is found by the same values
            conn.execute(sa.delete(keys).where(keys.c.entry_id == entry.id))
        renamed[machine] = list(dict.fromkeys(
            [*(match.uuid for match in matches), *rejected.bmc_addresses, *rejected.macs]))[:_MOST_KEYS]
    if outbox.wanted(conn) is not None:
        # The first report of a machine for a reason only: anyone can repeat one, and events have a maximum number.
        outbox.add(conn, [_refused(noted, matches) for noted, machine, matches in zip(
            reports, machines, matches_of, strict=True) if machine not in stored])
    ids = {row.machine: row.id for row in stored.values()}
    if new:
        conn.execute(sa.insert(table), new)
        ids |= {row.machine: row.id for row in conn.execute(_KNOWN, {"machines": [row["machine"] for row in new]})}
    rows = [{"value": value, "entry_id": ids[machine]} for machine, found_by in renamed.items() for value in found_by]
    if rows:
        conn.execute(sa.insert(keys), rows)


def _refused(noted: tuple[RejectedReport, int], matches: Sequence[Match]) -> Event:
    rejected, times = noted
    return of_refused_report({
        "reason": _reason(rejected.reason, matches), "detail": printable(rejected.detail, MAX_MESSAGE),
        "source": rejected.source, "node_uuid": rejected.node_uuid, "macs": list(rejected.macs),
        "bmc_addresses": list(rejected.bmc_addresses), "nodes": [_node(match) for match in matches[:_MOST_NODES]],
        "times": times, "at": rejected.at})


def _reason(reason: str, matches: Collection[Match]) -> str:
    """Return why a machine was refused, with what only these queries find, which no report waits for."""
    if reason == WRONG_STATE and not matches:
        return UNKNOWN  # it named a node by a UUID that none has
    if reason == DISCOVERY_OFF and matches:
        return WRONG_STATE  # discovery would not enroll it
    return reason


def _node(match: Match) -> JSONObject:
    return {"node": match.uuid, "provision_state": match.state, "has_uuid": match.has_uuid, "macs": match.macs,
            "bmc_addresses": match.bmc_addresses}


def prune(conn: sa.Connection, keep: int, before: datetime.datetime) -> None:
    """Delete all but the ``keep`` entries seen last, and those that were last seen before a time."""
    oldest = conn.scalar(_OLDEST_KEPT, {"keep": keep})
    conn.execute(sa.delete(table).where(table.c.seen_at < before))
    if oldest is not None:
        conn.execute(sa.delete(table).where(table.c.seen_at <= oldest))


def list_entries(conn: sa.Connection, filters: Mapping[str, str], page: Page) -> Sequence[JournalEntry]:
    """Return at most ``page.limit`` entries.

    :param filters: ``reason``; ``mac``, ``address`` and ``node`` (a UUID) by which an entry is found
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    query = sa.select(table)
    for name, value in filters.items():
        if name == "reason":
            query = query.where(table.c.reason == value)
        else:
            query = query.where(table.c.id.in_(sa.select(keys.c.entry_id).where(keys.c.value == value)))
    return conn.execute(paginate(query, table, page, marker_row(conn, table, page))).all()


def get(conn: sa.Connection, uuid: str) -> JournalEntry:
    """Return one entry.

    :raises journal_entry_not_found: 404
    """
    row = conn.execute(sa.select(table).where(identity.has_uuid(table, uuid))).one_or_none()
    if row is None:
        raise journal_entry_not_found(entry=uuid)
    return row
