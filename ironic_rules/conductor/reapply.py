"""Running hooks and rules again over the data of a node's last inspection: ``inspection.Processing``, no machine.

The node's lock is held meanwhile, and its provision state stays as it is. One transaction saves the drafts, what
belongs to them, and the result of the operation's item. A failure is written to that item and to the node's history
only.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import orjson
import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules import context as contexts
from ironic_rules.conductor import inspection, inspection_history, pxe_filter, state_machine, task_store
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.inspection import Processing
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, inventory, nodes, operations
from ironic_rules.db.operations import Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import (
    HookFailed,
    InventoryNotFound,
    IronicRulesError,
    LockLost,
    NodeLocked,
    NodeNotFound,
    RuleFailed,
    RuleSpent,
)
from ironic_rules.inspection import authors, dry_run, other_rules, reapplying, records
from ironic_rules.inspection.explained_steps import ExplainedSteps
from ironic_rules.inspection.pipeline import WITHHELD, Outcome
from ironic_rules.metrics.stages import Stages
from ironic_rules.models import secrets
from ironic_rules.models.inspections import REAPPLY, Inspection
from ironic_rules.models.inventories import InspectionData, StoredInventory
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.models.watch import Abandoned
from ironic_rules.rules import RuleSet
from ironic_rules.text import MAX_MESSAGE, printable

LOG = logging.getLogger(__name__)

#: What the lock is taken for.
PURPOSE = "reapply"
#: Maximum number of repetitions because a rule was applied to its last node meanwhile, each time another rule.
_MAX_REPETITIONS = 20
#: What is kept of a dry run: the steps of one node can be looked at with a dry run of that node.
_KEPT = ("outcome", "failure", "node", "ports", "ports_created", "ports_removed", "traits", "plugin_data", "would")


def run(conductor: Conductor, operation: Row, item: Item, lock: nodes.Lock) -> None:
    """Do one item, in a worker: run hooks and rules on its node, or find out what they would do.

    :param lock: not taken yet
    """
    _Work(conductor, operation, item, lock).run()


@dataclass(slots=True)
class _Work:
    conductor: Conductor
    operation: Row
    item: Item
    lock: nodes.Lock
    context: RequestContext = field(init=False)
    row: Node | None = None
    is_locked: bool = False
    #: the failure of a hook or a rule, without secrets
    told: str | None = None
    entry: Inspection = field(default_factory=lambda: Inspection(REAPPLY, started_at=clock.now()))

    def run(self) -> None:
        self.context = contexts.admin()
        self.context.user_id = self.operation.user
        self.context.update_store()
        self.conductor.workers.watch().on_overdue = self.fail
        try:
            if self.operation.filters.get("dry_run"):
                self._try_out()
            elif self.conductor.db.write(self._take_lock):
                self.is_locked = True
                self._apply()
        except (*state_machine.DATABASE_AWAY, Abandoned):
            raise
        except NodeLocked as exc:
            self._postpone(exc)
        except BaseException as exc:  # of a plug-in; the node must not stay locked, nor the others undone
            if not isinstance(exc, IronicRulesError):
                LOG.exception("Hooks and rules cannot run again on node %s", self.item.node_uuid)
            self.fail(exc)

    def _begin(self, conn: sa.Connection) -> bool:
        return operations.begin(conn, self.operation.id, self.item, self.conductor.instance)

    def _take_lock(self, conn: sa.Connection) -> bool:
        """Lock the node; return False if the item is not to be done, because its operation was cancelled."""
        if not self._begin(conn):
            return False
        row = nodes.get_by_id(conn, self.lock.node_id, for_update=True)
        reapplying.check(row, allow_deployed=bool(self.operation.filters.get("allow_deployed")))
        self.row = nodes.reserve(conn, self.lock, PURPOSE)
        return True

    def _apply(self) -> None:
        with self.conductor.db.reader() as conn:
            record = task_store.read_locked(conn, self.lock)
            report = _report(conn, record.node)
        self.row = record.node
        self.entry.inventory = report.id
        for _ in range(_MAX_REPETITIONS):
            task = record.task(self.context)
            processing = Processing()
            outcome = self._process(task, processing, report)
            try:
                self.conductor.db.write(functools.partial(
                    self._save, task=task, processing=processing, report=report, outcome=outcome))
                break
            except RuleSpent as exc:
                LOG.info("Node %s: %s Hooks and rules run again without this rule.", record.node.uuid, exc)
                last: Exception = exc
            except (*state_machine.DATABASE_AWAY, LockLost, NodeNotFound):
                raise
            except Exception as exc:  # what rules have written may not be storable
                refusals = authors.refused_by_save(exc, task)
                if failure := authors.rule_failure(exc, refusals, sealed=processing.is_sealed):
                    raise failure from None
                if processing.is_sealed:
                    raise _withheld(exc) from None
                raise
        else:
            raise last
        changes = task.port_changes()
        if changes.created or changes.deleted:
            pxe_filter.look(self.conductor, self.context)

    def _process(self, task: Task, processing: Processing, report: StoredInventory,
                 explain: ExplainedSteps | None = None, rules: RuleSet | None = None, *,
                 without_legacy: bool = False) -> Outcome:
        """Run hooks and rules on the drafts.

        :param rules: in place of the stored ones;  without_legacy: legacy rules do not run
        :raises HookFailed, RuleFailed: described in the entry of the history
        """
        assert self.row is not None
        task.watch = self.conductor.workers.watch()
        task.stages = Stages("hooks")
        rules_only = reapplying.is_deployed(self.row)
        data = InspectionData(report.inventory_data, report.received_plugin_data)
        try:
            outcome = processing.run(
                self.conductor, task, None, data, task.revisions and task.revisions.rules, version=report.id,
                rules_only=rules_only, explain=explain, other_rules=rules, without_legacy=without_legacy)
            changes = task.port_changes()
            if rules_only and (changes.created or changes.deleted):
                raise IronicRulesError(f"A rule adds or removes a port of node {self.row.uuid}, which has an instance.")
        except (HookFailed, RuleFailed) as exc:
            inspection.describe(self.entry, self.conductor, task, processing, exc)
            self.told = records.concealment(task, data).hide(str(exc))
            raise
        except (*state_machine.DATABASE_AWAY, Abandoned):
            raise
        except BaseException as exc:  # of a plug-in; its text may quote what a sensitive rule wrote
            if processing.is_sealed:
                raise _withheld(exc) from None
            raise
        finally:
            if explain is None:
                inspection.log_messages(task)
        inspection.describe(self.entry, self.conductor, task, processing)
        return outcome

    def _save(self, conn: sa.Connection, *, task: Task, processing: Processing, report: StoredInventory,
              outcome: Outcome) -> None:
        assert self.row is not None
        if not self._begin(conn):
            nodes.release(conn, self.lock)
            return
        changed = _changes(task) or not _are_equal(outcome.plugin_data, report.plugin_data)
        task_store.save(conn, task, self.lock, {}, release=True)
        inventory.finish(conn, report.id, outcome.plugin_data, inventory.PROCESSED)
        processing.save(conn, self.conductor, task)
        added = inspection_history.add(conn, self.conductor, self.row, self.context, self.entry, None)
        if changed:
            revision = "" if task.revisions is None else f" (revision {task.revisions.rules} of the rules)"
            state_machine.add_history(
                conn, self.conductor, self.row.id, "inspection",
                f"Hooks and rules were applied again{revision}. {inspection.summary(outcome)}", "INFO", self.context,
                added)
        operations.end(conn, self.item, operations.CHANGED if changed else operations.UNCHANGED)
        inspection.count(conn, task, outcome)

    def _try_out(self) -> None:
        with self.conductor.db.reader() as conn:
            row, revisions = nodes.get_with_revisions(conn, self.lock.node_id)
            record = task_store.read(conn, row, revisions)
            report = _report(conn, row)
            data = InspectionData(report.inventory_data, report.received_plugin_data)
            machine = dry_run.stored(conn, row, data)
        self.row = row
        task = record.task(self.context)
        steps = ExplainedSteps()
        said = self.operation.filters.get("rules")
        rules = None if said is None else other_rules.rule_set(said, self.conductor.rules)
        before = report.received_plugin_data if report.plugin_data is None else report.plugin_data
        try:
            outcome = self._process(task, Processing(), report, steps, rules,
                                    without_legacy=said is not None and said["only"])
        except (HookFailed, RuleFailed) as exc:
            found, status = dry_run.failed(steps, dry_run.failure(exc), ()), operations.FAILED
        else:
            found = dry_run.finished(machine, task, steps, before, outcome.plugin_data, ())
            changed = _changes(task) or not _are_equal(outcome.plugin_data, before)
            status = operations.CHANGED if changed else operations.UNCHANGED
        result: JSONObject = {name: found.shown[name] for name in _KEPT if name in found.shown}
        error = result["failure"] and printable(result["failure"]["reason"], MAX_MESSAGE)

        def store(conn: sa.Connection) -> None:
            if self._begin(conn):
                operations.end(conn, self.item, status, error, result)

        self.conductor.db.write(store)

    def _postpone(self, error: NodeLocked) -> None:
        if self.item.postponed >= operations.MOST_POSTPONED:
            self.fail(error)
            return

        def store(conn: sa.Connection) -> None:
            if self._begin(conn):
                operations.postpone(conn, self.item)

        self.conductor.db.write(store)

    def fail(self, error: BaseException) -> None:
        """Note that the item has failed, and release the node as it was."""
        reason = self.told or (str(error) if isinstance(error, IronicRulesError) else state_machine.UNEXPECTED)
        reason = printable(secrets.mask_text(reason), MAX_MESSAGE)

        def store(conn: sa.Connection, release: bool) -> None:
            is_left = self._begin(conn)
            if release:
                nodes.release(conn, self.lock)
            if not is_left:
                return
            operations.end(conn, self.item, operations.FAILED, reason)
            if self.is_locked and self.row is not None:
                added = inspection_history.add(
                    conn, self.conductor, self.row, self.context, self.entry, reason)
                state_machine.add_history(
                    conn, self.conductor, self.row.id, "inspection",
                    f"Hooks and rules could not be applied again: {reason}", "ERROR", self.context, added)

        try:
            self.conductor.db.write(lambda conn: store(conn, self.is_locked))
        except (LockLost, NodeNotFound):
            self.is_locked = False
            self.conductor.db.write(lambda conn: store(conn, False))


def _report(conn: sa.Connection, row: Node) -> StoredInventory:
    """Return the data of the last inspection.

    :raises InventoryNotFound: none are kept
    """
    found = inventory.newest_report(conn, row.id)
    if found is None:
        raise InventoryNotFound(node=row.uuid)
    return found


def _changes(task: Task) -> bool:
    return bool(task.node.changes()) or task.node.trait_changes() is not None or bool(task.port_changes())


def _are_equal(first: JSONObject, second: JSONObject | None) -> bool:
    return orjson.dumps(first, option=orjson.OPT_SORT_KEYS) == orjson.dumps(second, option=orjson.OPT_SORT_KEYS)


def _withheld(error: BaseException) -> IronicRulesError:
    """Return the error without its text, which may quote what a sensitive rule wrote."""
    return IronicRulesError(f"{type(error).__name__}; {WITHHELD}")
