"""LLDP frames of a ramdisk's report: found, and decoded to values."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ironic_rules.inspection.lldp import med, tlvs
from ironic_rules.inspection.lldp.octets import MalformedTLV, Octets, Values
from ironic_rules.inspection.shared_addresses import natural
from ironic_rules.models.documents import JSONObject

#: Maximum number of interfaces whose frames are decoded; no machine has more cables.
MAX_INTERFACES = 64


def received(inventory: JSONObject, plugin_data: JSONObject) -> tuple[JSONObject, int]:
    """Return the TLVs by interface name, for at most :data:`MAX_INTERFACES`, and how many interfaces are left out.

    They are read from ``plugin_data.lldp_raw``, else from the interface's own ``lldp``, where old ramdisks put them;
    they are unchanged and not validated. Interfaces without TLVs are not counted. The order is that of the names.
    """
    raw = plugin_data.get("lldp_raw")
    by_name = raw if isinstance(raw, dict) else {}
    interfaces = inventory.get("interfaces")
    frames: JSONObject = {}
    for interface in interfaces if isinstance(interfaces, list) else ():
        name = interface.get("name") if isinstance(interface, dict) else None
        if isinstance(name, str) and name and (tlvs := by_name.get(name) or interface.get("lldp")):
            # Two interfaces of one name have frames of their own only in the inventory; their order is random.
            frames[name] = min(tlvs, frames.get(name, tlvs), key=repr)
    names = sorted(frames, key=natural)[:MAX_INTERFACES]
    return {name: frames[name] for name in names}, len(frames) - len(names)


_END = 0
_ORGANISATION = 127
#: Maximum number of octets of a TLV's value: its length has 9 bits.
MAX_TLV = 511
#: Maximum number of octets of all TLVs with their headers. LLDP has no fragments and uses no jumbo frames, so this is
#: generous; it bounds the work for one frame, whatever its list contains.
MAX_FRAME = 1600
_HEADER = 2
MAX_PROBLEMS = 4

_Handler = Callable[[Octets, Values], None]
_ORGANISATIONS: Mapping[bytes, Mapping[int, _Handler]] = {
    tlvs.DOT1_OUI: tlvs.DOT1_TLVS, tlvs.DOT3_OUI: tlvs.DOT3_TLVS, med.OUI: med.TLVS}


@dataclass(slots=True)
class Neighbour:
    """The announcement of a switch about itself and its port.

    :ivar values: JSON data by Ironic's names, whose texts are printable
    :ivar problems: why TLVs are ignored: the first :data:`MAX_PROBLEMS`, then a note that there are more. Does not
        quote what was sent
    """

    values: JSONObject = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def _ignore(self, reason: str) -> None:
        if len(self.problems) <= MAX_PROBLEMS:
            self.problems.append(reason if len(self.problems) < MAX_PROBLEMS else "more TLVs are ignored")


def decode(tlvs: object) -> Neighbour:
    """Decode the TLVs of one frame. Malformed ones are left out; unknown types are ignored silently.

    :param tlvs: should be a list of ``[type, value in hexadecimal]``, and may be anything
    """
    neighbour = Neighbour()
    if not isinstance(tlvs, list):
        neighbour._ignore("not a list of TLVs")
        return neighbour
    size = 0
    for index, item in enumerate(tlvs):
        try:
            kind, data = _split(item)
            size += len(data)
            if kind == _END:
                break
            handler, octets = _handler(kind, Octets(data))
            if handler is not None:
                handler(octets, neighbour.values)
        except MalformedTLV as exc:
            neighbour._ignore(f"TLV {index}: {exc}")
        size += _HEADER
        if size > MAX_FRAME:
            neighbour._ignore(f"TLV {index} is the last that fits into a frame")
            break
    return neighbour


def _split(item: object) -> tuple[int, bytes]:
    if not isinstance(item, (list, tuple)) or len(item) != 2:
        raise MalformedTLV("not a pair of type and value")
    kind, value = item
    if not isinstance(kind, int) or isinstance(kind, bool) or not 0 <= kind <= _ORGANISATION:
        raise MalformedTLV("its type is not a number from 0 to 127")
    if not isinstance(value, str) or len(value) > 2 * MAX_TLV:
        raise MalformedTLV(f"its value is not text of at most {MAX_TLV} octets")
    try:
        return kind, binascii.unhexlify(value)
    except ValueError:
        raise MalformedTLV("its value is not hexadecimal") from None


def _handler(kind: int, octets: Octets) -> tuple[_Handler | None, Octets]:
    if kind != _ORGANISATION:
        return tlvs.BASIC_TLVS.get(kind), octets
    organisation, subtype = octets.take(3), octets.number(1)
    return _ORGANISATIONS.get(organisation, {}).get(subtype), octets
