"""Tasks: the drafts of a locked node, loaded from and saved to the database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from ironic_rules.context import RequestContext
from ironic_rules.db import hardware_cache, node_sets, nodes, portgroups, ports
from ironic_rules.db.session import Database
from ironic_rules.db.tables import node_traits
from ironic_rules.db.tables import portgroups as portgroups_table
from ironic_rules.inspection import known_bmcs
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.fields import values_of
from ironic_rules.models.known_secrets import KNOWN
from ironic_rules.models.nodes import NODE, Node
from ironic_rules.models.ports import PORT, PORT_GROUP, Port, PortGroup
from ironic_rules.models.task import RuleRevisions, Task

#: Seconds after which ports, traits and rules are read again. They can change at any time, also during the work.
_RECENT_S = 0.5


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as the database has it, with all that a task needs.

    :ivar read_at: when it was read (``time.monotonic()``)
    """

    node: Node
    traits: list[str]
    ports: Sequence[Port]
    port_groups: Sequence[PortGroup]
    revisions: RuleRevisions | None = None
    read_at: float = field(default_factory=time.monotonic)

    @property
    def is_recent(self) -> bool:
        """True if a holder of the node's lock since then need not read it again."""
        return time.monotonic() - self.read_at < _RECENT_S

    def task(self, context: RequestContext) -> Task:
        """Return drafts of the record: each call gives new ones."""
        # Code that works on the node may log a text that its BMC or agent has sent back.
        KNOWN.learn(self.node.driver_info, self.node.instance_info)
        return Task(
            NodeDraft(values_of(NODE, self.node), self.traits),
            [PortDraft(values_of(PORT, port)) for port in self.ports],
            [values_of(PORT_GROUP, group) for group in self.port_groups], context, self.revisions)


def read(conn: sa.Connection, row: Node, revisions: RuleRevisions | None = None) -> NodeRecord:
    """Return the record of ``row``, a row of the nodes table.

    :param revisions: those of the sets of rules, if they were read with the row
    """
    names = node_sets.list_traits(conn, [row.id])[row.id] if nodes.has_part(row, node_traits) else []
    groups = portgroups.for_node(conn, row.id) if nodes.has_part(row, portgroups_table) else []
    return NodeRecord(row, names, ports.for_node(conn, row.id), groups, revisions)


def read_unlocked(db: Database, node_id: str | int) -> NodeRecord:
    """Return the record of the node as it is now, without a lock: for reading only, its tasks cannot be saved."""
    with db.reader() as conn:
        return read(conn, nodes.get_with_parts(conn, node_id))


def read_locked(conn: sa.Connection, lock: nodes.Lock) -> NodeRecord:
    """Return the record of a node of which ``lock`` is held.

    :raises NodeNotFound: the node was deleted;  LockLost: the lock was taken over
    """
    row, revisions = nodes.get_locked(conn, lock)
    return read(conn, row, revisions)


def forget_token(db: Database, lock: nodes.Lock) -> None:
    """Invalidate the agent token of a locked node, in a transaction of its own.

    :raises LockLost: the lock was taken over
    """
    # Mostly there is none, and then nothing has to be written: a transaction of its own costs as much as ten queries.
    with db.reader() as conn:
        is_there = nodes.has_agent_token_locked(conn, lock)
    if is_there:
        db.write(lambda conn: nodes.update_locked(conn, lock, {"agent_token_hash": None}))


def save(conn: sa.Connection, task: Task, lock: nodes.Lock, values: JSONObject, *, release: bool) -> None:
    """Write what the task changed, and ``values`` on top, in the caller's transaction.

    :param lock: the lock under which the task was read
    :param release: give the lock back
    :raises LockLost: the lock was taken over; nothing is to be written then
    """
    changed = {**task.node.changes(), **values}
    if release:
        nodes.release(conn, lock, changed)
    else:
        nodes.update_locked(conn, lock, changed)
    _save_parts(conn, task, changed)


def save_unlocked(conn: sa.Connection, task: Task) -> None:
    """Write what the task changed on a node that is not reserved, and whose row the caller has locked."""
    changed = task.node.changes()
    if changed:
        nodes.update(conn, task.node.id, changed)
    _save_parts(conn, task, changed)


def _save_parts(conn: sa.Connection, task: Task, changed: JSONObject) -> None:
    """Write what belongs to the node and is in other tables."""
    node_id = task.node.id
    if "driver_info" in changed:
        known_bmcs.follow(conn, node_id, task.node.original("driver_info"), changed["driver_info"])
    if (new_traits := task.node.trait_changes()) is not None:
        node_sets.set_traits(conn, node_id, new_traits)
    if port_changes := task.port_changes():
        ports.apply_changes(conn, node_id, port_changes)
    if task.bios_settings is not None:
        hardware_cache.save_settings(conn, node_id, task.bios_settings)
    if task.firmware_components is not None:
        hardware_cache.save_components(conn, node_id, task.firmware_components)
