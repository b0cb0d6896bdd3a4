"""``agent``: in-band inspection by a ramdisk that posts its data to ``/v1/continue_inspection``."""

from __future__ import annotations

import contextlib

from oslo_log import log

from ironic_rules.exceptions import BMCError, IronicRulesError, UnsupportedDriverExtension
from ironic_rules.hardware import resolver
from ironic_rules.hardware.agent import ramdisk
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.hardware.boot import kernel_parameters
from ironic_rules.hardware.boot.device import boot_from, forced_persistence
from ironic_rules.hardware.waiting import noting_failures
from ironic_rules.models import addresses as addresses_models
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.internal_keys import AGENT_STAYS, BMC_ADDRESSES, MANAGED_BOOT
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.nodes import INTERFACES
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)

#: The fields by which a node's BMC is reached.
_OF_BMC = ("driver", "driver_info", *(f"{kind}_interface" for kind in INTERFACES))


class AgentInspect(InspectInterface):
    """Boots the ramdisk, which sends the data, and switches the machine off after they have been processed.

    A machine that stays on (``[inspector]power_off``, ``disable_power_off``, fast track) keeps its ramdisk, and that
    its token.
    """

    def validate(self, task: Task) -> None:
        """Check that the ramdisk can be booted.

        :raises InvalidParameterValue: the boot interface cannot, and ``[inspector]require_managed_boot`` is true
        """
        ramdisk.check_unsupported(task.node)
        forced_persistence(task)
        kernel_parameters.managed_parameters(self, task)

    def inspect_hardware(self, task: Task) -> InspectionData | None:
        """Make the node boot into the ramdisk and store the BMC addresses by which it can be recognized.

        Before that, the node gets the ports that its BMC knows.
        """
        ramdisk.check_unsupported(task.node)
        if self.conf.inspector.pre_create_ports:
            self._create_ports(task)
        parameters = kernel_parameters.managed_parameters(self, task)
        node = task.node
        node.driver_internal_info[BMC_ADDRESSES] = resolver.addresses(node.driver_info)
        ramdisk.forget_address(task)
        power = self.interface_of(node, "power")
        if parameters is None:
            node.driver_internal_info.pop(MANAGED_BOOT, None)
            boot_from(self, task, "pxe")
            task.expect_ramdisk()
            power.set_power_state(task, states.REBOOT)
            return None
        node.driver_internal_info[MANAGED_BOOT] = {"driver": node.driver, "boot_interface": node.boot_interface}
        if not node.disable_power_off:
            power.set_power_state(task, states.POWER_OFF)
        with contextlib.ExitStack() as on_failure:
            # The caller discards this draft, and with it the record of what must be undone.
            on_failure.callback(self._undo_boot, task)
            self.interface_of(node, "boot").prepare_ramdisk(task, parameters)
            task.expect_ramdisk()
            power.set_power_state(task, states.REBOOT if node.disable_power_off else states.POWER_ON)
            on_failure.pop_all()
        return None

    def _create_ports(self, task: Task) -> None:
        try:
            reported = self.interface_of(task.node, "management").get_mac_addresses(task)
        except UnsupportedDriverExtension:
            LOG.debug("The management interface of node %s cannot read MAC addresses", task.node.uuid)
            return
        addresses = [addresses_models.normalize_mac(address) for address in reported
                     if addresses_models.is_mac(address)]
        if not addresses:
            LOG.warning("The BMC of node %s reports no enabled network interface: no port is created before the "
                        "inspection", task.node.uuid)
            return
        of_others = task.addresses_of_others(addresses)
        for address in dict.fromkeys(addresses):
            if address in of_others:
                LOG.warning("No port of node %s is created for %s, which identifies no machine, or another "
                            "node", task.node.uuid, address)
            elif task.find_port(address) is None:
                task.add_port(address)
                LOG.info("A port of node %s is created for %s, which its BMC reports", task.node.uuid, address)

    def continue_inspection(self, task: Task, inventory: JSONObject,
                            plugin_data: JSONObject | None = None) -> InspectionData:
        """Return the data of the ramdisk unchanged."""
        return InspectionData(inventory, plugin_data or {})

    def finish(self, task: Task) -> None:
        """Switch the node off, unless it stays in its ramdisk.

        The BMC is the stored one, which has booted the ramdisk; only that of a discovered node is what rules have set.

        :raises BMCError: the node cannot be switched off, or its boot configuration cannot be undone
        """
        is_new = task.node.target_provision_state == states.ENROLL
        try:
            with task.node.as_stored(() if is_new else _OF_BMC):
                # A ramdisk of a discovered node has no token with which it could continue.
                stays = not self._switches_off(task) or (not is_new and states.is_fast_track(
                    task.node.driver_info, self.conf.deploy.fast_track))
                if stays:
                    task.node.driver_internal_info[AGENT_STAYS] = True
                else:
                    task.node.agent_token_hash = None
                    task.node.driver_internal_info.pop(AGENT_STAYS, None)
                self._leave(task, stays=stays)
        except BMCError as exc:
            # A reader of this error must not look for the cause in the data or in a rule.
            raise BMCError(f"{exc} This happened at the end of the inspection, when the machine is switched off and "
                           "its boot undone; nothing that hooks and rules have changed is saved.") from exc

    def abort(self, task: Task) -> None:
        """Switch the node off and invalidate its ramdisk's token."""
        task.node.agent_token_hash = None
        self._leave(task, stays=not self._switches_off(task))

    def _switches_off(self, task: Task) -> bool:
        return bool(self.conf.inspector.power_off) and not task.node.disable_power_off

    def _leave(self, task: Task, *, stays: bool) -> None:
        node = task.node
        failures: list[str] = []
        try:
            if not stays:
                with noting_failures("Switching the machine off failed", failures):
                    self._power_off(task)
        finally:
            if booted_by := node.driver_internal_info.get(MANAGED_BOOT):
                with noting_failures("Undoing its boot (media, boot scripts) failed", failures):
                    # The boot interface that booted it, not the current one. Earlier versions stored only a flag.
                    booted = NodeDraft(booted_by) if isinstance(booted_by, dict) else node
                    self.interface_of(booted, "boot").clean_up_ramdisk(task)
                    node.driver_internal_info.pop(MANAGED_BOOT, None)
        if failures:
            raise BMCError(" ".join(failures))

    def _undo_boot(self, task: Task) -> None:
        try:
            self.interface_of(task.node, "boot").clean_up_ramdisk(task)
        except IronicRulesError as exc:
            LOG.warning("The preparations for the ramdisk of node %s cannot be undone: %s", task.node.uuid, exc)

    def _power_off(self, task: Task) -> None:
        power = self.interface_of(task.node, "power")
        if task.node.target_provision_state != states.ENROLL:
            power.set_power_state(task, states.POWER_OFF)
            return
        # A discovered node has not been managed yet; the service may not know how to reach its BMC.
        by_rule = _by_rule(task)  # as reading a field counts as writing it
        try:
            power.validate(task)
            power.set_power_state(task, states.POWER_OFF)
        except IronicRulesError as exc:
            LOG.info("The discovered node %s is not switched off%s: %s", task.node.uuid, by_rule, exc)


def _by_rule(task: Task) -> str:
    """Return the rule that has set the BMC of a node, for a message."""
    rule, _ = task.node.author_of("driver_info")
    return f", with driver_info that the inspection rule {rule.uuid} has set" if hasattr(rule, "uuid") else ""
