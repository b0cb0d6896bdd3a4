"""Progress of long steps: shown as bars in a terminal, otherwise not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress


class ProgressDisplay:
    """Shows nothing; the base class of :class:`Bars`."""

    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        """Yield a function that counts completed items, to be called from any thread."""
        yield lambda count: None


class Bars(ProgressDisplay):
    """Shows one bar per step on a terminal. Use it as a context manager, which draws the bars."""

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
