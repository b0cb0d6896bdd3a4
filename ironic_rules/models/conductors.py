"""Registered conductors: their names, the hardware types that they serve, and the time of their last heartbeat."""

from __future__ import annotations

import datetime
from typing import Protocol, TypeAlias

from ironic_rules.models.json_values import JSONObject

#: ``{hardware type: {interface kind: {"enabled": [names], "default": name}, …}}``, as conductors register it.
HardwareTypes: TypeAlias = dict[str, JSONObject]


class RegisteredConductor(Protocol):
    """A row of the table of conductors; ``updated_at`` is the time of the last heartbeat."""

    id: int
    hostname: str
    conductor_group: str
    instance: str
    hardware_types: HardwareTypes
    online: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
