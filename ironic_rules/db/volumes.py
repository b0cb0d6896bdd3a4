"""Volume connectors and targets; rows have ``node_uuid`` in addition to the columns of the tables."""

from __future__ import annotations

from ironic_rules.db import node_filters
from ironic_rules.db.collection import Collection
from ironic_rules.db.tables import volume_connectors, volume_targets
from ironic_rules.exceptions import (
    DuplicateBootIndex,
    DuplicateVolumeConnector,
    VolumeConnectorAlreadyExists,
    VolumeConnectorNotFound,
    VolumeTargetAlreadyExists,
    VolumeTargetNotFound,
)

_OF_PROJECT = {"project": node_filters.of_project}
CONNECTORS = Collection(
    volume_connectors, filters=_OF_PROJECT, missing=lambda ident: VolumeConnectorNotFound(connector=ident), taken={
        "uuid": lambda values: VolumeConnectorAlreadyExists(uuid=values.get("uuid")),
        "connector_id": lambda values: DuplicateVolumeConnector(
            type=values.get("type"), connector_id=values.get("connector_id"))})
TARGETS = Collection(
    volume_targets, filters=_OF_PROJECT, missing=lambda ident: VolumeTargetNotFound(target=ident), taken={
        "uuid": lambda values: VolumeTargetAlreadyExists(uuid=values.get("uuid")),
        "boot_index": lambda values: DuplicateBootIndex(boot_index=values.get("boot_index"))})
