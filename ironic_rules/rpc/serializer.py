"""How arguments and contexts travel: JSON text made by orjson, the context as a dictionary.

An inventory is large; as text it passes oslo.messaging's own encoder in one piece instead of value by value.
"""

from __future__ import annotations

from typing import Any

import orjson
from oslo_messaging import serializer

from ironic_rules.context import RequestContext

_KEY = "ironic_rules.json"


class Serializer(serializer.Serializer):
    """Containers as JSON text, scalars as they are."""

    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        if isinstance(entity, dict | list):
            return {_KEY: orjson.dumps(entity).decode()}
        return entity

    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:
        if isinstance(entity, dict) and _KEY in entity:
            return orjson.loads(entity[_KEY])
        return entity

    def serialize_context(self, ctxt: RequestContext) -> dict[str, Any]:
        return ctxt.to_dict()

    def deserialize_context(self, ctxt: dict[str, Any]) -> RequestContext:
        return RequestContext.from_dict(ctxt)
