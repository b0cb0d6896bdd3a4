"""``agent``: inspection by a ramdisk that posts what it finds to ``/v1/continue_inspection``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from oslo_log import log

from ironic_rules.exceptions import BMCError, IronicRulesError
from ironic_rules.hardware import bmc_resolver
from ironic_rules.hardware.agent import ramdisk
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.models import states
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

#: key of ``driver_internal_info``; lookups compare with it
BMC_ADDRESSES = "lookup_bmc_addresses"
#: key of ``driver_internal_info``; while a ramdisk runs that this service booted, the node's fields that say by which
#: boot interface: until its end, a user or a rule may have given the node another one
MANAGED = "inspection_managed_boot"


class AgentInspect(InspectInterface):
    """Boots the ramdisk, which sends the data, and switches the machine off when they are processed."""

    def validate(self, task: Task) -> None:
        """Check that something boots the ramdisk.

        :raises InvalidParameterValue: the boot interface does not, and ``[inspector]require_managed_boot`` is true
        """
        ramdisk.managed_parameters(self, task)

    def inspect_hardware(self, task: Task) -> InspectionData | None:
        """Make the node boot into the ramdisk and remember by which BMC addresses it can be recognised."""
        parameters = ramdisk.managed_parameters(self, task)
        node = task.node
        node.agent_token_hash = None
        node.driver_internal_info[BMC_ADDRESSES] = bmc_resolver.addresses(node.driver_info)
        power = self.interface_of(node, "power")
        if parameters is None:
            node.driver_internal_info.pop(MANAGED, None)
            self.interface_of(node, "management").set_boot_device(task, "pxe")
            power.set_power_state(task, states.REBOOT)
            return None
        node.driver_internal_info[MANAGED] = {"driver": node.driver, "boot_interface": node.boot_interface}
        if not node.disable_power_off:
            power.set_power_state(task, states.POWER_OFF)
        with contextlib.ExitStack() as on_failure:
            # The caller forgets this draft, and with it that there is something to undo.
            on_failure.callback(self._undo_boot, task)
            self.interface_of(node, "boot").prepare_ramdisk(task, parameters)
            power.set_power_state(task, states.REBOOT if node.disable_power_off else states.POWER_ON)
            on_failure.pop_all()
        return None

    def continue_inspection(self, task: Task, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None) -> InspectionData:
        """Return what the ramdisk has sent, as it is."""
        return InspectionData(inventory, plugin_data or {})

    def finish(self, task: Task) -> None:
        """Switch the node off; its ramdisk's token is void.

        :raises BMCError: the node cannot be switched off, or its boot not be undone
        """
        try:
            self._leave(task)
        except BMCError as exc:
            # Who reads this must not look for a mistake in the report or in a rule.
            raise BMCError(f"{exc} That was at the end of the inspection, when the machine is switched off and its "
                           "boot undone; nothing of what hooks and rules had done is saved.") from exc

    def abort(self, task: Task) -> None:
        """Switch the node off; its ramdisk's token is void."""
        self._leave(task)

    def _leave(self, task: Task) -> None:
        node = task.node
        node.agent_token_hash = None
        failures: list[str] = []
        try:
            if self.conf.inspector.power_off and not node.disable_power_off:
                with _noting("Switching the machine off failed", failures):
                    self._power_off(task)
        finally:
            if booted_by := node.driver_internal_info.get(MANAGED):
                with _noting("Undoing its boot (media, boot scripts) failed", failures):
                    # Who booted it, not who would now. Earlier versions noted only that somebody did.
                    booted = NodeDraft(booted_by) if isinstance(booted_by, dict) else node
                    self.interface_of(booted, "boot").clean_up_ramdisk(task)
                    node.driver_internal_info.pop(MANAGED, None)
        if failures:
            raise BMCError(" ".join(failures))

    def _undo_boot(self, task: Task) -> None:
        try:
            self.interface_of(task.node, "boot").clean_up_ramdisk(task)
        except IronicRulesError as exc:
            LOG.warning("What was prepared for the ramdisk of node %s is left: %s", task.node.uuid, exc)

    def _power_off(self, task: Task) -> None:
        power = self.interface_of(task.node, "power")
        if task.node.target_provision_state != states.ENROLL:
            power.set_power_state(task, states.POWER_OFF)
            return
        # Nobody has managed a discovered node yet; the service may not know how to reach its BMC.
        try:
            power.validate(task)
            power.set_power_state(task, states.POWER_OFF)
        except IronicRulesError as exc:
            LOG.info("The discovered node %s is not switched off: %s", task.node.uuid, exc)


@contextlib.contextmanager
def _noting(what: str, failures: list[str]) -> Iterator[None]:
    """Add an error to ``failures`` in place of raising it: what comes next is to be done all the same."""
    try:
        yield
    except IronicRulesError as exc:
        failures.append(f"{what}: {exc}")
