"""``ipmitool`` power."""

from __future__ import annotations

import re
from typing import Any

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware.base import PowerInterface
from ironic_rules.hardware.ipmi.tool import IPMIInterface
from ironic_rules.hardware.polling import wait_for_power
from ironic_rules.models import states
from ironic_rules.models.task import Task

_STATUS = re.compile(r"Chassis Power is (on|off)")


class IPMIToolPower(IPMIInterface, PowerInterface):
    """Runs ``chassis power``, and waits until the BMC reports that the change is complete."""

    def get_power_state(self, task: Task) -> str:
        told = _STATUS.search(self.ipmitool(task, "power", "status"))
        if told is None:
            raise BMCError(node=task.node.uuid, reason="it does not report the power state of the machine.")
        return states.POWER_ON if told.group(1) == "on" else states.POWER_OFF

    def refusal(self, node: Any, target: str) -> str | None:
        if target == states.SOFT_REBOOT and node.disable_power_off:
            return ("is refused, because the node has disable_power_off, and IPMI has no graceful reboot that keeps "
                    "the power on; request 'rebooting' instead")
        return super().refusal(node, target)

    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        self.check_target(task.node, target)
        is_on = self.get_power_state(task) == states.POWER_ON
        soft_timeout_s = timeout_s or self.conf.conductor.soft_power_off_timeout
        if target == states.POWER_OFF and is_on:
            self._switch(task, "off", states.POWER_OFF, timeout_s)
        elif target == states.SOFT_POWER_OFF and is_on:
            self._switch(task, "soft", states.POWER_OFF, soft_timeout_s)
        elif target == states.SOFT_REBOOT and is_on:
            self._switch(task, "soft", states.POWER_OFF, soft_timeout_s)
            self._switch(task, "on", states.POWER_ON, None)
        elif target == states.REBOOT and is_on:
            # A reset keeps the power on.
            self._switch(task, "reset" if task.node.disable_power_off else "cycle", states.POWER_ON, timeout_s)
        elif target in (states.POWER_ON, states.REBOOT, states.SOFT_REBOOT) and not is_on:
            self._switch(task, "on", states.POWER_ON, timeout_s)
        task.node.power_state = states.POWER_OFF if target in states.OFF_TARGETS else states.POWER_ON

    def _switch(self, task: Task, command: str, ends: str, timeout_s: int | None) -> None:
        self.ipmitool(task, "power", command)
        wait_for_power(task, lambda: self.get_power_state(task), ends,
                 timeout_s or self.conf.conductor.power_state_change_timeout)
