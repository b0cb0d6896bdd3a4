"""Nodes as JSON."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from ironic_rules.api import node_versions, versions
from ironic_rules.api.views.rows import RowView
from ironic_rules.models import node_fields

#: Fields of a reply that are columns of the same name, in the order of the API reference.
COLUMNS = (
    "uuid", "created_at", "updated_at", "automated_clean", "bios_interface", "boot_interface", "boot_mode",
    "clean_step", "conductor_group", "console_enabled", "console_interface", "disable_power_off", "deploy_interface",
    "deploy_step", "description", "driver", "driver_info", "driver_internal_info", "extra", "fault",
    "firmware_interface", "inspection_finished_at", "inspection_started_at", "inspect_interface", "instance_info",
    "instance_uuid", "last_error", "lessee", "maintenance", "maintenance_reason", "management_interface", "name",
    "network_data", "network_interface", "owner", "parent_node", "power_interface", "power_state", "properties",
    "protected", "protected_reason", "provision_state", "provision_updated_at", "raid_config", "raid_interface",
    "rescue_interface", "reservation", "resource_class", "retired", "retired_reason", "secure_boot", "service_step",
    "shard", "storage_interface", "target_power_state", "target_provision_state", "target_raid_config",
    "vendor_interface", "auto_discovered", "inspection_scope",
)
#: Fields that are made: traits and conductor from other tables, links from the UUID, and what this service has none of.
SUB_RESOURCES = ("ports", "states", "portgroups", "volume")
MADE = ("traits", "links", "conductor", "allocation_uuid", "chassis_uuid", *SUB_RESOURCES)
FIELDS = frozenset((*COLUMNS, *MADE))
DEFAULT = ("uuid", "instance_uuid", "maintenance", "power_state", "provision_state", "name")
SORT_KEYS = frozenset(COLUMNS) - node_fields.JSON_FIELDS | {"id"}

_SECRET_COLUMNS = frozenset({
    "driver_info", "driver_internal_info", "instance_info", "clean_step", "deploy_step", "service_step",
})


class NodeView(RowView):
    """How nodes look in one version of the API with one set of fields.

    :ivar traits: whether the traits of the nodes are needed;  conductor: whether the conductors are
    """

    def __init__(self, minor: int, fields: tuple[str, ...] | None) -> None:
        wanted = FIELDS - node_versions.NODE_FIELDS.hidden(minor)
        if fields is not None:
            wanted &= set(fields)
        self._minor = minor
        self._state = "provision_state" in wanted and minor < versions.INSPECT_WAIT
        self._none = tuple(name for name in ("allocation_uuid", "chassis_uuid") if name in wanted)
        self.traits = "traits" in wanted
        self.conductor = "conductor" in wanted
        super().__init__(
            "nodes", (name for name in COLUMNS if name in wanted), json=node_fields.JSON_FIELDS, secret=_SECRET_COLUMNS,
            sub_resources=tuple(name for name in SUB_RESOURCES if name in wanted),
            needed=(*(["id"] if self.traits or self.conductor else []),
                    *(["reservation", "conductor_group"] if self.conductor else [])))

    def render(self, rows: Sequence[Any], url: str, traits: Mapping[int, list[str]],
               conductors: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
        """Return the JSON objects of ``rows``.

        :param traits: by node id;  conductors: hosts of the living conductors, by group
        """
        nodes = []
        for row, node in self.objects(rows, url):
            if self._state:
                node["provision_state"] = node_versions.visible_state(node["provision_state"], self._minor)
            if self.traits:
                node["traits"] = traits[row.id]
            if self.conductor:
                hosts = conductors.get(row.conductor_group)
                node["conductor"] = row.reservation or (hosts[row.id % len(hosts)] if hosts else None)
            for name in self._none:
                node[name] = None
            nodes.append(node)
        return nodes


@functools.lru_cache(maxsize=256)
def view(minor: int, fields: tuple[str, ...] | None) -> NodeView:
    """Return the view of version ``minor`` with ``fields`` (None: all)."""
    return NodeView(minor, fields)


def default_fields(minor: int) -> tuple[str, ...]:
    """Return the fields of a list without ``fields`` and ``detail``."""
    hidden = node_versions.NODE_FIELDS.hidden(minor)
    return tuple(name for name in DEFAULT if name not in hidden)


_STATES = ("console_enabled", "last_error", "power_state", "provision_state", "target_power_state",
           "target_provision_state", "provision_updated_at", "raid_config", "target_raid_config", "boot_mode",
           "secure_boot")


def states(row: Any, minor: int) -> dict[str, Any]:
    """Return the body of ``GET /v1/nodes/{node}/states``."""
    hidden = node_versions.NODE_FIELDS.hidden(minor)
    shown = {name: getattr(row, name) for name in _STATES if name not in hidden}
    shown["provision_state"] = node_versions.visible_state(row.provision_state, minor)
    return shown
