"""The journal of rejected reports, written beside the requests: a refusal takes no longer, whatever its reason.

Anyone can send reports, so they must fill neither the journal nor the log. A rejected report that does not fit into the
queue is dropped, and counted; bodies for which there is no room are left out. Equal entries in the queue are written
once. Warnings are limited.
"""

from __future__ import annotations

import datetime
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import sqlalchemy as sa
from oslo_log import log

from ironic_rules.db import clock, inspection_journal
from ironic_rules.db.discovery import Match
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.db.session import Database
from ironic_rules.exceptions import LookupFailed, MachineUnknown
from ironic_rules.models import secrets
from ironic_rules.models.rejected_reports import RejectedReport
from ironic_rules.text import enumeration, printable

LOG = log.getLogger(__name__)

#: Seconds between two warnings of the same kind.
PERIOD_S = 10.0


#: Seconds between two messages about one machine, unless the reason is another one.
MACHINE_PERIOD_S = 60.0
#: Number of machines that are remembered, the last ones. Anyone can pretend to be many machines.
_MACHINES = 4096
#: Messages about different machines: so many at once, a fleet, and so many per second on average. 10,000 rejected
#: reports, of which more than four come in a second, make less than 1 MiB of log, with the lines of their requests.
MACHINES_AT_ONCE = 500
MACHINES_PER_SECOND = 0.5
#: Maximum number of nodes in one message.
_NODES = 4

_Log: TypeAlias = logging.Logger | logging.LoggerAdapter[Any]


class Lines:
    """Limits of the lines of a kind in the log: ``at_once``, and ``per_second`` on average. Thread-safe."""

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
        parts = [f"{self.of_machine} further refusals of this machine"] if self.of_machine else []
        if self.of_others:
            parts.append(f"{self.of_others} of other machines")
        return f" ({' and '.join(parts)} since the last message)" if parts else ""


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
            machine = self._machines.pop(key, None)
            if machine is not None and machine.reason == reason and now - machine.logged_at < self._period_s:
                machine.suppressed += 1
                self._machines[key] = machine
                return None
            if (unlogged := self._lines.take()) is None:
                if machine is not None:
                    machine.suppressed += 1
                    self._machines[key] = machine
                return None
            self._machines[key] = _Machine(reason, now)
            if len(self._machines) > _MACHINES:
                self._machines.popitem(last=False)
            return Unlogged(0 if machine is None else machine.suppressed, unlogged)

    @staticmethod
    def log(log: _Log, error: LookupFailed, node_uuid: str | None, macs: Collection[str],
            addresses: Collection[str], matches: Iterable[Match], earlier: Unlogged) -> None:
        """Log a rejected report: the reason, and the near matches.

        :param earlier: as :meth:`is_due` returned it
        """
        nodes = list(matches)
        shown = [_of_node(match) for match in nodes[:_NODES]]
        if len(nodes) > _NODES:
            shown.append(f"{len(nodes) - _NODES} more nodes match")
        if unknown := _unmatched(node_uuid, macs, addresses, nodes):
            shown.append(f"no node has {unknown}")
        level = logging.INFO if isinstance(error, MachineUnknown) else logging.WARNING
        log.log(level, "A report is rejected: %s; %s%s", error.reason, "; ".join(shown), earlier)


def _of_node(match: Match) -> str:
    has = _listed("its UUID" if match.has_uuid else None, match.macs, match.bmc_addresses)
    return f'node {match.uuid} in state "{match.state}" has {has}'


def _unmatched(node_uuid: str | None, macs: Collection[str], addresses: Collection[str], nodes: Iterable[Match]) -> str:
    known_macs = {address for match in nodes for address in match.macs}
    known_bmcs = {address for match in nodes for address in match.bmc_addresses}
    is_unknown = node_uuid is not None and not any(match.has_uuid for match in nodes)
    return _listed(f"the UUID {printable(node_uuid, 64)}" if is_unknown else None,
                   [address for address in macs if address not in known_macs],
                   [address for address in addresses if address not in known_bmcs])


def _listed(uuid: str | None, macs: Collection[str], addresses: Collection[str]) -> str:
    parts = [] if uuid is None else [uuid]
    for kind, values in (("MAC address", macs), ("BMC address", addresses)):
        if values:
            parts.append(f"the {kind}{'es' if len(values) > 1 else ''} {enumeration(values)}")
    return ", ".join(parts)


#: Callbacks that wait to be written.
MOST_WAITING = 1000
#: Bytes of a report that is kept: those of real machines are smaller.
MAX_REPORT = 1024 * 1024
#: Bytes of all reports that wait. In memory they take some times as much.
MOST_REPORTS = 16 * 1024 * 1024
#: Callbacks of one transaction.
_BATCH = 100
#: Seconds between two transactions, at least: so many entries are written per second at most.
_PAUSE_S = 0.2
_dropped = Refusals(LOG)
_failed = Refusals(LOG)


class Journal:
    """Writes rejected reports in a thread of its own. One per process; thread-safe.

    :param max_entries: 0: nothing is written
    :param max_days: days after which an entry is deleted
    :param keep_reports: whether the data of the machine are kept
    """

    def __init__(self, db: Database, max_entries: int, max_days: int, *, keep_reports: bool = False) -> None:
        self._db = db
        self._max_entries, self._max_days, self._keep_reports = max_entries, max_days, keep_reports
        self._waiting: queue.Queue[RejectedReport] = queue.Queue(MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._reports = 0
        self.dropped = 0

    def note(self, entry: RejectedReport) -> None:
        """Write an entry, later: without secrets, and without its report, if that is too large or too many wait."""
        if not self._max_entries:
            return
        if not (self._keep_reports and entry.report is not None and self._take(entry.size)):
            entry = replace(entry, report=None, size=0)
        try:
            self._waiting.put_nowait(entry)
        except queue.Full:
            with self._lock:
                self._reports -= entry.size
                self.dropped += 1
            _dropped.warn("A rejected report is not written to the journal: too many wait (%d so far)", self.dropped)
            return
        if self._thread is None:
            self._start()

    def _take(self, size: int) -> bool:
        """Return whether there is room for a report, and take it."""
        with self._lock:
            if size > MAX_REPORT or self._reports + size > MOST_REPORTS:
                return False
            self._reports += size
            return True

    def flush(self) -> None:
        """Wait until all that was noted is written, or given up."""
        self._waiting.join()

    def _concealed(self, entry: RejectedReport) -> RejectedReport:
        """Return a rejected report without its secrets, which their keys tell."""
        return replace(entry, detail=secrets.mask_text(entry.detail), report=secrets.mask(entry.report))

    def _start(self) -> None:
        # Not before the first entry: servers like gunicorn fork before that.
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="inspection-journal", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while len(batch) < _BATCH:
                try:
                    batch.append(self._waiting.get_nowait())
                except queue.Empty:
                    break
            try:
                self._write_all(batch)
            finally:
                with self._lock:
                    self._reports -= sum(entry.size for entry in batch)
                for _ in batch:
                    self._waiting.task_done()
            time.sleep(_PAUSE_S)

    def _write_all(self, batch: list[RejectedReport]) -> None:
        """Write reports together or, if that fails, each alone: no report keeps others from being written."""
        try:
            self._write(batch)
        except DATABASE_AWAY:
            LOG.warning("%d rejected reports are not written to the journal: the database is unavailable", len(batch))
        except Exception:  # noqa: BLE001  (such as of a machine that another process has just written first)
            for entry in batch:
                self._write_alone(entry)

    def _write_alone(self, entry: RejectedReport) -> None:
        try:
            self._write([entry])
        except Exception as exc:  # noqa: BLE001  (the next one must be written)
            _failed.warn("A rejected report cannot be written to the journal: %s", printable(exc))

    def _write(self, batch: list[RejectedReport]) -> None:
        times: dict[str, int] = {}
        last: dict[str, RejectedReport] = {}
        for entry in batch:
            machine = entry.machine
            times[machine] = times.get(machine, 0) + 1
            last[machine] = entry

        concealed = {machine: self._concealed(entry) for machine, entry in last.items()}

        def write(conn: sa.Connection) -> None:
            # In one order, as others write the same machines.
            inspection_journal.add(conn, [(concealed[machine], times[machine]) for machine in sorted(concealed)])
            inspection_journal.prune(
                conn, self._max_entries, clock.now() - datetime.timedelta(days=self._max_days))

        self._db.write(write)
