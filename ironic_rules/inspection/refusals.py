"""Warnings about refused machines, which must not fill the log: anyone can send data."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ironic_rules.db.discovery import Match
from ironic_rules.exceptions import LookupFailed, MachineUnknown
from ironic_rules.text import enumeration, printable

#: Seconds between two warnings of the same kind.
PERIOD_S = 10.0


#: Seconds between two messages about one machine, unless the reason is another one.
MACHINE_PERIOD_S = 60.0
#: Number of machines that are remembered, the last ones. Anyone can pretend to be many machines.
_MACHINES = 4096
#: Messages about different machines: so many at once, a fleet, and so many per second in the long run. 10,000 refused
#: callbacks, of which more than four come in a second, make less than 1 MiB of log, with the lines of their requests.
MACHINES_AT_ONCE = 500
MACHINES_PER_SECOND = 0.5
#: Maximum number of nodes in one message.
_NODES = 4

_Log: TypeAlias = logging.Logger | logging.LoggerAdapter[Any]


class Lines:
    """How many lines of a kind are logged: ``at_once``, and ``per_second`` in the long run. Thread-safe."""

    def __init__(self, at_once: int, per_second: float) -> None:
        self._lock = threading.Lock()
        self._at_once = at_once
        self._per_second = per_second
        self._left = float(at_once)
        self._at = time.monotonic()
        self._withheld = 0

    def take(self) -> int | None:
        """Return None if a line is not to be logged, else how many were not since the last one that was."""
        with self._lock:
            now = time.monotonic()
            self._left = min(self._at_once, self._left + (now - self._at) * self._per_second)
            self._at = now
            if self._left < 1:
                self._withheld += 1
                return None
            self._left -= 1
            withheld, self._withheld = self._withheld, 0
            return withheld


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


@dataclass(frozen=True, slots=True)
class Unlogged:
    """Refusals that were not logged; its text is the end of the next message about one.

    :ivar of_machine: those of the same machine;  ``of_others``: those in excess of what is logged of all machines
    """

    of_machine: int
    of_others: int

    def __str__(self) -> str:
        found = [f"{self.of_machine} further refusals of this machine"] if self.of_machine else []
        if self.of_others:
            found.append(f"{self.of_others} of other machines")
        return f" ({' and '.join(found)} since the last message)" if found else ""


@dataclass(slots=True)
class _Machine:
    reason: str
    logged_at: float
    suppressed: int = 0


class RefusedMachines:
    """Says whether to log that a machine is refused: at most once in a period for a reason. Thread-safe."""

    def __init__(self, period_s: float = MACHINE_PERIOD_S) -> None:
        self._period_s = period_s
        self._lock = threading.Lock()
        self._machines: OrderedDict[tuple[Any, ...], _Machine] = OrderedDict()
        self._lines = Lines(MACHINES_AT_ONCE, MACHINES_PER_SECOND)

    def is_due(self, node_uuid: str | None, macs: Collection[str], addresses: Collection[str],
               reason: str) -> Unlogged | None:
        """Return None if the refusal is not to be logged, else how many were not since the last one."""
        # A machine is what its addresses say; without any, what it calls itself.
        key = (*sorted(macs), *sorted(addresses)) or (node_uuid,)
        now = time.monotonic()
        with self._lock:
            known = self._machines.pop(key, None)
            if known is not None and known.reason == reason and now - known.logged_at < self._period_s:
                known.suppressed += 1
                self._machines[key] = known
                return None
            if (others := self._lines.take()) is None:
                if known is not None:
                    known.suppressed += 1
                    self._machines[key] = known
                return None
            self._machines[key] = _Machine(reason, now)
            if len(self._machines) > _MACHINES:
                self._machines.popitem(last=False)
            return Unlogged(0 if known is None else known.suppressed, others)

    @staticmethod
    def log(log: _Log, error: LookupFailed, node_uuid: str | None, macs: Collection[str],
            addresses: Collection[str], matches: Iterable[Match], earlier: Unlogged) -> None:
        """Log a refused callback: the reason, and which node has what of that which the machine sent.

        :param earlier: as :meth:`is_due` returned it
        """
        nodes = list(matches)
        shown = [_of_node(match) for match in nodes[:_NODES]]
        if len(nodes) > _NODES:
            shown.append(f"{len(nodes) - _NODES} more nodes match")
        if unknown := _unmatched(node_uuid, macs, addresses, nodes):
            shown.append(f"no node has {unknown}")
        level = logging.INFO if isinstance(error, MachineUnknown) else logging.WARNING
        log.log(level, "A callback is refused: %s; %s%s", error.reason, "; ".join(shown), earlier)


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
