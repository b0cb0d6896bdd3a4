"""How long the requests to a BMC may take that a piece of work makes, all of them together.

A limit holds in the thread that has set it. Interfaces read it: each request has its own time-out as well.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from contextvars import ContextVar

_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit what is in the block. In a block with another limit, the earlier one holds."""
    token = _UNTIL.set(min(_UNTIL.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(token)


def left_s() -> float:
    """Return the seconds that are left, not more than 0 if none are; infinity without a limit."""
    return _UNTIL.get() - time.monotonic()
