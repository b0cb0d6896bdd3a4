"""Requests for one operation of one interface of a node: its boot device, an NMI, virtual media, its console, ….

A reading operation runs in the thread of the call, without the lock of the node. A changing one takes the lock and runs
in a worker; the caller waits for the result of some, and for others until they have begun: their failure is in
``last_error`` and in the history of the node. BMCs may be slow: only some of the threads of calls wait for them, so
that others are free.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import admission, state_machine, task_store
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import PATIENCE_S
from ironic_rules.context import RequestContext
from ironic_rules.db import nodes
from ironic_rules.exceptions import (
    Conflict,
    InvalidParameterValue,
    IronicRulesError,
    NodeLocked,
    hardware_call_failed,
    identified,
    outcome_unknown,
    still_running,
)
from ironic_rules.hardware import destinations, vendor_methods
from ironic_rules.hardware.base import KINDS, Interface
from ironic_rules.hardware.waiting import time_limit
from ironic_rules.models import secrets, states
from ironic_rules.models.kept import Kept
from ironic_rules.models.task import Task
from ironic_rules.text import MAX_MESSAGE, printable

LOG = logging.getLogger(__name__)

#: Seconds before the caller gives up at which it is told that the operation continues.
_MARGIN_S = 2.0

Perform = Callable[[Any, Task, Mapping[str, Any]], Any]


class Mode(enum.Enum):
    """The way in which an operation runs."""

    READ = "read"
    #: under the lock, the caller waits for the result
    CHANGE = "change"
    #: under the lock, the caller waits until it has begun
    BEGIN = "begin"


@dataclass(frozen=True, slots=True)
class HardwareOperation:
    """An operation that a call may request.

    :ivar method: the method of the interface; the call's arguments are its arguments
    :ivar check: refuses arguments before anything begins; quick, it does not access the BMC
    :ivar then: what the node keeps of a success
    :ivar overridden: the method that an interface overrides if it supports the operation; None: ``method``; empty: all
        interfaces support it
    """

    kind: str
    method: str
    mode: Mode = Mode.READ
    check: Perform | None = None
    then: Perform | None = None
    overridden: str | None = None

    def interface(self, conductor: Conductor, task: Task) -> Any:
        """Return the node's interface.

        :raises Invalid: it does not support the operation, or the node lacks what it requires
        """
        interface: Interface = conductor.hardware.interface(task.node, self.kind)
        overridden = self.method if self.overridden is None else self.overridden
        if overridden and getattr(type(interface), overridden) is getattr(KINDS[self.kind], overridden):
            raise interface.refuse(task, self.method)
        interface.validate(task)
        return interface


def call(conductor: Conductor, context: RequestContext, node_id: str | int, name: str, args: Mapping[str, Any]) -> Any:
    """Carry out the operation ``name`` of ``OPERATIONS`` on the node; return its result, None for what has only begun.

    :raises Invalid: 400, an interface does not support it, or bad arguments;  NodeLocked: 409
    :raises too_many_calls, NoFreeWorker, still_running: 503;  BMCError: 502
    """
    if name not in OPERATIONS:
        raise InvalidParameterValue(f"The conductor knows no operation {printable(name)}.")
    task = task_store.read_unlocked(conductor.db, node_id).task(context)
    operation = OPERATIONS[name]
    interface = operation.interface(conductor, task)
    if name == "call_vendor_method" and not vendor_methods.find(type(interface), **args).locks:
        operation = replace(operation, mode=Mode.READ)
    if operation.check is not None:
        operation.check(interface, task, args)
    if operation.mode is Mode.BEGIN:
        return _begin(conductor, context, task, operation, name, args, None)
    seconds = max(1.0, conductor.conf.rpc_response_timeout - _MARGIN_S)
    with conductor.hardware_turns.turn(task.node):
        if operation.mode is Mode.READ:
            # Its caller waits no longer.
            with time_limit(seconds):
                return getattr(interface, operation.method)(task, **args)
        result: futures.Future[Any] = futures.Future()
        _begin(conductor, context, task, operation, name, args, result)
        try:
            return result.result(seconds)
        except futures.TimeoutError:
            if result.cancel():
                raise still_running(node=task.node.uuid, operation=name, seconds=seconds) from None
            return result.result()


def _begin(conductor: Conductor, context: RequestContext, task: Task, operation: HardwareOperation, name: str,
           args: Mapping[str, object], result: futures.Future[Any] | None) -> None:
    """Take the lock and start the work, which sets ``result``."""
    if task.node.reservation is not None:
        raise NodeLocked(node=task.node.uuid, host=task.node.reservation)
    lock = conductor.new_lock(task.node.id)
    with conductor.workers.take(task.node.id, PATIENCE_S) as slot:

        def store(conn: sa.Connection) -> None:
            nodes.reserve(conn, lock, f"{state_machine.HARDWARE_CALL}{name}")
            admission.admit(conn, context, lock.node_id)

        conductor.db.write(store)
        slot.run(_work, conductor, context, lock, operation, name, args, result)


def _work(conductor: Conductor, context: RequestContext, lock: nodes.Lock, operation: HardwareOperation, name: str,
          args: Mapping[str, object], result: futures.Future[Any] | None) -> None:
    try:
        _do(conductor, context, lock, operation, name, args, result)
    finally:
        if result is not None and not result.done():
            # Neither a result nor a reason: the lock was lost, or the database.
            result.set_exception(outcome_unknown())


def _do(conductor: Conductor, context: RequestContext, lock: nodes.Lock, operation: HardwareOperation, name: str,
        args: Mapping[str, object], result: futures.Future[Any] | None) -> None:
    with state_machine.lock_may_be_lost(lock.node_id):
        with conductor.db.reader() as conn:
            task = task_store.read_locked(conn, lock).task(context)
        results: list[Any] = []
        errors: list[IronicRulesError] = []

        def perform() -> None:
            snapshot = Kept(task, "interfaces")
            try:
                interface = operation.interface(conductor, task)
                results.append(getattr(interface, operation.method)(task, **args))
                if operation.then is not None:
                    operation.then(interface, task, args)
            except IronicRulesError as exc:
                errors.append(exc)
                raise
            if problem := snapshot.problem():
                raise IronicRulesError(f"{operation.kind}.{operation.method}: {problem}")

        reason = state_machine.failure_of(perform, task)
        # From here on the caller gets the result, or does not wait for it any more.
        is_awaited = result is not None and result.set_running_or_notify_cancel()
        _save(conductor, context, lock, task, name, reason, tell=not is_awaited)
        if is_awaited and result is not None:
            if reason is None:
                result.set_result(results[0])
            else:
                result.set_exception(errors[0] if errors else IronicRulesError(reason))


def _save(conductor: Conductor, context: RequestContext, lock: nodes.Lock, task: Task, name: str, reason: str | None,
          *, tell: bool) -> None:
    """Release the lock, with what was changed, or with why it failed if no caller waits for it; tell of warnings."""
    if reason is None:
        notices = "".join(f" Warning: {notice}" for notice in task.notices)
        warning = printable(secrets.mask_text(f"{name}:{notices}"), MAX_MESSAGE) if notices else None

        def keep(conn: sa.Connection) -> None:
            task_store.save(conn, task, lock, {}, release=True)
            state_machine.add_history(conn, conductor, lock.node_id, "provisioning", warning, "INFO", context)

        conductor.db.write(keep)
        return
    text = secrets.message(identified(hardware_call_failed(call=name, reason=reason)))
    LOG.warning("Node %s: %s", task.node.uuid, text)

    def store(conn: sa.Connection) -> None:
        nodes.release(conn, lock, {"last_error": text} if tell else {})
        if tell:
            state_machine.add_history(conn, conductor, lock.node_id, "provisioning", text, "ERROR", context)

    conductor.db.write(store)


def _boot_device(management: Any, task: Task, args: Mapping[str, Any]) -> None:
    devices = management.get_supported_boot_devices(task)
    # An interface that names none accepts any.
    if devices and args["device"] not in devices:
        raise InvalidParameterValue(f"/boot_device: must be one of {', '.join(devices)}")


def _boot_mode(management: Any, task: Task, args: Mapping[str, Any]) -> None:
    modes = management.get_supported_boot_modes(task)
    if args["mode"] not in modes:
        raise InvalidParameterValue(f"/target: must be one of {', '.join(modes)}" if modes else
                                    f"/target: node {task.node.uuid} supports no boot modes")


def _media(management: object, task: Task, args: Mapping[str, object]) -> None:
    if task.node.provision_state in states.WAITING:
        raise Conflict(f'The virtual media of node {task.node.uuid} cannot be changed while it is in state '
                       f'"{task.node.provision_state}": its ramdisk may have been booted from them.')


def _image(management: Any, task: Task, args: Mapping[str, Any]) -> None:
    _media(management, task, args)
    destinations.check(management.conf, {"/image_url": args["image_url"]})


def _keep_boot_mode(management: Any, task: Task, args: Mapping[str, Any]) -> None:
    task.node.boot_mode = args["mode"]


def _keep_secure_boot(management: Any, task: Task, args: Mapping[str, Any]) -> None:
    task.node.secure_boot = args["is_on"]


OPERATIONS: Mapping[str, HardwareOperation] = {
    "get_boot_device": HardwareOperation("management", "get_boot_device"),
    "get_supported_boot_devices": HardwareOperation("management", "get_supported_boot_devices"),
    "set_boot_device": HardwareOperation("management", "set_boot_device", Mode.CHANGE, _boot_device),
    "inject_nmi": HardwareOperation("management", "inject_nmi", Mode.CHANGE),
    "get_supported_indicators": HardwareOperation("management", "get_supported_indicators"),
    "get_indicator_state": HardwareOperation("management", "get_indicator_state"),
    "set_indicator_state": HardwareOperation("management", "set_indicator_state", Mode.CHANGE),
    "set_boot_mode": HardwareOperation("management", "set_boot_mode", Mode.BEGIN, _boot_mode, _keep_boot_mode),
    "set_target_raid_config": HardwareOperation("raid", "set_target_raid_config", Mode.CHANGE),
    "get_virtual_media": HardwareOperation("management", "get_virtual_media"),
    "attach_virtual_media": HardwareOperation("management", "attach_virtual_media", Mode.BEGIN, _image),
    "detach_virtual_media": HardwareOperation("management", "detach_virtual_media", Mode.BEGIN, _media),
    "vendor_methods": HardwareOperation("vendor", "vendor_methods", overridden=""),
    "call_vendor_method": HardwareOperation("vendor", "call_vendor_method", Mode.CHANGE, overridden=""),
    "get_console": HardwareOperation("console", "get_console"),
    "set_console": HardwareOperation("console", "set_console", Mode.BEGIN, overridden="start_console"),
    "set_secure_boot": HardwareOperation("management", "set_secure_boot", Mode.BEGIN, then=_keep_secure_boot),
}
