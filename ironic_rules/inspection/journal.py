"""The journal of refused callbacks, written beside the requests: a refusal takes no longer, whatever its reason.

Anyone can send callbacks. What does not fit into the queue is dropped, and counted; reports for which there is no room
are left out. Equal callbacks in the queue are written once.
"""

from __future__ import annotations

import datetime
import queue
import threading
import time
from dataclasses import replace

import sqlalchemy as sa
from oslo_log import log

from ironic_rules.db import clock, inspection_journal
from ironic_rules.db.errors import AWAY
from ironic_rules.db.session import Database
from ironic_rules.inspection.refusals import Refusals
from ironic_rules.models import secrets
from ironic_rules.models.refused_callbacks import RefusedCallback
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

#: Callbacks that wait to be written.
MOST_WAITING = 1000
#: Bytes of a report that is kept: those of real machines are smaller.
MAX_REPORT = 1024 * 1024
#: Bytes of all reports that wait. In memory they take some times as much.
MOST_REPORTS = 16 * 1024 * 1024
#: Callbacks of one transaction.
_BATCH = 100
#: Seconds between two transactions, at least: so many callbacks are written per second at most.
_PAUSE_S = 0.2
_dropped = Refusals(LOG)
_failed = Refusals(LOG)


class Journal:
    """Writes refused callbacks in a thread of its own. One per process; thread-safe.

    :param max_entries: 0: nothing is written
    :param max_days: days after which an entry is deleted
    :param keep_reports: whether the data of the machine are kept
    """

    def __init__(self, db: Database, max_entries: int, max_days: int, *, keep_reports: bool = False) -> None:
        self._db = db
        self._max_entries, self._max_days, self._keep_reports = max_entries, max_days, keep_reports
        self._waiting: queue.Queue[RefusedCallback] = queue.Queue(MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._reports = 0
        self.dropped = 0

    def note(self, callback: RefusedCallback) -> None:
        """Write a callback, later: without secrets, and without its report, if that is too large or too many wait."""
        if not self._max_entries:
            return
        if not (self._keep_reports and callback.report is not None and self._take(callback.size)):
            callback = replace(callback, report=None, size=0)
        try:
            self._waiting.put_nowait(callback)
        except queue.Full:
            with self._lock:
                self._reports -= callback.size
                self.dropped += 1
            _dropped.warn("A refused callback is not written to the journal: too many wait (%d so far)", self.dropped)
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

    def _concealed(self, callback: RefusedCallback) -> RefusedCallback:
        """Return a callback without the secrets of its report, which their keys tell."""
        return replace(callback, detail=secrets.mask_text(callback.detail), report=secrets.mask(callback.report))

    def _start(self) -> None:
        # Not before the first callback: servers like gunicorn fork before that.
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
                    self._reports -= sum(callback.size for callback in batch)
                for _ in batch:
                    self._waiting.task_done()
            time.sleep(_PAUSE_S)

    def _write_all(self, batch: list[RefusedCallback]) -> None:
        """Write callbacks together or, if that fails, each alone: no callback keeps others from being written."""
        try:
            self._write(batch)
        except AWAY:
            LOG.warning("%d refused callbacks are not written to the journal: the database is unavailable", len(batch))
        except Exception:  # noqa: BLE001  (such as of a machine that another process has just written first)
            for callback in batch:
                self._write_alone(callback)

    def _write_alone(self, callback: RefusedCallback) -> None:
        try:
            self._write([callback])
        except Exception as exc:  # noqa: BLE001  (the next one must be written)
            _failed.warn("A refused callback cannot be written to the journal: %s", printable(exc))

    def _write(self, batch: list[RefusedCallback]) -> None:
        times: dict[str, int] = {}
        last: dict[str, RefusedCallback] = {}
        for callback in batch:
            machine = callback.machine
            times[machine] = times.get(machine, 0) + 1
            last[machine] = callback

        concealed = {machine: self._concealed(callback) for machine, callback in last.items()}

        def write(conn: sa.Connection) -> None:
            # In one order, as others write the same machines.
            inspection_journal.add(conn, [(concealed[machine], times[machine]) for machine in sorted(concealed)])
            inspection_journal.prune(
                conn, self._max_entries, clock.now() - datetime.timedelta(days=self._max_days))

        self._db.write(write)
