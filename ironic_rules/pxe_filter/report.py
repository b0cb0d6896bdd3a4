"""Reports for operators: changes of addresses by node, and the state of each address with the reason."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.db import pxe_filter as records
from ironic_rules.db.session import Database
from ironic_rules.pxe_filter import plan, targets
from ironic_rules.pxe_filter.reader import Reader
from ironic_rules.pxe_filter.settings import FilterSettings, TargetSettings
from ironic_rules.text import enumeration, printable

LOG = logging.getLogger(__name__)

#: Maximum number of nodes that are logged by one sync.
_MAX_NODES = 1000
#: Maximum number of addresses that are logged for one node.
_MAX_MACS = 64


def log_changes(changes: Sequence[plan.Change], db: Database, label: str = "") -> None:
    """Log a line for every node, with the change of its addresses; each begins with ``label``."""
    if not changes or not LOG.isEnabledFor(logging.INFO):
        return
    ordered = sorted(changes, key=lambda change: (change.node_id, change.allowed))
    groups = [(node_id, allowed, [change.mac for change in group]) for (node_id, allowed), group
              in itertools.groupby(ordered, lambda change: (change.node_id, change.allowed))]
    names = _names({node_id for node_id, _, _ in groups[:_MAX_NODES]} - {plan.GONE}, db)
    for node_id, allowed, macs in groups[:_MAX_NODES]:
        who = "no port (any more)" if node_id == plan.GONE else names.get(node_id, f"node id {node_id}")
        LOG.info("%s%s: %s is %s", label, who, enumeration(macs, _MAX_MACS), "allowed" if allowed else "denied")
    if len(groups) > _MAX_NODES:
        LOG.info("%s... and addresses of %s more nodes", label, len(groups) - _MAX_NODES)


def log_rivals(rivals: plan.Rivals, db: Database, label: str = "") -> None:
    """Log a line for each identifier that ports of several nodes have, and which node decides."""
    names = _names({node_id for node_ids in rivals.values() for node_id in node_ids}, db)
    for key, node_ids in itertools.islice(rivals.items(), _MAX_NODES):
        first, *others = (names.get(node_id, f"node id {node_id}") for node_id in sorted(node_ids))
        LOG.warning("%sThe client identifier %s is that of ports of several nodes; %s decides alone, and not %s", label,
                    key.removeprefix("id:"), first, enumeration(others))


def _names(node_ids: set[int], db: Database) -> dict[int, str]:
    try:
        with db.reader() as conn:
            nodes = records.nodes_by_id(conn, node_ids)
    except (db_exc.DBError, sa.exc.SQLAlchemyError):
        return {}  # without names, the log has the ids
    return {node.id: f"node {node.uuid} ('{node.provision_state}')" for node in nodes.values()}


def status(settings: FilterSettings, db: Database) -> Iterator[str]:
    """Yield the lines of ``--status``, columns separated by tabs.

    They say what would be written for each address, and why, and last, for each target, what is in effect. The lines of
    each target with a name follow one with that name in brackets.
    """
    for target in settings.targets:
        if target.name:
            yield f"[{target.name}]"
        yield from _status(settings, target, db)


def _status(settings: FilterSettings, target: TargetSettings, db: Database) -> Iterator[str]:
    refused: set[str] = set()
    layout = plan.Layout(target.files)
    expected = plan.Plan(layout, deny_unknown=target.deny_unknown, discovery=target.discovery)
    states = []
    for server in targets.make(target, layout):
        addresses, state = server.peek()
        server.close()
        expected.remember(addresses)
        states.append(f"{server.name}\t{printable(state)}")
    with db.reader() as conn:
        reader = Reader([target.scope], settings.interfaces, all_ramdisks=settings.all_ramdisks)
        [read] = reader.read_everything(conn, [expected], refused)
        expected.begin(read.inspecting, on_inspection=read.on_inspection)
        expected.take_over(read.files)
        ports = sorted(expected.macs())
        nodes = records.nodes_by_id(conn, {node_id for _, node_id in ports} - {plan.GONE})
    yield f"{plan.WILDCARD}\t{_verdict(expected.allows_unknown)}\t{_why_unknown(target, read.on_inspection)}"
    for mac, node_id in ports:
        yield f"{mac}\t{_verdict(expected.is_allowed(mac, node_id))}\t{_why(node_id, nodes, settings)}"
    for address in sorted(refused):
        form = ("an identifier in hexadecimal that is not made of a MAC address" if address.startswith("id:")
                else "a unicast MAC address")
        yield f"{printable(address, 64)}\trefused\tnot {form}"
    yield from states


def _verdict(allowed: bool) -> str:
    return "allow" if allowed else "deny"


def _why_unknown(settings: TargetSettings, inspecting: int) -> str:
    if settings.deny_unknown:
        return "[pxe_filter]deny_unknown_macs"
    if settings.discovery:
        return "[auto_discovery]enabled"
    return f"{inspecting} nodes are on inspection"


def _why(node_id: int, nodes: Mapping[int, records.Node], settings: FilterSettings) -> str:
    if node_id == plan.GONE:
        return "in an old file, but no port has it (any more): treated as unknown"
    node = nodes.get(node_id)
    if node is None:
        return "its node has been deleted"
    text = f"node {node.uuid} is in '{node.provision_state}'"
    if node.provision_state in records.STATES and node.inspect_interface not in settings.interfaces:
        text += (f", but its inspect interface '{node.inspect_interface}' is not in "
                 "[pxe_filter]supported_inspect_interfaces")
    return text
