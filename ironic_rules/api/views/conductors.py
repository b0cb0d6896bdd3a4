"""Conductors and the drivers that they offer -> JSON."""

from __future__ import annotations

from collections.abc import Container

from ironic_rules.api import links
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.resources import RegisteredConductor

FIELDS = ("hostname", "conductor_group", "alive", "drivers", "created_at", "updated_at")
SUMMARY = ("hostname", "conductor_group", "alive")


def conductor(base: str, row: RegisteredConductor, alive: Container[str],
              fields: tuple[str, ...] = FIELDS) -> JSONObject:
    """Return one conductor.

    :param alive: host names of the conductors with a recent heartbeat
    """
    values = {
        "hostname": row.hostname, "conductor_group": row.conductor_group, "alive": row.hostname in alive,
        "drivers": sorted(row.hardware_types), "created_at": row.created_at, "updated_at": row.updated_at,
    }
    return {**{name: values[name] for name in FIELDS if name in fields},
            "links": links.resource(base, "conductors", row.hostname)}
