"""``physical-network``: store the physical network of each port of the node, determined by its IP address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection import shared_addresses
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import PortDraft
from ironic_rules.models.task import Task
from ironic_rules.text import printable

OPTION = "[inspector]physical_network_cidr_map"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class PhysicalNetworkHook(InspectionHook):
    """Sets ``physical_network`` of ports by ``[inspector]physical_network_cidr_map``.

    An entry of that list looks like ``192.0.2.0/24:provider`` or ``2001:db8::/64:storage``.
    It is selected by the IPv4 address of the interface, or by its IPv6 address if no entry contains the former. Of
    several entries that contain an address, the one with the longest prefix is used. The port is the one with the
    interface's MAC address. Of interfaces that share an address, the network card is used; if no entry contains its IP
    address, a bond or bridge, then a VLAN.

    A port whose address is in no entry is unchanged. A port with a different physical network gets the new one, with a
    warning: as in Ironic, the configuration takes precedence. All ports of a port group are in one physical network,
    which those get, too, whose address is in no entry; if they would get several, they are unchanged, with a warning.
    To set other physical networks, use an inspection rule, which runs after the hooks.

    To determine the network differently, derive a class from this one, override ``get_physical_network``, and enable it
    instead of this hook.
    """

    dependencies = ["validate-interfaces"]
    _map: dict[Network, str]

    def configure(self, settings: HookSettings) -> None:
        """Read the map.

        :raises ConfigurationError: an entry is malformed, or contradicts an earlier entry of the same network
        """
        super().configure(settings)
        self._map = {}
        for text in settings.physical_network_cidr_map:
            network, name = _entry(text)
            if self._map.setdefault(network, name) != name:
                raise ConfigurationError(f"{OPTION}: '{printable(text)}': an earlier entry has the same network.")

    def get_physical_network(self, interface: JSONObject) -> str | None:
        """Return the physical network that ``interface`` is connected to; None if that is not known.

        :param interface: an item of ``all_interfaces`` of the plugin data; see the hook ``validate-interfaces``
        """
        for address in map(addresses.parse, (interface.get("ipv4_address"), interface.get("ipv6_address"))):
            fitting = [network for network in self._map if address is not None and address in network]
            if fitting:
                return self._map[max(fitting, key=lambda network: network.prefixlen)]
        return None

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        ports = {port.address: port for port in task.ports}
        by_mac: dict[str, str] = {}
        for address, interfaces in shared_addresses.by_address(plugin_data["all_interfaces"]).items():
            if address not in ports:
                continue
            names = (self.get_physical_network(interface) for _, interface in interfaces)
            if (network := next((name for name in names if name is not None), None)) is not None:
                by_mac[address] = network
        for together in _groups(task):
            if not any(str(port.address) in by_mac for port in together):
                continue
            networks: list[str] = []
            for port in together:
                network = by_mac.get(str(port.address)) or port.physical_network
                if network is not None and network not in networks:
                    networks.append(network)
            for port in together:
                if len(networks) == 1:
                    # One interface of a bond has the address.
                    _set(task, port, networks[0])
                elif (reported := by_mac.get(str(port.address), port.physical_network)) != port.physical_network:
                    warn(task, f"port {port.address}: physical_network does not become {printable(reported, 64)}: "
                               "another port of its port group would have a different one")


def _groups(task: Task) -> Iterator[list[PortDraft]]:
    """Yield the ports of each port group, and each port that is in none."""
    groups: dict[int, list[PortDraft]] = {}
    for port in task.ports:
        # A port that this inspection has added has no such field.
        group = getattr(port, "portgroup_id", None)
        if group is None:
            yield [port]
        else:
            groups.setdefault(group, []).append(port)
    yield from groups.values()


def _set(task: Task, port: PortDraft, network: str) -> None:
    old = port.physical_network
    if old == network:
        return
    port.write("/physical_network", network)
    if old:
        warn(task, f"port {port.address}: physical_network was {printable(old, 64)} and is {printable(network, 64)}")


def _entry(text: str) -> tuple[Network, str]:
    # Split at the last colon: those of an IPv6 network come before it.
    cidr, _, name = text.rpartition(":")
    try:
        network = ipaddress.ip_network(cidr.strip())
    except ValueError as exc:
        raise ConfigurationError(
            f"{OPTION}: '{printable(text)}' is not CIDR:PHYSICAL_NETWORK: {printable(exc)}.") from exc
    reason = PortDraft.value_problem("physical_network", name.strip()) if name.strip() else "must not be empty"
    if reason:
        raise ConfigurationError(f"{OPTION}: '{printable(text)}': the physical network {reason}.")
    return network, name.strip()
