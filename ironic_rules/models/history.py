"""The history of a node: its events and their times."""

from __future__ import annotations

import datetime
from typing import Protocol


class HistoryEntry(Protocol):
    """A row of the history. ``event`` describes what happened, ``event_type`` is the operation during which it did."""

    id: int
    uuid: str
    node_id: int
    created_at: datetime.datetime
    conductor: str | None
    event_type: str | None
    severity: str | None
    event: str | None
    user: str | None
    inspection_uuid: str | None
    request_id: str | None
