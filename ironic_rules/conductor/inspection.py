"""Inspection in the conductor: starting it, accepting a ramdisk's data, processing it, aborting, timing out."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.conductor import (
    admission,
    hardware_cache,
    inspection_history,
    legacy_rules,
    pxe_filter,
    state_machine,
    task_store,
    wait_states,
)
from ironic_rules.conductor.conductor import Again, Conductor, Result
from ironic_rules.conductor.legacy_rules import LegacyWork
from ironic_rules.conductor.worker_pool import PATIENCE_S, Slot
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, discovery, inventory, nodes, ports, rule_nodes
from ironic_rules.exceptions import (
    HookFailed,
    Invalid,
    IronicRulesError,
    NodeLocked,
    NodeNotFound,
    NoFreeWorker,
    RuleFailed,
)
from ironic_rules.hardware import resolver
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.inspection import fitting, known_bmcs, records
from ironic_rules.inspection.pipeline import WITHHELD, Outcome
from ironic_rules.metrics.stages import Stages
from ironic_rules.models import addresses, json_values, mac, pointer, states
from ironic_rules.models.inspections import OUT_OF_BAND, Inspection
from ironic_rules.models.inventories import InspectionData, Report, StoredInventory
from ironic_rules.models.kept import Kept
from ironic_rules.models.task import Task
from ironic_rules.models.watch import STEP, Abandoned
from ironic_rules.rules import RuleRuns
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: key of ``driver_internal_info`` while the inspect interface waits for more data than it has received
WAITS = "inspection_waits_for_more"
ABORTED = "Inspection was aborted by request."
_OURS = "ironic_rules.hardware."
#: Maximum number of matching rules that the node's history names.
_NAMED_RULES = 50


def accept(conductor: Conductor, context: RequestContext, node_id: str | int, data: dict[str, Any],
           plugin_data: dict[str, Any], refusal: str | None = None) -> bool | None:
    """Store a ramdisk's data, move its node to INSPECTING under this conductor's lock, and start processing.

    When this returns, one transaction has committed the data, the state and the lock: even if this conductor dies now,
    the data will be processed. A node in ENROLL is accepted only once, and only if discovery has created it for these
    data.

    :param refusal: why the inspection has to fail; None: the data are processed
    :returns: whether the token whose hash the context has is now that of the ramdisk; None: it has none
    :raises NotFound: the node is not in INSPECT WAIT;  NodeLocked: 409;  NoFreeWorker: 503
    """
    if isinstance(node_id, str):
        with conductor.db.reader() as conn:
            node_id = nodes.get_id(conn, node_id)
    lock = conductor.new_lock(node_id)
    stages = Stages("accept")
    with _slot(conductor, node_id) as slot:
        is_new, report, claimed, record = conductor.db.write(
            lambda conn: _store(conn, lock, context, data, plugin_data, refusal))
        if is_new:
            pxe_filter.look(conductor, context)
        context.mark = context.token_hash = None
        slot.run(state_machine.run, conductor, lock, context, report, record)
    state_machine.observe(conductor, stages)
    return claimed


def _store(conn: sa.Connection, lock: nodes.Lock, context: RequestContext, data: dict[str, Any],
           plugin_data: dict[str, Any],
           refusal: str | None) -> tuple[bool, Report, bool | None, task_store.Record | None]:
    """Write what :func:`accept` promises, and read what the work begins with: two transactions less.

    :returns: whether discovery has just created the node; what is stored; what :func:`accept` returns; the node
    """

    def reserve(state: str, event: str, **more: Any) -> None:
        values = state_machine.state_values(states.TRANSITIONS[(state, event)]) | more
        if state == states.INSPECTWAIT:
            # That of a discovered node which waits for more data is not the usual one.
            del values["target_provision_state"]
        nodes.reserve_in_state(conn, lock, "continue inspection", state, values)

    is_new = False
    try:
        reserve(states.INSPECTWAIT, "resume")
    except NodeNotFound:
        is_new = discovery.accept(conn, lock.node_id)
        if not is_new:
            raise
        reserve(states.ENROLL, "discovered", inspection_started_at=clock.now(), inspection_finished_at=None)
    # The node waits for a report: an equal one that was accepted before belongs to an earlier inspection.
    admission.admit(conn, context, lock.node_id, renew=True)
    stored = inventory.receive(conn, lock.node_id, data, plugin_data, context.request_id, refusal)
    report = Report(stored, data, plugin_data, refusal, foreign_addresses(conn, lock.node_id, data))
    # Here and not in a transaction of its own: that would cost as much as the whole of this one.
    token_hash = context.token_hash
    claimed = None if token_hash is None else nodes.claim_agent_token(conn, lock.node_id, token_hash)
    return is_new, report, claimed, _record(conn, lock)


def _record(conn: sa.Connection, lock: nodes.Lock) -> task_store.Record | None:
    """Return the node as its work begins with it; None if a value in it cannot be read."""
    try:
        return task_store.read_locked(conn, lock)
    except (IronicRulesError, db_exc.DBError, sa.exc.SQLAlchemyError):
        raise
    except Exception:  # noqa: BLE001  (the work meets it again, and fails for that reason; the data are stored)
        return None


def _slot(conductor: Conductor, node_id: int) -> Slot:
    """Return a slot for work on the node.

    :raises NodeLocked: 409, this conductor works on the node itself;  NoFreeWorker: 503
    """
    try:
        return conductor.workers.take(node_id, PATIENCE_S)
    except NoFreeWorker:
        with conductor.db.reader() as conn:
            row = nodes.get_by_id(conn, node_id)
        if row.reservation is None:
            raise
        raise NodeLocked(node=row.uuid, host=row.reservation) from None


def inspect(conductor: Conductor, task: Task) -> Result:
    """INSPECTING: process data that a ramdisk has sent, else start the inspection."""
    pending: Report | StoredInventory | None = task.report
    if pending is None:
        with conductor.db.reader() as conn:
            pending = inventory.pending(conn, task.node.id)
    return start(conductor, task) if pending is None else process(conductor, task, pending)


def start(conductor: Conductor, task: Task) -> Result:
    """Prepare the node for its ramdisk, or inspect it out of band, as its inspect interface does."""
    task.node.inspection_started_at = clock.now()
    task.node.inspection_finished_at = None
    interface = conductor.hardware.interface(task.node, "inspect")
    # A function, which a copy of the task shares; of a partial object it would have the conductor copied.
    task.addresses_of_others = lambda macs: _of_others(conductor, task.node.id, macs)
    data = _call(task, interface.inspect_hardware)
    hardware_cache.refresh(conductor, task)
    if data is None or data == states.INSPECTWAIT:
        return _booted(task)
    if data == states.MANAGEABLE:
        task.node.inspection_finished_at = clock.now()
        return Result("done", history="The inspect interface has no data of the machine: no hook and no rule has run.")
    read = task.copy()
    result = _process_read(conductor, task, data)
    # The BMC is not read again.
    result.again = Again(read.copy, lambda conductor, task: _process_read(conductor, task, data))
    return result


def _booted(task: Task) -> Result:
    """Return the result of a start after which the node waits for its ramdisk."""
    node_id, driver_info = task.node.id, dict(task.node.driver_info)
    found = list(task.node.driver_internal_info.get("lookup_bmc_addresses", ()))
    result = Result("wait", also=lambda conn: known_bmcs.resolved(conn, node_id, driver_info, found))
    if created := {values["address"] for values in task.port_changes().created}:

        def without_those_of_others(conductor: Conductor, task: Task) -> Result:
            others = _of_others(conductor, node_id, created)
            for port in [port for port in task.ports if port.address in others]:
                LOG.warning("No port of node %s is created for %s, which belongs to another node by now",
                            task.node.uuid, port.address)
                task.remove_port(port)
            return _booted(task)

        # The machine is not booted again.
        result.again = Again(task.copy().copy, without_those_of_others)
    return result


def _process_read(conductor: Conductor, task: Task, data: InspectionData) -> Result:
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
        return Result("fail", error=f"Inspection failed: {exc}", maintenance=exc.facts.get("maintenance"),
                      inspection=entry, runs=processing.runs,
                      also=lambda conn: _add(conn, entry, conductor, task, processing.data, None))
    except (*state_machine.DATABASE_AWAY, Abandoned):
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
        _add(conn, entry, conductor, task, processing.data, outcome)
        processing.save(conn, conductor, task)
        count(conn, task, outcome)

    describe(entry, conductor, task, processing)
    return Result("done", history=summary(outcome), also=store, sealed=processing.is_sealed, inspection=entry,
                  runs=processing.runs, changed_by=_changed_by(entry, conductor, task, processing))


def describe(entry: Inspection, conductor: Conductor, task: Task, processing: Processing,
              error: Exception | None = None) -> None:
    """Fill in the entry of the history, with what hooks and rules have done."""
    if not inspection_history.is_kept(conductor):
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
    authors = entry.changed_by if inspection_history.is_kept(conductor) else records.changed_by(task)
    return frozenset(authors).intersection(processing.runs.matched)


def _withheld(error: BaseException) -> Result:
    """Return the failure by an error that was raised after a sensitive rule: its text may quote what that wrote."""
    return Result("fail", error=f"Inspection failed: {type(error).__name__}; {WITHHELD}")


@dataclass(slots=True)
class Processing:
    """Hooks and rules run over the data of one inspection; ``outcome`` is None until they have succeeded.

    :ivar is_sealed: whether the drafts contain what a sensitive rule wrote
    """

    data: InspectionData | None = None
    outcome: Outcome | None = None
    is_sealed: bool = False
    legacy: LegacyWork | None = None
    runs: RuleRuns | None = None

    def run(self, conductor: Conductor, task: Task, interface: InspectInterface | None, data: InspectionData | str,
            rules_revision: int | None = None, *, version: int | None = None, rules_only: bool = False,
            foreign: Collection[str] | None = None) -> Outcome:
        """Run hooks and rules over the data of an inspect interface, and let the interface finish.

        :param interface: None: the data are of an inspection that has ended, and nothing is done with the machine
        :param rules_revision: that of the stored rules, as just read; None: it is read
        :param version: the id of the data, if they are of an inspection that has ended
        :param rules_only: nothing of what hooks do is kept, but plug-in data
        :param foreign: what :func:`foreign_addresses` returns, if it was read before
        :raises HookFailed, RuleFailed: a hook or a rule refused the data
        :raises IronicRulesError: the interface returned no data, or cannot finish
        """
        if not isinstance(data, InspectionData):
            raise IronicRulesError(
                f"The inspect interface returned neither inspection data nor a state in which inspection can continue, "
                f"but {printable(data, 64) if isinstance(data, str) else type(data).__name__}.")
        if interface is not None and not type(interface).__module__.startswith(_OURS):
            _check_storable(data)
        self.data = data
        rule_set = conductor.rules.current(rules_revision)
        if foreign is None:
            with conductor.db.reader() as conn:
                foreign = foreign_addresses(conn, task.node.id, data.inventory)

        node_id = task.node.id  # the task keeps the function, which must not keep the task

        def previous_inventory() -> dict[str, Any] | None:
            # The inventory that is being processed is not finished yet.
            with conductor.db.reader() as conn:
                return inventory.latest_inventory(conn, node_id, version)

        @functools.cache
        def spent() -> dict[str, int]:
            with conductor.db.reader() as conn:
                return rule_nodes.spent(conn, task.node.uuid)

        task.begin_inspection(foreign, previous_inventory)
        self.legacy = legacy_rules.begin(conductor, task)
        self.runs = conductor.rule_statistics.begin()
        self.outcome = conductor.pipeline.run(
            task, data.inventory, data.plugin_data, rule_set, spent,
            legacy=None if self.legacy is None else self.legacy.run, rules_only=rules_only, runs=self.runs)
        self.is_sealed = self.outcome.is_sealed
        fitting.fit(conductor.db, conductor.conf.conductor.heartbeat_timeout, task, sealed=self.is_sealed)
        if interface is not None:
            _call(task, interface.finish)
        return self.outcome

    def save(self, conn: sa.Connection, conductor: Conductor, task: Task) -> None:
        """Write what belongs to the drafts, in the transaction that saves these.

        :raises LegacyRuleGone: a legacy rule was deleted meanwhile
        """
        if self.legacy is not None:
            self.legacy.save(conn, conductor, task)


def _of_others(conductor: Conductor, node_id: int, macs: Collection[str]) -> set[str]:
    with conductor.db.reader() as conn:
        owners = ports.node_ids_by_addresses(conn, macs)
    return {address for address, owner in owners.items() if owner != node_id}


def _check_storable(data: InspectionData) -> None:
    """Check that data consist of JSON only.

    :raises IronicRulesError: they do not; the text has the place
    """
    for what, sent in (("inventory", data.inventory), ("plug-in data", data.plugin_data)):
        if found := json_values.unstorable(sent):
            raise IronicRulesError(f"The inspect interface returned a value that cannot be stored: "
                                   f"{pointer.format(found[0]) or '/'} of the {what} {found[1]}.")


def _add(conn: sa.Connection, entry: Inspection, conductor: Conductor, task: Task, data: InspectionData | None,
         outcome: Outcome | None) -> None:
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


def count(conn: sa.Connection, task: Task, outcome: Outcome) -> None:
    """Count the node for the rules that may be applied to a limited number of nodes.

    Last in its transaction, because others that count for the same rules wait for its end.

    :raises RuleSpent: one of them has been applied to the last one meanwhile
    """
    if applied := [trace.uuid for trace in outcome.matched if trace.limited]:
        rule_nodes.count(conn, task.node.uuid, applied)


def process(conductor: Conductor, task: Task, pending: Report | StoredInventory) -> Result:
    """Run hooks and rules over stored data. The draft and all that belongs to it are saved together, or not at all."""
    task.stages = Stages("receive")
    entry = inspection_history.begun(task.node, pending.id)
    if pending.refusal is not None:
        task.stages.begin("rules")
        return Result("fail", error=f"Inspection failed: {pending.refusal}", inspection=entry)
    node_id, keep = task.node.id, conductor.conf.inventory.max_versions
    interface = conductor.hardware.interface(task.node, "inspect")
    processing = Processing()
    waited = task.node.driver_internal_info.pop(WAITS, False)
    if waited:
        task.accepted = functools.partial(_accepted, conductor, node_id)
    try:
        answer = _call(
            task, interface.continue_inspection, pending.inventory_data, pending.received_plugin_data)
        if answer == states.INSPECTWAIT:
            return _wait(conductor, task, pending)
        if answer == states.MANAGEABLE:
            outcome = Outcome([], pending.received_plugin_data, [])
            _call(task, interface.finish)
        else:
            outcome = processing.run(conductor, task, interface, answer, task.revisions and task.revisions.rules,
                                     foreign=_known_foreign(interface, answer, pending))
    except (HookFailed, RuleFailed) as exc:
        describe(entry, conductor, task, processing, exc)
        return Result("fail", error=f"Inspection failed: {exc}", maintenance=exc.facts.get("maintenance"),
                      inspection=entry, runs=processing.runs)
    except (*state_machine.DATABASE_AWAY, Abandoned):
        raise
    except BaseException as exc:  # of the interface
        if processing.is_sealed:
            return _withheld(exc)
        if not isinstance(exc, Invalid):
            raise
        return Result("fail", error=f"Inspection failed: {exc}", inspection=entry)
    finally:
        log_messages(task)
    task.node.inspection_finished_at = clock.now()
    task.node.driver_internal_info.pop("lookup_bmc_addresses", None)

    def store(conn: sa.Connection) -> None:
        if conductor.conf.inventory.data_backend == "none":
            inventory.discard(conn, pending.id)
        else:
            inventory.finish(conn, pending.id, outcome.plugin_data, inventory.PROCESSED)
        if waited:
            inventory.end_wait(conn, node_id)
        inventory.prune(conn, node_id, keep)
        processing.save(conn, conductor, task)
        count(conn, task, outcome)

    event = "enroll-done" if task.node.target_provision_state == states.ENROLL else "done"
    if processing.outcome is not None:
        describe(entry, conductor, task, processing)
    return Result(event, history=summary(outcome), also=store, sealed=processing.is_sealed, inspection=entry,
                  runs=processing.runs, changed_by=_changed_by(entry, conductor, task, processing))


def _known_foreign(interface: InspectInterface, answer: Any,
                   pending: Report | StoredInventory) -> Collection[str] | None:
    """Return the addresses of other nodes that were read with a report; None if they may be of other data."""
    # Interfaces of other packages can have changed the inventory, also in place.
    is_as_sent = (isinstance(answer, InspectionData) and answer.inventory is pending.inventory_data
                  and type(interface).__module__.startswith(_OURS))
    return pending.foreign_addresses if is_as_sent and isinstance(pending, Report) else None


def _wait(conductor: Conductor, task: Task, pending: Report | StoredInventory) -> Result:
    """Return the result of data after which the inspect interface waits for more."""
    task.node.driver_internal_info[WAITS] = True

    def store(conn: sa.Connection) -> None:
        if conductor.conf.inventory.data_backend == "none":
            inventory.discard(conn, pending.id)
        else:
            inventory.finish(conn, pending.id, pending.received_plugin_data, inventory.WAITING)

    return Result("wait", history="The inspect interface waits for more data.", also=store)


def _accepted(conductor: Conductor, node_id: int) -> InspectionData | None:
    with conductor.db.reader() as conn:
        found = inventory.waiting(conn, node_id)
    return None if found is None else InspectionData(found.inventory_data, found.received_plugin_data)


def _call(task: Task, method: Callable[..., T], *args: Any) -> T:
    """Return what a method of the inspect interface returns, which has the time of a step, and may write as much.

    :raises IronicRulesError: it wrote more
    """
    is_ours = type(getattr(method, "__self__", None)).__module__.startswith(_OURS)
    kept = None if is_ours else Kept(task, "interfaces")
    task.watch.begin(STEP, _overdue, f"{method.__name__} of the inspect interface {task.node.inspect_interface}")
    try:
        found = method(task, *args)
    finally:
        task.watch.end()
    if kept is not None and (problem := kept.problem()):
        raise IronicRulesError(f"The inspect interface failed in {method.__name__}: {problem}.")
    return found


def _overdue(method: str, reason: str) -> IronicRulesError:
    return IronicRulesError(f"Inspection failed: {method}: {reason}")


def failed(conn: sa.Connection, conductor: Conductor, node_id: int) -> None:
    """Keep the data of a failed inspection, marked as failed."""
    if conductor.conf.inventory.data_backend == "none":
        pending = inventory.pending(conn, node_id)
        if pending is not None:
            inventory.discard(conn, pending.id)
    else:
        inventory.supersede(conn, node_id)
    inventory.prune(conn, node_id, conductor.conf.inventory.max_versions)


def foreign_addresses(conn: sa.Connection, node_id: int, data: dict[str, Any]) -> set[str]:
    """Return the MAC addresses of an inventory that are ports of other nodes."""
    owners = ports.node_ids_by_addresses(conn, mac.of_inventory(data))
    return {address for address, owner in owners.items() if owner != node_id}


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
    task.node.driver_internal_info.pop("lookup_bmc_addresses", None)
    task.node.driver_internal_info.pop(WAITS, None)
    conductor.hardware.interface(task.node, "inspect").abort(task)


def abort(conductor: Conductor, context: RequestContext, node_id: int) -> None:
    """Begin to abort the wait for a ramdisk.

    :raises InvalidState: 400, the node does not wait (any more);  NodeLocked: 409;  NoFreeWorker: 503
    """
    wait_states.stop(conductor, context, node_id, states.INSPECTWAIT, "abort", ABORTED)


def finish_abort(conductor: Conductor, context: RequestContext, lock: nodes.Lock) -> None:
    """Finish an ``abort`` that was accepted by a conductor which died before it was done."""
    wait_states.finish(conductor, context, lock, "abort", ABORTED)


def time_out(conductor: Conductor, context: RequestContext, row: nodes.Overdue, before: datetime.datetime) -> None:
    """Fail a node that has waited for its ramdisk longer than ``[conductor]inspect_wait_timeout``: since ``before``."""
    error = (f"Timeout reached while waiting for the ramdisk's inspection data "
             f"({conductor.conf.conductor.inspect_wait_timeout} seconds, [conductor]inspect_wait_timeout).")
    wait_states.time_out(conductor, context, row, before, error)
