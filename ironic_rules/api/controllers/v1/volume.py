"""``/v1/volume``: collections that are always empty. Nova requests them in every clean-up, even without volumes."""

from __future__ import annotations

from typing import Any, ClassVar

from ironic_rules.api import filters, links, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.exceptions import NotFound
from ironic_rules.policies import volume as policies

_FIELDS = ("uuid", "node_uuid", "extra", "created_at", "updated_at", "links")
_TARGET_FIELDS = (*_FIELDS, "volume_type", "volume_id", "boot_index", "properties")
_CONNECTOR_FIELDS = (*_FIELDS, "type", "connector_id")
_SORT_KEYS = ("uuid", "created_at", "updated_at")
TARGETS = filters.Listing(sort_keys=_SORT_KEYS, fields=_TARGET_FIELDS, node=filters.text)
CONNECTORS = filters.Listing(sort_keys=_SORT_KEYS, fields=_CONNECTOR_FIELDS, node=filters.text)
TARGETS_BELOW = filters.Listing(sort_keys=_SORT_KEYS, fields=_TARGET_FIELDS)
CONNECTORS_BELOW = filters.Listing(sort_keys=_SORT_KEYS, fields=_CONNECTOR_FIELDS)


class TargetsController(Resource):
    """``/v1/volume/targets``, since API 1.32."""

    @expose(since=versions.VOLUME, policy=policies.LIST, query=TARGETS)
    def get_all(self) -> dict[str, Any]:
        """Return an empty list."""
        return {"targets": []}

    @expose(since=versions.VOLUME, policy=policies.LIST, query=filters.Query(fields=filters.names))
    def get_one(self, uuid: str) -> None:
        """Raise 404: volume targets do not exist here."""
        raise NotFound("The volume target could not be found.")


class ConnectorsController(Resource):
    """``/v1/volume/connectors``, since API 1.32."""

    @expose(since=versions.VOLUME, policy=policies.LIST, query=CONNECTORS)
    def get_all(self) -> dict[str, Any]:
        """Return an empty list."""
        return {"connectors": []}

    @expose(since=versions.VOLUME, policy=policies.LIST, query=filters.Query(fields=filters.names))
    def get_one(self, uuid: str) -> None:
        """Raise 404: volume connectors do not exist here."""
        raise NotFound("The volume connector could not be found.")


class VolumeController(Resource):
    """``/v1/volume``, since API 1.32."""

    below: ClassVar = {"targets": TargetsController(), "connectors": ConnectorsController()}

    @expose(since=versions.VOLUME, policy=policies.LIST)
    def get_all(self) -> dict[str, Any]:
        """Return links to the two collections."""
        return {"links": links.resource("volume", ""), "targets": links.resource("volume", "targets"),
                "connectors": links.resource("volume", "connectors")}
