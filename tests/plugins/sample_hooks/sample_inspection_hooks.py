"""``sample-rack``: the rack of a machine, in a package that is independent of ironic-rules."""

from __future__ import annotations

from typing import Any

from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.task import Task


class RackHook(InspectionHook):
    """Sets ``extra/rack`` from the address that the ramdisk booted with: each rack has an IPv4 network with prefix 24.

    For an inventory without such an address a warning is logged and the node is unchanged.
    """

    dependencies = ["validate-interfaces"]

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        booted = (interface for interface in plugin_data["valid_interfaces"].values() if interface["pxe_enabled"])
        address = next((interface.get("ipv4_address") for interface in booted), None)
        if not address:
            warn(task, "the rack is not known: the ramdisk did not boot from an interface with an IPv4 address")
            return
        task.node.extra["rack"] = address.rpartition(".")[0]
        task.node.save()  # as in the interface; the service saves once, when all hooks and rules have finished
