"""Inspection in the conductor: starting it, processing what a ramdisk or a BMC has sent, aborting, timing out."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_log import log as logging
from oslo_utils import uuidutils

from ironic_rules.conductor import hardware_cache, legacy_rules, notices, state_machine, wait_states
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.conductor.legacy_rules import LegacyWork
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, facts, inventory, node_sets, nodes, ports, rule_records
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.exceptions import (
    HookFailed,
    Invalid,
    IronicRulesError,
    RuleFailed,
    identified,
    inspection_aborted,
    inspection_failed,
    ramdisk_silent,
)
from ironic_rules.hardware import resolver
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.inspection import fitting, known_bmcs, records
from ironic_rules.inspection.fact_sets import FactWork, event_of, previous_of
from ironic_rules.inspection.pipeline import Outcome
from ironic_rules.metrics.numbers import Stages
from ironic_rules.models import addresses, documents, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inspections import OUT_OF_BAND, Inspection
from ironic_rules.models.internal_keys import BMC_ADDRESSES, WAITS_FOR_MORE
from ironic_rules.models.inventories import UNSHARED, InspectionData, Report, Sharing, StoredInventory
from ironic_rules.models.kept import Kept
from ironic_rules.models.task import STEP, Abandoned, Task
from ironic_rules.rules import RuleRuns
from ironic_rules.text import WITHHELD, printable

LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: Maximum number of matching rules that the node's history names.
_NAMED_RULES = 50


def inspect(conductor: Conductor, task: Task) -> StateResult:
    """INSPECTING: process data that a ramdisk has sent, else start the inspection."""
    pending: Report | StoredInventory | None = task.report
    if pending is None:
        with conductor.db.reader() as conn:
            pending = inventory.pending(conn, task.node.id)
    return start(conductor, task) if pending is None else process(conductor, task, pending)


def start(conductor: Conductor, task: Task) -> StateResult:
    """Prepare the node for its ramdisk, or inspect it out of band, as its inspect interface does."""
    task.node.inspection_started_at = clock.now()
    task.node.inspection_finished_at = None
    interface = conductor.hardware.interface(task.node, "inspect")
    # A function, which a copy of the task shares; of a partial object it would have the conductor copied.
    task.addresses_of_others = lambda macs: _of_others(conductor, task.node.id, macs)
    data = _call(task, interface, interface.inspect_hardware)
    hardware_cache.refresh(conductor, task)
    if data is None or data == states.INSPECTWAIT:
        return _booted(task)
    if data == states.MANAGEABLE:
        task.node.inspection_finished_at = clock.now()
        text = "The inspect interface has no data of the machine: no hook and no rule has run."
        return StateResult("done", history=text)
    drafts = task.copy()
    result = _process_read(conductor, task, data)
    # The BMC is not read again.
    result.again, result.drafts = lambda conductor, task: _process_read(conductor, task, data), drafts
    return result


def _booted(task: Task) -> StateResult:
    """Return the result of a start after which the node waits for its ramdisk."""
    node_id, driver_info = task.node.id, dict(task.node.driver_info)
    bmc_addresses = list(task.node.driver_internal_info.get(BMC_ADDRESSES, ()))
    result = StateResult("wait", also=lambda conn: known_bmcs.resolved(conn, node_id, driver_info, bmc_addresses))
    if created := {values["address"] for values in task.port_changes().created}:

        def without_those_of_others(conductor: Conductor, task: Task) -> StateResult:
            foreign = _of_others(conductor, node_id, created)
            for port in [port for port in task.ports if port.address in foreign]:
                LOG.warning("No port of node %s is created for %s, which belongs to another node by now",
                            task.node.uuid, port.address)
                task.remove_port(port)
            return _booted(task)

        # The machine is not booted again.
        result.again, result.drafts = without_those_of_others, task.copy()
    return result


def _process_read(conductor: Conductor, task: Task, data: InspectionData) -> StateResult:
    """Run hooks and rules over data that the inspect interface has read itself."""
    node_id = task.node.id
    driver_info = dict(task.node.driver_info)
    interface = conductor.hardware.interface(task.node, "inspect")
    processing = Processing()
    entry = Inspection(OUT_OF_BAND)
    try:
        outcome = processing.run(conductor, task, interface, data)
    except (HookFailed, RuleFailed) as exc:
        describe(entry, conductor, task, processing, exc)
        return StateResult("fail", error=_failed(exc), maintenance=exc.facts.get("maintenance"),
                           inspection=entry, runs=processing.runs, cause=records.cause(exc),
                           also=lambda conn: _store_read(conn, entry, conductor, task, processing.data, None))
    except (*DATABASE_AWAY, Abandoned):
        raise
    except BaseException as exc:  # of the interface
        if not processing.is_sealed:
            raise
        return _withheld(exc)
    finally:
        log_messages(task)
    task.node.inspection_finished_at = clock.now()
    # Host names that a rule has set are resolved by the next inspection, as in-band inspection does.
    is_same = addresses.hosts(task.node.driver_info) == addresses.hosts(driver_info)
    resolved = resolver.addresses(driver_info) if is_same else []

    def store(conn: sa.Connection) -> None:
        if is_same:
            known_bmcs.resolved(conn, node_id, driver_info, resolved)
            _note_shared(conn, task, data.inventory)
            _store_read(conn, entry, conductor, task, processing.data, outcome)
        processing.save(conn, conductor, task, entry)
        count_for_rules(conn, task, outcome)

    describe(entry, conductor, task, processing)
    return StateResult("done", history=summary(outcome), also=store, sealed=processing.is_sealed, inspection=entry,
                       runs=processing.runs, changed_by=_changed_by(entry, conductor, task, processing),
                       committed=lambda: processing.count(conductor))


def describe(entry: Inspection, conductor: Conductor, task: Task, processing: Processing,
              error: Exception | None = None) -> None:
    """Fill in the entry of the history, with what hooks and rules have done."""
    if not state_machine.keeps_history(conductor):
        return
    outcome = processing.outcome
    if outcome is None:
        matched = [trace for trace in getattr(error, "traces", ()) if trace.matched]
        records.describe(entry, task, matched, task.messages, error)
    else:
        entry.seconds.update(outcome.seconds)
        records.describe(entry, task, outcome.matched, outcome.messages)


def _changed_by(entry: Inspection, conductor: Conductor, task: Task, processing: Processing) -> Collection[str]:
    """Return the UUIDs of the rules that have changed the node, for their statistics."""
    if processing.runs is None or not processing.runs.matched:
        return ()
    authors = entry.changed_by if state_machine.keeps_history(conductor) else records.changed_by(task)
    return frozenset(authors).intersection(processing.runs.matched)


def _failed(reason: Exception | str) -> str:
    """Return the text of a failed inspection, with its id."""
    return identified(inspection_failed(reason=identified(reason) if isinstance(reason, Exception) else reason))


def _withheld(error: BaseException) -> StateResult:
    """Return the failure by an error that was raised after a sensitive rule: its text may quote what that wrote."""
    return StateResult("fail", error=_failed(f"{type(error).__name__}; {WITHHELD}"))


@dataclass(slots=True)
class Processing:
    """Hooks and rules run over the data of one inspection; ``outcome`` is None until they have succeeded.

    :ivar is_sealed: whether the drafts contain what a sensitive rule wrote
    :ivar changed_facts: the number of facts whose values have changed, and of watched ones that have become less
    """

    data: InspectionData | None = None
    outcome: Outcome | None = None
    is_sealed: bool = False
    legacy: LegacyWork | None = None
    runs: RuleRuns | None = None
    facts: FactWork | None = None
    changed_facts: tuple[int, int] = (0, 0)

    def run(self, conductor: Conductor, task: Task, interface: InspectInterface | None, data: InspectionData | str,
            rules_revision: int | None = None, *, version: int | None = None, rules_only: bool = False,
            foreign: Collection[str] | None = None, sharing: Sharing = UNSHARED) -> Outcome:
        """Run hooks and rules over the data of an inspect interface, and let the interface finish.

        :param interface: None: the data are of an inspection that has ended, and nothing is done with the machine
        :param rules_revision: that of the stored rules, as just read; None: it is read
        :param version: the id of the data, if they are of an inspection that has ended
        :param rules_only: nothing of what hooks do is kept, but plug-in data
        :param foreign, sharing: what :func:`of_other_machines` returns, if it was read before
        :raises HookFailed, RuleFailed: a hook or a rule refused the data
        :raises IronicRulesError: the interface returned no data, or cannot finish
        """
        if not isinstance(data, InspectionData):
            raise IronicRulesError(
                f"The inspect interface returned neither inspection data nor a state in which inspection can continue, "
                f"but {printable(data, 64) if isinstance(data, str) else type(data).__name__}.")
        if interface is not None and not interface.is_trusted:
            _check_storable(data)
        self.data = data
        rule_set = conductor.rules.current(rules_revision)
        if foreign is None:
            with conductor.db.reader() as conn:
                foreign, sharing = of_other_machines(conn, task.node.id, data.inventory)

        node_id = task.node.id  # the task keeps the function, which must not keep the task

        def previous_inventory() -> JSONObject | None:
            # The inventory that is being processed is not finished yet.
            with conductor.db.reader() as conn:
                return inventory.latest_inventory(conn, node_id, version)

        @functools.cache
        def spent() -> dict[str, int]:
            with conductor.db.reader() as conn:
                return rule_records.spent(conn, task.node.uuid)

        task.begin_inspection(foreign, previous_inventory, sharing)
        self.legacy = legacy_rules.begin(conductor, task)
        self.runs = conductor.rule_statistics.begin()
        fact_cache = conductor.rules.facts
        self.facts = FactWork(fact_cache, fact_cache.current(task.revisions and task.revisions.facts),
                              previous_of(conductor.db, node_id))
        self.outcome = conductor.pipeline.run(
            task, data.inventory, data.plugin_data, rule_set, spent,
            legacy=None if self.legacy is None else self.legacy.run, rules_only=rules_only, runs=self.runs,
            facts=self.facts)
        self.facts.learn()
        self.is_sealed = self.outcome.is_sealed
        fitting.fit(conductor.db, conductor.conf.conductor.heartbeat_timeout, task, sealed=self.is_sealed)
        if interface is not None:
            _call(task, interface, interface.finish)
        return self.outcome

    def save(self, conn: sa.Connection, conductor: Conductor, task: Task, entry: Inspection) -> None:
        """Write what belongs to the drafts, in the transaction that saves these.

        :param entry: of the inspection
        :raises LegacyRuleGone: a legacy rule was deleted since
        """
        if self.legacy is not None:
            self.legacy.save(conn, conductor, task)
        if self.facts is not None:
            self._save_facts(conn, conductor, task, self.facts, entry)

    def _save_facts(self, conn: sa.Connection, conductor: Conductor, task: Task, work: FactWork,
                    entry: Inspection) -> None:
        self.changed_facts = 0, 0
        changes = work.save(conn, task.node.id, task.revisions and task.revisions.facts_digest)
        if not changes:
            return
        # The entry is written later, in the same transaction.
        entry.uuid = entry.uuid or uuidutils.generate_uuid()
        notices.facts(conn, {"uuid": task.node.uuid, "name": task.node.name}, work.told(changes), entry.uuid)
        if conductor.conf.facts.change_days:
            uuid = entry.uuid if state_machine.keeps_history(conductor) else None
            facts.add_changes(conn, task.node.id, changes, uuid)
        shrunk = work.shrunk(changes)
        if shrunk:
            state_machine.add_history(conn, conductor, task.node.id, "inspection", event_of(shrunk), "WARNING",
                                      task.context)
        self.changed_facts = len(changes), len(shrunk)

    def count(self, conductor: Conductor) -> None:
        """Count what was written, after the end of the transaction."""
        for kind, number in zip(("changed", "shrunk"), self.changed_facts, strict=True):
            if number:
                conductor.numbers.count("fact_changes", kind, by=number)


def _of_others(conductor: Conductor, node_id: int, macs: Collection[str]) -> set[str]:
    """Return those of the MAC addresses that no port of the node may get: of others, shared ones, and ignored ones."""
    with conductor.db.reader() as conn:
        owners = ports.node_ids_by_addresses(conn, macs)
        shared = node_sets.sharing(conn, node_id, macs).of_others
    return {address for address in macs if owners.get(address, node_id) != node_id or address in shared
            or addresses.is_ignored(address, conductor.conf.inspector.ignored_macs)}


def _check_storable(data: InspectionData) -> None:
    """Check that data consist of JSON only.

    :raises IronicRulesError: they do not; the text has the place
    """
    for part, sent in (("inventory", data.inventory), ("plug-in data", data.plugin_data)):
        if problem := documents.unstorable(sent):
            raise IronicRulesError(f"The inspect interface returned a value that cannot be stored: "
                                   f"{documents.format_pointer(problem[0]) or '/'} of the {part} {problem[1]}.")


def _store_read(conn: sa.Connection, entry: Inspection, conductor: Conductor, task: Task,
                data: InspectionData | None, outcome: Outcome | None) -> None:
    """Store data that the inspect interface has read itself, with the result of processing them; None: it failed."""
    if data is None or conductor.conf.inventory.data_backend == "none":
        return
    added = inventory.receive(conn, task.node.id, data.inventory, data.plugin_data, task.context.request_id)
    entry.inventory = added
    if outcome is None:
        inventory.finish(conn, added, None, inventory.FAILED)
    else:
        inventory.finish(conn, added, outcome.plugin_data, inventory.PROCESSED)
    inventory.prune(conn, task.node.id, conductor.conf.inventory.max_versions)


def count_for_rules(conn: sa.Connection, task: Task, outcome: Outcome) -> None:
    """Count the node for the rules that may be applied to a limited number of nodes.

    Last in its transaction, because others that count for the same rules wait for its end.

    :raises RuleSpent: another inspection has used up the limit of one of them
    """
    if applied := [trace.uuid for trace in outcome.matched if trace.limited]:
        rule_records.count_node(conn, task.node.uuid, applied)


def process(conductor: Conductor, task: Task, pending: Report | StoredInventory) -> StateResult:
    """Run hooks and rules over stored data. The draft and all that belongs to it are saved together, or not at all."""
    task.stages = Stages("receive")
    entry = state_machine.begun_inspection(task.node, pending.id)
    if pending.refusal is not None:
        task.stages.begin("rules")
        return StateResult("fail", error=_failed(pending.refusal), inspection=entry)
    node_id, keep = task.node.id, conductor.conf.inventory.max_versions
    interface = conductor.hardware.interface(task.node, "inspect")
    processing = Processing()
    waited = task.node.driver_internal_info.pop(WAITS_FOR_MORE, False)
    if waited:
        task.accepted = functools.partial(_accepted_before, conductor, node_id)
    try:
        answer = _call(
            task, interface, interface.continue_inspection, pending.inventory_data, pending.received_plugin_data)
        if answer == states.INSPECTWAIT:
            return _wait(conductor, task, pending)
        if answer == states.MANAGEABLE:
            outcome = Outcome([], pending.received_plugin_data, [])
            _call(task, interface, interface.finish)
        else:
            outcome = processing.run(conductor, task, interface, answer, task.revisions and task.revisions.rules,
                                     **_known_of_others(interface, answer, pending))
    except (HookFailed, RuleFailed) as exc:
        describe(entry, conductor, task, processing, exc)
        return StateResult("fail", error=_failed(exc), maintenance=exc.facts.get("maintenance"),
                           inspection=entry, runs=processing.runs, cause=records.cause(exc))
    except (*DATABASE_AWAY, Abandoned):
        raise
    except BaseException as exc:  # of the interface
        if processing.is_sealed:
            return _withheld(exc)
        if not isinstance(exc, Invalid):
            raise
        return StateResult("fail", error=_failed(exc), inspection=entry)
    finally:
        log_messages(task)
    task.node.inspection_finished_at = clock.now()
    task.node.driver_internal_info.pop(BMC_ADDRESSES, None)

    def store(conn: sa.Connection) -> None:
        if conductor.conf.inventory.data_backend == "none":
            inventory.discard(conn, pending.id)
        else:
            inventory.finish(conn, pending.id, outcome.plugin_data, inventory.PROCESSED)
        if waited:
            inventory.end_wait(conn, node_id)
        _note_shared(conn, task, pending.inventory_data)
        inventory.prune(conn, node_id, keep)
        processing.save(conn, conductor, task, entry)
        count_for_rules(conn, task, outcome)

    event = "enroll-done" if task.node.target_provision_state == states.ENROLL else "done"
    if processing.outcome is not None:
        describe(entry, conductor, task, processing)
    return StateResult(event, history=summary(outcome), also=store, sealed=processing.is_sealed, inspection=entry,
                       runs=processing.runs, changed_by=_changed_by(entry, conductor, task, processing),
                       committed=lambda: processing.count(conductor))


def _known_of_others(interface: InspectInterface, answer: object, pending: Report | StoredInventory) -> JSONObject:
    """Return what was read with a report about addresses of other machines; nothing if that may be of other data."""
    # Interfaces of other packages can have changed the inventory, also in place.
    is_as_sent = (isinstance(answer, InspectionData) and answer.inventory is pending.inventory_data
                  and interface.is_trusted)
    if not is_as_sent or not isinstance(pending, Report):
        return {}
    return {"foreign": pending.foreign_addresses, "sharing": pending.sharing}


def _wait(conductor: Conductor, task: Task, pending: Report | StoredInventory) -> StateResult:
    """Return the result of data after which the inspect interface waits for more."""
    task.node.driver_internal_info[WAITS_FOR_MORE] = True

    def store(conn: sa.Connection) -> None:
        if conductor.conf.inventory.data_backend == "none":
            inventory.discard(conn, pending.id)
        else:
            inventory.finish(conn, pending.id, pending.received_plugin_data, inventory.WAITING)

    return StateResult("wait", history="The inspect interface waits for more data.", also=store)


def _accepted_before(conductor: Conductor, node_id: int) -> InspectionData | None:
    with conductor.db.reader() as conn:
        report = inventory.waiting(conn, node_id)
    return None if report is None else InspectionData(report.inventory_data, report.received_plugin_data)


def _call(task: Task, interface: InspectInterface, method: Callable[..., T], *args: Any) -> T:
    """Return what a method of the inspect interface returns, which has the time of a step, and may write as much.

    :raises IronicRulesError: it wrote more
    """
    snapshot = None if interface.is_trusted else Kept(task, "interfaces")
    task.watch.begin(STEP, _overdue, f"{method.__name__} of the inspect interface {task.node.inspect_interface}")
    try:
        result = method(task, *args)
    finally:
        task.watch.end()
    if snapshot is not None and (problem := snapshot.problem()):
        raise IronicRulesError(f"The inspect interface failed in {method.__name__}: {problem}.")
    return result


def _overdue(method: str, reason: str) -> IronicRulesError:
    return inspection_failed(reason=f"{method}: {reason}")


def failed(conn: sa.Connection, conductor: Conductor, node_id: int) -> None:
    """Keep the data of a failed inspection, marked as failed."""
    if conductor.conf.inventory.data_backend == "none":
        pending = inventory.pending(conn, node_id)
        if pending is not None:
            inventory.discard(conn, pending.id)
    else:
        inventory.supersede(conn, node_id)
    inventory.prune(conn, node_id, conductor.conf.inventory.max_versions)


def of_other_machines(conn: sa.Connection, node_id: int, data: JSONObject) -> tuple[set[str], Sharing]:
    """Return the MAC addresses of an inventory that are ports of other nodes, and those that identify no machine."""
    return ports.of_other_machines(conn, node_id, addresses.of_inventory(data))


def _note_shared(conn: sa.Connection, task: Task, data: JSONObject) -> None:
    """Note the MAC addresses of an inventory that other machines have, too."""
    if task.foreign_addresses or any(task.sharing):
        node_sets.note_shared(conn, task.node.id, task.sharing, task.foreign_addresses, addresses.of_inventory(data))


def summary(outcome: Outcome) -> str:
    matched = outcome.matched
    more = f" and {len(matched) - _NAMED_RULES} more" if len(matched) > _NAMED_RULES else ""
    named = [f"{trace.uuid} ({trace.description or 'no description'})" for trace in matched[:_NAMED_RULES]]
    return "Inspection finished; rules matched: " + (", ".join(named) or "none") + more


def log_messages(task: Task) -> None:
    for level, text in task.messages:
        LOG.log(getattr(logging, level.upper(), logging.INFO), "Inspection of node %s: %s", task.node.uuid,
                printable(text))
    task.messages.clear()


def clean_up(conductor: Conductor, task: Task) -> None:
    """Clean up after a failed inspection as the inspect interface does after an aborted one: power the node off."""
    task.node.driver_internal_info.pop(BMC_ADDRESSES, None)
    task.node.driver_internal_info.pop(WAITS_FOR_MORE, None)
    conductor.hardware.interface(task.node, "inspect").abort(task)


def abort(conductor: Conductor, context: RequestContext, node_id: int) -> None:
    """Begin to abort the wait for a ramdisk.

    :raises invalid_state: 400, the node does not wait (any more);  NodeLocked: 409;  NoFreeWorker: 503
    """
    wait_states.stop(conductor, context, node_id, states.INSPECTWAIT, "abort", inspection_aborted())


def finish_abort(conductor: Conductor, context: RequestContext, lock: nodes.Lock) -> None:
    """Finish an ``abort`` that was accepted by a conductor which died before it was done."""
    wait_states.finish(conductor, context, lock, "abort", inspection_aborted())


def time_out(conductor: Conductor, context: RequestContext, row: nodes.Overdue, before: datetime.datetime) -> None:
    """Fail a node that has waited for its ramdisk longer than ``[conductor]inspect_wait_timeout``: since ``before``."""
    error = ramdisk_silent(awaited="the ramdisk's inspection data", option="inspect_wait_timeout",
                           seconds=conductor.conf.conductor.inspect_wait_timeout)
    wait_states.time_out(conductor, context, row, before, error)
