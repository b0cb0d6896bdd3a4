"""Inspection in the conductor: starting it, accepting a ramdisk's data, processing it, aborting, timing out."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import interfaces, pxe_filter, waiting, work
from ironic_rules.conductor.engine import Engine, now
from ironic_rules.conductor.handlers import Result
from ironic_rules.conductor.workers import PATIENCE_S, Slot
from ironic_rules.context import RequestContext
from ironic_rules.db import discovery, inventory, nodes, ports
from ironic_rules.exceptions import (
    HookFailed,
    Invalid,
    IronicRulesError,
    NodeLocked,
    NodeNotFound,
    NoFreeWorker,
    RuleFailed,
)
from ironic_rules.hardware import bmc_resolver
from ironic_rules.inspection import known_bmcs
from ironic_rules.inspection.pipeline import WITHHELD, Outcome
from ironic_rules.models import addresses, mac, states
from ironic_rules.models.inventories import StoredInventory
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

ABORTED = "Inspection was aborted by request."
#: As many matching rules are named in the node's history.
_NAMED_RULES = 50


def accept(engine: Engine, context: RequestContext, node_id: str | int, data: dict[str, Any],
           plugin_data: dict[str, Any]) -> None:
    """Store a ramdisk's data, move its node to INSPECTING under this conductor's lock, and start processing.

    When this returns, one transaction has committed all three: whoever dies now, the data will be processed. Of the
    nodes in ENROLL, only one that discovery has just made for these data is taken, once.

    :raises NotFound: the node is not in INSPECT WAIT;  NodeLocked: 409;  NoFreeWorker: 503
    """
    if isinstance(node_id, str):
        with engine.db.reader() as conn:
            node_id = nodes.get_id(conn, node_id)
    found = node_id
    with _slot(engine, found) as slot:
        if engine.db.write(lambda conn: _store(conn, engine, context, found, data, plugin_data)):
            pxe_filter.look(engine, context)
        slot.run(work.run, engine, found, context)


def _store(conn: sa.Connection, engine: Engine, context: RequestContext, node_id: int, data: dict[str, Any],
           plugin_data: dict[str, Any]) -> bool:
    """Write what :func:`accept` promises; say whether discovery has just made the node."""

    def reserve(state: str, event: str, **more: Any) -> None:
        values = work.state_values(states.TRANSITIONS[(state, event)]) | more
        nodes.reserve_in_state(conn, node_id, engine.host, "continue inspection", state, values)

    is_new = False
    try:
        reserve(states.INSPECTWAIT, "resume")
    except NodeNotFound:
        is_new = discovery.accept(conn, node_id)
        if not is_new:
            raise
        reserve(states.ENROLL, "discovered", inspection_started_at=now(), inspection_finished_at=None)
    inventory.receive(conn, node_id, data, plugin_data, context.request_id)
    return is_new


def _slot(engine: Engine, node_id: int) -> Slot:
    """Return a slot for work on the node.

    :raises NodeLocked: 409, this conductor works on the node itself;  NoFreeWorker: 503
    """
    try:
        return engine.workers.take(node_id, PATIENCE_S)
    except NoFreeWorker:
        with engine.db.reader() as conn:
            row = nodes.get_by_id(conn, node_id)
        if row.reservation is None:
            raise
        raise NodeLocked(node=row.uuid, host=row.reservation) from None


def inspect(engine: Engine, task: Task) -> Result:
    """INSPECTING: process data that a ramdisk has sent, else start the inspection."""
    with engine.db.reader() as conn:
        pending = inventory.pending(conn, task.node.id)
    return start(engine, task) if pending is None else process(engine, task, pending)


def start(engine: Engine, task: Task) -> Result:
    """Prepare the node for its ramdisk, or inspect it out of band, as its inspect interface does."""
    node_id = task.node.id
    task.node.inspection_started_at = now()
    task.node.inspection_finished_at = None
    driver_info = dict(task.node.driver_info)
    runs = _allow_processing(engine, task)
    try:
        next_state = engine.hardware.interface(task.node, "inspect").inspect_hardware(task)
    except (HookFailed, RuleFailed) as exc:
        return Result("fail", error=f"Inspection failed: {exc}", also=lambda conn: _add(conn, engine, task, runs))
    except IronicRulesError as exc:
        if not _is_sealed(runs):
            raise
        return Result("fail", error=f"Inspection failed: {type(exc).__name__}; {WITHHELD}")
    finally:
        _log_messages(task)
    if next_state != states.INSPECTWAIT:
        task.node.inspection_finished_at = now()
        history = _summary(_outcome(runs)) if runs else None
        # Names that a rule has set are resolved by the next inspection, as in band.
        is_same = addresses.hosts(task.node.driver_info) == addresses.hosts(driver_info)
        resolved = bmc_resolver.addresses(driver_info) if is_same else []

        def store(conn: sa.Connection) -> None:
            if is_same:
                known_bmcs.resolved(conn, node_id, driver_info, resolved)
            _add(conn, engine, task, runs)

        return Result("done", history=history, also=store, sealed=_is_sealed(runs))
    driver_info = dict(task.node.driver_info)
    found = list(task.node.driver_internal_info.get("lookup_bmc_addresses", ()))
    return Result("wait", also=lambda conn: known_bmcs.resolved(conn, node_id, driver_info, found))


@dataclass(slots=True)
class _Run:
    """One pass of hooks and rules over (inventory, plugin data); ``outcome`` None: it failed."""

    inventory: dict[str, Any]
    plugin_data: dict[str, Any]
    outcome: Outcome | None = None


def _allow_processing(engine: Engine, task: Task) -> list[_Run]:
    """Give the task ``process_inspection`` and ``previous_inventory``; return a list that gets what the former did."""
    runs: list[_Run] = []

    def run_pipeline(data: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        runs.append(_Run(data, plugin_data))
        with engine.db.reader() as conn:
            rule_set = engine.rules.current(conn)
            owners = ports.node_ids_by_addresses(conn, _addresses(data))
        task.foreign_addresses = {address for address, owner in owners.items() if owner != task.node.id}
        runs[-1].outcome = engine.pipeline.run(task, data, plugin_data, rule_set)
        interfaces.fit(engine, task)

    def previous_inventory() -> dict[str, Any] | None:
        with engine.db.reader() as conn:
            return inventory.latest_inventory(conn, task.node.id)

    task.process_inspection = run_pipeline
    # Few hooks look at it, so it is read only when one does. What is processed now is not yet among the finished ones.
    task.previous_inventory = previous_inventory
    return runs


def _outcome(runs: list[_Run]) -> Outcome:
    outcome = runs[-1].outcome if runs else None
    if outcome is None:
        raise IronicRulesError("The inspect interface did not process the inspection's data.")
    return outcome


def _is_sealed(runs: list[_Run]) -> bool:
    """Say whether the drafts have what a sensitive rule wrote."""
    return any(trace.sensitive and trace.matched for run in runs if run.outcome for trace in run.outcome.traces)


def _add(conn: sa.Connection, engine: Engine, task: Task, runs: list[_Run]) -> None:
    """Store data that the inspect interface has read itself, with what became of it."""
    if not runs or engine.conf.inventory.data_backend == "none":
        return
    run = runs[-1]
    added = inventory.receive(conn, task.node.id, run.inventory, run.plugin_data, task.context.request_id)
    if run.outcome is None:
        inventory.finish(conn, added, None, inventory.FAILED)
    else:
        inventory.finish(conn, added, run.outcome.plugin_data, inventory.PROCESSED)
    inventory.prune(conn, task.node.id, engine.conf.inventory.max_versions)


def process(engine: Engine, task: Task, pending: StoredInventory) -> Result:
    """Run hooks and rules over stored data. The draft and all that belongs to it are saved together, or not at all."""
    node_id, keep = task.node.id, engine.conf.inventory.max_versions
    runs = _allow_processing(engine, task)
    try:
        engine.hardware.interface(task.node, "inspect").continue_inspection(
            task, pending.inventory_data, pending.received_plugin_data)
    except (HookFailed, RuleFailed) as exc:
        return Result("fail", error=f"Inspection failed: {exc}")
    except IronicRulesError as exc:
        # It comes after the rules, and its text may quote what they wrote.
        if _is_sealed(runs):
            return Result("fail", error=f"Inspection failed: {type(exc).__name__}; {WITHHELD}")
        if not isinstance(exc, Invalid):
            raise
        return Result("fail", error=f"Inspection failed: {exc}")
    finally:
        _log_messages(task)
    outcome = _outcome(runs)
    task.node.inspection_finished_at = now()
    task.node.driver_internal_info.pop("lookup_bmc_addresses", None)

    def store(conn: sa.Connection) -> None:
        if engine.conf.inventory.data_backend == "none":
            inventory.discard(conn, pending.id)
        else:
            inventory.finish(conn, pending.id, outcome.plugin_data, inventory.PROCESSED)
        inventory.prune(conn, node_id, keep)

    event = "enroll-done" if task.node.target_provision_state == states.ENROLL else "done"
    return Result(event, history=_summary(outcome), also=store, sealed=_is_sealed(runs))


def failed(conn: sa.Connection, engine: Engine, node_id: int) -> None:
    """Write what belongs to a failed inspection: its data are kept as failed."""
    if engine.conf.inventory.data_backend == "none":
        pending = inventory.pending(conn, node_id)
        if pending is not None:
            inventory.discard(conn, pending.id)
    else:
        inventory.supersede(conn, node_id)
    inventory.prune(conn, node_id, engine.conf.inventory.max_versions)


def _addresses(data: dict[str, Any]) -> list[str]:
    found = (interface.get("mac_address") for interface in data.get("interfaces") or ())
    return [mac.normalize(address) for address in found if mac.is_mac(address)]


def _summary(outcome: Outcome) -> str:
    matched = [f"{trace.uuid} ({trace.description or 'no description'})" for trace in outcome.traces if trace.matched]
    more = f" and {len(matched) - _NAMED_RULES} more" if len(matched) > _NAMED_RULES else ""
    return "Inspection finished; rules matched: " + (", ".join(matched[:_NAMED_RULES]) or "none") + more


def _log_messages(task: Task) -> None:
    for level, text in task.messages:
        LOG.log(getattr(logging, level.upper(), logging.INFO), "Inspection of node %s: %s", task.node.uuid,
                printable(text))
    task.messages.clear()


def clean_up(engine: Engine, task: Task) -> None:
    """Leave a node whose inspection failed as the inspect interface leaves an aborted one: switched off."""
    task.node.driver_internal_info.pop("lookup_bmc_addresses", None)
    engine.hardware.interface(task.node, "inspect").abort(task)


def abort(engine: Engine, context: RequestContext, node_id: int) -> None:
    """Begin to end the wait for a ramdisk as a user wants.

    :raises InvalidState: 400, the node does not wait (any more);  NodeLocked: 409;  NoFreeWorker: 503
    """
    waiting.stop(engine, context, node_id, states.INSPECTWAIT, "abort", ABORTED)


def go_on_aborting(engine: Engine, context: RequestContext, node_id: int) -> None:
    """Finish an ``abort`` that its conductor accepted and did not live to do."""
    waiting.finish(engine, context, node_id, "abort", ABORTED)


def time_out(engine: Engine, context: RequestContext, row: Node, before: datetime.datetime) -> None:
    """Fail a node that has waited for its ramdisk longer than ``[conductor]inspect_wait_timeout``: since ``before``."""
    error = (f"Timeout reached while waiting for the ramdisk's inspection data "
             f"({engine.conf.conductor.inspect_wait_timeout} seconds, [conductor]inspect_wait_timeout).")
    waiting.time_out(engine, context, row, before, error)
