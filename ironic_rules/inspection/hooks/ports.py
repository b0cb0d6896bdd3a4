"""``ports``: create ports of the node for its network interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.draft import PortDraft
from ironic_rules.models.task import Task

Interfaces = Mapping[str, dict[str, Any]]


class PortsHook(InspectionHook):
    """Creates, updates and deletes ports according to ``add_ports``, ``keep_ports`` and ``update_pxe_enabled``.

    Every valid interface gets ``is_added``: whether ``add_ports`` selects it and the node has a port for it. For an
    address that belongs to another node (``task.foreign_addresses``), no port is created, with a warning.
    """

    dependencies = ["validate-interfaces"]

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        known: Interfaces = plugin_data["all_interfaces"]
        valid: Interfaces = plugin_data["valid_interfaces"]
        selected = {name for name, interface in valid.items() if self._is_selected(interface)}
        if valid and not selected and self.settings.add_ports in ("active", "pxe"):
            warn(task, f"no port is created: no interface is selected by add_ports = {self.settings.add_ports}")
        self._delete(task, {
            "all": None, "present": _addresses(known.values()), "added": _addresses(valid[name] for name in selected),
        }[self.settings.keep_ports])
        self._update(task, known)
        silent = "pxe_interface" not in (inventory.get("boot") or {}) and not plugin_data.get("boot_interface")
        for name, interface in valid.items():
            interface["is_added"] = name in selected and _ensure(task, interface, silent=silent)

    def _is_selected(self, interface: dict[str, Any]) -> bool:
        return {
            "all": True,
            "active": bool(interface.get("ipv4_address") or interface.get("ipv6_address")),
            "pxe": interface["pxe_enabled"],
            "disabled": False,
        }[self.settings.add_ports]

    def _delete(self, task: Task, expected: set[str] | None) -> None:
        unexpected = [port for port in task.ports if expected is not None and port.address not in expected]
        if unexpected and not expected:
            # Data without any interface give no information about the ports, and deleting all of them is irreversible.
            warn(task, f"no port is deleted, although keep_ports is {self.settings.keep_ports}: no port would be left")
            return
        for port in unexpected:
            task.messages.append(("info", f"port {port.uuid} ({port.address}) is deleted: keep_ports is "
                                          f"{self.settings.keep_ports}"))
            task.remove_port(port)

    def _update(self, task: Task, known: Interfaces) -> None:
        by_address = {interface["mac_address"]: interface for interface in known.values()}
        # If a machine did not boot from the network, it is not known which of its interfaces could.
        booted = any(interface["pxe_enabled"] for interface in known.values())
        for port in task.ports:
            interface = by_address.get(port.address)
            if interface is None:
                continue
            if booted and self.settings.update_pxe_enabled and port.pxe_enabled != interface["pxe_enabled"]:
                port.pxe_enabled = interface["pxe_enabled"]
            client_id = interface.get("client_id")
            if client_id and port.extra.get("client-id") != client_id:
                port.extra["client-id"] = client_id


def _addresses(interfaces: Any) -> set[str]:
    return {interface["mac_address"] for interface in interfaces}


def _ensure(task: Task, interface: dict[str, Any], *, silent: bool) -> bool:
    """Return whether the node has a port for ``interface``, after creating it if that is possible.

    :param silent: the data do not contain a boot interface, not even an empty one
    """
    address = interface["mac_address"]
    if _port(task, address) is not None:
        return True
    if address in task.foreign_addresses:
        warn(task, f"no port is created for {address}: it belongs to another node")
        return False
    client_id = interface.get("client_id")
    # A BMC's inventory has no boot interface: the port gets the default of ports that an operator creates.
    task.add_port(address, pxe_enabled=silent or interface["pxe_enabled"],
                  extra={"client-id": client_id} if client_id else {})
    return True


def _port(task: Task, address: str) -> PortDraft | None:
    return next((port for port in task.ports if port.address == address), None)
