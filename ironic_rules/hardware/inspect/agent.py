"""``agent``: inspection by a ramdisk that posts what it finds to ``/v1/continue_inspection``."""

from __future__ import annotations

from typing import Any

from oslo_log import log

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware import bmc
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.models import states
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

RESOLVE_TIMEOUT_S = 10.0
#: key of ``driver_internal_info``; lookups compare with it
BMC_ADDRESSES = "lookup_bmc_addresses"


class AgentInspect(InspectInterface):
    """Boots the ramdisk and waits for its data. What is done with the data is the task's ``process_inspection``."""

    def validate(self, task: Task) -> None:
        """Check that something boots the ramdisk.

        :raises InvalidParameterValue: the boot interface does not, and ``[inspector]require_managed_boot`` is true
        """
        managed = self.interface_of(task.node, "boot").can_boot_ramdisk
        if not managed and self.conf.inspector.require_managed_boot:
            raise InvalidParameterValue(
                f"The boot interface '{task.node.boot_interface}' of node {task.node.uuid} can not boot a ramdisk. Use "
                "another boot interface, or set [inspector]require_managed_boot to false if a DHCP and TFTP "
                "environment outside this service boots the ramdisk.")

    def inspect_hardware(self, task: Task) -> str:
        """Make the node boot into the ramdisk and remember by which BMC addresses it can be recognised."""
        self.validate(task)
        node = task.node
        node.agent_token_hash = None
        node.driver_internal_info[BMC_ADDRESSES] = bmc.addresses(node.driver_info, RESOLVE_TIMEOUT_S)
        self.interface_of(node, "management").set_boot_device(task, "pxe")
        self.interface_of(node, "power").set_power_state(task, states.REBOOT)
        return states.INSPECTWAIT

    def continue_inspection(
            self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any] | None = None) -> str:
        """Process what the ramdisk sent, then switch the node off.

        :raises HookFailed, RuleFailed: a hook or a rule refused the data
        """
        # Set by whoever runs the task, because hooks and rules are above this layer.
        task.process_inspection(inventory, plugin_data or {})
        self._finish(task)
        return states.MANAGEABLE

    def abort(self, task: Task) -> None:
        """Switch the node off; its ramdisk's token is void."""
        self._finish(task)

    def _finish(self, task: Task) -> None:
        task.node.agent_token_hash = None
        if not task.node.disable_power_off:
            self.interface_of(task.node, "power").set_power_state(task, states.POWER_OFF)
