"""Inspection in the conductor: starting it, accepting a ramdisk's data, processing it, aborting, timing out."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import tasks, work
from ironic_rules.conductor.engine import Engine, now
from ironic_rules.conductor.handlers import Result
from ironic_rules.context import RequestContext
from ironic_rules.db import bmc_addresses, inventory, nodes, ports
from ironic_rules.exceptions import HookFailed, Invalid, InvalidState, IronicRulesError, RuleFailed
from ironic_rules.inspection.pipeline import Outcome
from ironic_rules.models import mac, states
from ironic_rules.models.draft import Task

LOG = logging.getLogger(__name__)


def accept(engine: Engine, context: RequestContext, node_id: str | int, data: dict[str, Any],
           plugin_data: dict[str, Any]) -> None:
    """Store a ramdisk's data, move its node to INSPECTING under this conductor's lock, and start processing.

    When this returns, one transaction has committed all three: whoever dies now, the data will be processed.

    :raises NotFound: the node is not in INSPECT WAIT;  NodeLocked: 409;  NoFreeWorker: 503
    """
    with engine.db.reader() as conn:
        found = nodes.get_id(conn, node_id) if isinstance(node_id, str) else node_id
    values = work.state_values(states.TRANSITIONS[(states.INSPECTWAIT, "resume")])
    with engine.workers.take(found) as slot:

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
    task.node.agent_token_hash = None
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
        task.process_inspection = lambda data, plugin_data: outcomes.append(
            engine.pipeline.run(task, data, plugin_data, rule_set))
        engine.hardware.interface(task.node, "inspect").continue_inspection(
            task, pending.inventory_data, pending.received_plugin_data)
    except (HookFailed, RuleFailed, Invalid) as exc:
        error = f"Inspection failed: {exc}"
        return Result("fail", error=error, history=error,
                      also=lambda conn: _finish(conn, engine, pending, None, inventory.FAILED))
    finally:
        _log_messages(task)
    outcome = outcomes[-1]
    task.node.inspection_finished_at = now()
    task.node.driver_internal_info.pop("lookup_bmc_addresses", None)

    def store(conn: sa.Connection) -> None:
        bmc_addresses.clear(conn, node_id)
        _finish(conn, engine, pending, outcome.plugin_data, inventory.PROCESSED)
        inventory.prune(conn, node_id, keep)

    return Result("done", history=_summary(outcome), also=store)


def _finish(conn: sa.Connection, engine: Engine, pending: sa.Row[Any], plugin_data: dict[str, Any] | None,
            status: str) -> None:
    if engine.conf.inventory.data_backend == "none":
        inventory.discard(conn, pending.id)
    else:
        inventory.finish(conn, pending.id, plugin_data, status)


def _addresses(data: dict[str, Any]) -> list[str]:
    found = (interface.get("mac_address") for interface in data.get("interfaces") or ())
    return [mac.normalize(address) for address in found if mac.is_mac(address)]


def _summary(outcome: Outcome) -> str:
    matched = [f"{trace.uuid} ({trace.description or 'no description'})" for trace in outcome.traces if trace.matched]
    return "Inspection finished; rules matched: " + (", ".join(matched) if matched else "none")


def _log_messages(task: Task) -> None:
    for level, text in task.messages:
        printable = text.encode("unicode_escape").decode("ascii")
        LOG.log(getattr(logging, level.upper(), logging.INFO), "Inspection of node %s: %s", task.node.uuid, printable)
    task.messages.clear()


def clean_up(engine: Engine, task: Task) -> None:
    """Leave a node whose inspection failed as the inspect interface leaves an aborted one: switched off."""
    engine.hardware.interface(task.node, "inspect").abort(task)


def stop_waiting(engine: Engine, context: RequestContext, node_id: int, event: str, error: str) -> None:
    """Begin to end the wait for a ramdisk (``abort`` or ``fail``), if the node is still waiting.

    :raises InvalidState: 400, the node does not wait (any more)
    :raises NodeLocked: 409;  NoFreeWorker: 503
    """
    with engine.workers.take(node_id) as slot:

        def lock(conn: sa.Connection) -> None:
            row = nodes.reserve(conn, node_id, engine.host, event)
            if row.provision_state != states.INSPECTWAIT:
                raise InvalidState(action=event, node=row.uuid, state=row.provision_state)

        engine.db.write(lock)
        slot.run(_stop_waiting, engine, context, node_id, event, error)


def _stop_waiting(engine: Engine, context: RequestContext, node_id: int, event: str, error: str) -> None:
    with engine.db.reader() as conn:
        task = tasks.read(conn, nodes.get_by_id(conn, node_id)).task(context)
    transition = states.TRANSITIONS[(states.INSPECTWAIT, event)]
    try:
        clean_up(engine, task)
    except IronicRulesError as exc:
        error = f"{error} Switching the node off failed: {exc}"
    task.node.driver_internal_info.pop("lookup_bmc_addresses", None)
    values = {**work.state_values(transition), "last_error": error, "agent_token_hash": None}

    def store(conn: sa.Connection) -> None:
        tasks.save(conn, task, engine.host, values, release=True)
        bmc_addresses.clear(conn, node_id)
        work.add_history(conn, engine, node_id, "inspection", error, "ERROR", context)

    engine.db.write(store)
    LOG.warning("Node %s: %s", task.node.uuid, error)


def time_out(engine: Engine, context: RequestContext, row: sa.Row[Any]) -> None:
    """Fail a node that has waited for its ramdisk longer than ``[conductor]inspect_wait_timeout``."""
    error = (f"Timeout reached while waiting for the ramdisk's inspection data "
             f"({engine.conf.conductor.inspect_wait_timeout} seconds, [conductor]inspect_wait_timeout).")
    try:
        stop_waiting(engine, context, row.id, "fail", error)
    except IronicRulesError as exc:
        LOG.info("The wait of node %s for its ramdisk is not ended now: %s", row.uuid, exc)
