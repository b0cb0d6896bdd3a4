"""``ports``: create ports of the node for its network interfaces."""

from __future__ import annotations

from typing import Any

from ironic_rules.inspection import shared_addresses
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.inspection.shared_addresses import Named
from ironic_rules.models.addresses import is_ignored
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import PortDraft
from ironic_rules.models.ports import VIF
from ironic_rules.models.task import Task


class PortsHook(InspectionHook):
    """Creates, updates and deletes ports according to ``add_ports``, ``keep_ports`` and ``update_pxe_enabled``.

    A port is one MAC address. Of interfaces that share an address (a bond, a VLAN or a bridge has that of its parent),
    each counts for it: ``add_ports = active`` selects the address if one of them has an IP address.

    Every valid interface gets ``is_added``: whether ``add_ports`` selects its address and the node has a port for it.
    For an address that belongs to another node, or that machines of other nodes have reported, too, no port is created,
    with a warning; nor is one for an address in ``ignored_macs``.
    """

    dependencies = ["validate-interfaces"]

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        by_address = shared_addresses.by_address(plugin_data["all_interfaces"])
        valid = shared_addresses.by_address(plugin_data["valid_interfaces"])
        selected = {address for address, interfaces in valid.items() if self._is_selected(interfaces)
                    and not is_ignored(address, self.settings.ignored_macs)}
        if valid and not selected and self.settings.add_ports in ("active", "pxe"):
            warn(task, f"no port is created: no interface is selected by add_ports = {self.settings.add_ports}")
        if self.settings.keep_ports != "all":
            self._delete(task, set(by_address) if self.settings.keep_ports == "present" else selected, selected)
        self._update(task, by_address)
        boot = inventory.get("boot")
        silent = not (isinstance(boot, dict) and "pxe_interface" in boot) and not plugin_data.get("boot_interface")
        for address, interfaces in valid.items():
            is_added = address in selected and _ensure(task, address, interfaces, silent=silent)
            for _, interface in interfaces:
                interface["is_added"] = is_added

    def _is_selected(self, interfaces: list[Named]) -> bool:
        return {
            "all": True,
            "active": any(shared_addresses.has_ip(interface) for _, interface in interfaces),
            "pxe": _is_boot_address(interfaces),
            "disabled": False,
        }[self.settings.add_ports]

    def _delete(self, task: Task, expected: set[str], selected: set[str]) -> None:
        keep_ports = self.settings.keep_ports
        unexpected = [port for port in task.ports if port.address not in expected]
        created = selected.difference(task.foreign_addresses, task.sharing.of_others)
        if unexpected and not created and len(unexpected) == len(task.ports):
            # Data that explain none of the ports say little about them, and deleting all of them is irreversible.
            warn(task, f"no port is deleted, although keep_ports is {keep_ports}: no port would be left")
            return
        for port in unexpected:
            if _has_vif(task, port):
                warn(task, f"port {port.uuid} ({port.address}) is not deleted, although keep_ports is {keep_ports}: a "
                           "VIF is attached to it or to its port group")
                continue
            task.messages.append(("info", f"port {port.uuid} ({port.address}) is deleted: keep_ports is {keep_ports}"))
            task.remove_port(port)

    def _update(self, task: Task, by_address: dict[str, list[Named]]) -> None:
        # If a machine did not boot from the network, it is not known which of its interfaces could.
        booted = any(_is_boot_address(interfaces) for interfaces in by_address.values())
        for port in task.ports:
            interfaces = by_address.get(port.address)
            if interfaces is None:
                continue
            pxe_enabled = _is_boot_address(interfaces)
            if booted and self.settings.update_pxe_enabled and port.pxe_enabled != pxe_enabled:
                port.pxe_enabled = pxe_enabled
            client_id = _client_id(interfaces)
            if client_id and port.extra.get("client-id") != client_id:
                port.extra["client-id"] = client_id


def _has_vif(task: Task, port: PortDraft) -> bool:
    """Return whether a VIF is attached to the port or to its port group, so that the API would not delete the port."""
    # A port that another hook has just added has neither of these fields.
    group_id = getattr(port, "portgroup_id", None)
    places = [group["internal_info"] for group in task.port_groups if group["id"] == group_id]
    return any(VIF in place for place in (getattr(port, "internal_info", {}), *places))


def _is_boot_address(interfaces: list[Named]) -> bool:
    return any(interface["pxe_enabled"] for _, interface in interfaces)


def _client_id(interfaces: list[Named]) -> Any:
    return next(shared_addresses.values(interfaces, "client_id"), None)


def _ensure(task: Task, address: str, interfaces: list[Named], *, silent: bool) -> bool:
    """Return whether the node has a port for ``address``, after creating it if that is possible.

    :param interfaces: those that have the address
    :param silent: the data do not contain a boot interface, not even an empty one
    """
    if any(port.address == address for port in task.ports):
        return True
    if address in task.foreign_addresses:
        warn(task, f"no port is created for {address}: it belongs to another node")
        return False
    if address in task.sharing.of_others:
        warn(task, f"no port is created for {address}: machines of other nodes have reported it, too")
        return False
    client_id = _client_id(interfaces)
    # A BMC's inventory has no boot interface: the port gets the default of ports that an operator creates.
    task.add_port(address, pxe_enabled=silent or _is_boot_address(interfaces),
                  extra={"client-id": client_id} if client_id else {})
    return True
