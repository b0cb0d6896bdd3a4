"""Work on a locked node, from transient state to transient state, until it is stable and the lock is released.

The transaction that ends an inspection also writes the entry of that inspection, which the node's history names.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import orjson
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging
from oslo_utils import uuidutils

from ironic_rules.conductor import notices, pxe_filter, task_store
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, inventory, node_records, nodes, outbox
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.exceptions import (
    HookFailed,
    IronicRulesError,
    LockLost,
    MACAlreadyExists,
    NodeNotFound,
    RuleFailed,
    RuleSpent,
    identified,
    inspection_failed,
    state_failed,
    work_interrupted,
)
from ironic_rules.inspection import records
from ironic_rules.metrics.numbers import Stages
from ironic_rules.models import secrets, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inspections import FAILED, FINISHED, OUT_OF_BAND, RAMDISK, Inspection
from ironic_rules.models.internal_keys import AGENT_STAYS
from ironic_rules.models.inventories import Report
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Abandoned, Task
from ironic_rules.rules import RuleRuns
from ironic_rules.steps import procedures
from ironic_rules.text import WITHHELD, forget_locals

LOG = logging.getLogger(__name__)


def keeps_history(conductor: Conductor) -> bool:
    """Return whether there is a history at all."""
    return bool(conductor.conf.inspection_history.max_entries)


def begun_inspection(row: Node, inventory_id: int) -> Inspection:
    """Return the entry of an inspection whose data are processed now."""
    inspection = Inspection(inventory=inventory_id)
    accepted, started = row.provision_updated_at, row.inspection_started_at
    if accepted is not None:
        inspection.seconds["queue"] = _seconds(clock.now() - accepted)
        if started is not None:
            inspection.seconds["wait"] = _seconds(accepted - started)
    return inspection


def add_inspection(conn: sa.Connection, conductor: Conductor, row: Node, context: RequestContext,
                   inspection: Inspection | None, error: str | None, outcome: str | None = None) -> str | None:
    """Write the entry; return its UUID, None if there is no history.

    Its oldest entries are deleted by ``state_machine.add_history``.

    :param row: the node as it was before its inspection ended
    :param inspection: what is known of it; None: only that it ended
    :param outcome: None: by whether there is an error
    """
    entry = inspection or Inspection()
    outcome = outcome or (FAILED if error else FINISHED)
    _report_inspection(conn, row, context, entry, error, outcome)
    if not keeps_history(conductor):
        return None
    seconds = dict(entry.seconds)
    if entry.kind == RAMDISK and context.lookup_s is not None:
        seconds["lookup"] = context.lookup_s
    if entry.save is not None:
        # Until here, where almost all is written: the entry cannot tell how long its own transaction takes to end.
        seconds["commit"] = sum(entry.save.end().values())
    failure = entry.failure or ({"reason": error} if error else None)
    details = {"seconds": {name: round(value, 3) for name, value in seconds.items()},
               "rules": orjson.Fragment(entry.rules), "messages": entry.messages, "failure": failure}
    values = {
        **({} if entry.uuid is None else {"uuid": entry.uuid}),
        "kind": entry.kind, "outcome": outcome,
        "user": context.user_id,
        "started_at": entry.started_at or (
            row.provision_updated_at if entry.kind == OUT_OF_BAND else row.inspection_started_at),
        "source": context.source, "conductor": conductor.host, "request_id": context.request_id,
        "inventory_id": entry.inventory, "details": details}
    return node_records.add_inspection(conn, row.id, values)


def _report_inspection(conn: sa.Connection, row: Node, context: RequestContext, inspection: Inspection,
                       error: str | None, outcome: str) -> None:
    if outbox.wanted(conn) is not None:
        # Known before the entry of the history is written, if that is kept.
        inspection.uuid = inspection.uuid or uuidutils.generate_uuid()
        notices.inspection(conn, row, error, {
            "inspection_uuid": inspection.uuid, "kind": inspection.kind, "outcome": outcome, "source": context.source,
            "started_at": inspection.started_at or row.inspection_started_at})


def ends_inspection(state: str, next_state: str) -> bool:
    """Return whether a change of the state ends an inspection."""
    return state == states.INSPECTING and next_state not in (states.INSPECTING, *states.WAITING)


def _seconds(passed: datetime.timedelta) -> float:
    return max(0.0, passed.total_seconds())


UNEXPECTED = f"an unexpected error occurred; the conductor's log has the details ({IronicRulesError.message_id})"
#: Beginning of the purposes of the locks of ``hardware_calls``.
HARDWARE_CALL = "hardware: "
#: Maximum number of times that an inspection is repeated because of what has changed since it began, each time another
#: rule or address.
MAX_REPETITIONS = 20
#: Errors of a save that are caused by what is to be saved.
_BAD_DATA = (
    IronicRulesError, ArithmeticError, TypeError, ValueError, RecursionError, db_exc.DBDataError,
    db_exc.DBDuplicateEntry, db_exc.DBReferenceError, db_exc.DBConstraintError, db_exc.DBInvalidUnicodeParameter)


@dataclass(slots=True)
class Attempt:
    """An attempt at the work that the state of a locked node requires, until its result is saved.

    While an inspection runs, others may apply a rule to its last node, or create a port for one of the machine's
    addresses. Then its result cannot be saved, and the work is repeated, on new drafts.

    :ivar record: the node as it was read under the lock
    :ivar report: what the ramdisk has sent, if it was stored just now: it is not read again
    :ivar drafts: what repetitions begin with, which copy it; None: with the record
    :ivar again: the work of repetitions; None: all of it
    :ivar repetitions: how often the work was repeated
    :ivar taken: the addresses because of which it was: a plug-in may add a port although another node has its address
    """

    conductor: Conductor
    lock: nodes.Lock
    context: RequestContext
    record: task_store.NodeRecord
    report: Report | None = None
    drafts: Task | None = None
    again: Callable[[Conductor, Task], StateResult] | None = None
    repetitions: int = 0
    taken: set[object] = field(default_factory=set)

    def task(self) -> Task:
        """Return new drafts, to work on now."""
        task = self.record.task(self.context) if self.drafts is None else self.drafts.copy()
        # A repetition reads it: an inspect interface of others may have changed it.
        task.report = None if self.repetitions else self.report
        task.watch = self.conductor.workers.watch()
        task.begin_work(lambda task: self._before_ramdisk(task),
                        lambda: self.conductor.agent_tokens.of(self.record.node))
        return task

    def _before_ramdisk(self, task: Task) -> None:
        """Do what has to be done immediately before a ramdisk is started."""
        task_store.forget_token(self.conductor.db, self.lock)
        pxe_filter.await_served(self.conductor, self.context, task)

    def repeats(self, error: Exception, result: StateResult | None = None) -> bool:
        """Return whether the work is repeated, because a save failed as others were faster; it begins then.

        :param result: what was to be saved, with what it keeps for the repetition
        """
        if self.repetitions >= MAX_REPETITIONS or not self._is_overtaken(error):
            return False
        self.repetitions += 1
        if result is not None and result.again is not None:
            self.again, self.drafts = result.again, result.drafts
        return True

    def _is_overtaken(self, error: Exception) -> bool:
        if not isinstance(error, MACAlreadyExists):
            return isinstance(error, RuleSpent)
        address = error.facts["mac"]
        is_new = address not in self.taken
        self.taken.add(address)
        return is_new


def state_values(transition: states.Transition) -> JSONObject:
    """Return the columns that a transition writes."""
    # As in Ironic, only a node whose inspection has not ended has the time when it started.
    ended = {} if transition.state in (states.INSPECTING, states.INSPECTWAIT) else {"inspection_started_at": None}
    return {
        "provision_state": transition.state, "target_provision_state": transition.target,
        "provision_updated_at": clock.now(), **ended,
    }


@contextlib.contextmanager
def lock_may_be_lost(node_id: int) -> Iterator[None]:
    """Log and return when another conductor has taken the node over, or the node is deleted: nothing was written."""
    try:
        yield
    except (LockLost, NodeNotFound) as exc:
        LOG.warning("Gave up working on node id %s: %s", node_id, exc)


def failure_of(action: Callable[[], object], task: Task) -> str | None:
    """Run what a plug-in does; return why it failed, None if it did not.

    Every exception of a plug-in must end in a state and a text that operators see, not in a lock. An unavailable
    database is not a failure of the work: it is resumed when the database is back.
    """
    try:
        action()
    except (*DATABASE_AWAY, Abandoned):
        raise
    except (IronicRulesError, cfg.Error) as exc:
        return identified(exc)
    except BaseException:  # of a plug-in, see above; SystemExit would end only this thread
        LOG.exception("Unexpected failure in state %s of node %s", task.node.provision_state, task.node.uuid)
        return UNEXPECTED
    return None


def clean_up(conductor: Conductor, task: Task) -> str | None:
    """Undo what the node's state has begun, as its failure requires; return why that failed, None if it did not."""
    undo = conductor.work_in(task.node.provision_state).clean_up
    return None if undo is None else failure_of(lambda: undo(conductor, task), task)


def run(conductor: Conductor, lock: nodes.Lock, context: RequestContext, report: Report | None = None,
        record: task_store.NodeRecord | None = None) -> None:
    """Work on a node whose lock is held, until it is in a stable state, or the lock is lost.

    :param report: what the ramdisk has sent, if it was stored just now: it is not read again
    :param record: the node, as it was read then; it is read again if the work has waited
    """
    conductor.workers.watch().on_overdue = functools.partial(fail, conductor, lock, context)
    with lock_may_be_lost(lock.node_id):
        while _step(_begun(conductor, lock, context, report, record)):
            report = record = None


def fail(conductor: Conductor, lock: nodes.Lock, context: RequestContext, error: Exception) -> None:
    """End the work on a node whose lock is held, after its worker was written off: its state fails.

    The lock is replaced first: what the worker does if it returns is no longer done under it.
    """
    of_inspection = isinstance(error, (HookFailed, RuleFailed))
    with lock_may_be_lost(lock.node_id):
        lock = _replaced(conductor, lock)
        record = _read(conductor, lock)
        if conductor.work_in(record.node.provision_state).handle is not None:
            text = identified(inspection_failed(reason=identified(error)) if of_inspection else error)
            stage = "hooks" if isinstance(error, HookFailed) else "rules" if isinstance(error, RuleFailed) else "start"
            runs = RuleRuns(failure=error.facts["rule"]) if isinstance(error, RuleFailed) else None
            _save_failure(Attempt(conductor, lock, context, record),
                          StateResult("fail", error=text, stage=stage, runs=runs, cause=records.cause(error)))


def give_up(conductor: Conductor, lock: nodes.Lock, context: RequestContext, reason: str) -> None:
    """End the work on a node whose lock is held: its state fails, without cleaning up."""
    with lock_may_be_lost(lock.node_id):
        try:
            record = _read(conductor, lock)
            if conductor.work_in(record.node.provision_state).handle is not None:
                result = _failure(record.node, reason, stage="resumption")
                _save(Attempt(conductor, lock, context, record), record.task(context), result)
            else:
                _leave(conductor, lock, record.node, reason)
        except (*DATABASE_AWAY, LockLost, NodeNotFound):
            raise
        except Exception:  # what prevents the work may prevent this too: an option, a value in the database
            LOG.exception("The failure of node id %s cannot be saved with all that belongs to it", lock.node_id)
            conductor.db.write(lambda conn: _fail_alone(conn, conductor, lock, reason))


def reason_of(error: Exception) -> str:
    """Return why work ended with an error that :func:`failure_of` does not handle. Its text may quote anything."""
    return str(error) if isinstance(error, cfg.Error) else f"{type(error).__name__}; {UNEXPECTED}"


def _fail_alone(conn: sa.Connection, conductor: Conductor, lock: nodes.Lock, reason: str) -> None:
    """Write only the new state and the reason, and release the lock."""
    row = nodes.provision_states(conn, lock.node_id)
    before = nodes.get_by_id(conn, lock.node_id) if outbox.wanted(conn) is not None else None
    transition = states.after_event(row, "fail") if conductor.work_in(row.provision_state).handle else None
    values = {} if transition is None else {**state_values(transition), "agent_token_hash": None}
    error = secrets.message(identified(state_failed(state=row.provision_state, step="", reason=reason)))
    nodes.release(conn, lock, {**values, "target_power_state": None, "last_error": error})
    inventory.supersede(conn, lock.node_id)
    if before is not None and transition is not None:
        notices.provision(conn, before, "fail")


def _replaced(conductor: Conductor, lock: nodes.Lock) -> nodes.Lock:
    """Return a new lock in the place of ``lock``.

    :raises LockLost: it is no longer held
    """
    new = conductor.new_lock(lock.node_id)
    if not conductor.db.write(lambda conn: nodes.take_over(conn, lock, new)):
        raise LockLost(node=lock.node_id, host=lock.host)
    return new


def _read(conductor: Conductor, lock: nodes.Lock) -> task_store.NodeRecord:
    with conductor.db.reader() as conn:
        return task_store.read_locked(conn, lock)


def _begun(conductor: Conductor, lock: nodes.Lock, context: RequestContext, report: Report | None,
           record: task_store.NodeRecord | None) -> Attempt:
    if record is None or not record.is_recent:
        record = _read(conductor, lock)
        report = None if report is None else report._replace(foreign_addresses=None)
    return Attempt(conductor, lock, context, record, report)


def _step(attempt: Attempt) -> bool:
    """Do the work of the node's state; return whether there is more to do."""
    conductor, row = attempt.conductor, attempt.record.node
    work = conductor.work_in(row.provision_state)
    if work.handle is None:
        purpose = row.reservation_purpose or ""
        if purpose in work.unfinished:
            work.unfinished[purpose](conductor, attempt.context, attempt.lock)
        else:
            _leave(conductor, attempt.lock, row, identified(work_interrupted(purpose=purpose)))
        return False
    while True:
        task = attempt.task()
        result = _handle(attempt.again or work.handle, conductor, task)
        if row.provision_state == states.INSPECTING:
            observe(conductor, task.stages)
        if result.error is not None:
            result.stage = task.stages.now
            break
        try:
            return _save(attempt, task, result)
        except (*_BAD_DATA, db_exc.DBError) as exc:
            is_inspection = result.inspection is not None or result.again is not None
            if is_inspection and attempt.repeats(exc, result):
                LOG.info("Node %s: %s The inspection is repeated without it.", row.uuid, exc)
                continue
            if isinstance(exc, (LockLost, NodeNotFound)) or not _is_bad_data(exc, task):
                raise
            runs = result.runs
            result = _unsaved(exc, attempt.record, task, result.sealed)
            result.runs = runs
            forget_locals(exc)
            break
    return _save_failure(attempt, result)


def _save_failure(attempt: Attempt, result: StateResult) -> bool:
    """Clean up after the failure of a state and write it, as :func:`_save` does."""
    node, task = attempt.record.node, attempt.record.task(attempt.context)
    if reason := clean_up(attempt.conductor, task):
        LOG.warning("Cleaning up after the failure of node %s failed too: %s", node.uuid, reason)
        # Inspect interfaces need not be able to end what they have begun.
        if node.provision_state != states.INSPECTING:
            result.error = f"{result.error} Cleaning up failed: {reason}"
    return _save(attempt, task, result)


def _is_bad_data(error: Exception, task: Task) -> bool:
    """Return whether a save failed because of what was to be saved, so that it would fail again."""
    if isinstance(error, DATABASE_AWAY):
        return False
    # A statement that never got to the database: a value could not be made a parameter.
    inner = getattr(error, "inner_exception", None)
    unsendable = isinstance(inner, sa.exc.StatementError) and not isinstance(inner, sa.exc.DBAPIError)
    # SQLite reports some values that it cannot take as it reports its own failures.
    return unsendable or isinstance(error, _BAD_DATA) or any(records.unstorable(task))


def _leave(conductor: Conductor, lock: nodes.Lock, row: Node, reason: str) -> None:
    """Release a node in a stable state: the conductor that took its lock died before or after its work."""
    unfinished = row.target_power_state is not None or (row.reservation_purpose or "").startswith(HARDWARE_CALL)
    error = secrets.message(reason)
    values = {"target_power_state": None, "last_error": error} if unfinished else {}
    conductor.db.write(lambda conn: nodes.release(conn, lock, values))


def _save(attempt: Attempt, task: Task, result: StateResult) -> bool:
    """Write the task, its result and the new state in one transaction; return whether there is more to do."""
    conductor, context, row = attempt.conductor, attempt.context, attempt.record.node
    transition = states.after_event(row, result.event)
    if transition is None:
        raise IronicRulesError(f"State {row.provision_state} cannot end with {result.event}.")
    goes_on = transition.state in states.TRANSIENT
    on_failure = conductor.work_in(row.provision_state).on_failure
    error = None if result.error is None else secrets.message(result.error)
    values = {**state_values(transition), "last_error": error}
    if result.cause is not None:
        values |= result.cause.columns()
    if result.maintenance is not None:
        values |= {"maintenance": True, **({} if result.fault is None else {"fault": result.fault}),
                   "maintenance_reason": secrets.message(result.maintenance)}
    stays = transition.state == row.provision_state
    if stays:
        del values["provision_updated_at"]
    awaits_ramdisk = transition.state in states.WAITING | states.HOLDING
    keeps_agent = error is None and _keeps_agent(conductor, task, row.provision_state, transition.state)
    if not awaits_ramdisk and not keeps_agent and (row.provision_state == states.INSPECTING or not stays):
        # The API issues tokens without the lock, so the draft may not have the token: the column is always written. A
        # ramdisk that is waited for may already have looked up its token; see expect_ramdisk().
        values["agent_token_hash"] = None

    def store(conn: sa.Connection) -> None:
        task_store.save(conn, task, attempt.lock, values, release=not goes_on)
        if not stays:
            notices.provision(conn, row, result.event)
        if error is not None and on_failure is not None:
            on_failure(conn, conductor, row.id)
        if result.also is not None:
            result.also(conn)
        inspection = None
        if ends_inspection(row.provision_state, transition.state):
            inspection = add_inspection(conn, conductor, row, context, result.inspection, error)
        add_history(conn, conductor, row.id, event_type(row.provision_state), error or result.history,
                    "ERROR" if error else "INFO", context, inspection)

    stages = Stages("save")
    if result.inspection is not None:
        result.inspection.save = Stages("commit")
    conductor.db.write(store)
    result.committed()
    if row.provision_state == states.INSPECTING:
        observe(conductor, stages)
        if transition.state != states.INSPECTWAIT:
            conductor.numbers.count("inspections", "succeeded" if error is None else "failed", result.stage)
        if result.runs is not None:
            conductor.rule_statistics.add(result.runs, row.id, row.uuid, result.changed_by)
    pxe_filter.follow(conductor, context, task, row.provision_state, transition.state)
    if transition.state in states.WAITING and procedures.pending_poll(task.node.driver_internal_info) is not None:
        conductor.step_waits.begun(row.id)
    if not stays:
        LOG.info("Node %s: %s -> %s%s", row.uuid, row.provision_state, transition.state, f" ({error})" if error else "")
    return goes_on


def _keeps_agent(conductor: Conductor, task: Task, state: str, next_state: str) -> bool:
    """Return whether the agent of a node whose work ends keeps its token, because its machine stays in the ramdisk.

    A node that discovery has created is in ENROLL until an operator manages it: its ramdisk has no token.
    """
    if next_state not in states.FAST_TRACK - {states.ENROLL}:
        return False
    if state == states.VERIFYING:
        return states.is_fast_track(task.node.driver_info, conductor.conf.deploy.fast_track)
    return bool(task.node.driver_internal_info.pop(AGENT_STAYS, False))


def _handle(handle: Callable[[Conductor, Task], StateResult], conductor: Conductor, task: Task) -> StateResult:
    results: list[StateResult] = []
    reason = failure_of(lambda: results.append(handle(conductor, task)), task)
    return results[0] if reason is None else _failure(task.node, reason)


def observe(conductor: Conductor, stages: Stages) -> None:
    """Let the metrics have the times of an inspection's stages."""
    for stage, seconds in stages.end().items():
        conductor.numbers.observe("inspection_stage_duration_seconds", seconds, stage)


def _failure(node: Node, reason: str, stage: str = "save") -> StateResult:
    procedure = procedures.of_state(node.provision_state)
    step = getattr(node, procedure.step_field) if procedure is not None else None
    where = f", {procedure.name} step {step['interface']}.{step['step']}" if procedure and step else ""
    error = state_failed(state=node.provision_state, step=where, reason=reason)
    return StateResult("fail", error=identified(error), stage=stage)


def _unsaved(error: Exception, record: task_store.NodeRecord, task: Task, sealed: bool) -> StateResult:
    """Return the failure of work whose result the database did not accept.

    :param sealed: the drafts of the task contain what a sensitive rule wrote
    """
    if not isinstance(error, IronicRulesError):
        LOG.error("The result of the work on node %s cannot be saved", record.node.uuid,
                  exc_info=None if sealed else error)
    if failure := records.rule_failure(error, records.refused_by_save(error, task), sealed=sealed):
        return StateResult("fail", error=identified(inspection_failed(reason=identified(failure))),
                           cause=records.cause(failure))
    reason = identified(error) if isinstance(error, IronicRulesError) else UNEXPECTED
    if sealed:
        reason = f"{type(error).__name__}; {WITHHELD}"
    return _failure(record.node, f"the result could not be saved: {reason}")


def event_type(state: str) -> str:
    """Return the type of history entries that are made in a provision state."""
    if state in (states.INSPECTING, states.INSPECTWAIT):
        return "inspection"
    procedure = procedures.of_state(state)
    return procedure.noun if procedure in (procedures.CLEANING, procedures.SERVICE) else "provisioning"


def add_history(conn: sa.Connection, conductor: Conductor, node_id: int, event_type: str, event: str | None,
                severity: str, context: RequestContext, inspection: str | None = None) -> None:
    """Write an entry into the node's history and drop the oldest beyond ``[conductor]node_history_max_entries``.

    :param event: None: nothing is written
    :param inspection: the UUID of the inspection that it is about, and which was just added: of these, too, the oldest
        are dropped
    """
    keep = conductor.conf.conductor.node_history_max_entries if event else None
    if keep and event:
        node_records.add_history(conn, node_id, event_type, secrets.message(event), severity, conductor.host,
                                 context.user_id, context.request_id, inspection)
    if keep or inspection is not None:
        node_records.prune(
            conn, node_id, event_type, keep or None,
            None if inspection is None else conductor.conf.inspection_history.max_entries)
