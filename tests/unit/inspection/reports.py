"""Strategies for network interfaces as agents report them: cards, and what is configured on them in a ramdisk."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Interface = dict[str, Any]

_INTEL, _MELLANOX = ("0x8086", "0x159b"), ("0x15b3", "0x1017")
_IPV4 = ["192.0.2.31", "198.51.100.31", "203.0.113.5", "127.0.0.2"]
_IPV6 = ["2001:db8:42::31", "fe80::7ec2:55ff:fe0a:6600%{name}", "::1"]
#: names of two cards, in systemd's and older schemes
_CARDS = ["eth{}", "eno{}", "ens{}f0np0", "enp{}s0f1", "p{}p1"]


def lldp(switch: int, port: int) -> list[list[Any]]:
    """Return the frame of a switch's port."""
    port_id = "07" + str(port).encode().hex()
    return [[1, f"04d89ef30011{switch:02x}"], [2, port_id], [5, f"leaf-{switch}".encode().hex()]]


def _address(number: int, prefix: str = "7c:c2:55:0a:66") -> str:
    return f"{prefix}:{number:02x}"


class _Machine:
    """The interfaces of one report, while they are drawn. ``agent`` 0 is from 2023, 1 from 2024, 2 from 2026."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.agent = draw(st.integers(0, 2))
        self.interfaces: list[Interface] = []
        self.addresses: list[str] = []

    def chance(self, one_in: int = 2) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def add(self, name: str, address: str | None, ids: tuple[str, str] | None = None, **values: Any) -> Interface:
        """Add an interface, with a device if it has ``ids``, and perhaps IP addresses and a link."""
        interface: Interface = {
            "name": name, "mac_address": address, "client_id": None, "biosdevname": None, "lldp": [],
            "ipv4_address": self.draw(st.sampled_from(_IPV4)) if self.chance(3) else None,
            "ipv6_address": self.draw(st.sampled_from(_IPV6)).format(name=name) if self.chance(4) else None,
            "has_carrier": self.chance(), "vendor": ids and ids[0], "product": ids and ids[1], **values}
        if self.agent:
            interface |= {"speed_mbps": 25000, "pci_address": ids and f"0000:17:00.{len(self.interfaces)}"}
        if self.agent == 2:
            interface["driver"] = ids and "ice"
        if self.chance(3):
            interface["lldp"] = lldp(self.draw(st.integers(1, 3)), len(self.interfaces))
        self.interfaces.append(interface)
        if address:
            self.addresses.append(address)
        return interface

    def cards(self) -> None:
        scheme = self.draw(st.sampled_from(_CARDS))
        for number in self.draw(st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True)):
            card = self.add(scheme.format(number), _address(number), self.draw(st.sampled_from([_INTEL, _MELLANOX])))
            if self.chance(4):
                card["mac_address"] = card["mac_address"].upper()

    def bond(self) -> None:
        """A bond; its cards keep their addresses only in reports of agents that read the permanent ones."""
        mode = self.draw(st.sampled_from(["802.3ad", "active-backup", "fail_over_mac"]))
        cards = self.draw(st.permutations(self.interfaces))
        cards = cards[:max(1, self.draw(st.integers(1, len(cards))))]
        address = _address(1, "02:00:5e:10:00") if self.chance(5) else cards[0]["mac_address"]
        if self.agent < 2 and mode != "fail_over_mac":
            for card in cards:
                card["mac_address"] = address
        self.add(self.draw(st.sampled_from(["bond0", "Bond1", "team0"])), address)

    def on_others(self) -> None:
        """VLANs, bridges and macvlan interfaces, of which each has its parent's address or its own."""
        for number in range(self.draw(st.integers(0, 3))):
            parent = self.draw(st.sampled_from(self.interfaces))
            kind = self.draw(st.sampled_from(["vlan", "bridge", "macvlan", "passthru"]))
            names = {"vlan": f"{parent['name']}.{100 + number}", "bridge": f"br-{number}"}
            name = names.get(kind, f"macvlan{number}.1")
            self.add(name, _address(number, "5e:00:53:aa:00") if kind == "macvlan" else parent["mac_address"])

    def virtual_functions(self) -> None:
        for number in range(self.draw(st.integers(0, 3))):
            address = self.draw(st.sampled_from([_address(number, "6a:12:00:00:00"), "00:00:00:00:00:00", "", None,
                                                 self.interfaces[0]["mac_address"]]))
            self.add(f"{self.interfaces[0]['name']}v{number}", address, _INTEL)

    def infiniband(self) -> None:
        """A port of a host channel adapter with a partition: as the agent for Mellanox reports it, or as others do."""
        guid = "7c:fe:90:03:00:29:26:52"
        known = self.chance()
        address = "7c:fe:90:29:26:52" if known else f"a0:00:02:20:fe:80:00:00:00:00:00:00:{guid}"
        client_id = f"ff:00:00:00:00:00:02:00:00:02:c9:00:{guid}" if known else None
        self.add("ib0", address, _MELLANOX, client_id=client_id)
        if self.chance():
            self.add("ib0.8001", address, client_id=client_id)


@st.composite
def interfaces(draw: st.DrawFn) -> list[Interface]:
    """Draw the interfaces of a machine."""
    machine = _Machine(draw)
    machine.cards()
    if machine.chance():
        machine.bond()
    machine.on_others()
    machine.virtual_functions()
    if machine.chance(4):
        machine.infiniband()
    if machine.chance(10):
        twin = dict(draw(st.sampled_from(machine.interfaces)))
        machine.interfaces.append(twin | {"mac_address": _address(99), "lldp": lldp(9, 9)})
    return machine.interfaces


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what a ramdisk POSTs: interfaces, boot interface and LLDP frames, in either of their places."""
    found = draw(interfaces())
    addresses = sorted({interface["mac_address"].lower() for interface in found if interface["mac_address"]})
    boot = draw(st.sampled_from([*(f"01-{address.replace(':', '-')}" for address in addresses), None]))
    body: dict[str, Any] = {"inventory": {"interfaces": found, "cpu": {"architecture": "x86_64"}}}
    if draw(st.booleans()):
        body["inventory"]["boot"] = {"current_boot_mode": "uefi", "pxe_interface": boot}
    if draw(st.booleans()):
        body["lldp_raw"] = {interface["name"]: interface.pop("lldp") for interface in found if "lldp" in interface}
    return body
