"""The statistics of the filter, for its log and for Prometheus, with the library of the extra ``metrics``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ironic_rules.certificates import Certificates
from ironic_rules.metrics import exporter

T = TypeVar("T")


@dataclass(slots=True)
class AreaStatistics:
    """The statistics of one area: counters, which only increase, and gauges, which have the current state."""

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
    #: true if the servers follow everything that was decided
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
    """The statistics of the process, and of all its areas together."""

    areas: list[AreaStatistics] = field(default_factory=list)
    syncs: dict[str, int] = field(default_factory=lambda: {"full": 0, "incremental": 0, "failed": 0})
    messages: int = 0
    refused: int = 0
    #: duration of the last sync, seconds
    duration_s: float = 0.0
    #: time of the last sync, seconds since the epoch; 0: never
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


_PREFIX = "ironic_pxe_filter_"
#: name, explanation, attribute of Statistics
_COUNTERS = (
    ("messages", "Messages received.", "messages"),
    ("files_written", "Files written.", "written"),
    ("write_errors", "Failed attempts to write to a folder.", "write_errors"),
    ("files_healed", "Files that other processes had changed, and that were repaired.", "healed"),
    ("reloads", "Times that dnsmasq was signalled to reload.", "reloads"),
)
_GAUGES = (
    ("addresses", "Addresses in the files.", "addresses"),
    ("addresses_gone", "Addresses in the files without a port.", "gone"),
    ("addresses_refused", "Ports whose address is not a unicast MAC address.", "refused"),
    ("nodes_on_inspection", "Nodes whose addresses are allowed: those on inspection, and with "
                            "[pxe_filter]allow_all_ramdisks those in other procedures.", "inspecting"),
    ("files_unwritten", "Files that are waiting to be written.", "unwritten"),
    ("files_unread", "Files that dnsmasq has not read since they were written; -1: unknown.", "unread"),
    ("in_force", "Whether the DHCP servers follow everything that was decided.", "in_force"),
    ("unknown_allowed", "Whether unknown addresses are allowed.", "allows_unknown"),
    ("unknown_closed", "Folders or databases that deny unknown addresses because the denial of a known one cannot be "
                       "written.", "closed"),
    ("last_sync_timestamp_seconds", "Time of the last sync.", "synced_at"),
    ("last_sync_duration_seconds", "Duration of the last sync.", "duration_s"),
)


class _Collector:
    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics

    def collect(self) -> Iterator[Any]:
        """Yield the current metrics; the library calls this for each request."""
        from prometheus_client import core

        syncs = core.CounterMetricFamily(f"{_PREFIX}syncs", "Syncs with the database.", labels=["kind"])
        for kind, number in self._statistics.syncs.items():
            syncs.add_metric([kind], number)
        yield syncs
        for family, metrics in ((core.CounterMetricFamily, _COUNTERS), (core.GaugeMetricFamily, _GAUGES)):
            for name, text, attribute in metrics:
                yield self._family(family, _PREFIX + name, text, attribute)

    def _family(self, kind: Any, name: str, text: str, attribute: str) -> Any:
        """Return a metric: of each target that has a name, with the label ``target``, otherwise of the process."""
        areas = [area for area in self._statistics.areas if area.name and hasattr(area, attribute)]
        if not areas:
            return kind(name, text, value=float(getattr(self._statistics, attribute)))
        family = kind(name, text, labels=["target"])
        for area in areas:
            family.add_metric([area.name], float(getattr(area, attribute)))
        return family


def serve(statistics: Statistics, host: str, port: int, certificates: Certificates | None = None,
          is_well: Callable[[], bool] | None = None) -> exporter.Exporter:
    """Serve the metrics over HTTP from a thread.

    :param certificates: None: with http
    :param is_well: tells whether the filter works, for the health check
    :raises ConfigurationError: the library is missing, or the port is in use
    """
    return exporter.serve(exporter.page_of(_Collector(statistics), "[pxe_filter]metrics_port"), host, port,
                          "pxe_filter", certificates, is_well)
