"""Keeps the plans in accordance with the database and the messages, and the targets with the plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent import futures

from oslo_log import log as logging

from ironic_rules.db.session import Database
from ironic_rules.pxe_filter.area import Area
from ironic_rules.pxe_filter.reader import Changes, Everything, Reader
from ironic_rules.pxe_filter.settings import FilterSettings
from ironic_rules.pxe_filter.statistics import Statistics
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: Maximum number of refused addresses that are remembered, to log each only once.
_MAX_REFUSED = 10_000


class Keeper:
    """The areas of a filter, and one reading of the database for all of them.

    The database is read without a lock, so that messages are processed meanwhile; for the addresses of such messages,
    what was read may be older and is ignored. ``sync`` may be called from one thread, ``tell`` and ``write`` from any.
    """

    def __init__(self, settings: FilterSettings, db: Database) -> None:
        self._settings = settings
        self._db = db
        self.areas = [Area(target) for target in settings.targets]
        self.statistics = Statistics([area.statistics for area in self.areas])
        self._pool = None if len(self.areas) == 1 else futures.ThreadPoolExecutor(len(self.areas), "pxe-area")
        self._reader = Reader([area.scope for area in self.areas], settings.interfaces)
        self._refused: set[str] = set()
        self._synced = False
        #: when all ports were read; None: they must be read
        self._read_all_at: float | None = None

    def open(self) -> None:
        """Open the targets, and read what a filter has written there before.

        :raises ConfigurationError: one of them cannot be used, or is used by another filter
        """
        for area in self.areas:
            area.open()

    def close(self) -> None:
        """Close the targets; what is written remains."""
        for area in self.areas:
            area.close()

    @property
    def is_behind(self) -> bool:
        """Whether something has not been written yet, other than what the latest messages have changed."""
        return any(area.is_behind for area in self.areas)

    def tell(self, allow: Sequence[str], deny: Sequence[str]) -> bool:
        """Apply a message about addresses (normalised) to the plans; ``write`` writes what it has changed.

        :returns: whether it was about known ports only; otherwise the database says more than the message
        """
        self.statistics.messages += 1
        known: set[str] = set().union(*[area.tell(allow, deny) for area in self.areas])
        return bool(known) and known.issuperset((*allow, *deny))

    def write(self) -> None:
        """Write what messages have changed, and what could not be written before."""
        self._each(Area.write)

    def sync(self, *, periodic: bool) -> None:
        """Read changes from the database, and write the files.

        :param periodic: also read all ports if that is due, replace the state from messages by that of the database,
            repair files that others have changed, and make dnsmasq reload if necessary
        :raises DBError: the database cannot be read; the files are unchanged
        """
        began = time.monotonic()
        try:
            kind = self._sync(periodic)
        except Exception:  # counted and raised again
            # Part of the list of changes may have been read without being applied.
            self._read_all_at = None
            self.statistics.syncs["failed"] += 1
            raise
        self._each(lambda area: area.settle(self._db, periodic=periodic))
        numbers = self.statistics
        numbers.syncs[kind] += 1
        numbers.duration_s, numbers.synced_at = time.monotonic() - began, time.time()
        numbers.refused = len(self._refused)
        if not self._synced:
            LOG.info("The first synchronisation took %.2f s", numbers.duration_s)
        self._synced = True

    def _sync(self, periodic: bool) -> str:
        before = [area.begin() for area in self.areas]
        due = self._read_all_at is None or (
            periodic and time.monotonic() - self._read_all_at >= self._settings.full_sync_period)
        refused: set[str] = set()
        unsure: set[int] = set().union(*(area.unsure for area in self.areas))
        with self._db.reader() as conn:
            changes = None if due else self._reader.read_changes(conn, before, unsure, refused)
            found: Sequence[Everything | Changes] = changes or self._reader.read_everything(conn, self.areas, refused)
        for area, read in zip(self.areas, found, strict=True):
            area.take(read, refused)
        if changes is None:
            self._read_all_at = time.monotonic()
        self._each(lambda area: area.finish(periodic=periodic))
        self._refuse(refused, everything=changes is None)
        return "incremental" if changes is not None else "full"

    def _each(self, work: Callable[[Area], None]) -> None:
        """Do this for every area at once: the server of one may be slow."""
        if self._pool is None:
            work(self.areas[0])
            return
        for done in [self._pool.submit(work, area) for area in self.areas]:
            done.result()

    def _refuse(self, refused: Collection[str], *, everything: bool) -> None:
        for address in sorted(set(refused) - self._refused)[:_MAX_REFUSED]:
            if address.startswith("id:"):
                LOG.error("A port has the client identifier '%s' in its extra field, which is not one in hexadecimal, "
                          "or is made of a MAC address. It is ignored", printable(address[3:], 64))
            else:
                LOG.error("A port has the address '%s', which is not a unicast MAC address. It is ignored",
                          printable(address, 64))
        if everything:
            self._refused = set()
        self._refused.update(sorted(refused)[:_MAX_REFUSED])
