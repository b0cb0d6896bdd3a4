"""The time that the rows get."""

from __future__ import annotations

import datetime


def now() -> datetime.datetime:
    """Return the current time, aware (UTC), to the microsecond."""
    return datetime.datetime.now(datetime.UTC)
