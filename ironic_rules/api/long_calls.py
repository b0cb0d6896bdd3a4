"""Calls that stop all other threads of the process: to parse a large body is one call of a C library.

The interpreter's lock is not given away during such a call. A request that must be answered soon, as a health check,
has several turns; if one such call came after the other, it could wait for a call at each of them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

#: Bytes from which on a body is large: 256 KiB are parsed in 5 ms at most, 4 MiB with all values it may have in 25.
LARGE = 256 * 1024
#: Seconds after such a call in which there is no other one.
PAUSE_S = 0.02
_one = threading.Lock()


@contextlib.contextmanager
def turn(size: int) -> Iterator[None]:
    """Let the block run with a body of ``size`` bytes: one with a large one at a time, and the others between them."""
    if size <= LARGE:
        yield
        return
    with _one:
        try:
            yield
        finally:
            time.sleep(PAUSE_S)
