"""Inventories: the hardware data of a machine, and how they are stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from ironic_rules.models.json_values import JSONObject

#: The hardware of a machine, in the format of ironic-python-agent's inventory.
Inventory: TypeAlias = JSONObject
#: Data that were sent in addition to the inventory, and data that hooks and rules have added.
PluginData: TypeAlias = JSONObject

#: A field of the node, and the key of the plugin data that is true if the field is. Inspector and Ironic have the key
#: only.
AUTO_DISCOVERED = "auto_discovered"


@dataclass(frozen=True, slots=True)
class InspectionData:
    """The data of an inspection, before hooks and rules run over them."""

    inventory: Inventory
    plugin_data: PluginData = field(default_factory=dict)


class Report(NamedTuple):
    """What a ramdisk has sent, as it was stored; of :class:`StoredInventory` what there is before it is processed.

    :ivar foreign_addresses: MAC addresses of the inventory that belonged to other nodes just now; None: not known
    """

    id: int
    inventory_data: Inventory
    received_plugin_data: PluginData
    refusal: str | None
    foreign_addresses: Collection[str] | None = None


class StoredInventory(Protocol):
    """A row of the table of inventories.

    ``received_plugin_data`` is as it was sent, ``plugin_data`` as hooks and rules have changed it. With ``refusal``
    the inspection has to fail, for that reason.
    """

    id: int
    inventory_data: Inventory
    received_plugin_data: PluginData
    plugin_data: PluginData | None
    status: str
    refusal: str | None
