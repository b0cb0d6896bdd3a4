"""Legacy rules in the conductor: they run on the drafts of an inspection, and are taken back when they are deleted.

Their values are saved with the drafts. An operation takes back on every node what a deleted rule has written there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from ironic_rules import context, legacy
from ironic_rules.conductor import state_machine, task_store
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import legacy_rules as legacy_db
from ironic_rules.db import legacy_values, nodes
from ironic_rules.db.legacy_values import CLEANUP
from ironic_rules.db.operations import Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import LegacyRuleGone, NodeLocked
from ironic_rules.legacy import DataSource, Forgotten, LegacyOutcome, LegacyRuleSet
from ironic_rules.models.rules import OwnedValue
from ironic_rules.models.task import Task

#: Maximum number of values that one entry of the node's history names.
_NAMED = 20


@dataclass(slots=True)
class LegacyWork:
    """The legacy rules of one inspection.

    :ivar before: what they own as it begins, by the ids of the rows
    :ivar outcome: None until they have run
    """

    rule_set: LegacyRuleSet
    cleanup: str
    before: Mapping[int, OwnedValue]
    outcome: LegacyOutcome | None = None

    def run(self, task: Task, data: DataSource) -> LegacyOutcome:
        """Run the rules on the drafts of a task; ``data`` returns the processed data."""
        self.outcome = self.rule_set.run(task, data, tuple(self.before.values()), self.cleanup)
        return self.outcome

    def save(self, conn: sa.Connection, conductor: Conductor, task: Task) -> None:
        """Write what the rules own now, in the transaction that saves the drafts.

        :raises LegacyRuleGone: a rule was deleted since; the inspection is repeated
        """
        if self.outcome is None:
            return
        try:
            legacy_values.save(conn, task.node.id, self.before, self.outcome.owned)
        except LegacyRuleGone:
            conductor.legacy_rules.doubt()
            raise
        tell(conn, conductor, task, self.outcome.forgotten)


def begin(conductor: Conductor, task: Task) -> LegacyWork | None:
    """Return the work of legacy rules on a node; None if there is none, which costs no query."""
    revisions = task.revisions
    rule_set = conductor.legacy_rules.latest(None if revisions is None else revisions.legacy)
    before: Mapping[int, OwnedValue] = {}
    if revisions is None or revisions.owns_legacy_values:
        with conductor.db.reader() as conn:
            before = legacy_values.for_node(conn, task.node.id)
    if not rule_set and not before:
        return None
    return LegacyWork(rule_set, conductor.conf.legacy_rules.cleanup, before)


def tell(conn: sa.Connection, conductor: Conductor, task: Task, forgotten: Sequence[Forgotten]) -> None:
    """Write into the node's history which values legacy rules do not own any more."""
    if forgotten:
        named = " ".join(dict.fromkeys(change.reason for change in forgotten[:_NAMED]))
        more = f" And {len(forgotten) - _NAMED} more." if len(forgotten) > _NAMED else ""
        state_machine.add_history(conn, conductor, task.node.id, "inspection", named + more, "INFO", task.context)


KIND = CLEANUP


def clean_values(conn: sa.Connection, conductor: Conductor, operation: Row, item: Item) -> bool:
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
    taken_back = legacy.take_back(task, tuple(before.values()), rules)
    task_store.save_unlocked(conn, task)
    legacy_values.keep(conn, before, taken_back.kept)
    tell(conn, conductor, task, taken_back.forgotten)
    number = len(owned) - len(taken_back.forgotten)
    state_machine.add_history(
        conn, conductor, row.id, "inspection",
        f"Values that deleted legacy rules had written were taken back: {number}.", "INFO", task.context)
    return True
