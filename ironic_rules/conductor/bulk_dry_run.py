"""Dry runs of many nodes, as an operation: many nodes at once, in one worker, with as few statements as possible.

Nothing is locked: what is read may be changed meanwhile, as for the dry run of one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson
import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import state_machine
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import operations
from ironic_rules.db.operations import Ended, Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import DriverNotFound, InterfaceNotFound, IronicRulesError
from ironic_rules.inspection import trial_machines, trials
from ironic_rules.inspection.trial_machines import StoredNode
from ironic_rules.inspection.trials import Result, RulesToTry, TrialSetting
from ironic_rules.models import secrets
from ironic_rules.models.task import Abandoned, Watch
from ironic_rules.text import MAX_MESSAGE, printable

LOG = logging.getLogger(__name__)

#: Keys of a trial that are kept: the steps of one node can be looked at with a dry run of that node.
_KEPT = ("outcome", "failure", "node", "ports", "ports_created", "ports_removed", "traits", "plugin_data", "would")


def run(conductor: Conductor, operation: Row, claimed: Sequence[Item]) -> None:
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
            except (*state_machine.DATABASE_AWAY, Abandoned):
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
        wanted = operations.begin_all(
            conn, self.operation.id, [item for item, _ in self.results], self.conductor.instance)
        operations.end_all(conn, [(item, result) for item, result in self.results if item in wanted])


def _ended(item: Item, result: Result) -> Ended:
    if isinstance(result.error, (DriverNotFound, InterfaceNotFound)):
        return _failed(item, result.error)
    kept = {name: result.shown[name] for name in _KEPT if name in result.shown}
    text = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)
    if result.error is not None:
        return Ended(operations.FAILED, printable(result.shown["failure"]["reason"], MAX_MESSAGE), text)
    return Ended(operations.CHANGED if result.is_changed else operations.UNCHANGED, None, text)


def _failed(item: Item, error: BaseException) -> Ended:
    if isinstance(error, IronicRulesError):
        reason = str(error)
    else:
        LOG.error("The dry run of node %s failed", item.node_uuid, exc_info=error)
        reason = state_machine.UNEXPECTED
    return Ended(operations.FAILED, printable(secrets.mask_text(reason), MAX_MESSAGE))
