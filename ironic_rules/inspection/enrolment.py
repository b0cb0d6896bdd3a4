"""Nodes for machines of the journal: created by an operator, with all that the machine's next report is found by."""

from __future__ import annotations

import functools
from collections.abc import Collection

import sqlalchemy as sa

from ironic_rules.db import clock, node_sets, nodes, ports
from ironic_rules.db import discovery as records
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import Invalid, Problem, machine_enrolled
from ironic_rules.inspection import lookup
from ironic_rules.models import addresses, machine_ids, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.rejected_reports import JournalEntry
from ironic_rules.models.task import PortChanges
from ironic_rules.text import enumeration

#: Nodes that an error names.
_NAMED = 5


def enroll(conn: sa.Connection, entry: JournalEntry, values: JSONObject, ignored: Collection[str] = ()) -> Node:
    """Create the node of a machine, which waits for its report; with the machine's UUID, ports and BMC addresses.

    Nothing else may be read before in the transaction.

    When its inspection has finished, it is in enroll, as a discovered node.

    :param values: of the node, as a POST has them
    :param ignored: MAC addresses and beginnings of them that identify no machine
    :raises Invalid: 400, a lookup could not find the machine, or not with these values
    :raises machine_enrolled: 409, nodes have addresses of the machine
    :raises node_already_exists, DuplicateNodeName: 409
    """
    if not entry.macs and not entry.bmc_addresses and not entry.node_uuid:
        raise Invalid("The machine sent neither a MAC address, nor an address of its BMC, nor a UUID by which its next "
                      "report could be recognized.")
    if entry.node_uuid and values.get("uuid") not in (None, entry.node_uuid):
        raise Invalid(problems=[Problem("/uuid", f"must be {entry.node_uuid}, by which the machine names its node")])
    literals = addresses.literals(values.get("driver_info", {}))
    if literals and not set(literals) & set(entry.bmc_addresses) and lookup.contradict(entry.bmc_addresses, literals):
        raise Invalid(problems=[Problem("/driver_info", "names another BMC than the machine, which has "
                                                        f"{enumeration(entry.bmc_addresses)}")])
    # Two machines with the same BMC, or this one and discovery, must not both find no node. It comes first in the
    # transaction, as what is read before may be outdated.
    records.take_turn(conn)
    _check_free(conn, entry, ignored)
    now = clock.now()
    node = nodes.create(conn, {
        **values, **({"uuid": entry.node_uuid} if entry.node_uuid else {}), "provision_state": states.INSPECTWAIT,
        "target_provision_state": states.ENROLL, "provision_updated_at": now, "inspection_started_at": now})
    macs = addresses.without_ignored(entry.macs, ignored)
    foreign = node_sets.owners_of_macs(conn, macs).keys() | node_sets.sharing(conn, node.id, macs).of_others
    if own := [mac for mac in macs if mac not in foreign]:
        ports.apply_changes(conn, node.id, PortChanges(created=[{"address": mac} for mac in own]))
    if bmc_addresses := sorted({*literals, *entry.bmc_addresses}):
        node_sets.set_bmc_addresses(conn, node.id, bmc_addresses)
    return node


def _check_free(conn: sa.Connection, entry: JournalEntry, ignored: Collection[str]) -> None:
    owners = lookup.possible_nodes(conn, addresses.without_ignored(entry.macs, ignored), entry.bmc_addresses,
                                   functools.partial(_ids, entry.report or {}), ignored)
    if owners:
        rows = nodes.list_nodes(conn, {"id_in": sorted(owners)}, Page(limit=_NAMED), ["uuid", "provision_state"])
        named = ", ".join(f"node {row.uuid} ({row.provision_state})" for row in rows)
        more = f" and {len(owners) - len(rows)} more" if len(owners) > len(rows) else ""
        raise machine_enrolled(nodes=named + more)


def _ids(report: JSONObject) -> set[str]:
    return machine_ids.of_report(report.get("inventory", {}), report)
