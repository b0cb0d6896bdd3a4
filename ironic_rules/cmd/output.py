"""Standard output that cannot be written: its reader has ended, or the disk is full."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any


def written(name: str, command: Callable[[], int]) -> int:
    """Return the exit status of ``command`` once what it prints is written.

    :param name: begins the message otherwise; the status is 2 then, since 0 and 1 would be results that no one has seen
    """
    if sys.stdout is None:  # closed before the process began: nothing is meant to be seen
        return command()
    output = _Output(sys.stdout)
    try:
        with contextlib.redirect_stdout(output):  # type: ignore[type-var]  # it has what a stream has
            try:
                status = command()
            finally:  # also after --help and --version
                output.flush()
    except Unwritable as exc:
        discard(output)
        print(f"{name}: standard output cannot be written: {exc}.", file=sys.stderr)
        return 2
    return status


def is_standard(stream: object) -> bool:
    """Return whether a stream is standard output or standard error."""
    inner = stream._stream if isinstance(stream, _Output) else stream
    return inner is not None and any(inner is standard or stream is standard for standard in (sys.stdout, sys.stderr))


def discard(output: Any) -> None:
    """Drop what was not written, and what follows: the interpreter flushes once more when it ends."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


class Unwritable(Exception):
    """Standard output cannot be written. No OSError: libraries ignore those of their output, or take them for results.

    :ivar has_no_reader: whether that has ended, as head(1) does
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror)
        self.has_no_reader = isinstance(error, BrokenPipeError)


class _Output:
    """Standard output, whose errors can be told from those of files."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with _telling():
            number: int = self._stream.write(text)
        return number

    def flush(self) -> None:
        with _telling():
            self._stream.flush()


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise Unwritable(exc) from exc
