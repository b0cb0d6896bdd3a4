"""Warnings about refused machines, which must not fill the log: anyone can send data."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ironic_rules.db.machine_matches import Match
from ironic_rules.exceptions import LookupFailed, MachineUnknown
from ironic_rules.text import enumeration, printable

#: Seconds between two warnings of the same kind.
PERIOD_S = 10.0


#: Seconds between two messages about one machine, unless the reason is another one.
MACHINE_PERIOD_S = 60.0
#: Number of machines that are remembered, the last ones. Anyone can pretend to be many machines.
_MACHINES = 4096
#: Maximum number of messages about all machines in one second.
_PER_SECOND = 20
#: Maximum number of nodes in one message.
_NODES = 4

_Log: TypeAlias = logging.Logger | logging.LoggerAdapter[Any]


class Refusals:
    """Logs a warning at most once in a period, with the number of those since the last one. Thread-safe."""

    def __init__(self, log: _Log, period_s: float = PERIOD_S) -> None:
        self._log = log
        self._period_s = period_s
        self._lock = threading.Lock()
        self._last: float | None = None
        self._suppressed = 0

    def warn(self, text: str, *arguments: Any) -> None:
        """Count a refusal, and log it unless the last one was only just logged."""
        with self._lock:
            now = time.monotonic()
            if self._last is not None and now - self._last < self._period_s:
                self._suppressed += 1
                return
            suppressed, self._suppressed, self._last = self._suppressed, 0, now
        self._log.warning(f"{text} (%d similar refusals since the last message)", *arguments, suppressed)


@dataclass(slots=True)
class _Machine:
    reason: str
    logged_at: float
    suppressed: int = 0


class RefusedMachines:
    """Logs one line about a machine whose callback is refused, at most once in a period for a reason. Thread-safe."""

    def __init__(self, log: _Log, period_s: float = MACHINE_PERIOD_S) -> None:
        self._log = log
        self._period_s = period_s
        self._lock = threading.Lock()
        self._machines: OrderedDict[tuple[Any, ...], _Machine] = OrderedDict()
        self._second = 0
        self._in_second = 0

    def is_due(self, node_uuid: str | None, macs: Collection[str], addresses: Collection[str],
               reason: str) -> int | None:
        """Return None if the refusal is not to be logged, else how many of the machine were not since the last one."""
        # A machine is what its addresses say; without any, what it calls itself.
        key = (*sorted(macs), *sorted(addresses)) or (node_uuid,)
        now = time.monotonic()
        with self._lock:
            known = self._machines.pop(key, None)
            is_same = known is not None and known.reason == reason and now - known.logged_at < self._period_s
            if known is not None and (is_same or self._is_flood(now)):
                known.suppressed += 1
                self._machines[key] = known
                return None
            if known is None and self._is_flood(now):
                return None
            self._in_second += 1
            self._machines[key] = _Machine(reason, now)
            if len(self._machines) > _MACHINES:
                self._machines.popitem(last=False)
            return 0 if known is None else known.suppressed

    def log(self, error: LookupFailed, node_uuid: str | None, macs: Collection[str], addresses: Collection[str],
            matches: Iterable[Match], earlier: int) -> None:
        """Log a refusal: the reason, and which node has what of that which the machine sent.

        :param earlier: as :meth:`is_due` returned it
        """
        nodes = list(matches)
        shown = [_of_node(match) for match in nodes[:_NODES]]
        if len(nodes) > _NODES:
            shown.append(f"{len(nodes) - _NODES} more nodes match")
        if unknown := _unmatched(node_uuid, macs, addresses, nodes):
            shown.append(f"no node has {unknown}")
        level = logging.INFO if isinstance(error, MachineUnknown) else logging.WARNING
        more = f" ({earlier} further refusals of this machine since the last message)" if earlier else ""
        self._log.log(level, "A callback is refused: %s; %s%s", error.reason, "; ".join(shown), more)

    def _is_flood(self, now: float) -> bool:
        if int(now) != self._second:
            self._second, self._in_second = int(now), 0
        return self._in_second >= _PER_SECOND


def _of_node(match: Match) -> str:
    has = _listed("its UUID" if match.has_uuid else None, match.macs, match.bmc_addresses)
    return f'node {match.uuid} in state "{match.state}" has {has}'


def _unmatched(node_uuid: str | None, macs: Collection[str], addresses: Collection[str],
               nodes: Iterable[Match]) -> str:
    known_macs = {address for match in nodes for address in match.macs}
    known_bmcs = {address for match in nodes for address in match.bmc_addresses}
    is_unknown = node_uuid is not None and not any(match.has_uuid for match in nodes)
    return _listed(f"the UUID {printable(node_uuid, 64)}" if is_unknown else None,
                   [address for address in macs if address not in known_macs],
                   [address for address in addresses if address not in known_bmcs])


def _listed(uuid: str | None, macs: Collection[str], addresses: Collection[str]) -> str:
    parts = [] if uuid is None else [uuid]
    for what, found in (("MAC address", macs), ("BMC address", addresses)):
        if found:
            parts.append(f"the {what}{'es' if len(found) > 1 else ''} {enumeration(found)}")
    return ", ".join(parts)
