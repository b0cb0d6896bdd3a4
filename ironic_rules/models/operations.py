"""Operations: work on many nodes that one request has begun."""

from __future__ import annotations

import datetime

from ironic_rules.models.fields import Fields, field, record
from ironic_rules.models.json_values import JSONObject

#: The kind of operations that run hooks and rules over stored data again.
REAPPLY = "reapply"


@record
class Operation:
    """A stored operation. ``kind`` says what is done, ``filters`` to what; ``user`` is who has requested it."""

    id: int = field(shown=False)

    uuid: str = field(summary=True)
    kind: str = field(summary=True)
    status: str = field(summary=True)
    filters: JSONObject = field()
    user: str | None = field(default=None)
    created_at: datetime.datetime = field(summary=True)
    updated_at: datetime.datetime | None = field(default=None)


#: ``progress`` counts nodes: total, done, changed, failed, left.
OPERATION = Fields.of(Operation, made={"progress": 1, "errors": 1, "links": 1})
