"""The progress of an operation on many nodes, while a command waits for its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

#: Seconds between two questions.
PAUSE_S = 1.0
_WIDTH = 30


def line(counts: Mapping[str, int]) -> str:
    """Return the numbers of an operation in a line."""
    return (f"{counts['done']} of {counts['total']} nodes done, {counts['changed']} changed, "
            f"{counts['failed']} failed")


def wait(operation: dict[str, Any], ask: Callable[[], dict[str, Any]], stream: TextIO) -> dict[str, Any]:
    """Wait until an operation has ended; return it as it is then.

    On a terminal one line is written again and again, elsewhere a new one when a number has changed.

    :param operation: as it is now
    :param ask: returns it as it is later
    :param stream: gets the progress
    """
    is_terminal = stream.isatty()
    written = ""
    while True:
        counts = operation["progress"]
        filled = _WIDTH * counts["done"] // counts["total"] if counts["total"] else _WIDTH
        text = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {line(counts)}" if is_terminal else line(counts)
        if text != written:
            stream.write(f"\r{text.ljust(len(written))}" if is_terminal else f"{text}\n")
            stream.flush()
            written = text
        if operation["status"] != "running":
            break
        time.sleep(PAUSE_S)
        operation = ask()
    if is_terminal:
        stream.write("\n")
    return operation
