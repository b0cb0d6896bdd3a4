"""Lookup of the node that a ramdisk runs on, with a constant number of queries however many nodes wait.

Data in a report are evidence for nodes, and each kind has a weight (:data:`WEIGHTS`). The machine is the node whose
evidence weighs at least :data:`MARGIN` more than that of every other one. Addresses that identify no machine have no
weight: those in ``[inspector]ignored_macs``, those that machines of several nodes have reported, and a BMC address that
several nodes have.

A failure discloses nothing to an unauthenticated client; the caller logs the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import sqlalchemy as sa
from oslo_log import log

from ironic_rules.db import discovery, identity, inventory, node_sets, nodes, ports
from ironic_rules.db.ports import Owner
from ironic_rules.exceptions import Invalid, LookupFailed, MachineUnknown
from ironic_rules.models import addresses as addresses_models
from ironic_rules.models import machine_ids, states
from ironic_rules.models.nodes import NodeFound
from ironic_rules.models.rejected_reports import BMC_CONFLICT, SEVERAL_NODES, UNKNOWN, WRONG_STATE
from ironic_rules.text import enumeration, printable

LOG = log.getLogger(__name__)

#: A BMC address that more nodes share (a virtual BMC, a chassis) does not identify any of them.
MAX_SHARING = 1000

#: Weights of what a report has of a node: of the first four only the greatest, and the last two in addition. The
#: documentation has the same table. UUID and MAC addresses are not added up, because a ramdisk that has booted from the
#: network may have got the UUID by its MAC address.
WEIGHTS = {
    "node_uuid_and_macs": 13,
    "node_uuid": 12,    # by which the ramdisk names its node
    "macs": 12,         # of more than half of the node's ports
    "some_macs": 5,     # of half of the node's ports, or fewer
    "bmc": 9,           # an address of its BMC
    "machine_id": 1,    # the serial number or the system UUID
}
#: Difference of weight by which a node must exceed all others. A serial number alone is less.
MARGIN = 4

Ids = Callable[[], Collection[str]]


class _Evidence:
    """The nodes for which there is evidence in a report, and how much it weighs. Reads what it needs when it needs it.

    :ivar named: the node that the ramdisk names, None if it names none
    :ivar by_mac: nodes that have any of the identifying MAC addresses
    :ivar by_bmc: nodes with a BMC address of the report that no other node has
    """

    def __init__(self, conn: sa.Connection, named: int | None, by_mac: set[int], by_bmc: set[int],
                 macs: Collection[str], ids: Ids, ignored: Collection[str]) -> None:
        self._conn, self._macs, self._ids, self._ignored = conn, set(macs), ids, ignored
        self.named, self.by_mac, self.by_bmc = named, by_mac, by_bmc

    def nodes(self) -> set[int]:
        """Return the ids of all of these nodes."""
        return self.by_mac | self.by_bmc | (set() if self.named is None else {self.named})

    def winner(self) -> int | None:
        """Return the id of the node that the machine is, None if the evidence does not decide."""
        node_ids = self.nodes()
        if len(node_ids) < 2:
            return next(iter(node_ids), None)
        complete = self.complete()
        of_ids = node_sets.nodes_of_machine_ids(self._conn, self._ids())
        identified = of_ids if len(of_ids) == 1 else set()

        def weight(node_id: int) -> int:
            is_named, has_macs = node_id == self.named, node_id in self.by_mac
            kinds = (("node_uuid_and_macs", is_named and has_macs), ("node_uuid", is_named),
                     ("macs", node_id in complete), ("some_macs", has_macs))
            first = next((WEIGHTS[kind] for kind, is_so in kinds if is_so), 0)
            more = (("bmc", self.by_bmc), ("machine_id", identified))
            return first + sum(WEIGHTS[kind] for kind, having in more if node_id in having)

        best, second = sorted(((weight(node_id), node_id) for node_id in node_ids | identified), reverse=True)[:2]
        return best[1] if best[0] - second[0] >= MARGIN else None

    def complete(self) -> set[int]:
        """Return those of the nodes by MAC address more than half of whose identifying addresses the report has."""
        node_ids = set()
        for node_id, macs in node_sets.identifying_macs(self._conn, self.by_mac).items():
            identifying = {mac for mac in macs if not addresses_models.is_ignored(mac, self._ignored)}
            if 2 * len(identifying & self._macs) > len(identifying):
                node_ids.add(node_id)
        return node_ids


def find_node(conn: sa.Connection, node_uuid: str | None, macs: Collection[str], addresses: Collection[str],
              owners: Sequence[Owner], foreign_bmc: str = "refuse", *, ids: Ids = tuple,
              ignored: Collection[str] = ()) -> NodeFound:
    """Return the one node in INSPECT WAIT that the machine is, by all data that the ramdisk has sent about itself.

    - A node that the ramdisk names by its UUID must be the result. If it has ports and the ramdisk sent MAC addresses,
      one of them is a port's.
    - If no port has any of the MAC addresses, those with which a node was discovered are known: it may have no ports.
    - A BMC address finds a node if nothing else does; of several nodes with that address, the one that waits.

    :param macs: normalized MAC addresses, without those that are ignored
    :param addresses: normalized IP addresses of the BMC
    :param owners: the ports that have any of ``macs``
    :param foreign_bmc: ``strict``, ``refuse`` or ``warn``, as the option
    :param ids: returns the machine's serial number and system UUID, as ``models.machine_ids``
    :param ignored: MAC addresses and their beginnings that identify no machine
    :raises Invalid: 400, there is nothing to find a node by
    :raises MachineUnknown: 404, no waiting node has any of this, or those that have some of it are other machines
    :raises LookupFailed: 404, for any other reason
    """
    if not node_uuid and not macs and not addresses:
        raise Invalid("No lookup information provided: expected a node_uuid, or interfaces or a BMC address in the "
                      "inventory.")
    named = _named(conn, node_uuid) if node_uuid else None
    by_mac = _by_mac(conn, macs, owners)
    by_bmc = node_sets.nodes_by_bmc_address(conn, addresses) if addresses else {}
    if named is None and not by_mac:
        node = _found_by_bmc(conn, by_bmc) or _found_by_shared(conn, addresses, owners, ids)
    else:
        rivals = set() if foreign_bmc == "warn" else _only_owners(by_bmc)
        evidence = _Evidence(conn, None if named is None else named.id, by_mac, rivals, macs, ids, ignored)
        try:
            node = _decided(conn, evidence, named)
        except LookupFailed:
            if named is None and not possible_nodes(conn, macs, addresses, ids, ignored):
                raise MachineUnknown.because("the nodes that have some of them are other machines", UNKNOWN) from None
            raise
        if named is not None and macs and named.id not in by_mac:
            _check_own_port(conn, named, owners, ignored)
        _compare_bmc(conn, node, addresses, by_bmc, foreign_bmc)
    LOG.info("Lookup for inspection found node %s by node_uuid %s, MAC addresses %s, BMC addresses %s", node.uuid,
             printable(node_uuid, 64), enumeration(macs), enumeration(addresses))
    return node


def find_by_macs(conn: sa.Connection, named: int | None, macs: Collection[str], owners: Sequence[Owner],
                 ignored: Collection[str] = ()) -> int | None:
    """Return the id of the node that a machine is by its MAC addresses and the node that it names; None if of none.

    Addresses that no node has are those of new network cards.

    :param macs, owners, ignored: as of :func:`find_node`
    """
    by_mac = {owner.node_id for owner in owners if not owner.is_shared}
    if named is None and not by_mac:
        by_mac = {owner.node_id for owner in owners}
    winner = _Evidence(conn, named, by_mac, set(), macs, tuple, ignored).winner()
    if named is None:
        return winner
    is_other = by_mac and named not in by_mac and _lacks_own_port(conn, named, owners, ignored)
    return winner if winner == named and not is_other else None


def possible_nodes(conn: sa.Connection, macs: Collection[str], addresses: Collection[str], ids: Ids,
                   ignored: Collection[str]) -> set[int]:
    """Return the ids of the nodes, in any state, that a machine may be which discovery would enroll.

    The nodes have any of its addresses, and are not those of other machines: few of such a node's MAC addresses are in
    the report, and its serial number, system UUID or BMC is another one; or the node has the address of the machine's
    BMC, but another serial number or system UUID. A port whose address is shared is one of the few: otherwise a client
    could have a machine enrolled twice by reporting its addresses.

    :param macs, addresses, ids, ignored: as of :func:`find_node`
    """
    owners = node_sets.owners_of_macs(conn, macs)
    by_mac = set().union(*owners.values())
    by_bmc = _only_owners(node_sets.nodes_by_bmc_address(conn, addresses) if addresses else {})
    if not by_mac | by_bmc:
        return set()
    own_ids = set(ids())
    known_ids = node_sets.machine_ids_of(conn, by_mac | by_bmc)
    evidence = _Evidence(conn, None, by_mac, by_bmc, macs, ids, ignored)
    complete = evidence.complete()
    # A report can have addresses of many nodes, and inventories are large.
    may_read = len((by_mac | by_bmc) - known_ids.keys()) <= _MOST_READ

    def is_possible(node_id: int) -> bool:
        of_node = known_ids.get(node_id) or (_reported_ids(conn, node_id) if may_read and own_ids else set())
        if node_id in complete or own_ids & of_node:
            return True
        if machine_ids.differ(own_ids, of_node):
            return False
        return node_id in by_bmc or not contradict(addresses, node_sets.list_bmc_addresses(conn, node_id))

    return {node_id for node_id in by_mac | by_bmc if is_possible(node_id)}


#: Maximum number of inventories that are read to find out which machines their nodes are.
_MOST_READ = 8


def _reported_ids(conn: sa.Connection, node_id: int) -> set[str]:
    """Return what identifies a node's machine by its last report: its BMC may not say it, and no one else does."""
    stored = inventory.latest_inventory(conn, node_id)
    return set() if stored is None else machine_ids.of_report(stored, {})


def _named(conn: sa.Connection, node_uuid: str) -> NodeFound:
    candidates = nodes.candidates(conn, states.INSPECTWAIT, uuid=identity.canonical(node_uuid) or "")
    if not candidates:
        raise LookupFailed.because("no node with this UUID waits for inspection", WRONG_STATE)
    return candidates[0]


def _by_mac(conn: sa.Connection, macs: Collection[str], owners: Iterable[Owner]) -> set[int]:
    """Return the nodes that have any of the addresses by which a machine can be identified."""
    owner_ids = {owner.node_id for owner in owners if not owner.is_shared}
    return owner_ids or (discovery.node_ids(conn, macs) if macs and not owners else set())


def _only_owners(by_bmc: dict[str, set[int]]) -> set[int]:
    return {node_id for of_address in by_bmc.values() if len(of_address) == 1 for node_id in of_address}


def _decided(conn: sa.Connection, evidence: _Evidence, named: NodeFound | None) -> NodeFound:
    """Return the waiting node that the evidence is for.

    :raises LookupFailed: 404, it is not for one, or that does not wait
    """
    winner = evidence.winner()
    if winner is None or (named is not None and winner != named.id):
        other_ids = evidence.by_mac if named is None else evidence.by_mac - {named.id}
        if named is not None and other_ids:
            raise LookupFailed.because("the UUID and the MAC addresses are of different nodes", SEVERAL_NODES)
        if len(other_ids) > 1:
            raise LookupFailed.because("the MAC addresses belong to several nodes", SEVERAL_NODES)
        raise LookupFailed.because("the BMC address belongs to another node than the UUID or the MAC addresses "
                                   "([inspector]foreign_bmc)", BMC_CONFLICT)
    node = named or next(iter(nodes.candidates(conn, states.INSPECTWAIT, node_ids=[winner])), None)
    if node is None:
        raise LookupFailed.because("the node does not wait for inspection", WRONG_STATE)
    return node


def _found_by_bmc(conn: sa.Connection, by_bmc: dict[str, set[int]]) -> NodeFound | None:
    """Return the node that waits and has the BMC address, the only evidence; None if none waits.

    :raises LookupFailed: 404, several wait, or another node has another address of the BMC
    """
    waiting = nodes.in_state(conn, set().union(*by_bmc.values()), states.INSPECTWAIT)
    if not waiting:
        return None
    if len(waiting) > MAX_SHARING:
        raise LookupFailed.because(f"{len(waiting)} nodes have the BMC address", SEVERAL_NODES)
    if len(waiting) > 1:
        raise LookupFailed.because("several waiting nodes have the BMC address", SEVERAL_NODES)
    if _only_owners(by_bmc) - waiting:
        raise LookupFailed.because("the BMC addresses belong to several nodes", BMC_CONFLICT)
    candidates = nodes.candidates(conn, states.INSPECTWAIT, node_ids=sorted(waiting))
    if not candidates:
        raise LookupFailed.because("the node does not wait for inspection", WRONG_STATE)
    return candidates[0]


def _found_by_shared(conn: sa.Connection, addresses: Collection[str], owners: Iterable[Owner], ids: Ids) -> NodeFound:
    """Return the node of the only port whose address is shared, if nothing speaks against it.

    Otherwise, others could make a node unknown by reporting its address.

    :raises MachineUnknown: 404, there is none
    """
    unknown = MachineUnknown.because("no waiting node has any of them", UNKNOWN)
    node_ids = {owner.node_id for owner in owners}
    candidates = nodes.candidates(conn, states.INSPECTWAIT, node_ids=sorted(node_ids)) if len(node_ids) == 1 else []
    if not candidates:
        raise unknown
    node = candidates[0]
    if contradict(addresses, node_sets.list_bmc_addresses(conn, node.id)) or machine_ids.differ(
            set(ids()), node_sets.machine_ids_of(conn, [node.id]).get(node.id, set())):
        raise unknown
    LOG.warning("The ramdisk of node %s is identified only by an address that machines of other nodes have reported, "
                "too: %s", node.uuid, enumeration([owner.address for owner in owners]))
    return node


def _check_own_port(conn: sa.Connection, named: NodeFound, owners: Iterable[Owner], ignored: Collection[str]) -> None:
    """Check that a node which the ramdisk names, and which has ports, has one of the MAC addresses.

    :raises LookupFailed: 404, it has none of them
    """
    if _lacks_own_port(conn, named.id, owners, ignored):
        raise LookupFailed.because(
            f"node {named.uuid} with this UUID has ports, none of them with any of the MAC addresses", SEVERAL_NODES)


def _lacks_own_port(conn: sa.Connection, node_id: int, owners: Iterable[Owner], ignored: Collection[str]) -> bool:
    """Return whether the node has ports that identify it, but none of ``owners``."""
    if any(owner.node_id == node_id for owner in owners):
        return False
    port_addresses = (port.address for port in ports.for_node(conn, node_id))
    return any(not addresses_models.is_ignored(address, ignored) for address in port_addresses)


def _compare_bmc(conn: sa.Connection, node: NodeFound, addresses: Collection[str], by_bmc: dict[str, set[int]],
                 action: str) -> None:
    """Log that a machine has another BMC address than its node, or refuse it if ``action`` is strict.

    :raises LookupFailed: 404
    """
    owners = set().union(*by_bmc.values())
    if not addresses or node.id in owners:
        return
    if owners:
        text = f"has BMC addresses that belong to {len(owners)} other nodes, {enumeration(addresses)}"
    elif contradict(addresses, own := node_sets.list_bmc_addresses(conn, node.id)):
        text = f"has the BMC address {enumeration(addresses)}; that of the node is {enumeration(own)}"
    else:
        return
    if action == "strict":
        raise LookupFailed.because(f"the ramdisk of node {node.uuid} {text} ([inspector]foreign_bmc = strict)",
                                   BMC_CONFLICT)
    LOG.warning("The ramdisk of node %s %s; it is accepted ([inspector]foreign_bmc = %s)", node.uuid, text, action)


def contradict(sent: Collection[str], stored: Collection[str]) -> bool:
    """Return whether both sides have addresses of the same IP version, none of them equal."""
    return not set(sent) & set(stored) and bool(
        {":" in address for address in sent} & {":" in address for address in stored})
