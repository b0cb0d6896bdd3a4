"""The operation that takes back on every node what a deleted legacy rule has written there."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules import context, legacy
from ironic_rules.conductor import legacy_rules, state_machine, task_store
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import legacy_rules as legacy_db
from ironic_rules.db import legacy_values, nodes
from ironic_rules.db.legacy_values import CLEANUP
from ironic_rules.db.operations import Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import NodeLocked

KIND = CLEANUP


def clean(conn: sa.Connection, conductor: Conductor, operation: Row, item: Item) -> bool:
    """Take back on one node what the rules own that the operation names; return whether anything was.

    A node that is locked is left as it is: its next inspection takes the values back.

    :raises NodeNotFound: it was deleted;  NodeLocked: a conductor works on it
    """
    row = nodes.get(conn, item.node_uuid, for_update=True)
    if row.reservation is not None:
        raise NodeLocked(node=row.uuid, host=row.reservation)
    before = legacy_values.for_node(conn, row.id)
    rules = {value.rule_uuid for value in before.values()}.intersection(operation.filters["rules"])
    # One that was created again owns them.
    rules -= legacy_db.existing(conn, rules)
    owned = [value for value in before.values() if value.rule_uuid in rules]
    if not owned:
        return False
    task = task_store.read(conn, row).task(context.admin())
    taken = legacy.take_back(task, tuple(before.values()), rules)
    task_store.save_unlocked(conn, task)
    legacy_values.keep(conn, before, taken.kept)
    legacy_rules.tell(conn, conductor, task, taken.forgotten)
    number = len(owned) - len(taken.forgotten)
    state_machine.add_history(
        conn, conductor, row.id, "inspection",
        f"Values that deleted legacy rules had written were taken back: {number}.", "INFO", task.context)
    return True
