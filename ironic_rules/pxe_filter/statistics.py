"""The statistics of the filter, for its metrics and its log."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class AreaStatistics:
    """Those of one area: counters, which only increase, and gauges, which have the current state."""

    name: str = ""
    written: int = 0
    write_errors: int = 0
    healed: int = 0
    reloads: int = 0
    addresses: int = 0
    gone: int = 0
    inspecting: int = 0
    unwritten: int = 0
    #: files that were written and that dnsmasq has not read since; -1: unknown
    unread: int = -1
    #: whether the servers follow everything that was decided
    in_force: bool = False
    allows_unknown: bool = False
    #: number of targets that deny unknown addresses, although those are allowed, for want of a denial
    closed: int = 0


class _OfAreas(Generic[T]):
    """The number of that name in the statistics of all areas together."""

    def __init__(self, join: Callable[[Collection[T]], T]) -> None:
        self._join = join

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, statistics: Statistics, owner: type) -> T:
        return self._join([getattr(area, self._name) for area in statistics.areas])


@dataclass(slots=True)
class Statistics:
    """Those of the process, and of all of its areas together."""

    areas: list[AreaStatistics] = field(default_factory=list)
    syncs: dict[str, int] = field(default_factory=lambda: {"full": 0, "incremental": 0, "failed": 0})
    messages: int = 0
    refused: int = 0
    #: of the last sync, seconds
    duration_s: float = 0.0
    #: when the last sync was done, seconds since the epoch; 0: never
    synced_at: float = 0.0

    written = _OfAreas[int](sum)
    write_errors = _OfAreas[int](sum)
    healed = _OfAreas[int](sum)
    reloads = _OfAreas[int](sum)
    addresses = _OfAreas[int](sum)
    gone = _OfAreas[int](sum)
    #: one node of several areas counts several times
    inspecting = _OfAreas[int](sum)
    unwritten = _OfAreas[int](sum)
    unread = _OfAreas[int](lambda numbers: -1 if -1 in numbers else sum(numbers))
    in_force = _OfAreas[bool](all)
    closed = _OfAreas[int](sum)
    allows_unknown = _OfAreas[bool](any)
