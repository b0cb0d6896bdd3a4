"""Inventories: what a machine was found to be, and how it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ironic_rules.models.json_values import JSONObject

#: What the hardware consists of, in the shape of ironic-python-agent's inventory.
Inventory: TypeAlias = JSONObject
#: What was sent besides it, and what hooks and rules have put there.
PluginData: TypeAlias = JSONObject


@dataclass(frozen=True, slots=True)
class InspectionData:
    """What an inspection has found out, before hooks and rules look at it."""

    inventory: Inventory
    plugin_data: PluginData = field(default_factory=dict)


class StoredInventory(Protocol):
    """A row of the table of inventories.

    ``received_plugin_data`` is as it was sent, ``plugin_data`` what hooks and rules have made of it.
    """

    id: int
    inventory_data: Inventory
    received_plugin_data: PluginData
    plugin_data: PluginData | None
    status: str
