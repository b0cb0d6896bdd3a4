"""Keeps the plans in accordance with the database and the messages, and the targets with the plans.

An area is the nodes and ports of one scope, the plan for them, and the targets that follow it. A filter has one area,
or one for each name in ``[pxe_filter]targets``. The data for all of them are read once from the database, and every
message is given to each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent import futures

from oslo_log import log as logging

from ironic_rules.db import pxe_filter as records
from ironic_rules.db.session import Database
from ironic_rules.pxe_filter import plan, report, targets
from ironic_rules.pxe_filter.reader import Changes, Everything, Reader
from ironic_rules.pxe_filter.settings import FilterSettings, TargetSettings
from ironic_rules.pxe_filter.statistics import AreaStatistics, Statistics
from ironic_rules.pxe_filter.writer import Reloader, Writer
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: Number of files that are taken over from the database while the plan is locked.
_FILES = 16


class Area:
    """A plan, its writer, its reloader and its targets. Each method locks the plan as long as it needs it."""

    def __init__(self, settings: TargetSettings) -> None:
        self.statistics = AreaStatistics(settings.name)
        self.scope = settings.scope
        #: before its lines in the log
        self._label = f"{settings.name}: " if settings.name else ""
        self._lock = threading.Lock()
        layout = plan.Layout(settings.files)
        self._plan = plan.Plan(layout, deny_unknown=settings.deny_unknown, discovery=settings.discovery)
        self.targets = targets.make(settings, layout)
        self._lingers = any(target.lingers for target in self.targets)
        self._writer = Writer(self._plan, self._lock, self.targets, self.statistics)
        self._reloader = Reloader(self._plan, self._lock, self._writer, self.targets, settings.reload_after,
                                  self.statistics)
        #: addresses of messages since the last query of the database
        self._recent: set[str] = set()
        #: ids of nodes of such messages whose change was read at the same time: which one is newer is unknown
        self._unsure: set[int] = set()
        #: addresses among these that had no port then
        self._unsure_macs: set[str] = set()
        #: ids of the nodes that the last reading was about; None: all
        self._node_ids: Collection[int] | None = None
        #: identifiers of several nodes that were logged
        self._rivals: plan.Rivals = {}
        #: true if the plan was filled from the database
        self._filled = False
        self._synced = False

    def open(self) -> None:
        """Open the targets, and read what a filter has written there before.

        :raises ConfigurationError: one of them cannot be used, or is used by another filter
        """
        for target in self.targets:
            self._plan.remember(target.open())

    def close(self) -> None:
        """Close the targets; what is written remains."""
        for target in self.targets:
            target.close()

    @property
    def is_behind(self) -> bool:
        """True if something has not been written yet, other than what the latest messages have changed."""
        return self._writer.is_behind

    def tell(self, allow: Sequence[str], deny: Sequence[str]) -> set[str]:
        """Apply a message about addresses (normalized) to the plan; ``write`` writes what it has changed.

        :returns: the addresses among them whose port is known here
        """
        with self._lock:
            known_macs = {mac for mac in (*allow, *deny) if self._plan.node_of(mac)}
            if self.scope != records.EVERYTHING:
                # Others are in the scope of another area, or new, and read from the database now.
                allow, deny = ([mac for mac in macs if mac in known_macs] for macs in (allow, deny))
            self._recent.update(allow, deny)
            dirty, flips = self._plan.tell(allow, deny), self._plan.take_flips()
            # Before the ports have been read, the other addresses in those groups are not known.
            if self._filled:
                self._writer.note_changes(dirty, flips, {*allow, *deny})
        return known_macs

    def serves(self, mac: str) -> bool:
        """Return whether the address is allowed, and the servers follow that, as far as it can be observed."""
        with self._lock:
            verdict = self._plan.verdict(mac)
            if not (self._plan.allows_unknown if verdict is None else verdict):
                return False
        self._writer.observe()
        return self.statistics.unwritten == 0 and self.statistics.unread <= 0

    def write(self) -> None:
        """Write changes by messages, and groups that could not be written before."""
        self._writer.write()
        self._tell_unknown()

    def observe(self) -> None:
        """Look at what the servers have taken over, and make them reload if that is due."""
        self._writer.observe()
        if self._synced:
            self._reloader.reload_if_due(quiet=True)

    def begin(self) -> frozenset[int]:
        """The database will be read: from now on, messages are newer. Return the nodes that were on inspection."""
        more = True
        while more:  # as in ``_replace``
            with self._lock:
                more = self._plan.index(_FILES)
        with self._lock:
            self._recent = set()
            return self._plan.inspecting

    @property
    def unsure(self) -> set[int]:
        """Ids of nodes that have to be read again."""
        with self._lock:
            return self._unsure | self._plan.contradicted()

    def compare(self, refused: set[str]) -> plan.Comparison:
        """Return a comparison of the plan with all ports."""
        return self._plan.compare(refused)

    def take(self, read: Everything | Changes, refused: set[str]) -> None:
        """Take over a reading; ``finish`` follows.

        :param refused: invalid addresses are added to this set
        """
        if isinstance(read, Everything):
            self._node_ids = None
            self._replace(read)
            return
        self._node_ids = read.node_ids
        with self._lock:
            dirty = self._plan.update(read.changed, read.ports, read.inspecting, self._recent, refused,
                                      self._unsure_macs, on_inspection=read.on_inspection)
            self._writer.note_changes(dirty, self._plan.take_flips())

    def _replace(self, read: Everything) -> None:
        """Take over a complete reading, a few files at a time: messages come in between."""
        with self._lock:
            self._writer.note(self._plan.begin(read.inspecting, self._recent, on_inspection=read.on_inspection))
            self._plan.rivals = read.rivals
        files = read.files
        while files:
            some = dict(files.popitem() for _ in range(min(_FILES, len(files))))
            with self._lock:
                self._writer.note(self._plan.take_over(some, logged=self._filled))

    def finish(self, *, periodic: bool) -> None:
        """A reading is taken over: decide what to read again, and write.

        :param periodic: replace the state from messages by that of the database
        """
        with self._lock:
            if periodic:
                self._writer.note(self._plan.forget_told(self._recent))
            if not self._lingers:
                self._writer.note(self._plan.forget_gone())
            subjects = {self._plan.node_of(mac) or plan.GONE for mac in self._recent} - {plan.GONE}
            self._unsure = subjects if self._node_ids is None else subjects.intersection(self._node_ids)
            self._unsure_macs = {mac for mac in self._recent if self._plan.node_of(mac) == plan.GONE}
            if not self._filled:
                self._filled = True
                self._writer.note(self._plan.files)
            self._plan.take_flips()  # what has changed since it was noted, is in groups that were noted as a whole
        self.write()

    def settle(self, db: Database, *, periodic: bool) -> None:
        """After a sync: repair what others have changed, reload if that is due, count, and log what has changed.

        :param periodic: otherwise, nothing is repaired or reloaded
        """
        with self._lock:
            changes, first = self._plan.take_changes(), not self._synced
            rivals = dict(self._plan.rivals)
        self._synced = True
        if periodic:
            self._heal()
            self._remove_leftovers()
            self._reloader.reload_if_due(quiet=first)
        with self._lock:
            numbers = self.statistics
            numbers.addresses, numbers.gone = len(self._plan), self._plan.gone
            numbers.inspecting = len(self._plan.inspecting)
        self._writer.observe()
        if first:
            LOG.info("%s%s addresses are in the files, %s nodes are on inspection, and unknown addresses are %s",
                     self._label, numbers.addresses, numbers.inspecting,
                     "allowed" if numbers.allows_unknown else "denied")
        else:
            report.log_changes(changes, db, self._label)
        if rivals != self._rivals:
            report.log_rivals({key: rivals[key] for key in rivals if self._rivals.get(key) != rivals[key]}, db,
                              self._label)
            self._rivals = rivals

    def _tell_unknown(self) -> None:
        """Log when unknown addresses begin to be allowed or denied."""
        with self._lock:
            before, allowed = self.statistics.allows_unknown, self._plan.allows_unknown
            self.statistics.allows_unknown = allowed
        if self._synced and before != allowed:
            LOG.info("%sUnknown addresses are %s from now on", self._label, "allowed" if allowed else "denied")

    def _heal(self) -> None:
        """Write again what other processes have changed."""
        for target in self.targets:
            try:
                with self._writer.turn:
                    changes = list(target.changed_by_others())
            except OSError as exc:
                LOG.error("Cannot read %s: %s", target.name, exc)
                continue
            except Exception:  # it may be another package's, and the other targets must continue
                LOG.exception("Cannot read %s", target.name)
                continue
            with self._lock:
                for change in changes:
                    if change.groups and self._writer.waits_for(target, change.groups):
                        continue
                    LOG.warning("%s of %s was changed by another process; it is written again", change.what,
                                target.name)
                    self.statistics.healed += 1
                    self._writer.note(change.groups | ({plan.UNKNOWN_FILE} if change.unknown else set()), target=target)
                    self._writer.note(self._plan.remember(change.addresses))
            if changes:
                self.write()

    def _remove_leftovers(self) -> None:
        """Remove unneeded files and lines, once everything else is written."""
        if self.is_behind:
            return
        with self._writer.turn, self._lock:
            for target in self.targets:
                self._writer.note(target.leftovers(), target=target)
        if self.is_behind:
            self.write()


#: Maximum number of refused addresses that are remembered, to log each only once.
_MAX_REFUSED = 10_000


class Keeper:
    """The areas of a filter, and one reading of the database for all of them.

    The database is read without a lock, so that messages are processed at the same time. For the addresses of such
    messages, the data that were read may be older and are ignored. ``sync`` may be called from one thread, ``tell`` and
    ``write`` from any.
    """

    def __init__(self, settings: FilterSettings, db: Database) -> None:
        self._settings = settings
        self._db = db
        self.areas = [Area(target) for target in settings.targets]
        self.statistics = Statistics([area.statistics for area in self.areas])
        self._pool = None if len(self.areas) == 1 else futures.ThreadPoolExecutor(len(self.areas), "pxe-area")
        self._reader = Reader([area.scope for area in self.areas], settings.interfaces,
                              all_ramdisks=settings.all_ramdisks)
        self._refused: set[str] = set()
        self._synced = False
        #: time at which all ports were read; None: they must be read
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
        """True if something has not been written yet, other than what the latest messages have changed."""
        return any(area.is_behind for area in self.areas)

    def tell(self, allow: Sequence[str], deny: Sequence[str]) -> bool:
        """Apply a message about addresses (normalized) to the plans; ``write`` writes what it has changed.

        :returns: whether it was about known ports only; otherwise the database says more than the message
        """
        self.statistics.messages += 1
        known_macs: set[str] = set().union(*[area.tell(allow, deny) for area in self.areas])
        return bool(known_macs) and known_macs.issuperset((*allow, *deny))

    def write(self) -> None:
        """Write changes by messages, and groups that could not be written before."""
        self._each(Area.write)

    def serves(self, mac: str) -> bool:
        """Return whether a server of one of the areas serves the address."""
        return any(area.serves(mac) for area in self.areas)

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
            LOG.info("The first synchronization took %.2f s", numbers.duration_s)
        self._synced = True

    def _sync(self, periodic: bool) -> str:
        before = [area.begin() for area in self.areas]
        due = self._read_all_at is None or (
            periodic and time.monotonic() - self._read_all_at >= self._settings.full_sync_period)
        refused: set[str] = set()
        unsure: set[int] = set().union(*(area.unsure for area in self.areas))
        with self._db.reader() as conn:
            changes = None if due else self._reader.read_changes(conn, before, unsure, refused)
            reads: Sequence[Everything | Changes] = changes or self._reader.read_everything(conn, self.areas, refused)
        for area, read in zip(self.areas, reads, strict=True):
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
        for future in [self._pool.submit(work, area) for area in self.areas]:
            future.result()

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
