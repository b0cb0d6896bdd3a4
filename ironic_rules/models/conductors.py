"""Registered conductors: their names, the hardware types that they serve, and the time of their last heartbeat."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Protocol, TypeAlias

from ironic_rules.models.json_values import JSONObject
from ironic_rules.text import enumeration

#: ``{hardware type: {interface kind: {"enabled": [names], "default": name}, …}}``, as conductors register it.
HardwareTypes: TypeAlias = dict[str, JSONObject]


def different_pins(pins: Mapping[str, str]) -> str:
    """Return a text about conductors, by host name, that are pinned to different releases; empty if none are.

    Some of them then apply deploy templates, and others do not.

    :param pins: releases by host name; empty for conductors that are not pinned
    """
    hosts: dict[str, list[str]] = {}
    for host, pin in sorted(pins.items()):
        hosts.setdefault(pin or "not set", []).append(host)
    if len(hosts) < 2:
        return ""
    shown = "; ".join(f"{pin}: {enumeration(those)}" for pin, those in sorted(hosts.items()))
    return (f"[conductor]pin_release_version differs between conductors ({shown}): only those without one apply deploy "
            "templates. Set it to the same value for all.")


class RegisteredConductor(Protocol):
    """A row of the table of conductors; ``updated_at`` is the time of the last heartbeat.

    ``pinned_release`` is its ``[conductor]pin_release_version``, empty if that is not set; None: an earlier release,
    which does not register it.
    """

    id: int
    hostname: str
    conductor_group: str
    instance: str
    hardware_types: HardwareTypes
    online: bool
    pinned_release: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
