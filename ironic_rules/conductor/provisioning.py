"""``states/provision``, ``states/power`` and ``abort``: check, lock, move the state, and start the work.

An abort ends the wait for a machine at once, or after a step that cannot be aborted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import (
    admission,
    inspection,
    notices,
    pxe_filter,
    state_machine,
    step_loop,
    task_store,
    wait_states,
    workflows,
)
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import PATIENCE_S, Lane
from ironic_rules.context import RequestContext
from ironic_rules.db import discovery, inventory, nodes
from ironic_rules.exceptions import (
    InvalidParameterValue,
    IronicRulesError,
    NodeLocked,
    Problem,
    identified,
    power_change_failed,
    procedure_aborted,
)
from ironic_rules.models import events, secrets, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.internal_keys import AGENT_ADDRESS, AGENT_URL, BOOT_LEFT
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.steps import merge, procedures
from ironic_rules.steps.preview import StepWarning
from ironic_rules.steps.procedures import CLEANING, DEPLOYMENT, SERVICE, Procedure
from ironic_rules.steps.progress import ABORT_AFTER

LOG = logging.getLogger(__name__)


def abort(conductor: Conductor, context: RequestContext, task: Task) -> None:
    """Begin to abort what the node waits for. A step that cannot be aborted ends first; then the procedure fails.

    :param task: of the node as it was when its state was checked, without a lock
    :raises invalid_state: 400, the node does not wait (any more);  NodeLocked: 409;  NoFreeWorker: 503
    """
    node = task.node
    if node.provision_state == states.INSPECTWAIT:
        inspection.abort(conductor, context, node.id)
        return
    procedure = procedures.of_state(node.provision_state)
    if procedure is not None and _must_end(conductor, task, procedure):
        _abort_after_step(conductor, context, node, procedure)
        return
    wait_states.stop(conductor, context, node.id, node.provision_state, "abort", _aborted(node))


def finish_abort(conductor: Conductor, context: RequestContext, lock: nodes.Lock) -> None:
    """Finish an ``abort`` that was accepted by a conductor which died before it was done."""
    with conductor.db.reader() as conn:
        row, _ = nodes.get_locked(conn, lock)
    wait_states.finish(conductor, context, lock, "abort", _aborted(row))


def _must_end(conductor: Conductor, task: Task, procedure: Procedure) -> bool:
    """Return whether the current step continues on the machine and must not be given up."""
    node = task.node
    shown = getattr(node, procedure.step_field)
    if procedure is DEPLOYMENT or node.provision_state != procedure.wait_state or not shown:
        return False
    [step] = merge.requested_steps([shown])
    info = conductor.hardware.offer(node, procedure).find(step) or next(
        (offered for offered in conductor.hardware.ramdisk_steps(task, procedure) if offered.key == step.key), None)
    return info is not None and not info.abortable


def _abort_after_step(conductor: Conductor, context: RequestContext, node: Node, procedure: Procedure) -> None:
    lock = conductor.new_lock(node.id)

    def store(conn: sa.Connection) -> None:
        row = nodes.reserve(conn, lock, "abort after the step")
        admission.admit(conn, context, row.id)
        states.after_verb(row, "abort", holder=conductor.host)
        shown = getattr(row, procedure.step_field)
        nodes.release(conn, lock, {procedure.step_field: {**shown, ABORT_AFTER: True}} if shown else {})

    conductor.db.write(store)


def _aborted(node: Node) -> IronicRulesError:
    procedure = procedures.of_state(node.provision_state)
    if procedure is None:
        return procedure_aborted(procedure="rescue", where="")
    step = getattr(node, procedure.step_field)
    where = f" in {procedure.name} step {step['interface']}.{step['step']}" if step else ""
    return procedure_aborted(procedure=procedure.noun, where=where)


#: Verb -> interfaces whose settings must be valid before it is accepted.
_VALIDATED: dict[str, tuple[str, ...]] = {
    "inspect": ("power", "inspect"), "active": ("power", "deploy"), "rebuild": ("power", "deploy"),
    "deleted": ("power",), "clean": ("power",), "adopt": ("power", "management"),
    "rescue": ("power", "rescue"), "unrescue": ("power", "rescue"),
}
_DEPLOYS = frozenset({"active", "rebuild"})
#: Work on a node in the state that a request leads to, under its lock.
Work = Callable[[Conductor, nodes.Lock, RequestContext], None]


def change_provision_state(conductor: Conductor, context: RequestContext, node_id: str | int, target: str,
                           args: JSONObject, lane: Lane = Lane.REQUESTS) -> None:
    """Start ``target`` (a verb of the API) on the node.

    :param lane: lane whose workers do it
    :raises invalid_state: 400, the verb is not possible in the node's state
    :raises Invalid: 400, an interface of the node lacks something;  node_protected: 403;  NodeLocked: 409
    """
    verb = states.VERB_ALIASES.get(target, target)
    record = task_store.read_unlocked(conductor.db, node_id)
    task = record.task(context)
    node = task.node
    admission.require_new(conductor, context, node.id)
    _check_unlocked(node)
    states.after_verb(node, verb)
    task.node.instance_info = {**node.instance_info, **_of_instance(verb, args)}
    for kind in _VALIDATED.get(verb, ()):
        conductor.hardware.interface(node, kind).validate(task)
    if verb in _DEPLOYS:
        workflows.validate_deployment(conductor, task, args.get("deploy_steps") or ())
    if verb == "clean":
        workflows.validate_cleaning(conductor, task, args.get("clean_steps") or (),
                                    disable_ramdisk=_is_without_ramdisk(args))
    if verb == "service":
        workflows.validate_service(conductor, task, args.get("service_steps") or (),
                                   disable_ramdisk=_is_without_ramdisk(args))
    if verb == "abort":
        abort(conductor, context, task)
        return
    lock = conductor.new_lock(node.id)
    reached: list[str] = []
    with conductor.workers.take(node.id, PATIENCE_S, lane) as slot:

        def store(conn: sa.Connection) -> Work | None:
            row = nodes.reserve(conn, lock, f"provision: {verb}", node=record.node)
            admission.admit(conn, context, row.id)
            transition = states.after_verb(row, verb, holder=conductor.host)
            reached.append(transition.state)  # the last one counts, if the transaction is repeated
            if verb == "inspect":
                inventory.supersede(conn, row.id)
            if row.auto_discovered:
                discovery.claim(conn, row.id)
            changed = {**_requested(verb, row, args), **state_machine.state_values(transition), "last_error": None}
            if row.provision_state in states.FAST_TRACK and states.is_fast_track(
                    row.driver_info, conductor.conf.deploy.fast_track):
                _keep_agent(row, changed)
            work: Work | None = state_machine.run if transition.state in states.TRANSIENT else None
            if verb == "manage" and BOOT_LEFT in row.driver_internal_info:
                work = work or step_loop.undo_left
            if work is None:
                nodes.release(conn, lock, changed)
            else:
                nodes.update_locked(conn, lock, changed)
            notices.provision(conn, row, verb)
            return work

        work = conductor.db.write(store)
        pxe_filter.follow(conductor, context, task, node.provision_state, reached[-1])
        if work is not None:
            slot.run(work, conductor, lock, context)


def _keep_agent(row: Node, changed: JSONObject) -> None:
    """Keep the address of the agent that waits for work in the columns that an operation changes."""
    if AGENT_URL in row.driver_internal_info and "driver_internal_info" in changed:
        changed["driver_internal_info"][AGENT_URL] = row.driver_internal_info[AGENT_URL]


def _check_unlocked(node: Node) -> None:
    if node.reservation is not None:
        raise NodeLocked(node=node.uuid, host=node.reservation)


def _requested(verb: str, row: Node, args: JSONObject) -> JSONObject:
    """Return the columns that the request's arguments set."""
    changed: JSONObject = {"agent_token_hash": None} if verb == "inspect" else {}
    if verb in _DEPLOYS:
        changed |= DEPLOYMENT.columns(row.driver_internal_info, args.get("deploy_steps") or ())
    if verb == "clean":
        changed |= CLEANING.columns(row.driver_internal_info, args.get("clean_steps") or (), _is_without_ramdisk(args))
    if verb == "provide":
        changed |= CLEANING.columns(row.driver_internal_info, ())
    if verb == "service":
        changed |= SERVICE.columns(row.driver_internal_info, args.get("service_steps") or (), _is_without_ramdisk(args))
    if verb == "rescue":
        changed |= workflows.rescue_columns(row.driver_internal_info)
    if fields := _of_instance(verb, args):
        changed["instance_info"] = {**row.instance_info, **fields}
    return changed


def _is_without_ramdisk(args: JSONObject) -> bool:
    return bool(args.get("disable_ramdisk"))


def _of_instance(verb: str, args: JSONObject) -> JSONObject:
    """Return what the request's arguments add to ``instance_info``."""
    names = ("configdrive",) if verb in _DEPLOYS else ("rescue_password",) if verb == "rescue" else ()
    return {name: args[name] for name in names if args.get(name) is not None}


def change_power_state(conductor: Conductor, context: RequestContext, node_id: str | int, target: str,
                       timeout_s: int | None) -> None:
    """Start changing the power state; ``target_power_state`` is set until it is done.

    :raises InvalidParameterValue: 400, no such power state, or the node must not be switched off;  NodeLocked: 409
    """
    if target not in states.POWER_TARGETS:
        raise InvalidParameterValue(f"/target: must be one of {', '.join(sorted(states.POWER_TARGETS))}")
    task = task_store.read_unlocked(conductor.db, node_id).task(context)
    admission.require_new(conductor, context, task.node.id)
    _check_unlocked(task.node)
    power = conductor.hardware.interface(task.node, "power")
    if reason := power.refusal(task.node, target):
        raise InvalidParameterValue(problems=[Problem("/target", reason)])
    power.validate(task)
    final = _final(target)
    lock = conductor.new_lock(task.node.id)
    with conductor.workers.take(task.node.id, PATIENCE_S) as slot:

        def store(conn: sa.Connection) -> None:
            locked = nodes.reserve(conn, lock, f"power: {target}")
            admission.admit(conn, context, lock.node_id)
            values: JSONObject = {"target_power_state": final, "last_error": None}
            if target != states.POWER_ON:
                # Before the machine is switched: whatever becomes of this process, the next ramdisk gets another token.
                values |= {"agent_token_hash": None, "driver_internal_info": {
                    key: value for key, value in locked.driver_internal_info.items() if key not in AGENT_ADDRESS}}
            nodes.update_locked(conn, lock, values)
            notices.power(conn, lock.node_id, final, events.START)

        conductor.db.write(store)
        slot.run(_set_power, conductor, context, lock, target, timeout_s)


def _final(target: str) -> str:
    """Return the power state in which a request for ``target`` ends."""
    return states.POWER_OFF if target in states.OFF_TARGETS else states.POWER_ON


def _set_power(conductor: Conductor, context: RequestContext, lock: nodes.Lock, target: str,
               timeout_s: int | None) -> None:
    with state_machine.lock_may_be_lost(lock.node_id):
        with conductor.db.reader() as conn:
            task = task_store.read_locked(conn, lock).task(context)
        values: JSONObject = {"target_power_state": None, "last_error": None}
        if target != states.POWER_ON:
            # Once more, as in Ironic: a lookup needs no lock.
            values["agent_token_hash"] = None

        def switch() -> None:
            power = conductor.hardware.interface(task.node, "power")
            power.check_target(task.node, target)  # the node may have changed since the request was accepted
            power.set_power_state(task, target, timeout_s)
            values["power_state"] = power.get_power_state(task)

        if reason := state_machine.failure_of(switch, task):
            values["last_error"] = secrets.message(identified(power_change_failed(target=target, reason=reason)))
            LOG.warning("Node %s: %s", task.node.uuid, values["last_error"])

        def store(conn: sa.Connection) -> None:
            task_store.save(conn, task, lock, values, release=True)
            notices.power(conn, lock.node_id, _final(target), events.ERROR if reason else events.END)

        conductor.db.write(store)


def validate_interfaces(conductor: Conductor, context: RequestContext, node_id: str | int) -> dict[str, JSONObject]:
    """Return ``{kind: {"result": True}}`` or ``{"result": False, "reason": text}`` for every interface of the node.

    ``deploy`` has ``warnings`` about the steps of a deployment and about the image, if there are any.
    """
    task = task_store.read_unlocked(conductor.db, node_id).task(context)
    results: dict[str, JSONObject] = {}
    for kind in conductor.hardware.VALIDATED_KINDS:
        reason = state_machine.failure_of(functools.partial(_validate, conductor, task, kind), task)
        results[kind] = {"result": True} if reason is None else {"result": False, "reason": reason}
    if results.get("deploy", {}).get("result"):
        _warn(conductor, task, results["deploy"])
    return results


def _warn(conductor: Conductor, task: Task, result: JSONObject) -> None:
    warnings: list[StepWarning] = []
    # An interface that the driver does not have any more is one of the reasons already.
    state_machine.failure_of(lambda: warnings.extend(workflows.expected_warnings(conductor, task)), task)
    interface = conductor.hardware.interface(task.node, "deploy")
    warnings += [StepWarning("instance", problem.where, problem.text) for problem in interface.warnings(task)]
    if warnings:
        result["warnings"] = [warning.to_wire() for warning in warnings]


def _validate(conductor: Conductor, task: Task, kind: str) -> None:
    conductor.hardware.interface(task.node, kind).validate(task)
    if kind == "deploy":
        workflows.validate_deployment(conductor, task)
