"""The reply to a request that has begun an operation on many nodes."""

from __future__ import annotations

from ironic_rules.api import links
from ironic_rules.api.request import Request
from ironic_rules.api.views import operations as views
from ironic_rules.db import operations
from ironic_rules.db.projection import Row
from ironic_rules.models.documents import JSONObject


def answer(request: Request, operation: Row) -> JSONObject:
    """Return the operation for a reply with the status 202, and add its address to the headers."""
    request.reply.status = 202
    request.reply.headers.append(("Location", links.url(request.base, views.COLLECTION, operation.uuid)))
    with request.db.reader() as conn:
        return views.operation(request.base, operation, operations.counts(conn, [operation])[operation.id], ())
