"""Standard output that cannot be written: its reader has ended, or the disk is full."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable


def written(name: str, command: Callable[[], int]) -> int:
    """Return the exit status of ``command`` once what it prints is written.

    :param name: begins the message otherwise; the status is 2 then, since 0 and 1 would be results that no one has seen
    """
    try:
        try:
            status = command()
        except SystemExit:  # after --help and --version
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except OSError as exc:
        if exc.filename is not None or exc.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        with contextlib.suppress(OSError):  # the interpreter flushes once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"{name}: standard output cannot be written: {exc.strerror}.", file=sys.stderr)
        return 2
    return status
