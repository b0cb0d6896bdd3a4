"""Inspection in the conductor: starting it, accepting a ramdisk's data, processing it, aborting, timing out."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import interfaces, tasks, work
from ironic_rules.conductor.engine import Engine, now
from ironic_rules.conductor.handlers import Result
from ironic_rules.conductor.workers import PATIENCE_S
from ironic_rules.context import RequestContext
from ironic_rules.db import bmc_addresses, inventory, nodes, ports
from ironic_rules.exceptions import HookFailed, Invalid, InvalidState, IronicRulesError, RuleFailed
from ironic_rules.inspection.pipeline import Outcome
from ironic_rules.inspection.text import printable
from ironic_rules.models import mac, states
from ironic_rules.models.task import Task

LOG = logging.getLogger(__name__)

ABORTED = "Inspection was aborted by request."
#: As many matching rules are named in the node's history.
_NAMED_RULES = 50


def accept(engine: Engine, context: RequestContext, node_id: str | int, data: dict[str, Any],
           plugin_data: dict[str, Any]) -> None:
    """Store a ramdisk's data, move its node to INSPECTING under this conductor's lock, and start processing.

    When this returns, one transaction has committed all three: whoever dies now, the data will be processed.

    :raises NotFound: the node is not in INSPECT WAIT;  NodeLocked: 409;  NoFreeWorker: 503
    """
    with engine.db.reader() as conn:
        found = nodes.get_id(conn, node_id) if isinstance(node_id, str) else node_id
    values = work.state_values(states.TRANSITIONS[(states.INSPECTWAIT, "resume")])
    with engine.workers.take(found, PATIENCE_S) as slot:

        def store(conn: sa.Connection) -> None:
            nodes.reserve_in_state(conn, found, engine.host, "continue inspection", states.INSPECTWAIT, values)
            inventory.receive(conn, found, data, plugin_data, context.request_id)

        engine.db.write(store)
        slot.run(work.run, engine, found, context)


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
    next_state = engine.hardware.interface(task.node, "inspect").inspect_hardware(task)
    addresses = list(task.node.driver_internal_info.get("lookup_bmc_addresses", ()))
    waits = next_state == states.INSPECTWAIT
    if not waits:
        task.node.inspection_finished_at = now()
    return Result("wait" if waits else "done", also=lambda conn: bmc_addresses.set_for(conn, node_id, addresses))


def process(engine: Engine, task: Task, pending: sa.Row[Any]) -> Result:
    """Run hooks and rules over stored data. The draft and all that belongs to it are saved together, or not at all."""
    node_id, keep = task.node.id, engine.conf.inventory.max_versions
    outcomes: list[Outcome] = []
    try:
        with engine.db.reader() as conn:
            rule_set = engine.rules.current(conn)
            owners = ports.node_ids_by_addresses(conn, _addresses(pending.inventory_data))
        task.foreign_addresses = {address for address, owner in owners.items() if owner != node_id}

        def run_pipeline(data: dict[str, Any], plugin_data: dict[str, Any]) -> None:
            outcomes.append(engine.pipeline.run(task, data, plugin_data, rule_set))
            interfaces.fit(engine, task)

        task.process_inspection = run_pipeline
        engine.hardware.interface(task.node, "inspect").continue_inspection(
            task, pending.inventory_data, pending.received_plugin_data)
    except (HookFailed, RuleFailed, Invalid) as exc:
        return Result("fail", error=f"Inspection failed: {exc}")
    finally:
        _log_messages(task)
    outcome = outcomes[-1]
    task.node.inspection_finished_at = now()
    task.node.driver_internal_info.pop("lookup_bmc_addresses", None)

    def store(conn: sa.Connection) -> None:
        bmc_addresses.clear(conn, node_id)
        if engine.conf.inventory.data_backend == "none":
            inventory.discard(conn, pending.id)
        else:
            inventory.finish(conn, pending.id, outcome.plugin_data, inventory.PROCESSED)
        inventory.prune(conn, node_id, keep)

    return Result("done", history=_summary(outcome), also=store)


def failed(conn: sa.Connection, engine: Engine, node_id: int) -> None:
    """Write what belongs to a failed inspection: its data are kept as failed, no callback finds the node any more."""
    bmc_addresses.clear(conn, node_id)
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


def stop_waiting(engine: Engine, context: RequestContext, node_id: int, event: str, error: str,
                 before: datetime.datetime | None = None) -> None:
    """Begin to end the wait for a ramdisk (``abort`` or ``fail``), if the node is still waiting.

    :param before: only if it has waited since before then
    :raises InvalidState: 400, the node does not wait (any more)
    :raises NodeLocked: 409;  NoFreeWorker: 503
    """
    with engine.workers.take(node_id, PATIENCE_S) as slot:

        def lock(conn: sa.Connection) -> None:
            row = nodes.reserve(conn, node_id, engine.host, event)
            again = before is not None and row.provision_updated_at is not None and row.provision_updated_at > before
            if row.provision_state != states.INSPECTWAIT or again:
                raise InvalidState(action=event, node=row.uuid, state=row.provision_state)

        engine.db.write(lock)
        slot.run(_stop_waiting, engine, context, node_id, event, error)


def go_on_aborting(engine: Engine, context: RequestContext, node_id: int) -> None:
    """Finish an ``abort`` that its conductor accepted and did not live to do."""
    _stop_waiting(engine, context, node_id, "abort", ABORTED)


def _stop_waiting(engine: Engine, context: RequestContext, node_id: int, event: str, error: str) -> None:
    with work.lock_may_be_lost(node_id):
        with engine.db.reader() as conn:
            row = nodes.get_by_id(conn, node_id)
            task = tasks.read(conn, row).task(context)
        transition = states.TRANSITIONS[(states.INSPECTWAIT, event)]
        if reason := work.attempt(lambda: clean_up(engine, task), task):
            error = printable(f"{error} Switching the node off failed: {reason}", work.MAX_TEXT)
        values = {**work.state_values(transition), "last_error": error, "agent_token_hash": None}

        def store(conn: sa.Connection) -> None:
            tasks.save(conn, task, engine.host, values, release=True)
            bmc_addresses.clear(conn, node_id)
            work.add_history(conn, engine, node_id, "inspection", error, "ERROR", context)

        engine.db.write(store)
        LOG.warning("Node %s: %s", row.uuid, error)


def time_out(engine: Engine, context: RequestContext, row: sa.Row[Any], before: datetime.datetime) -> None:
    """Fail a node that has waited for its ramdisk longer than ``[conductor]inspect_wait_timeout``: since ``before``."""
    error = (f"Timeout reached while waiting for the ramdisk's inspection data "
             f"({engine.conf.conductor.inspect_wait_timeout} seconds, [conductor]inspect_wait_timeout).")
    try:
        stop_waiting(engine, context, row.id, "fail", error, before)
    except IronicRulesError as exc:
        LOG.info("The wait of node %s for its ramdisk is not ended now: %s", row.uuid, exc)
