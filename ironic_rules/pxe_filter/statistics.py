"""The statistics of the filter, for its metrics and its log."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Statistics:
    """Counters, which only increase, and gauges, which have the current state."""

    syncs: dict[str, int] = field(default_factory=lambda: {"full": 0, "incremental": 0, "failed": 0})
    messages: int = 0
    refused: int = 0
    written: int = 0
    write_errors: int = 0
    healed: int = 0
    reloads: int = 0
    #: of the last sync, seconds
    duration_s: float = 0.0
    #: when the last sync was done, seconds since the epoch; 0: never
    synced_at: float = 0.0
    addresses: int = 0
    gone: int = 0
    inspecting: int = 0
    unwritten: int = 0
    #: files that were written and that dnsmasq has not read since; -1: unknown
    unread: int = -1
    #: whether the servers follow everything that was decided
    in_force: bool = False
    allows_unknown: bool = False
