"""Many machines from few inventories: the same hardware, but each with its own MAC addresses, serials and BMC.

Everything is derived from the run's id and the machine's number, so that a run can be repeated, and several runs with
the same service do not conflict.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironic_rules.models import json_text, states
from ironic_rules.models.documents import JSON, JSONObject

#: A MAC address has room for 22 bits of the run, 16 bits of the machine and 8 bits of the NIC.
MAX_MACHINES = 1 << 16
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class InventoryFileError(Exception):
    """A file does not have a ramdisk's data; the text contains its name and the reason in one line."""


@dataclass(frozen=True)
class Sample:
    """An inventory from which machines are created: ``body`` is what a ramdisk would POST. Never changed."""

    name: str
    body: JSONObject


@dataclass(frozen=True)
class SimulatedMachine:
    """One simulated machine and its node.

    :param content: the JSON body that its ramdisk POSTs
    :param pxe_mac: the MAC address that it boots from, None if the inventory has no usable one
    :param bmc_address: for driver_info; None if it has no BMC
    :param expected_state: the state in which its inspection should end
    """

    name: str
    uuid: str
    sample: str
    content: bytes
    inventory: JSONObject
    pxe_mac: str | None
    bmc_address: str | None
    expected_state: str


def load(path: str) -> Sample:
    """Read an inventory file.

    :raises InventoryFileError: not readable, not JSON, or without ``inventory.interfaces``
    """
    try:
        body = json_text.parse(Path(path).read_text(encoding="utf-8"))
    except OSError as exc:
        raise InventoryFileError(f"{path}: {exc.strerror}") from exc
    except ValueError as exc:
        raise InventoryFileError(f"{path}: not JSON: {exc}") from exc
    inventory = body.get("inventory") if isinstance(body, dict) else None
    if not isinstance(inventory, dict) or not isinstance(inventory.get("interfaces"), list):
        raise InventoryFileError(f"{path}: not a ramdisk's data: there is no list at inventory.interfaces")
    return Sample(Path(path).stem, body)


def machine(sample: Sample, name: str, body: dict[str, Any] | None = None) -> SimulatedMachine:
    """Return the machine whose ramdisk sends ``body`` (default: the unchanged sample)."""
    body = sample.body if body is None else body
    inventory = body["inventory"]
    return SimulatedMachine(
        name=name, uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, f"ironic-rules-simulator:{name}")), sample=sample.name,
        content=json.dumps(body).encode(), inventory=inventory, pxe_mac=pxe_mac(inventory),
        bmc_address=next(iter(_bmc_addresses(inventory).values()), None),
        expected_state=states.INSPECTFAIL if body.get("error") else states.MANAGEABLE,
    )


def vary(sample: Sample, run_id: str, index: int) -> SimulatedMachine:
    """Return machine number ``index`` (0 to 65535) of a run: realistic, and different from all others."""
    if not 0 <= index < MAX_MACHINES:
        raise ValueError(f"a run has at most {MAX_MACHINES} machines")
    table = _replacements(sample.body["inventory"], run_id, index)
    return machine(sample, f"sim-{run_id}-{index}", _replace(sample.body, table))


def mac_address(run_id: str, index: int, nic: int) -> str:
    """Return a locally administered unicast address."""
    run = _number(run_id) & 0x3FFFFF
    octets = [(run >> 16) << 2 | 0x02, run >> 8 & 255, run & 255, index >> 8, index & 255, nic & 255]
    return ":".join(f"{octet:02x}" for octet in octets)


def bmc_address(run_id: str, index: int, version: int = 4) -> str:
    """Return an address from 10.0.0.0/8, or from a unique local prefix for version 6."""
    if version == 6:
        return str(ipaddress.IPv6Address(0xFD << 120 | _number(run_id) << 80 | index + 1))
    number = (_number(run_id) + index) % (254 << 16)
    return f"10.{number // 254 >> 8}.{number // 254 & 255}.{number % 254 + 1}"


def pxe_mac(inventory: JSONObject) -> str | None:
    """Return the MAC address that the machine booted from, else its first one, in lower case."""
    text = str((inventory.get("boot") or {}).get("pxe_interface") or "").lower().replace("-", ":")
    candidates = [text[-17:], *(str(nic.get("mac_address") or "").lower() for nic in inventory["interfaces"])]
    return next((mac for mac in candidates if _MAC.fullmatch(mac)), None)


def _bmc_addresses(inventory: JSONObject) -> dict[str, str]:
    """Return the usable addresses of the BMC by key; ramdisks send 0.0.0.0 and ::/0 for "none"."""
    usable = {}
    for key in ("bmc_address", "bmc_v6address"):
        try:
            address = ipaddress.ip_address(inventory.get(key) or "")
        except ValueError:
            continue
        if not address.is_unspecified:
            usable[key] = str(inventory[key])
    return usable


def _replacements(inventory: JSONObject, run_id: str, index: int) -> dict[str, str]:
    """Return old text -> new text for everything that identifies a machine."""
    table: dict[str, str] = {}
    macs = [nic.get("mac_address") for nic in inventory["interfaces"]] + [inventory.get("bmc_mac")]
    for number, mac in enumerate(macs):
        old = str(mac or "").lower()
        if _MAC.fullmatch(old):
            new = mac_address(run_id, index, number)
            # Lower case last: both are equal if an address has no letters.
            table |= {old.upper(): new.upper(), old: new, "01-" + old.replace(":", "-"): "01-" + new.replace(":", "-")}
    for nic in inventory["interfaces"]:
        local = str(nic.get("ipv6_address") or "")
        if local.startswith("fe80:") and nic.get("mac_address") in table:
            zone = local.partition("%")[1] + local.partition("%")[2]
            table[local] = _link_local(table[nic["mac_address"]]) + zone
    for key, old in _bmc_addresses(inventory).items():
        table[old] = bmc_address(run_id, index, 6 if key == "bmc_v6address" else 4)
    serial = (inventory.get("system_vendor") or {}).get("serial_number")
    if serial:
        table[serial] = _serial(serial, run_id, index)
    for disk in inventory.get("disks") or []:
        table |= _disk_replacements(disk, f"{run_id}:{index}")
    return table


def _disk_replacements(disk: JSONObject, seed: str) -> dict[str, str]:
    keys = ("wwn", "wwn_vendor_extension", "serial")
    table = {old: _scramble(old, seed) for old in (disk.get(key) for key in keys) if old}
    wwn, extension, full = disk.get("wwn"), disk.get("wwn_vendor_extension"), disk.get("wwn_with_extension")
    if full and full not in table:
        # udev combines both numbers: 0x<wwn><extension>
        joined = table[wwn] + table[extension][2:] if wwn and extension and full == wwn + extension[2:] else None
        table[full] = joined or _scramble(full, seed)
        if disk.get("serial") and full == "0x" + disk["serial"]:
            table[disk["serial"]] = table[full][2:]
    return table


def _replace(value: JSON, table: dict[str, str]) -> Any:
    """Copy JSON data, with each string that is in ``table`` replaced."""
    if isinstance(value, str):
        return table.get(value, value)
    if isinstance(value, list):
        return [_replace(item, table) for item in value]
    if isinstance(value, dict):
        return {key: _replace(item, table) for key, item in value.items()}
    return value


def _number(run_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(run_id.encode(), digest_size=5).digest(), "big")


def _link_local(mac: str) -> str:
    octets = [int(octet, 16) for octet in mac.split(":")]
    octets = [octets[0] ^ 2, *octets[1:3], 0xFF, 0xFE, *octets[3:]]
    return str(ipaddress.IPv6Address(0xFE80 << 112 | int.from_bytes(bytes(octets), "big")))


def _serial(old: str, run_id: str, index: int) -> str:
    """Return a serial of the same length whose last six characters count the machines; unique in a run."""
    number = (_number(run_id) + index) % 36**6
    tail = "".join(_BASE36[number // 36**place % 36] for place in range(5, -1, -1))
    return old[: max(len(old) - 6, 0)] + tail


def _scramble(old: str, seed: str) -> str:
    """Return ``old`` with its last eight characters changed, each to one of its kind (digit, hex or capital letter)."""
    digest = hashlib.blake2b(f"{seed}:{old}".encode(), digest_size=8).digest()
    head, tail = old[:-8], old[-8:]
    kinds = ("0123456789", "abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for place, character in enumerate(tail):
        kind = next((kind for kind in kinds if character in kind), character)
        head += kind[digest[place] % len(kind)]
    return head
