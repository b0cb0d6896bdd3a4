"""Decides when the servers reload: to free addresses without a port, and lines that were read several times."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from oslo_log import log as logging

from ironic_rules.pxe_filter.plan import Plan
from ironic_rules.pxe_filter.statistics import AreaStatistics
from ironic_rules.pxe_filter.targets.base import Target
from ironic_rules.pxe_filter.writer import Writer

LOG = logging.getLogger(__name__)


#: The cost of a request grows with the lines in the server's memory, so it reloads when more are superfluous than
#: needed; but not for fewer than this, which cost less than a millisecond.
_FEW = 1000
#: Minimum number of seconds between two reloads because of superfluous lines.
_PAUSE_S = 5.0


class Reloader:
    """Reloads the servers of all targets of a plan together, because they share its list of addresses without a port.

    :param lock: protects the plan
    :param after: number of superfluous lines after which a server reloads
    """

    def __init__(self, plan: Plan, lock: threading.Lock, writer: Writer, targets: Sequence[Target], after: int,
                 statistics: AreaStatistics) -> None:
        self._plan = plan
        self._lock = lock
        self._writer = writer
        self._targets = targets
        self._after = after
        self._statistics = statistics
        #: whether addresses whose port was deleted before start-up must still be removed
        self._purges = True
        self._fails = False
        self._busy = threading.Lock()
        #: not before this time because of superfluous lines
        self._next = 0.0

    def reload_if_due(self, *, quiet: bool = False) -> None:
        """Reload if it is due, everything is written, and every server runs.

        :param quiet: log nothing if a server does not run, as at start-up, when it may be waiting for the filter
        """
        if not self._busy.acquire(blocking=False):
            return  # another thread is at it
        try:
            if self._is_due() and not self._writer.is_behind and self._all_run(quiet):
                self._reload()
        finally:
            self._busy.release()

    def _is_due(self) -> bool:
        with self._lock:
            gone = self._plan.gone
        self._purges = self._purges and gone > 0
        with self._writer.turn:
            return self._purges or self._has_surplus(gone)

    def _has_surplus(self, gone: int) -> bool:
        if any(target.must_reload for target in self._targets):
            return True
        return time.monotonic() >= self._next and any(
            target.surplus + gone > min(self._after, max(target.needed, _FEW)) for target in self._targets)

    def _all_run(self, quiet: bool) -> bool:
        absent = [target.name for target in self._targets if not target.can_reload()]
        if not absent:
            return True
        if not quiet and not self._fails:
            LOG.warning("No dnsmasq runs with the process id in the PID file of %s; addresses without a port "
                        "remain in the files", ", ".join(absent))
        self._fails = self._fails or not quiet
        return False

    def _reload(self) -> None:
        with self._writer.turn, self._lock:
            gone = self._plan.gone_macs()
            self._writer.note(self._plan.forget_gone())
            for target in self._targets:
                self._writer.note(target.prepare_reload(), target=target)
        is_written = self._writer.write()
        with self._writer.turn:
            asked = [target.reload() for target in self._targets]
        self._fails = not all(asked)
        if self._fails or not is_written:
            with self._writer.turn, self._lock:
                self._writer.note(self._plan.remember(gone))
                for target in self._targets:
                    self._writer.note(target.undo_reload(), target=target)
            self._writer.write()
            return
        self._purges = False
        self._next = time.monotonic() + _PAUSE_S
        self._statistics.reloads += 1
        LOG.info("dnsmasq was signalled to reload; %s addresses without a port are removed", len(gone))
