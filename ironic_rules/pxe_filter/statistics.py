"""The statistics of the filter, for its metrics and its log."""

from __future__ import annotations

from dataclasses import dataclass, field


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

    @property
    def written(self) -> int:
        """Number of files, or rows, that were written."""
        return sum(area.written for area in self.areas)

    @property
    def write_errors(self) -> int:
        """Number of failed attempts to write."""
        return sum(area.write_errors for area in self.areas)

    @property
    def healed(self) -> int:
        """Number of files that others had changed."""
        return sum(area.healed for area in self.areas)

    @property
    def reloads(self) -> int:
        """Number of reloads."""
        return sum(area.reloads for area in self.areas)

    @property
    def addresses(self) -> int:
        """Number of addresses in the plans."""
        return sum(area.addresses for area in self.areas)

    @property
    def gone(self) -> int:
        """Number of addresses that no port has."""
        return sum(area.gone for area in self.areas)

    @property
    def inspecting(self) -> int:
        """Number of nodes on inspection; one of several areas counts several times."""
        return sum(area.inspecting for area in self.areas)

    @property
    def unwritten(self) -> int:
        """Number of files that wait to be written."""
        return sum(area.unwritten for area in self.areas)

    @property
    def unread(self) -> int:
        """Number of files that no server has read since they were written; -1: unknown."""
        numbers = [area.unread for area in self.areas]
        return -1 if -1 in numbers else sum(numbers)

    @property
    def in_force(self) -> bool:
        """Whether all servers follow everything that was decided."""
        return all(area.in_force for area in self.areas)

    @property
    def closed(self) -> int:
        """Number of targets that deny unknown addresses because the denial of a known one cannot be written."""
        return sum(area.closed for area in self.areas)

    @property
    def allows_unknown(self) -> bool:
        """Whether unknown addresses are allowed anywhere."""
        return any(area.allows_unknown for area in self.areas)
