"""The serializer of arguments and contexts: JSON text encoded by orjson, the context as a dictionary.

An inventory is large; oslo.messaging's own encoder processes it as one string instead of value by value. A very large
one is compressed: in oslo.messaging's two layers of JSON each quotation mark takes five characters, and brokers refuse
messages beyond their own limit (RabbitMQ: ``max_message_size``).
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import orjson
from oslo_messaging import serializer

from ironic_rules import tracing
from ironic_rules.context import RequestContext
from ironic_rules.models.documents import JSONObject

_KEY = "ironic_rules.json"
_COMPRESSED = "ironic_rules.json.zlib"
#: Size in bytes beyond which compressing costs less processor time than sending the text uncompressed.
_LARGE = 512 * 1024


class Serializer(serializer.Serializer):
    """Encodes containers as JSON text, and leaves scalars unchanged."""

    def serialize_entity(self, ctxt: object, entity: object) -> Any:
        if isinstance(entity, dict | list):
            text = orjson.dumps(entity)
            if len(text) > _LARGE:
                return {_COMPRESSED: base64.b64encode(zlib.compress(text, 1)).decode()}
            return {_KEY: text.decode()}
        return entity

    def deserialize_entity(self, ctxt: object, entity: object) -> Any:
        if isinstance(entity, dict) and _KEY in entity:
            return orjson.loads(entity[_KEY])
        if isinstance(entity, dict) and _COMPRESSED in entity:
            return orjson.loads(zlib.decompress(base64.b64decode(entity[_COMPRESSED])))
        return entity

    def serialize_context(self, ctxt: RequestContext) -> JSONObject:
        values = ctxt.to_dict()
        if tracing.is_on():
            values["trace"] = tracing.carrier()
        return values

    def deserialize_context(self, ctxt: JSONObject) -> RequestContext:
        return RequestContext.from_dict(ctxt)
