"""A condition and an action of legacy rules in a package of their own."""

from __future__ import annotations

from typing import Any


class Even:
    """True if a number can be divided by ``value`` (by default 2) without a rest."""

    REQUIRED_PARAMS: set[str] = set()
    OPTIONAL_PARAMS = {"value"}

    def validate(self, params: dict[str, Any], **kwargs: Any) -> None:
        if params.get("value", 2) == 0:
            raise ValueError("value must not be zero")

    def check(self, node_info: Any, field: Any, params: dict[str, Any], **kwargs: Any) -> bool:
        return bool(int(field) % params.get("value", 2) == 0)


class SetRack:
    """Note the rack of a node in several places; nodes that are in none are marked as spare."""

    REQUIRED_PARAMS = {"rack"}
    OPTIONAL_PARAMS = {"labels"}
    FORMATTED_PARAMS = ["rack"]

    def apply(self, node_info: Any, params: dict[str, Any], **kwargs: Any) -> None:
        node_info.patch([{"op": "add", "path": "/extra/rack", "value": params["rack"]}])
        node_info.update_properties(rack=params["rack"])
        node_info.update_capabilities(rack=params["rack"], spare=None)
        node_info.add_trait("CUSTOM_RACKED")
        for label in params.get("labels", []):
            node_info.replace_field("/extra/labels", lambda known, label=label: [*known, label], default=[])
        for port in node_info.ports().values():
            node_info.patch_port(port, [{"op": "add", "path": "/extra/rack", "value": params["rack"]}])

    def cleanup(self, node_info: Any, params: dict[str, Any], **kwargs: Any) -> None:
        node_info.update_capabilities(spare="true")
