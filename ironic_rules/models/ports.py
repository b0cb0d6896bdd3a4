"""Ports and port groups: their fields, which rows and drafts have in common."""

from __future__ import annotations

import datetime
from typing import Protocol

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields, Filter, Text, field, form

#: key in ``internal_info`` of the port or port group that a virtual interface (VIF) is attached to; Nova reads it
VIF = "tenant_vif_port_id"


@form
class Port(Protocol):
    """A network interface of a node."""

    id: int = field(shown=False)
    node_id: int = field(shown=False)
    portgroup_id: int | None = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    address: str = field(patch=True, required=True, hooks=True, text=Text.MAC, summary=True)
    extra: JSONObject = field(patch=True, rules=True)
    internal_info: JSONObject = field(since=18, hooks=True, secret=True)
    is_smartnic: bool = field(since=53, patch=True, rules=True)
    local_link_connection: JSONObject = field(since=19, patch=True, rules=True)
    physical_network: str | None = field(since=34, patch=True, rules=True, max_length=64, min_length=1)
    pxe_enabled: bool = field(since=19, patch=True, rules=True, default=True)
    node_uuid: str = field(column=False, patch=True, required=True, text=Text.UUID)
    name: str | None = field(since=88, patch=True, rules=True, text=Text.NAME)
    portgroup_uuid: str | None = field(since=24, column=False, patch=True, text=Text.UUID)


@form
class PortGroup(Protocol):
    """Ports of a node that are aggregated into one."""

    id: int = field(shown=False)
    node_id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    address: str | None = field(patch=True, text=Text.MAC, summary=True)
    extra: JSONObject = field(patch=True)
    internal_info: JSONObject = field(secret=True)
    # Ironic's [DEFAULT]default_portgroup_mode.
    mode: str = field(since=26, patch=True, required=True, min_length=1, default="active-backup")
    name: str | None = field(patch=True, text=Text.NAME, summary=True)
    properties: JSONObject = field(since=26, patch=True)
    standalone_ports_supported: bool = field(patch=True, default=True)
    node_uuid: str = field(column=False, patch=True, required=True, text=Text.UUID)


_OF_NODE = (Filter("node"), Filter("node_uuid", text=Text.UUID))
_ADDRESS = Filter("address", text=Text.MAC)
_SHARD = Filter("shard", since=82, many=True)
#: Filter by the nodes' groups: networking-baremetal sends it in whatever version it negotiated.
_CONDUCTOR_GROUPS = Filter("conductor_groups", many=True)

PORT = Fields.of(Port, computed={"links": 1}, inputs={"node_ident": 94},
                 filters=(*_OF_NODE, _ADDRESS, Filter("portgroup", since=24), _SHARD, _CONDUCTOR_GROUPS))
PORT_GROUP = Fields.of(PortGroup, computed={"links": 1, "ports": 24}, filters=(*_OF_NODE, _ADDRESS, _SHARD))
