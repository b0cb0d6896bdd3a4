"""Progress of long steps: nothing here, bars in the terminal where a person watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress


class Progress:
    """Shows nothing; the base of what shows something."""

    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        """Give a function that counts items done, to be called from any thread."""
        yield lambda count: None


class Bars(Progress):
    """One bar per step on a terminal. Use it as a context, which draws the bars."""

    def __init__(self, console: Console) -> None:
        self._bars = RichProgress(
            TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=console, disable=not console.is_terminal,
        )

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._bars.stop()

    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        task = self._bars.add_task(title, total=total)
        yield lambda count: self._bars.advance(task, count)
