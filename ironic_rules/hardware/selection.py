"""Select the interfaces of a node from the hardware types that conductors have registered. No side effects.

A description is ``{hardware type: {kind: {"enabled": [names], "default": name}}}``; keys other than interface kinds
(``properties``) are ignored here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ironic_rules.exceptions import DriverNotFound, InterfaceNotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import INTERFACES
from ironic_rules.text import enumeration

Description = Mapping[str, Mapping[str, Mapping[str, Any]]]


def union(descriptions: Iterable[Description]) -> dict[str, dict[str, JSONObject]]:
    """Return the offers of all conductors together; the default of a kind is that of the first conductor with one."""
    merged: dict[str, dict[str, JSONObject]] = {}
    for description in descriptions:
        for driver, kinds in description.items():
            offers = merged.setdefault(driver, {})
            for kind in INTERFACES:
                if (offer := kinds.get(kind)) is None:
                    continue
                into = offers.setdefault(kind, {"enabled": [], "default": offer["default"]})
                into["enabled"].extend(name for name in offer["enabled"] if name not in into["enabled"])
    return merged


def of_group(offered: Mapping[str | None, Description], group: str, driver: str) -> Description:
    """Return the offers of the conductors of a group.

    :param offered: by the names of the groups with live conductors, and what all of them together offer under None
    :raises DriverNotFound: 400, no conductor of the group is alive, or none of them offers the driver
    """
    groups = sorted(name for name in offered if name is not None)
    if group not in groups:
        raise DriverNotFound(f"No conductor {_named(group)} is alive that could support the hardware type {driver}; "
                             f"conductors are alive {enumeration([_named(name) for name in groups])}.", driver=driver)
    if driver not in offered[group]:
        raise DriverNotFound(f"No conductor {_named(group)} supports the hardware type {driver}; supported are "
                             f"{enumeration(sorted(offered[group]))}.", driver=driver)
    return offered[group]


def _named(group: str) -> str:
    return f"in the group {group}" if group else "without a group"


def choose_interfaces(hardware_types: Description, driver: str, requested: Mapping[str, str | None]) -> dict[str, str]:
    """Return the value of every ``*_interface`` field of a node: the requested one, else the default.

    :param hardware_types: ``union()`` of what the conductors of the node's group have registered
    :param requested: ``{"power_interface": name, …}``; other keys are ignored, None means the default
    :raises DriverNotFound: no conductor offers the driver
    :raises InterfaceNotFound: the driver does not offer a requested interface
    """
    try:
        kinds = hardware_types[driver]
    except KeyError:
        raise DriverNotFound(driver=driver) from None
    chosen = {}
    for kind in INTERFACES:
        field = f"{kind}_interface"
        offer = kinds[kind]
        name = requested.get(field)
        if name is None:
            name = offer["default"]
        elif name not in offer["enabled"]:
            raise InterfaceNotFound(driver=driver, kind=kind, name=name, valid=", ".join(offer["enabled"]))
        chosen[field] = name
    return chosen


def fit_interfaces(hardware_types: Description, driver: str, current: Mapping[str, Any],
                   fixed: Collection[str]) -> dict[str, str]:
    """Return every ``*_interface`` of a node: those that the driver offers are kept, others get the driver's default.

    :param current: the current ``*_interface`` values
    :param fixed: fields that were explicitly requested: it is an error if the driver does not offer them
    :raises DriverNotFound, InterfaceNotFound: 400
    """
    kinds = hardware_types.get(driver, {})
    valid = {field: name for field, name in current.items()
             if field in fixed or name in kinds.get(field.removesuffix("_interface"), {}).get("enabled", ())}
    return choose_interfaces(hardware_types, driver, valid)
