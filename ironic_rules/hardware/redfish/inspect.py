"""``redfish``: out-of-band inspection, with the data that the BMC provides."""

from __future__ import annotations

import ipaddress

from oslo_log import log

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware import bmc_resolver
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.hardware.redfish import inventory
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.task import Task

LOG = log.getLogger(__name__)


class RedfishInspect(RedfishInterface, InspectInterface):
    """Reads the inventory over Redfish; hooks and rules process it like a ramdisk's. The power state is unchanged."""

    def inspect_hardware(self, task: Task) -> InspectionData:
        """Read the inventory.

        :raises BMCError: the BMC does not respond, or reports too little about the machine
        """

        def warn(text: str) -> None:
            LOG.warning("Node %s: %s", task.node.uuid, text)

        with self.system(task) as system:
            found = inventory.read(system, warn)
            pci_devices = inventory.pci_devices(system, warn)
        # An architecture that an operator has set is better than an inspection that fails because it is missing.
        found["cpu"]["architecture"] = found["cpu"]["architecture"] or task.node.properties.get("cpu_arch")
        if not (found["interfaces"] or found["disks"] or found["memory"]["total"] or found["cpu"]["count"]):
            raise BMCError(node=task.node.uuid, reason="it reports neither network interfaces nor disks, memory or "
                                                       "processors of the machine; use in-band inspection.")
        for address in bmc_resolver.addresses(task.node.driver_info):
            key = "bmc_address" if ipaddress.ip_address(address).version == 4 else "bmc_v6address"
            found.setdefault(key, address)
        return InspectionData(found, {"pci_devices": pci_devices} if pci_devices else {})

    def abort(self, task: Task) -> None:
        """Do nothing: nothing was booted, and a failed inspection has changed nothing."""
