"""The samples for DHCP servers: each kind of machine is offered the boot program that it can execute.

The clients are on a real network, and ask the real servers, which have the samples with addresses of that network.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.functional.pxe_filter import kea as keas
from tests.functional.pxe_filter.network import Network, network

pytestmark = [pytest.mark.servers, pytest.mark.slow]

_ETC = Path(__file__).parents[3] / "etc"
_MAC = "52:54:00:00:00:{:02x}"
_HTTP = "HTTPClient"
_WEB = {4: "http://198.51.100.10:8080/", 6: "http://[2001:db8::10]:8080/"}
_TFTP = {4: "", 6: "tftp://[2001:db8::1]/"}
#: Numbers of architectures ("Processor Architecture Types" at IANA) -> boot program, and whether it is loaded by HTTP.
#: UEFI on x86 with 32 bits (6), on ARM with 32 bits (10), and without a number that the samples know, get none.
_FIRMWARE = {7: ("ipxe.efi", False), 9: ("ipxe.efi", False), 11: ("ipxe-arm64.efi", False), 16: ("ipxe.efi", True),
             19: ("ipxe-arm64.efi", True), 6: ("", False), 10: ("", False), 15: ("", False)}
_BIOS = {0: ("undionly.kpxe", False)}


def cases(version: int, *, has_http: bool = True) -> list[tuple[dict[str, Any], tuple[str, str]]]:
    """Return requests with the boot file and the class that their answers must have."""
    found: list[tuple[dict[str, Any], tuple[str, str]]] = []
    firmware = {**(_BIOS if version == 4 else {}), **_FIRMWARE}
    for arch, (file, is_http) in firmware.items():
        if is_http and not has_http:
            file, is_http = "", False
        place = _WEB if is_http else _TFTP
        found.append(({"arch": arch}, (place[version] + file if file else "", _HTTP if is_http else "")))
    # Started by each of them, iPXE has the architecture of the firmware; nothing else in the answer may mislead it.
    found += [({"arch": arch, "ipxe": True}, (_WEB[version] + "boot.ipxe", "")) for arch in firmware]
    return [({"v": version, "mac": _MAC.format(number), "wait": 5, **request}, expected)
            for number, (request, expected) in enumerate(found)]


def check(net: Network, version: int, *, has_http: bool = True) -> None:
    """Let the clients ask, and compare what they are offered."""
    requests = cases(version, has_http=has_http)
    answers = net.wire.answers(*(request for request, _ in requests))
    # dnsmasq answers every PXE client with the class PXEClient, as the specification of PXE wants it.
    found = [(answer["boot"], "" if answer["vendor_class"] == "PXEClient" else answer["vendor_class"])
             for answer in answers]

    by_tftp = [answer for answer in answers if answer["boot"] and "://" not in answer["boot"]]
    assert {answer["tftp"] for answer in by_tftp} == ({"198.51.100.1"} if version == 4 else set())
    assert [answer["offered"] for answer in answers] == [True] * len(requests)
    assert {str(request): got for (request, _), got in zip(requests, found, strict=True)} == {
        str(request): expected for request, expected in requests}


def dnsmasq_sample(interface: str, folder: Path) -> str:
    """Return the sample with the part about IPv6, the interface, the addresses and the folders of the test."""
    text = (_ETC / "ironic-inspection-dnsmasq.conf").read_text()
    text = re.sub(r"^#(dhcp-)", r"\1", text, flags=re.MULTILINE).replace("192.0.2.", "198.51.100.")
    text = text.replace("interface=eth1", f"interface={interface}")
    for option, path in {"dhcp-hostsdir": folder / "hosts", "dhcp-leasefile": folder / "leases",
                         "tftp-root": folder}.items():
        text, count = re.subn(rf"^{option}=.*$", f"{option}={path}", text, flags=re.MULTILINE)
        assert count == 1
    return text


def test_dnsmasq_offers_each_machine_its_boot_program(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "unknown_hosts_filter").write_text("*:*:*:*:*:*\n")
    with network(tmp_path) as net:
        net.dnsmasq(tmp_path / "hosts", text=dnsmasq_sample(net.server_side[1], tmp_path))

        check(net, 4)
        check(net, 6, has_http=False)


def test_the_order_of_the_lines_makes_no_difference(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "unknown_hosts_filter").write_text("*:*:*:*:*:*\n")
    with network(tmp_path) as net:
        lines = dnsmasq_sample(net.server_side[1], tmp_path).splitlines()
        net.dnsmasq(tmp_path / "hosts", text="\n".join(reversed(lines)))

        check(net, 4)
        check(net, 6, has_http=False)


def kea_sample(version: int, policy: str, folder: Path) -> str:
    """Return the sample with the addresses of the test, and reservations of its own instead of a database."""
    text = (_ETC / "ironic-rules" / "kea" / f"kea-dhcp{version}-{policy}.conf").read_text()
    reservations = json.dumps([{"hw-address": request["mac"], "hostname": "known"} for request, _ in cases(version)])
    text, count = re.subn(r'"hosts-database": \{.*?\n    \},', f'"reservations": {reservations},', text,
                          flags=re.DOTALL)
    assert count == 1
    text = text.replace("192.0.2.", "198.51.100.").replace('"type": "memfile"', '"type": "memfile", "persist": false')
    # Where the server keeps its own DUID.
    return text.replace('"valid-lifetime"', f'"data-directory": "{folder}", "valid-lifetime"') if version == 6 else text


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("policy", ["open", "closed"])
def test_kea_offers_each_machine_its_boot_program(tmp_path: Path, policy: str, version: int) -> None:
    keas.require()
    with network(tmp_path) as net:
        net.kea(version, "mysql://127.0.0.1/unused", policy, kea_sample(version, policy, tmp_path))

        check(net, version)
        net.stop_keas()
