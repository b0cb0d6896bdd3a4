"""Discovery: nodes for machines that are not enrolled, and their initial values.

A machine is known, and never enrolled again, if any of its MAC or BMC addresses is one of a node's, in any state, and
the node is not certainly another machine (``lookup.possible_nodes``): some addresses are those of many machines. The
exception is a node that a report of the same machine has just created and no conductor has accepted: it is found
again, so that the inspection continues when the machine repeats its report.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Collection

import orjson
import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log

from ironic_rules.db import clock, conductors, node_sets, nodes, ports
from ironic_rules.db import discovery as records
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError, Conflict, Invalid, LookupFailed, NodeNotFound
from ironic_rules.hardware import selection
from ironic_rules.inspection import hook_settings, lookup
from ironic_rules.inspection.hooks.ports import PortsHook
from ironic_rules.inspection.hooks.validate_interfaces import ValidateInterfacesHook
from ironic_rules.inspection.journal import Refusals
from ironic_rules.inspection.payload import Payload
from ironic_rules.models import addresses, machine_ids, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.nodes import Node
from ironic_rules.models.rejected_reports import NOT_ENROLLED, OVER_LIMIT, WRONG_STATE
from ironic_rules.models.task import PortChanges, Task
from ironic_rules.text import enumeration, printable

LOG = log.getLogger(__name__)

_MINUTE = datetime.timedelta(seconds=60)
#: Discovered nodes are created in the default conductor group; a rule may move them.
_GROUP = ""
_IN_BAND = "agent"


_too_many = Refusals(LOG)
_too_many_bytes = Refusals(LOG)
_too_many_unclaimed = Refusals(LOG)
#: Nodes that are removed in one pass.
_PAGE = 100


def check(conf: cfg.ConfigOpts) -> None:
    """Check ``[auto_discovery]`` when the service starts.

    :raises ConfigurationError: it is enabled without a driver, or with a driver that is not enabled
    """
    if not conf.auto_discovery.enabled:
        return
    driver = conf.auto_discovery.driver
    if not driver:
        raise ConfigurationError("[auto_discovery]driver is required when [auto_discovery]enabled is true.")
    if driver not in conf.enabled_hardware_types:
        raise ConfigurationError(
            f"[auto_discovery]driver is {driver}, which is not among [DEFAULT]enabled_hardware_types "
            f"({', '.join(conf.enabled_hardware_types)}).")


def find_or_create(db: Database, conf: cfg.ConfigOpts, sent: Payload) -> Node:
    """Return the node of a machine that no lookup finds: in ENROLL, to be passed to a conductor.

    Node, ports and addresses are written in one transaction. Discoveries are serialized, so that the first of several
    concurrent reports of a new machine creates the node, and the limit of nodes per minute applies to all processes.

    :raises LookupFailed: 404, for any reason: the machine is known, there are too many, or no conductor has the driver
    """
    made_from = _node_values(conf)
    size = _size(sent)
    with db.reader() as conn:
        # Without the lock: a report that is rejected anyway must not make others wait.
        if (node := _known(conn, conf, sent)) is not None:
            return node
        # Not _own_addresses: another report of the machine may just have created its node.
        _check_limits(conn, conf, size)
        made_from |= _interfaces(conn, conf)

    def create(conn: sa.Connection) -> tuple[Node, bool]:
        records.take_turn(conn)
        if (node := _known(conn, conf, sent)) is not None:
            return node, False
        macs = _own_addresses(conn, conf, sent)
        _check_limits(conn, conf, size)
        ids = _ids(sent)
        _compare(conn, conf, sent, ids)
        created_ports = _ports(conf, sent, macs)
        node = nodes.create(conn, made_from)
        if ids:
            node_sets.set_machine_ids(conn, node.id, ids)
        if created_ports:
            ports.apply_changes(conn, node.id, created_ports)
        if sent.bmc_addresses:
            node_sets.set_bmc_addresses(conn, node.id, sent.bmc_addresses)
        of_ports = {port["address"] for port in created_ports.created}
        records.begin(conn, node.id, [mac for mac in macs if mac not in of_ports], size)
        foreign = node_sets.owners_of_macs(conn, [mac for mac in sent.macs if mac not in macs])
        node_sets.note_shared(conn, node.id, node_sets.sharing(conn, node.id, sent.macs), foreign, sent.macs)
        return node, True

    try:
        node, is_new = db.write(create)
    except Conflict as exc:
        # An operator has enrolled the machine in the meantime.
        raise LookupFailed.because(f"it is not enrolled: {printable(exc)}", NOT_ENROLLED) from exc
    if is_new:
        LOG.info("Enrolled node %s for a new machine with %s", node.uuid, _described(sent))
    return node


def preview(conn: sa.Connection, conf: cfg.ConfigOpts, sent: Payload) -> tuple[JSONObject, PortChanges]:
    """Return the values and the ports of the node that :func:`find_or_create` would create; nothing is written.

    :raises LookupFailed: as there; also for a machine whose earlier report has created a node already
    """
    if not conf.auto_discovery.enabled:
        raise LookupFailed.because("no node is found for it, and [auto_discovery]enabled is false")
    if _known(conn, conf, sent) is not None:
        raise LookupFailed.because("an earlier report of the machine has created its node")
    macs = _own_addresses(conn, conf, sent)
    _check_limits(conn, conf, _size(sent))
    _compare(conn, conf, sent, _ids(sent))
    return {**_node_values(conf), **_interfaces(conn, conf)}, _ports(conf, sent, macs)


def withdraw(db: Database, node_id: int) -> None:
    """Delete a node whose data no conductor has accepted; the machine will repeat its report."""
    if db.write(lambda conn: records.withdraw(conn, node_id)):
        LOG.warning("The discovered node with id %s is deleted again: no conductor accepted its data", node_id)


def withdraw_abandoned(db: Database, older_than_s: float) -> None:
    """Delete nodes whose data were never passed to a conductor because their API process failed."""
    before = clock.now() - datetime.timedelta(seconds=older_than_s)
    with db.reader() as conn:
        abandoned = records.abandoned(conn, before)
    for node_id in abandoned:
        withdraw(db, node_id)


def remove_unclaimed(db: Database, older_than_s: float) -> None:
    """Delete discovered nodes that no operator has claimed, or changed, for so long; at most a page of them.

    :param older_than_s: 0: none
    """
    if not older_than_s:
        return
    before = clock.now() - datetime.timedelta(seconds=older_than_s)
    with db.reader() as conn:
        node_ids = records.unclaimed_since(conn, before, _PAGE)
    for node_id in node_ids:
        uuid = db.write(functools.partial(records.remove_unclaimed, node_id=node_id, before=before))
        if uuid is not None:
            LOG.warning("Discovered node %s is deleted: in %d seconds ([auto_discovery]unclaimed_timeout) no provision "
                        "state was requested for it, and nothing was changed", uuid, older_than_s)


def find_unaccepted(db: Database, conf: cfg.ConfigOpts, sent: Payload) -> Node | None:
    """Return the node that an earlier report of the machine created and no conductor has accepted; None without one.

    It is the same machine if all of its known addresses belong to that node.
    """
    with db.reader() as conn:
        return _unaccepted(conn, _possible(conn, conf, sent))


def _ids(sent: Payload) -> set[str]:
    return machine_ids.of_report(sent.inventory, sent.plugin_data)


def _possible(conn: sa.Connection, conf: cfg.ConfigOpts, sent: Payload) -> set[int]:
    ignored = conf.inspector.ignored_macs
    return lookup.possible_nodes(conn, addresses.without_ignored(sent.macs, ignored), sent.bmc_addresses,
                                 lambda: _ids(sent), ignored)


def _own_addresses(conn: sa.Connection, conf: cfg.ConfigOpts, sent: Payload) -> list[str]:
    """Return the machine's MAC addresses by which its node can be known: those that no other machine has.

    :raises LookupFailed: 404, it has none, and no BMC address of its own either
    """
    candidates = addresses.without_ignored(sent.macs, conf.inspector.ignored_macs)
    foreign = node_sets.owners_of_macs(conn, candidates).keys() | node_sets.sharing(conn, 0, candidates).of_others
    own = [mac for mac in candidates if mac not in foreign]
    if not own and not set(sent.bmc_addresses).difference(node_sets.nodes_by_bmc_address(conn, sent.bmc_addresses)):
        raise LookupFailed.because("it is not enrolled: it has no address of its own, only those that other machines "
                                   "have, or that are in [inspector]ignored_macs", NOT_ENROLLED)
    return own


def _known(conn: sa.Connection, conf: cfg.ConfigOpts, sent: Payload) -> Node | None:
    """Return the same as :func:`find_unaccepted`; None for an unknown machine.

    :raises LookupFailed: 404, any other node may be this machine
    """
    candidates = _possible(conn, conf, sent)
    if not candidates:
        return None
    node = _unaccepted(conn, candidates)
    if node is None:
        raise LookupFailed.because(f"it is not enrolled: it has addresses of {len(candidates)} known nodes",
                                   WRONG_STATE)
    return node


def _compare(conn: sa.Connection, conf: cfg.ConfigOpts, sent: Payload, ids: set[str]) -> None:
    """Compare serial number and UUID of a machine whose addresses are unknown, as ``known_serial`` says.

    :raises LookupFailed: 404, a node's machine has one of them, and such machines are refused
    """
    action = conf.auto_discovery.known_serial
    owners = node_sets.nodes_of_machine_ids(conn, ids) if action != "ignore" else set()
    if not owners:
        return
    rows = nodes.list_nodes(conn, {"id_in": sorted(owners)}, Page(limit=1), ["uuid", "provision_state"])
    described = ", ".join(f"{row.uuid} ({row.provision_state})" for row in rows)
    if action == "refuse":
        raise LookupFailed.because(f"it is not enrolled: it has the serial number or UUID of {len(owners)} known "
                                   f"nodes, such as {described} ([auto_discovery]known_serial = refuse)", NOT_ENROLLED)
    LOG.warning("A machine with unknown addresses has the serial number or UUID of %d known nodes, such as %s; it is "
                "enrolled ([auto_discovery]known_serial = %s). It sent %s, %s", len(owners), described, action,
                enumeration(sorted(ids)), _described(sent))


def _unaccepted(conn: sa.Connection, owners: set[int]) -> Node | None:
    if len(owners) != 1 or not records.is_pending(conn, owner := min(owners)):
        return None
    try:
        node = nodes.get_by_id(conn, owner)
    except NodeNotFound:
        return None
    return node if node.provision_state == states.ENROLL and node.reservation is None else None


def _check_limits(conn: sa.Connection, conf: cfg.ConfigOpts, size: int) -> None:
    """Check whether one more node may be created, from a report of ``size`` bytes.

    :raises LookupFailed: 404, it may not
    """
    options, since = conf.auto_discovery, clock.now() - _MINUTE
    most = options.max_unclaimed_nodes
    if most and records.unclaimed(conn) >= most:
        _too_many_unclaimed.warn(
            "A new machine is refused: for %d discovered nodes no provision state was requested yet, as many as "
            "[auto_discovery]max_unclaimed_nodes allows; manage or delete them", most)
        raise LookupFailed.because("it is not enrolled: too many discovered nodes are not claimed", OVER_LIMIT)
    budget = options.max_bytes_per_minute
    if records.bytes_since(conn, since) + size > budget:
        _too_many_bytes.warn("A new machine is refused: with its report of %d bytes, those of the nodes discovered in "
                             "the last minute would be more than the %d bytes that "
                             "[auto_discovery]max_bytes_per_minute allows", size, budget)
        raise LookupFailed.because("it is not enrolled: the reports of the last minute were too large", OVER_LIMIT)
    limit = options.max_nodes_per_minute
    if records.created_since(conn, since) >= limit:
        _too_many.warn("A new machine is refused: %d nodes were discovered in the last minute, as many as "
                       "[auto_discovery]max_nodes_per_minute allows", limit)
        raise LookupFailed.because("it is not enrolled: too many nodes were discovered in the last minute", OVER_LIMIT)


def _size(sent: Payload) -> int:
    """Return the bytes of a report that are stored, approximately."""
    return len(orjson.dumps(sent.inventory)) + len(orjson.dumps(sent.plugin_data))


def _node_values(conf: cfg.ConfigOpts) -> JSONObject:
    return {"driver": conf.auto_discovery.driver, "auto_discovered": True, "conductor_group": _GROUP,
            "inspection_scope": conf.auto_discovery.inspection_scope}


def _interfaces(conn: sa.Connection, conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return the driver's default interfaces, but the agent inspect interface, because the data come from a ramdisk."""
    driver = conf.auto_discovery.driver
    alive = conductors.alive(conn, conf.conductor.heartbeat_timeout)
    offered = selection.union(row.hardware_types for row in alive if row.conductor_group == _GROUP)
    in_band = _IN_BAND in offered.get(driver, {}).get("inspect", {}).get("enabled", ())
    try:
        return selection.choose_interfaces(offered, driver, {"inspect_interface": _IN_BAND} if in_band else {})
    except Invalid as exc:
        raise LookupFailed.because(
            f"it is not enrolled: no online conductor of the default group has the hardware type {driver} "
            "([auto_discovery]driver)", NOT_ENROLLED) from exc


def _ports(conf: cfg.ConfigOpts, sent: Payload, macs: Collection[str]) -> PortChanges:
    """Return the ports that hooks would create, whatever hooks are enabled: a machine is identified by its ports.

    :param macs: the addresses that may get ports
    """
    task = Task(NodeDraft({"uuid": None}))
    task.foreign_addresses = set(sent.macs).difference(macs)
    data = dict(sent.plugin_data)
    settings = hook_settings.from_conf(conf)
    for hook in (ValidateInterfacesHook(), PortsHook()):
        hook.configure(settings)
        hook.preprocess(task, sent.inventory, data)
        hook(task, sent.inventory, data)
    return task.port_changes()


def _described(sent: Payload) -> str:
    return f"MAC addresses {enumeration(sent.macs)}, BMC addresses {enumeration(sent.bmc_addresses)}"
