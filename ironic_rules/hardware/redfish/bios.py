"""``redfish`` BIOS: the ``Attributes`` of the system's ``Bios`` resource."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.bios_steps import BIOSSteps
from ironic_rules.hardware.polling import wait_until
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.models import states
from ironic_rules.models.task import Task
from ironic_rules.text import printable


class RedfishBIOS(RedfishInterface, BIOSSteps):
    """Writes the pending settings and reboots the machine, which applies them."""

    def write_settings(self, task: Task, settings: dict[str, Any]) -> None:
        with self.system(task) as system:
            bios = system.bios
            present = bios.attributes or {}
            if unknown := sorted(set(settings) - set(present)):
                raise InvalidParameterValue(f"The BIOS has no setting {printable(', '.join(unknown))}.")
            changed = {name: value for name, value in settings.items() if present[name] != value}
            if changed:
                on_reset = self.sushy.ApplyTime.ON_RESET
                bios.set_attributes(changed, on_reset if on_reset in (bios.supported_apply_times or ()) else None)
        if changed:
            self._reboot(task)
            wait_until(task, lambda: self._has(task, changed), "the change", self.conf.redfish.configuration_timeout)

    def reset_settings(self, task: Task) -> None:
        # No BMC reports the default values, so it is only possible to wait for the reboot of the machine.
        with self.system(task) as system:
            system.bios.reset_bios()
        self._reboot(task)

    def _has(self, task: Task, settings: dict[str, Any]) -> bool:
        with self.system(task) as system:
            present = system.bios.attributes or {}
            return all(name in present and present[name] == value for name, value in settings.items())

    def _reboot(self, task: Task) -> None:
        self.interface_of(task.node, "power").set_power_state(task, states.REBOOT)
