"""Lookup of the node that a ramdisk runs on, with a constant number of queries however many nodes wait.

A failure discloses nothing to an unauthenticated client; the caller logs the reason.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from oslo_log import log

from ironic_rules.db import discovery, identity, node_sets, nodes, ports
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import Invalid, LookupFailed, MachineUnknown
from ironic_rules.models import states
from ironic_rules.models.nodes import NodeFound
from ironic_rules.models.refused_callbacks import BMC_CONFLICT, SEVERAL_NODES, UNKNOWN, WRONG_STATE
from ironic_rules.text import enumeration, printable

LOG = log.getLogger(__name__)

#: A BMC address that more nodes share (a virtual BMC, a chassis) does not identify any of them.
MAX_SHARING = 1000


def find_node(conn: sa.Connection, node_uuid: str | None, macs: Collection[str], addresses: Collection[str],
              owners: Collection[int], foreign_bmc: str = "refuse") -> NodeFound:
    """Return the one node in INSPECT WAIT that matches all data that the ramdisk has sent about itself.

    - The UUID is the node's. If the node has ports and the ramdisk sent MAC addresses, one of them is a port's.
    - All known MAC addresses belong to the node. Unknown ones are new interfaces. If no port has any of them, those
      with which a node was discovered are known: it may have no ports.
    - Known BMC addresses belong to the node, and possibly to others. Unknown ones must not contradict the known
      addresses of the node: at least one address of the same IP version must be equal.
    - BMC addresses that only nodes in other states have do not belong to the node: it may have no known one.

    :param macs: normalised MAC addresses
    :param addresses: normalised IP addresses of the BMC
    :param owners: the ids of the nodes that have ports with any of ``macs``
    :param foreign_bmc: ``refuse`` or ``warn``: whether a node may be found though all nodes with a BMC address that was
        sent are others, none of which waits
    :raises Invalid: 400, there is nothing to find a node by
    :raises MachineUnknown: 404, neither a port has one of the MAC addresses nor a waiting node one of the BMC addresses
    :raises LookupFailed: 404, for any other reason
    """
    if not node_uuid and not macs and not addresses:
        raise Invalid("No lookup information provided: expected a node_uuid, or interfaces or a BMC address in the "
                      "inventory.")
    by_bmc = node_sets.nodes_of_bmc_addresses(conn, addresses) if addresses else set()
    known_bmc = by_bmc
    if not by_bmc.issubset(owners):
        by_bmc = nodes.in_state(conn, by_bmc, states.INSPECTWAIT)
    if macs and not owners:
        owners = discovery.node_ids(conn, macs)
    if len(owners) > 1:
        raise LookupFailed.because("the MAC addresses belong to several nodes", SEVERAL_NODES)
    if node_uuid:
        found = nodes.candidates(conn, states.INSPECTWAIT, uuid=identity.canonical(node_uuid) or "")
        if not found:
            raise LookupFailed.because("no node with this UUID waits for inspection", WRONG_STATE)
        found = [node for node in found if not owners or node.id in owners]
        if not found:
            raise LookupFailed.because("the UUID and the MAC addresses are of different nodes", SEVERAL_NODES)
    else:
        if not owners and not by_bmc:
            raise MachineUnknown.because("no waiting node has any of them", UNKNOWN)
        if not owners and len(by_bmc) > MAX_SHARING:
            raise LookupFailed.because(f"{len(by_bmc)} nodes have the BMC address", SEVERAL_NODES)
        # Two are sufficient to detect an ambiguous address.
        found = nodes.candidates(conn, states.INSPECTWAIT, node_ids=sorted(owners or by_bmc)[:2])
    if not found:
        raise LookupFailed.because("the node does not wait for inspection", WRONG_STATE)
    if len(found) > 1:
        raise LookupFailed.because("several waiting nodes have the BMC address", SEVERAL_NODES)
    node = found[0]
    if node_uuid and macs and not owners and ports.list_ports(conn, {"node_id": node.id}, Page(limit=1), ["id"]):
        raise LookupFailed.because(
            f"node {node.uuid} with this UUID has ports, none of them with any of the MAC addresses", SEVERAL_NODES)
    if by_bmc and node.id not in by_bmc:
        raise LookupFailed.because(f"the BMC address does not belong to node {node.uuid}, but to another one",
                                   BMC_CONFLICT)
    if addresses and not by_bmc and contradict(addresses, node_sets.list_bmc_addresses(conn, node.id)):
        raise LookupFailed.because(f"node {node.uuid} has another BMC address", BMC_CONFLICT)
    if known_bmc and node.id not in known_bmc:
        _foreign(node, len(known_bmc), addresses, foreign_bmc)
    LOG.info("Lookup for inspection found node %s by node_uuid %s, MAC addresses %s, BMC addresses %s", node.uuid,
             printable(node_uuid, 64), enumeration(macs), enumeration(addresses))
    return node


def _foreign(node: NodeFound, number: int, addresses: Collection[str], action: str) -> None:
    """Refuse a machine whose BMC is that of other nodes, or log a warning."""
    if action == "refuse":
        raise LookupFailed.because(
            f"the BMC address belongs to {number} other nodes, not to node {node.uuid} "
            "([inspector]foreign_bmc = refuse)", BMC_CONFLICT)
    LOG.warning("The ramdisk of node %s has BMC addresses that belong to %d other nodes, %s; it is accepted "
                "([inspector]foreign_bmc = %s)", node.uuid, number, enumeration(addresses), action)


def contradict(sent: Collection[str], known: Collection[str]) -> bool:
    """Return whether both sides have addresses of the same IP version; the caller knows that none of them is equal."""
    return bool({":" in address for address in sent} & {":" in address for address in known})
