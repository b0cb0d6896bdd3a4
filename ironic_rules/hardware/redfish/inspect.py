"""``redfish``: out-of-band inspection, with the data that the BMC provides."""

from __future__ import annotations

import ipaddress
import time

from oslo_log import log
from oslo_utils import units

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware import resolver
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.hardware.redfish import inventory
from ironic_rules.hardware.redfish.client import RedfishInterface, documents
from ironic_rules.hardware.redfish.resources import FoundResources, Reader, ReadLimits
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities
from ironic_rules.text import enumeration

LOG = log.getLogger(__name__)

#: Maximum number of paths in the plug-in data.
_MAX_MISSING = 64


class RedfishInspect(RedfishInterface, InspectInterface):
    """Reads the inventory over Redfish; hooks and rules process it like a ramdisk's. The power state is unchanged."""

    def inspect_hardware(self, task: Task) -> InspectionData:
        """Read the inventory, and set the properties of the node that follow from it, whatever hooks are enabled.

        :raises BMCError: the BMC does not respond, or reports nothing about the machine
        """
        began = time.monotonic()
        found = self._read(task)
        data = inventory.of(found)
        if not (data["interfaces"] or data["disks"] or data["memory"]["total"] or data["cpu"]["count"]):
            raise BMCError(node=task.node.uuid, reason="it reports neither network interfaces nor disks, memory or "
                                                       "processors of the machine; use in-band inspection.")
        # An architecture that an operator has set is better than none.
        data["cpu"]["architecture"] = data["cpu"]["architecture"] or task.node.properties.get("cpu_arch")
        self._set_properties(task, data, inventory.root_disk_size(found))
        for address in resolver.addresses(task.node.driver_info):
            key = "bmc_address" if ipaddress.ip_address(address).version == 4 else "bmc_v6address"
            data.setdefault(key, address)
        _warn(task, found)
        seconds = round(time.monotonic() - began, 3)
        LOG.info("Node %s: the inventory was read from its BMC in %s s with %d requests", task.node.uuid, seconds,
                 found.requests)
        return InspectionData(data, {**inventory.plugin_data(found), "redfish_inspection": {
            "requests": found.requests, "seconds": seconds, "missing": sorted(found.missing)[:_MAX_MISSING]}})

    def _read(self, task: Task) -> FoundResources:
        options = self.conf.redfish
        limits = ReadLimits(options.inspection_requests_at_once, options.inspection_max_requests,
                            options.inspection_timeout)
        with self.system(task) as system:
            found = Reader(documents(system), self._why_not, limits).read(self.root(task), system.json, system.path)
            if found.unanswered:
                # A resource that a BMC cannot provide is missing. A BMC that cannot be reached fails the inspection.
                system.refresh()
        return found

    def _why_not(self, exc: Exception) -> tuple[str, bool]:
        if isinstance(exc, self.sushy.exceptions.ConnectionError):
            return "no response", True
        # Without the text: a BMC may return what was sent to it.
        status = getattr(exc, "status_code", None)
        return (type(exc).__name__ if status is None else f"HTTP {status}"), False

    def _set_properties(self, task: Task, data: JSONObject, root_disk_size: int | None) -> None:
        """Set what Ironic's inspection sets; hooks that set the same properties run later."""
        properties = task.node.properties
        if data["memory"]["physical_mb"]:
            properties["memory_mb"] = data["memory"]["physical_mb"]
        if data["cpu"]["architecture"]:
            properties["cpu_arch"] = data["cpu"]["architecture"]
        if root_disk_size is not None and not properties.get("root_device"):
            spacing = self.conf.inspector.disk_partitioning_spacing
            properties["local_gb"] = max(0, root_disk_size // units.Gi - spacing)
        mode, found = data["boot"].get("current_boot_mode"), properties.get("capabilities")
        # What an operator has set is how the machine shall boot, not how it does.
        if mode is not None and isinstance(found, (str, dict, type(None))) \
                and capabilities.get(found, "boot_mode") is None:
            properties["capabilities"] = capabilities.put(found, "boot_mode", mode)

    def abort(self, task: Task) -> None:
        """Do nothing: nothing was booted, and a failed inspection has changed nothing."""


def _warn(task: Task, found: FoundResources) -> None:
    if lacks := inventory.lacks(found):
        LOG.warning("Node %s: the BMC does not provide %s", task.node.uuid, ", ".join(lacks))
    by_reason: dict[str, list[str]] = {}
    for path, reason in sorted(found.missing.items()):
        by_reason.setdefault(reason, []).append(path)
    for reason, paths in by_reason.items():
        LOG.warning("Node %s: resources of the BMC are missing (%s): %s", task.node.uuid, reason, enumeration(paths))
