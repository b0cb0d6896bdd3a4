"""Volume connectors and targets: what a node has to connect to volumes, and the volumes of its instance."""

from __future__ import annotations

import datetime
from typing import Protocol

from ironic_rules.models.fields import Fields, Filter, Text, field, form
from ironic_rules.models.json_values import JSONObject


@form
class VolumeConnector(Protocol):
    """An address of a node in a storage network, e.g. an iSCSI qualified name (``iqn``) or a WWPN."""

    id: int = field(shown=False)
    node_id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    type: str = field(patch=True, required=True, summary=True, min_length=1, max_length=32)
    connector_id: str = field(patch=True, required=True, summary=True, min_length=1)
    extra: JSONObject = field(patch=True)
    node_uuid: str = field(column=False, patch=True, required=True, text=Text.UUID, summary=True)


@form
class VolumeTarget(Protocol):
    """A volume of a node's instance; ``boot_index`` 0 is the one that it boots from."""

    id: int = field(shown=False)
    node_id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    volume_type: str = field(patch=True, required=True, summary=True, min_length=1, max_length=64)
    properties: JSONObject = field(patch=True, secret=True)
    boot_index: int = field(patch=True, required=True, summary=True)
    volume_id: str = field(patch=True, required=True, summary=True, min_length=1)
    extra: JSONObject = field(patch=True)
    node_uuid: str = field(column=False, patch=True, required=True, text=Text.UUID, summary=True)


_OF_NODE = (Filter("node"),)
VOLUME_CONNECTOR = Fields.of(VolumeConnector, made={"links": 1}, filters=_OF_NODE)
VOLUME_TARGET = Fields.of(VolumeTarget, made={"links": 1}, filters=_OF_NODE)
