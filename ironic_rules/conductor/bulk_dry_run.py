"""Dry runs of many nodes, as an operation: many nodes at once, in one worker, with as few statements as possible.

Nothing is locked: what is read may be changed meanwhile, as for the dry run of one node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson
import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import state_machine
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import operations
from ironic_rules.db.operations import Ended, Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import InventoryNotFound, IronicRulesError, NodeNotFound
from ironic_rules.inspection import bulk_dry_run, other_rules
from ironic_rules.inspection.bulk_dry_run import BulkDryRun, StoredNode
from ironic_rules.models import secrets
from ironic_rules.models.watch import Abandoned
from ironic_rules.text import MAX_MESSAGE, printable

LOG = logging.getLogger(__name__)


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
        trial = self._trial()
        for node in self._stored():
            item = self.now = self.left[node.row.uuid]
            try:
                tried = trial.run(node, watch)
            except (*state_machine.DATABASE_AWAY, Abandoned):
                raise
            except BaseException as exc:  # noqa: BLE001  (of a plug-in; the other nodes are to be done)
                self._end(item, _failed(item, exc))
            else:
                self._end(item, _ended(tried))
        self.conductor.db.write(self._store)

    def _go_on(self, error: BaseException) -> None:
        """Do the others, in another worker: code of a plug-in has not ended in time."""
        if self.now is not None and self.now.node_uuid in self.left:
            self._end(self.now, _failed(self.now, error))
        self.run()

    def _trial(self) -> BulkDryRun:
        conductor, said = self.conductor, self.operation.filters.get("rules")
        rules = conductor.rules.latest() if said is None else other_rules.rule_set(said, conductor.rules)
        legacy = None if said is not None and said["only"] else conductor.legacy_rules.latest()
        return BulkDryRun(conductor.pipeline, conductor.db, rules, legacy, conductor.conf.legacy_rules.cleanup,
                          conductor.conf.conductor.heartbeat_timeout)

    def _stored(self) -> Iterator[StoredNode]:
        """Yield the nodes that are left with their data; note of the others why they have none."""
        db = self.conductor.db
        with db.reader() as conn:
            found = bulk_dry_run.read(conn, list(self.left))
        known = {row.uuid: report for row, report, _ in found}
        for item in list(self.left.values()):
            if item.node_uuid not in known:
                self._end(item, _failed(item, NodeNotFound(node=item.node_uuid)))
            elif known[item.node_uuid] is None:
                self._end(item, _failed(item, InventoryNotFound(node=item.node_uuid)))
        for part in bulk_dry_run.parts(found):
            with db.reader() as conn:
                nodes = bulk_dry_run.stored(conn, db, part)
            yield from nodes
            for row, _ in part:
                if row.uuid in self.left:  # its data were removed meanwhile
                    item = self.left[row.uuid]
                    self._end(item, _failed(item, InventoryNotFound(node=row.uuid)))

    def _end(self, item: Item, result: Ended) -> None:
        self.left.pop(item.node_uuid)
        self.results.append((item, result))

    def _store(self, conn: sa.Connection) -> None:
        wanted = operations.begin_all(
            conn, self.operation.id, [item for item, _ in self.results], self.conductor.instance)
        operations.end_all(conn, [(item, result) for item, result in self.results if item in wanted])


def _ended(tried: bulk_dry_run.Tried) -> Ended:
    result = orjson.dumps(tried.shown, option=orjson.OPT_SORT_KEYS)
    if tried.is_failed:
        return Ended(operations.FAILED, printable(tried.shown["failure"]["reason"], MAX_MESSAGE), result)
    return Ended(operations.CHANGED if tried.is_changed else operations.UNCHANGED, None, result)


def _failed(item: Item, error: BaseException) -> Ended:
    if isinstance(error, IronicRulesError):
        reason = str(error)
    else:
        LOG.error("The dry run of node %s failed", item.node_uuid, exc_info=error)
        reason = state_machine.UNEXPECTED
    return Ended(operations.FAILED, printable(secrets.mask_text(reason), MAX_MESSAGE))
