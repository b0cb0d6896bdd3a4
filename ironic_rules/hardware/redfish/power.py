"""``redfish`` power."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import BMCError, InvalidParameterValue
from ironic_rules.hardware.base import PowerInterface
from ironic_rules.hardware.polling import wait_for_power
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.models import states
from ironic_rules.models.task import Task

#: Power state reported by a BMC -> that of the node. A machine that is powering off still counts as on.
_STATES = {"On": states.POWER_ON, "PoweringOn": states.POWER_ON, "PoweringOff": states.POWER_ON,
           "Paused": states.POWER_ON, "Off": states.POWER_OFF}


class RedfishPower(RedfishInterface, PowerInterface):
    """Switches the power by ``ComputerSystem.Reset`` and waits until the BMC reports that the change is complete."""

    def get_power_state(self, task: Task) -> str:
        with self.system(task) as system:
            return _state(task, system)

    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        if target not in states.POWER_TARGETS:
            raise InvalidParameterValue(
                f"Unknown power state '{target}'. Valid: {', '.join(sorted(states.POWER_TARGETS))}.")
        is_on = self.get_power_state(task) == states.POWER_ON
        if target == states.POWER_OFF and is_on:
            self._reset(task, ("ForceOff",), states.POWER_OFF, timeout_s)
        elif target == states.SOFT_POWER_OFF and is_on:
            self._soft_off(task, timeout_s)
        elif target == states.REBOOT and is_on:
            self._reset(task, ("ForceRestart", "PowerCycle"), states.POWER_ON, timeout_s)
        elif target == states.SOFT_REBOOT and is_on and task.node.disable_power_off:
            self._reset(task, ("GracefulRestart",), states.POWER_ON, timeout_s)
        elif target == states.SOFT_REBOOT and is_on:
            # The end of a graceful restart cannot be detected: the power stays on all the time.
            self._soft_off(task, timeout_s)
            self._reset(task, ("On", "ForceOn"), states.POWER_ON, None)
        elif target in (states.POWER_ON, states.REBOOT, states.SOFT_REBOOT) and not is_on:
            self._reset(task, ("On", "ForceOn"), states.POWER_ON, timeout_s)
        off = target in (states.POWER_OFF, states.SOFT_POWER_OFF)
        task.node.power_state = states.POWER_OFF if off else states.POWER_ON

    def _soft_off(self, task: Task, timeout_s: int | None) -> None:
        timeout_s = timeout_s or self.conf.conductor.soft_power_off_timeout
        self._reset(task, ("GracefulShutdown",), states.POWER_OFF, timeout_s)

    def _reset(self, task: Task, types: tuple[str, ...], ends: str, timeout_s: int | None) -> None:
        """Request the first of ``types`` that the BMC offers, and wait until it is complete."""
        with self.system(task) as system:
            offered = {getattr(kind, "value", kind) for kind in system.get_allowed_reset_system_values()}
            chosen = next((kind for kind in types if kind in offered), None)
            if chosen is None:
                raise BMCError(node=task.node.uuid, reason=f"it does not offer {' or '.join(types)}.")
            system.reset_system(self.sushy.ResetType(chosen))
        wait_for_power(task, lambda: self.get_power_state(task), ends,
                 timeout_s or self.conf.conductor.power_state_change_timeout)


def _state(task: Task, system: Any) -> str:
    told = getattr(system.power_state, "value", system.power_state)
    if told not in _STATES:
        raise BMCError(node=task.node.uuid, reason="it does not report the power state of the machine.")
    return _STATES[told]
