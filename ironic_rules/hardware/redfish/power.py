"""``redfish`` power."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from oslo_log import log

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware.base import PowerInterface
from ironic_rules.hardware.boot import device
from ironic_rules.hardware.redfish.client import GONE, RedfishInterface
from ironic_rules.hardware.redfish.quirks import POWER, Form
from ironic_rules.hardware.waiting import wait_for_power
from ironic_rules.models import states
from ironic_rules.models.documents import JSON
from ironic_rules.models.task import Task
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

#: Power state reported by a BMC -> that of the node. A machine that is powering off still counts as on.
_STATES = {"On": states.POWER_ON, "PoweringOn": states.POWER_ON, "PoweringOff": states.POWER_ON,
           "Paused": states.POWER_ON, "Off": states.POWER_OFF}
_ON = ("On", "ForceOn")
_OFF = ("ForceOff",)
_RESTART = ("ForceRestart", "PowerCycle")
#: Types of reset that leave the machine as it is where it has the power state already.
_SWITCH_ON, _SWITCH_OFF = frozenset(_ON), frozenset({"ForceOff", "GracefulShutdown"})


class RedfishPower(RedfishInterface, PowerInterface):
    """Switches the power by ``ComputerSystem.Reset`` and waits until the BMC reports that the change is complete."""

    def get_power_state(self, task: Task) -> str:
        if (path := self.driver_info(task).system_id) is not None:
            # Without sushy's classes, since the power states of thousands of nodes are read every minute.
            try:
                status, system_json = self.read(task, path)
            except BMCError as exc:
                if not isinstance(exc.__cause__, self.sushy.exceptions.ConnectionError):
                    raise
                LOG.debug("The power state of node %s is read once more: %s", task.node.uuid, exc)
            else:
                if status not in GONE:
                    return _state_of(task, system_json.get("PowerState"))
        with self.system(task) as system:
            return _state(task, system)

    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        self.check_target(task.node, target)
        is_on = self.get_power_state(task) == states.POWER_ON
        if target == states.SOFT_POWER_OFF and is_on:
            self._soft_off(task, timeout_s)
        elif target == states.SOFT_REBOOT and is_on and task.node.disable_power_off:
            self._reset(task, ("GracefulRestart",), states.POWER_ON, timeout_s)
        elif target == states.SOFT_REBOOT and is_on:
            # The end of a graceful restart cannot be detected: the power stays on all the time.
            self._soft_off(task, timeout_s)
            self._reset(task, _ON, states.POWER_ON, None)
        elif types := _types(task, target, is_on):
            self._reset(task, types, _final(target), timeout_s)
        task.node.power_state = _final(target)

    def request_reboot(self, task: Task) -> None:
        self._request(task, states.REBOOT)
        task.node.power_state = states.POWER_ON

    def run_step(self, task: Task, target: str) -> str | None:
        path = self._request(task, target)
        awaited = {"path": path, "power_state": _final(target)}
        if path is not None and self.poll(task, awaited) is not None:
            return self.wait_for(task, awaited, self.conf.conductor.power_state_change_timeout,
                                 "[conductor]power_state_change_timeout")
        task.node.power_state = _final(target)
        return None

    def poll(self, task: Task, awaited: Mapping[str, Any]) -> str | None:
        return missing(self.read(task, awaited["path"])[1], awaited["power_state"])

    def continue_step(self, task: Task, step: str, args: Mapping[str, JSON]) -> str | None:
        waits = super().continue_step(task, step, args)
        if waits is None:
            task.node.power_state = states.POWER_OFF if step == "power_off" else states.POWER_ON
        return waits

    def _request(self, task: Task, target: str) -> str | None:
        """Request a change without waiting for it; return the path of the system, None if there is nothing to do."""
        with self.system(task) as system:
            types = _types(task, target, _state(task, system) == states.POWER_ON)
            if types:
                self._send(task, system, types)
            return str(system.path) if types else None

    def _soft_off(self, task: Task, timeout_s: int | None) -> None:
        timeout_s = timeout_s or self.conf.conductor.soft_power_off_timeout
        self._reset(task, ("GracefulShutdown",), states.POWER_OFF, timeout_s)

    def _reset(self, task: Task, types: tuple[str, ...], ends: str, timeout_s: int | None) -> None:
        """Request the first of ``types`` that the BMC offers, and wait until it is complete."""
        def send() -> None:
            with self.system(task) as system:
                self._send(task, system, types, timeout_s)

        send()
        # A restart, or a request to the operating system, would have another effect the second time.
        again = send if types in (_ON, _OFF) else None
        wait_for_power(task, lambda: self.get_power_state(task), ends,
                       timeout_s or self.conf.conductor.power_state_change_timeout, again=again)

    def _send(self, task: Task, system: Any, types: tuple[str, ...], timeout_s: float | None = None) -> None:
        """Request the first of ``types`` that the BMC offers and accepts."""
        offered = _offered(system)
        forms = [Form(kind, functools.partial(system.reset_system, self.sushy.ResetType(kind)),
                      functools.partial(_has, system, kind)) for kind in types if kind in offered]
        switch_on = next((kind for kind in _ON if kind in offered), None)
        if types == _RESTART and switch_on is not None and "ForceOff" in offered:
            forms.append(Form("off and on", lambda: self._off_and_on(task, system, switch_on)))
        if not forms:
            raise BMCError(node=task.node.uuid, reason=f"it does not offer {' or '.join(types)}.")
        if types[0] not in _SWITCH_OFF:
            device.renew(self, task)
        self.change(POWER, forms, timeout_s=timeout_s)


    def _off_and_on(self, task: Task, system: Any, switch_on: str) -> None:
        """Restart a machine whose BMC cannot do that."""
        def read() -> str:
            system.refresh(force=True)
            return _state(task, system)

        system.reset_system(self.sushy.ResetType.FORCE_OFF)
        wait_for_power(task, read, states.POWER_OFF, self.conf.conductor.power_state_change_timeout)
        system.reset_system(self.sushy.ResetType(switch_on))


def _offered(system: Any) -> set[str]:
    return {getattr(kind, "value", kind) for kind in system.get_allowed_reset_system_values()}


def _has(system: Any, kind: str) -> bool:
    """Return whether the machine has the state for which a type of reset is; of a restart, that cannot be seen."""
    if kind not in _SWITCH_ON and kind not in _SWITCH_OFF:
        return False
    system.refresh(force=True)
    state = _STATES.get(getattr(system.power_state, "value", system.power_state))
    return state == (states.POWER_ON if kind in _SWITCH_ON else states.POWER_OFF)


def _state(task: Task, system: Any) -> str:
    return _state_of(task, getattr(system.power_state, "value", system.power_state))


def _state_of(task: Task, reported: object) -> str:
    if not isinstance(reported, str) or reported not in _STATES:
        raise BMCError(node=task.node.uuid, reason="it does not report the power state of the machine.")
    return _STATES[reported]


def missing(system: Mapping[str, Any], power_state: str) -> str | None:
    """Return None if a system (JSON) has that power state, else what is missing, as a poll does."""
    reported = system.get("PowerState")
    if isinstance(reported, str) and _STATES.get(reported) == power_state:
        return None
    return f"the BMC reports the power state {printable(str(reported), 64)} instead of '{power_state}'."


def _final(target: str) -> str:
    return states.POWER_OFF if target in states.OFF_TARGETS else states.POWER_ON


def _types(task: Task, target: str, is_on: bool) -> tuple[str, ...]:
    """Return the types of reset that bring a machine to a state at once, best first; none if it is in it already."""
    if target == states.POWER_OFF:
        return _OFF if is_on else ()
    if not is_on:
        return _ON if target in (states.POWER_ON, states.REBOOT, states.SOFT_REBOOT) else ()
    if target != states.REBOOT:
        return ()
    # A power cycle switches the machine off.
    return ("ForceRestart",) if task.node.disable_power_off else _RESTART
