"""Hardware types, as registered by the conductors -> JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.api import links, versions
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import INTERFACES
from ironic_rules.models.resources import RegisteredConductor

#: First minor version that shows each interface of a driver.
_INTERFACE_SINCE = {"storage": 33, "rescue": 38, "bios": 40, "firmware": versions.FIRMWARE}


@dataclass(slots=True)
class Driver:
    """One hardware type and its hosts; ``kinds`` is interface kind -> ``{"enabled": [...], "default": name}``."""

    name: str
    hosts: list[str] = field(default_factory=list)
    kinds: JSONObject = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    #: of logical disks, by RAID interface; None: its conductors are older than that
    logical_disk_properties: dict[str, dict[str, str]] | None = None


def collect(conductors: Iterable[RegisteredConductor]) -> dict[str, Driver]:
    """Return the drivers of all ``conductors`` by name, in the order of the names."""
    found: dict[str, Driver] = {}
    for row in conductors:
        for name, description in row.hardware_types.items():
            driver = found.setdefault(name, Driver(name))
            driver.hosts.append(row.hostname)
            driver.properties |= description.get("properties") or {}
            if (told := description.get("logical_disk_properties")) is not None:
                driver.logical_disk_properties = {**(driver.logical_disk_properties or {}), **told}
            for kind in INTERFACES:
                _merge(driver.kinds, kind, description.get(kind) or {})
    return dict(sorted(found.items()))


def _merge(kinds: JSONObject, kind: str, offer: Mapping[str, Any]) -> None:
    merged = kinds.setdefault(kind, {"enabled": [], "default": None})
    merged["enabled"] += [name for name in offer.get("enabled", ()) if name not in merged["enabled"]]
    merged["default"] = merged["default"] or offer.get("default")


def driver(base: str, entry: Driver, minor: int, *, detail: bool) -> JSONObject:
    """Return one driver; ``detail`` adds ``default_*_interface`` and ``enabled_*_interfaces``."""
    reply: JSONObject = {
        "name": entry.name, "hosts": sorted(entry.hosts), "links": links.resource(base, "drivers", entry.name),
    }
    if minor >= versions.DRIVER_PROPERTIES_LINK:
        reply["properties"] = links.resource(base, "drivers", entry.name, "properties")
    if minor >= versions.DRIVER_DETAILS:
        reply["type"] = "dynamic"
        for kind in INTERFACES if detail else ():
            if minor >= _INTERFACE_SINCE.get(kind, versions.DRIVER_DETAILS):
                reply[f"default_{kind}_interface"] = entry.kinds[kind]["default"]
                reply[f"enabled_{kind}_interfaces"] = sorted(entry.kinds[kind]["enabled"])
    return reply
