"""``states/provision`` and ``states/power``: check, lock, move the state, and start the work."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import inspection, tasks, work
from ironic_rules.conductor.engine import Engine
from ironic_rules.context import RequestContext
from ironic_rules.db import inventory, nodes
from ironic_rules.exceptions import Invalid, InvalidParameterValue, InvalidState, IronicRulesError, NodeProtected
from ironic_rules.models import states
from ironic_rules.models.draft import Task

LOG = logging.getLogger(__name__)

#: Interfaces whose settings must be valid before the verb is accepted.
_VALIDATED: dict[str, tuple[str, ...]] = {
    "inspect": ("power", "inspect"), "active": ("power", "deploy"), "rebuild": ("power", "deploy"),
    "deleted": ("power",), "clean": ("power",), "adopt": ("power",),
    "rescue": ("power", "rescue"), "unrescue": ("power", "rescue"),
}
_NOT_IN_MAINTENANCE = frozenset({"active", "rebuild", "clean", "rescue", "unrescue", "service"})


def change_provision_state(engine: Engine, context: RequestContext, node_id: str | int, target: str,
                           args: dict[str, Any]) -> None:
    """Start ``target`` (a verb of the API) on the node.

    :raises InvalidState: 400, the verb is not possible in the node's state
    :raises Invalid: 400, an interface of the node lacks something;  NodeProtected: 403;  NodeLocked: 409
    """
    verb = states.VERB_ALIASES.get(target, target)
    task = load(engine, context, node_id)
    node = task.node
    _check_transition(verb, node.uuid, node.provision_state)
    if node.maintenance and verb in _NOT_IN_MAINTENANCE:
        raise Invalid(f"The {verb} operation can't be performed on node {node.uuid} because it's in maintenance mode.")
    if node.protected and verb in ("deleted", "rebuild"):
        raise NodeProtected(node=node.uuid, action=verb)
    for kind in _VALIDATED.get(verb, ()):
        engine.hardware.interface(node, kind).validate(task)
    if verb == "abort" and node.provision_state == states.INSPECTWAIT:
        inspection.stop_waiting(engine, context, node.id, "abort", "Inspection was aborted by request.")
        return
    values = _requested(verb, task, args)
    with engine.workers.take(node.id) as slot:

        def store(conn: sa.Connection) -> bool:
            row = nodes.reserve(conn, node.id, engine.host, f"provision: {verb}")
            transition = _check_transition(verb, row.uuid, row.provision_state)
            if verb == "inspect":
                inventory.supersede(conn, row.id)
            changed = {**values, **work.state_values(transition), "last_error": None}
            if transition.state not in states.TRANSIENT:
                nodes.release(conn, row.id, engine.host, changed)
                return False
            nodes.update_locked(conn, row.id, engine.host, changed)
            return True

        if engine.db.write(store):
            slot.run(work.run, engine, node.id, context)


def _check_transition(verb: str, node: str, state: str) -> states.Transition:
    transition = states.transition(state, verb) if verb in states.VERB_VERSIONS else None
    if transition is None:
        raise InvalidState(action=verb, node=node, state=state)
    return transition


def _requested(verb: str, task: Task, args: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that the request's arguments set."""
    if verb not in ("active", "rebuild", "rescue"):
        return {}
    info = dict(task.node.instance_info)
    for key in ("configdrive", "rescue_password"):
        if args.get(key) is not None:
            info[key] = args[key]
    return {"instance_info": info}


def load(engine: Engine, context: RequestContext, node_id: str | int) -> Task:
    """Return a task of the node as it is now, without a lock: to look at, not to save."""
    with engine.db.reader() as conn:
        row = nodes.get_by_id(conn, node_id) if isinstance(node_id, int) else nodes.get(conn, node_id)
        return tasks.read(conn, row).task(context)


def change_power_state(engine: Engine, context: RequestContext, node_id: str | int, target: str,
                       timeout_s: int | None) -> None:
    """Start changing the power state; ``target_power_state`` tells that it is going on.

    :raises InvalidParameterValue: 400, no such power state;  NodeLocked: 409
    """
    if target not in states.POWER_TARGETS:
        raise InvalidParameterValue(f"/target: must be one of {', '.join(sorted(states.POWER_TARGETS))}")
    task = load(engine, context, node_id)
    engine.hardware.interface(task.node, "power").validate(task)
    final = states.POWER_OFF if target in (states.POWER_OFF, states.SOFT_POWER_OFF) else states.POWER_ON
    with engine.workers.take(task.node.id) as slot:

        def store(conn: sa.Connection) -> None:
            nodes.reserve(conn, task.node.id, engine.host, f"power: {target}")
            nodes.update_locked(conn, task.node.id, engine.host, {"target_power_state": final, "last_error": None})

        engine.db.write(store)
        slot.run(_set_power, engine, context, task.node.id, target)


def _set_power(engine: Engine, context: RequestContext, node_id: int, target: str) -> None:
    task = load(engine, context, node_id)
    values: dict[str, Any] = {"target_power_state": None, "last_error": None}
    try:
        power = engine.hardware.interface(task.node, "power")
        power.set_power_state(task, target)
        values["power_state"] = power.get_power_state(task)
    except IronicRulesError as exc:
        values["last_error"] = f"Failed to change the power state to '{target}': {exc}"
        LOG.warning("Node %s: %s", task.node.uuid, values["last_error"])
    engine.db.write(lambda conn: tasks.save(conn, task, engine.host, values, release=True))


def validate_interfaces(engine: Engine, context: RequestContext, node_id: str | int) -> dict[str, dict[str, Any]]:
    """Return ``{kind: {"result": True}}`` or ``{"result": False, "reason": text}`` for every interface of the node."""
    task = load(engine, context, node_id)
    results: dict[str, dict[str, Any]] = {}
    for kind in engine.hardware.VALIDATED_KINDS:
        try:
            engine.hardware.interface(task.node, kind).validate(task)
        except IronicRulesError as exc:
            results[kind] = {"result": False, "reason": str(exc)}
        else:
            results[kind] = {"result": True}
    return results
