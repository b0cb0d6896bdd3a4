"""Dry runs, and re-runs of hooks and rules, on many nodes as an operation.

A dry run locks nothing, as that of one node: data may change during it. It has many nodes at once, in one worker,
with as few statements as possible.

A re-run has the data of a node's last inspection and no machine. It holds the node's lock; the provision state stays
the same. One transaction saves the drafts, what belongs to them, and the result of the operation's item. A failure is
written to that item and to the node's history only.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import orjson
import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules import context as contexts
from ironic_rules.conductor import inspection, pxe_filter, state_machine, task_store
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.inspection import Processing
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, inventory, nodes, operations
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.db.operations import Ended, Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import (
    DriverNotFound,
    HookFailed,
    InterfaceNotFound,
    IronicRulesError,
    LockLost,
    NodeLocked,
    NodeNotFound,
    RuleFailed,
    identified,
    inventory_not_found,
)
from ironic_rules.inspection import reapplying, records, trial_machines, trials
from ironic_rules.inspection.pipeline import Outcome, withheld
from ironic_rules.inspection.trial_machines import StoredNode
from ironic_rules.inspection.trials import Result, RulesToTry, TrialSetting
from ironic_rules.metrics.numbers import Stages
from ironic_rules.models import secrets
from ironic_rules.models.inspections import REAPPLY, Inspection
from ironic_rules.models.inventories import UNSHARED, InspectionData, Sharing, StoredInventory
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Abandoned, Task, Watch

LOG = logging.getLogger(__name__)

#: Keys of a trial that are kept: the steps of one node can be looked at with a dry run of that node.
_KEPT = ("outcome", "failure", "node", "ports", "ports_created", "ports_removed", "traits", "plugin_data", "would")


def run_dry_runs(conductor: Conductor, operation: Row, claimed: Sequence[Item]) -> None:
    """Do items of an operation that this process has claimed, in a worker, and note their results."""
    _Batch(conductor, operation, {item.node_uuid: item for item in claimed}).run()


@dataclass(slots=True)
class _Batch:
    """The items of an operation that are done together.

    :ivar left: the items that have no result yet, by the UUIDs of their nodes
    :ivar now: the item whose hooks and rules run
    """

    conductor: Conductor
    operation: Row
    left: dict[str, Item]
    results: list[tuple[Item, Ended]] = field(default_factory=list)
    now: Item | None = None

    def run(self) -> None:
        """Do what is left, and note all results."""
        watch = self.conductor.workers.watch()
        watch.on_overdue = self._go_on
        rules, setting = self._rules(), self._setting(watch)
        for uuid, node in trial_machines.stored_nodes(self.conductor.db, list(self.left)):
            item = self.now = self.left[uuid]
            if not isinstance(node, StoredNode):
                self._end(item, _failed(item, node))
                continue
            try:
                result = trials.try_rules(
                    setting, node.machine, node.data(), rules, traces=False, before=node.plugin_data())
            except (*DATABASE_AWAY, Abandoned):
                raise
            except BaseException as exc:  # noqa: BLE001  (of a plug-in; the other nodes are to be done)
                self._end(item, _failed(item, exc))
            else:
                self._end(item, _ended(item, result))
        self.conductor.db.write(self._store)

    def _go_on(self, error: BaseException) -> None:
        """Do the others, in another worker: code of a plug-in has not ended in time."""
        if self.now is not None and self.now.node_uuid in self.left:
            self._end(self.now, _failed(self.now, error))
        self.run()

    def _rules(self) -> RulesToTry:
        return trials.rules_of_operation(
            self.operation.filters.get("rules"), self.conductor.rules, self.conductor.legacy_rules)

    def _setting(self, watch: Watch) -> TrialSetting:
        conductor, conf = self.conductor, self.conductor.conf
        return TrialSetting(conductor.pipeline, conductor.db, conf.conductor.heartbeat_timeout,
                            conf.legacy_rules.cleanup, watch=watch)

    def _end(self, item: Item, result: Ended) -> None:
        self.left.pop(item.node_uuid)
        self.results.append((item, result))

    def _store(self, conn: sa.Connection) -> None:
        still_claimed = operations.begin_all(
            conn, self.operation.id, [item for item, _ in self.results], self.conductor.instance)
        operations.end_all(conn, [(item, result) for item, result in self.results if item in still_claimed])


def _ended(item: Item, result: Result) -> Ended:
    if isinstance(result.error, (DriverNotFound, InterfaceNotFound)):
        return _failed(item, result.error)
    shown = {name: result.shown[name] for name in _KEPT if name in result.shown}
    text = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)
    if result.error is not None:
        reason = identified(result.error, str(result.shown["failure"]["reason"]))
        return Ended(operations.FAILED, secrets.message(reason), text)
    return Ended(operations.CHANGED if result.is_changed else operations.UNCHANGED, None, text)


def _failed(item: Item, error: BaseException) -> Ended:
    if isinstance(error, IronicRulesError):
        reason = identified(error)
    else:
        LOG.error("The dry run of node %s failed", item.node_uuid, exc_info=error)
        reason = state_machine.UNEXPECTED
    return Ended(operations.FAILED, secrets.message(reason))


#: Purpose of the lock.
PURPOSE = "reapply"


def run_reapply(conductor: Conductor, operation: Row, item: Item, lock: nodes.Lock) -> None:
    """Do one item, in a worker: run hooks and rules on its node.

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
    #: record of the node, read when the lock is taken
    record: task_store.NodeRecord | None = None
    report: StoredInventory | None = None
    foreign: Collection[str] | None = None
    sharing: Sharing = UNSHARED
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
            if self.conductor.db.write(self._take_lock):
                assert self.record is not None
                self.is_locked = True
                if self.report is None:
                    raise inventory_not_found(node=self.record.node.uuid)
                self._apply(self.record, self.report)
        except (*DATABASE_AWAY, Abandoned):
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
        allow_deployed = bool(self.operation.filters.get("allow_deployed"))
        try:
            nodes.take(conn, self.lock, PURPOSE)
        except NodeLocked:
            # Waiting for the lock is of no use if the node is not to be changed.
            reapplying.check(nodes.get_by_id(conn, self.lock.node_id), allow_deployed=allow_deployed)
            raise
        self.record = task_store.read_locked(conn, self.lock)
        self.row = self.record.node
        # An error gives the lock back, too.
        reapplying.check(self.row, allow_deployed=allow_deployed)
        self.report = inventory.newest_report(conn, self.row.id)
        if self.report is not None:
            self.foreign, self.sharing = inspection.of_other_machines(conn, self.row.id, self.report.inventory_data)
        return True

    def _apply(self, record: task_store.NodeRecord, report: StoredInventory) -> None:
        self.entry.inventory = report.id
        attempt = state_machine.Attempt(self.conductor, self.lock, self.context, record)
        while True:
            task = record.task(self.context)
            processing = Processing()
            outcome = self._process(task, processing, report)
            self.entry.save = Stages("commit")
            try:
                self.conductor.db.write(functools.partial(
                    self._save, task=task, processing=processing, report=report, outcome=outcome))
                processing.count(self.conductor)
                break
            except (*DATABASE_AWAY, LockLost, NodeNotFound):
                raise
            except Exception as exc:  # what rules have written may not be storable
                if attempt.repeats(exc):
                    LOG.info("Node %s: %s Hooks and rules run again without it.", record.node.uuid, exc)
                    self.foreign = None
                    continue
                refusals = records.refused_by_save(exc, task)
                failure = records.rule_failure(exc, refusals, sealed=processing.is_sealed)
                try:
                    if failure is not None:
                        raise failure from None
                finally:
                    del failure  # it knows this frame, and they would keep the data until cycles are collected
                if processing.is_sealed:
                    raise withheld(exc) from None
                raise
        changes = task.port_changes()
        if changes.created or changes.deleted:
            pxe_filter.look(self.conductor, self.context)

    def _process(self, task: Task, processing: Processing, report: StoredInventory) -> Outcome:
        """Run hooks and rules on the drafts.

        :raises HookFailed, RuleFailed: described in the entry of the history
        """
        assert self.row is not None
        task.watch = self.conductor.workers.watch()
        task.stages = Stages("hooks")
        data = InspectionData(report.inventory_data, report.received_plugin_data)
        try:
            outcome = processing.run(
                self.conductor, task, None, data, task.revisions and task.revisions.rules, version=report.id,
                rules_only=reapplying.is_deployed(self.row), foreign=self.foreign, sharing=self.sharing)
            if reapplying.is_deployed(self.row):
                reapplying.check_ports(task)
        except (HookFailed, RuleFailed) as exc:
            inspection.describe(self.entry, self.conductor, task, processing, exc)
            self.told = identified(exc)
            raise
        except (*DATABASE_AWAY, Abandoned):
            raise
        except BaseException as exc:  # of a plug-in; its text may quote what a sensitive rule wrote
            if processing.is_sealed:
                raise withheld(exc) from None
            raise
        finally:
            inspection.log_messages(task)
        inspection.describe(self.entry, self.conductor, task, processing)
        return outcome

    def _save(self, conn: sa.Connection, *, task: Task, processing: Processing, report: StoredInventory,
              outcome: Outcome) -> None:
        assert self.row is not None
        if not self._begin(conn):
            nodes.release(conn, self.lock)
            return
        is_same = reapplying.are_equal(outcome.plugin_data, report.plugin_data)
        changed = reapplying.changes(task) or not is_same
        task_store.save(conn, task, self.lock, {}, release=True)
        if not (is_same and report.status == inventory.PROCESSED):
            inventory.finish(conn, report.id, outcome.plugin_data, inventory.PROCESSED)
        processing.save(conn, self.conductor, task, self.entry)
        added = state_machine.add_inspection(conn, self.conductor, self.row, self.context, self.entry, None)
        revision = "" if task.revisions is None else f" (revision {task.revisions.rules} of the rules)"
        event = f"Hooks and rules were applied again{revision}. {inspection.summary(outcome)}"
        state_machine.add_history(conn, self.conductor, self.row.id, "inspection", event if changed else None, "INFO",
                                  self.context, added)
        operations.end(conn, self.item, operations.CHANGED if changed else operations.UNCHANGED)
        inspection.count_for_rules(conn, task, outcome)

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
        reason = self.told or (identified(error) if isinstance(error, IronicRulesError) else state_machine.UNEXPECTED)
        reason = secrets.message(reason)

        def store(conn: sa.Connection, release: bool) -> None:
            is_left = self._begin(conn)
            if release:
                nodes.release(conn, self.lock)
            if not is_left:
                return
            operations.end(conn, self.item, operations.FAILED, reason)
            if self.is_locked and self.row is not None:
                added = state_machine.add_inspection(
                    conn, self.conductor, self.row, self.context, self.entry, reason)
                state_machine.add_history(
                    conn, self.conductor, self.row.id, "inspection",
                    f"Hooks and rules could not be applied again: {reason}", "ERROR", self.context, added)

        try:
            self.conductor.db.write(lambda conn: store(conn, self.is_locked))
        except (LockLost, NodeNotFound):
            self.is_locked = False
            self.conductor.db.write(lambda conn: store(conn, False))
