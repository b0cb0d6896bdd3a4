"""The history of a node: what happened to it, and when."""

from __future__ import annotations

import datetime
from typing import Protocol


class HistoryEntry(Protocol):
    """A row of the history. ``event`` says what happened, ``event_type`` what was going on."""

    id: int
    uuid: str
    node_id: int
    created_at: datetime.datetime
    conductor: str | None
    event_type: str | None
    severity: str | None
    event: str | None
    user: str | None
