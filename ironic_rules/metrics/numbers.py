"""The numbers behind the metrics of a process, and the time that each stage of a piece of work took.

To count costs less than a microsecond; Prometheus reads the numbers.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ironic_rules.metrics.catalog import COUNTER, FAMILIES, GAUGE, HISTOGRAM, Family

#: The values of a metric's labels.
Labels: TypeAlias = tuple[str, ...]
#: Returns the values of a gauge by labels; ``()`` for one without labels.
Read: TypeAlias = Callable[[], Mapping[Labels, float]]

#: Maximum number of combinations of labels of one metric. Further ones are counted together.
_MOST = 2000
_OTHER = "other"


class Timed(NamedTuple):
    """A histogram: how many values were at most each bound, and above all of them, and their sum in seconds."""

    counts: list[int]
    sum_s: float


class _Times:
    __slots__ = ("counts", "sum_s")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.sum_s = 0.0


class Numbers:
    """Counters, histograms, and functions that return gauges, by the names of :mod:`~ironic_rules.metrics.catalog`.

    Thread-safe. Names that the catalog does not have, or of another kind, are a :exc:`KeyError`.
    """

    def __init__(self, families: Mapping[str, Family] = FAMILIES) -> None:
        self._families = families
        self._lock = threading.Lock()
        self._counters: dict[str, dict[Labels, float]] = {
            name: {} if family.labels else {(): 0} for name, family in families.items() if family.kind == COUNTER}
        self._times: dict[str, dict[Labels, _Times]] = {
            name: {} for name, family in families.items() if family.kind == HISTOGRAM}
        self._gauges: dict[str, list[Read]] = {name: [] for name, family in families.items() if family.kind == GAUGE}

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter; ``labels`` in the order of the catalog."""
        counter = self._counters[name]
        with self._lock:
            if labels in counter:
                counter[labels] += by
            else:
                labels = self._bounded(labels, len(counter))
                counter[labels] = counter.get(labels, 0) + by

    def observe(self, name: str, seconds: float, *labels: str) -> None:
        """Add a value to a histogram."""
        times = self._times[name]
        bounds = self._families[name].bounds
        with self._lock:
            series = times.get(labels)
            if series is None:
                labels = self._bounded(labels, len(times))
                series = times.setdefault(labels, _Times(len(bounds)))
            series.counts[bisect.bisect_left(bounds, seconds)] += 1
            series.sum_s += seconds

    def gauge(self, name: str, read: Read) -> None:
        """Let ``read`` return the values of a gauge whenever they are read. Values of several are added up."""
        self._gauges[name].append(read)

    def counters(self) -> Iterator[tuple[Family, dict[Labels, float]]]:
        """Yield the counters as they are now."""
        for name, counter in self._counters.items():
            with self._lock:
                values = dict(counter)
            yield self._families[name], values

    def histograms(self) -> Iterator[tuple[Family, dict[Labels, Timed]]]:
        """Yield the histograms as they are now."""
        for name, times in self._times.items():
            with self._lock:
                values = {labels: Timed(list(series.counts), series.sum_s) for labels, series in times.items()}
            yield self._families[name], values

    def gauges(self) -> Iterator[tuple[Family, dict[Labels, float]]]:
        """Yield the gauges that this process has, as they are now."""
        for name, reads in self._gauges.items():
            values: dict[Labels, float] = {}
            for read in reads:
                for labels, value in read().items():
                    values[labels] = values.get(labels, 0) + value
            if reads:
                yield self._families[name], values

    @staticmethod
    def _bounded(labels: Labels, number: int) -> Labels:
        return labels if number < _MOST else (_OTHER,) * len(labels)


class Stages:
    """Noted by the thread that works; a stage can come several times. Costs less than a microsecond per stage."""

    __slots__ = ("_began", "_seconds", "now")

    def __init__(self, first: str) -> None:
        self.now = first
        self._began = time.monotonic()
        self._seconds: dict[str, float] = {}

    def begin(self, stage: str) -> None:
        """Begin a stage, which ends the one before."""
        moment = time.monotonic()
        self._seconds[self.now] = self._seconds.get(self.now, 0.0) + moment - self._began
        self.now, self._began = stage, moment

    def end(self) -> dict[str, float]:
        """Return the seconds of each stage so far."""
        self.begin(self.now)
        return self._seconds
