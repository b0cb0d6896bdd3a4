"""What differs between two inventories of a machine: which disks, interfaces and devices came, went and changed.

Parts are recognised by what they carry with them, not by their place in a list: a disk by its serial number, whatever
its name is after a boot. All of it takes linear time, whatever a machine has sent.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, TypeAlias

import orjson

from ironic_rules.models import json_patch
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.json_values import JSON, JSONObject, same

#: Operations of a patch; with more of them it would be larger than what it describes.
MAX_OPERATIONS = 10_000

#: The name and the value by which a part is recognised.
_Identity: TypeAlias = tuple[str, str]
_DISK = ("serial", "wwn", "by_path", "name")
_INTERFACE = ("mac_address", "name")
_COMPONENT = ("id", "name")
_PCI = ("bus",)


def difference(before: InspectionData, after: InspectionData) -> JSONObject:
    """Return the differences of two inventories, whose secrets are masked already.

    :returns: ``disks`` (by serial number, else WWN, path or name), ``interfaces`` (by MAC address), ``pci_devices`` (by
        address) and ``firmware_components`` (by ID), each with the parts ``added`` and ``removed``, and of those
        ``changed`` the ``identity`` and the changes of fields; changes of the fields of ``memory`` and of the system's
        ``firmware``; the ``patch`` (RFC 6902) of the inventory, which replaces all of it if there are more than
        ``MAX_OPERATIONS`` operations
    """
    old, new = before.inventory, after.inventory
    return {
        "disks": _parts(old.get("disks"), new.get("disks"), _DISK),
        "interfaces": _parts(old.get("interfaces"), new.get("interfaces"), _INTERFACE),
        "memory": _fields(old.get("memory"), new.get("memory")),
        "firmware": _fields(_firmware(old), _firmware(new)),
        "firmware_components": _parts(
            before.plugin_data.get("firmware"), after.plugin_data.get("firmware"), _COMPONENT),
        "pci_devices": _parts(before.plugin_data.get("pci_devices"), after.plugin_data.get("pci_devices"), _PCI),
        "patch": _patch(old, new),
    }


def _patch(old: JSONObject, new: JSONObject) -> list[JSONObject]:
    try:
        return json_patch.difference(old, new, most=MAX_OPERATIONS)
    except json_patch.TooManyOperations:
        return [{"op": "replace", "path": "", "value": new}]


def _firmware(inventory: JSONObject) -> Any:
    vendor = inventory.get("system_vendor")
    return vendor.get("firmware") if isinstance(vendor, dict) else None


def _fields(old: JSON, new: JSON) -> JSONObject:
    """Return ``{field: {"before": value, "after": value}}`` of those that differ; one that is missing has no value."""
    old, new = (value if isinstance(value, dict) else {} for value in (old, new))
    found: JSONObject = {}
    for name in dict.fromkeys((*old, *new)):
        if name not in old:
            found[name] = {"after": new[name]}
        elif name not in new:
            found[name] = {"before": old[name]}
        elif not same(old[name], new[name]):
            found[name] = {"before": old[name], "after": new[name]}
    return found


def _parts(old: JSON, new: JSON, keys: tuple[str, ...]) -> JSONObject:
    before, after = _items(old), _items(new)
    pairs = _pairs(before, after, keys)
    changed = [{"identity": dict((_identity(item, keys),)), "changes": changes}
               for place, item in enumerate(after)
               if place in pairs and (changes := _fields(before[pairs[place]], item))]
    known = set(pairs.values())
    return {"added": [item for place, item in enumerate(after) if place not in pairs],
            "removed": [item for place, item in enumerate(before) if place not in known], "changed": changed}


def _pairs(before: list[JSONObject], after: list[JSONObject], keys: tuple[str, ...]) -> dict[int, int]:
    """Return the places before of those that were there, by their places after.

    Several may have one identity, such as the paths to a disk, or a bond and its cards: those that have not changed are
    the same ones, then those with the same name.
    """
    def named(item: JSONObject) -> tuple[_Identity, str]:
        name = item.get("name")
        return _identity(item, keys), name if isinstance(name, str) else ""

    pairs: dict[int, int] = {}
    old, new = list(range(len(before))), list(range(len(after)))
    for key in (_text, named, lambda item: _identity(item, keys)):
        places: defaultdict[Any, deque[int]] = defaultdict(deque)
        for place in old:
            places[key(before[place])].append(place)
        for place in new:
            if found := places.get(key(after[place])):
                pairs[place] = found.popleft()
        known = set(pairs.values())
        old, new = [place for place in old if place not in known], [place for place in new if place not in pairs]
    return pairs


def _items(value: JSON) -> list[JSONObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _identity(item: JSONObject, keys: Iterable[str]) -> _Identity:
    for key in keys:
        value = item.get(key)
        if isinstance(value, str) and value:
            return key, value.lower() if key == "mac_address" else value
    # Recognised only by all of it, and so never changed.
    return "", _text(item)


def _text(item: JSONObject) -> str:
    return orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()
