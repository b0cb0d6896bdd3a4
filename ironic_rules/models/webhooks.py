"""Webhooks: who gets events by HTTP, and the messages that they get, as values.

Messages are CloudEvents in JSON (structured mode), signed as Standard Webhooks says, version 1: HMAC-SHA256 of id, time
and content, so that receivers can check who has sent them, and when.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import hmac
from typing import Any, Final, Protocol

import orjson

from ironic_rules.models.events import DEBUG, LEVELS
from ironic_rules.models.fields import Fields, Text, field, form

#: Maximum numbers of webhooks, and of patterns of one.
MAX_WEBHOOKS, MAX_PATTERNS = 100, 50
MAX_URL = 2048
MEDIA_TYPE: Final = "application/cloudevents+json"
#: The beginning of a secret; base64 of so many bytes follows.
PREFIX: Final = "whsec_"
SECRET_BYTES = range(24, 65)


@form
class Webhook(Protocol):
    """A receiver. ``retry_at`` is when it is tried again after ``failures`` in a row; ``secret`` is never shown."""

    id: int = field(shown=False)
    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    name: str | None = field(patch=True, summary=True, text=Text.NAME)
    description: str | None = field(patch=True)
    url: str = field(patch=True, required=True, summary=True, max_length=MAX_URL, min_length=1)
    secret: str = field(patch=True, shown=False, secret=True)
    events: list[str] = field(patch=True, summary=True)
    level: str = field(patch=True, summary=True, choices=LEVELS, default=DEBUG)
    enabled: bool = field(patch=True, summary=True, default=True)
    failures: int = field(summary=True)
    retry_at: datetime.datetime | None = field()
    last_error: str | None = field()
    delivered_at: datetime.datetime | None = field()


WEBHOOK = Fields.of(Webhook, computed={"links": 1})


def problem_of_secret(text: str) -> str | None:
    """Return why a text can be no secret; None if it can be one."""
    try:
        length = len(base64.b64decode(text.removeprefix(PREFIX), validate=True))
    except (binascii.Error, ValueError):
        length = -1
    if not text.startswith(PREFIX) or length not in SECRET_BYTES:
        return (f"must be {PREFIX} followed by {SECRET_BYTES.start} to {SECRET_BYTES.stop - 1} random bytes as base64; "
                "without it, the service makes one and shows it once")
    return None


def signature(secret: str, message_id: str, timestamp: int, content: bytes) -> str:
    """Return the value of ``webhook-signature``.

    :param timestamp: seconds since 1970: the value of ``webhook-timestamp``
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.new(key, b".".join((message_id.encode(), str(timestamp).encode(), content)), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def message(event: Any) -> bytes:
    """Return an event of the outbox as a CloudEvent."""
    namespace, name, version = event.payload_type.split("/")
    callers = {attribute: value for attribute, key in _CALLER if (value := event.context.get(key)) is not None}
    return orjson.dumps({
        "specversion": "1.0", "id": event.uuid, "source": f"/{event.service}/{event.host}", "type": event.type,
        "subject": event.subject, "time": event.created_at, "datacontenttype": "application/json",
        "level": event.level, "payload": f"{namespace}.{name}", "payloadversion": version, **callers,
        "data": orjson.Fragment(event.payload)}, option=orjson.OPT_UTC_Z)


_CALLER: Final = (("requestid", "request_id"), ("userid", "user_id"), ("projectid", "project_id"))
