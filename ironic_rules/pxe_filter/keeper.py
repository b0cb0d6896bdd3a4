"""Keeps the plan in accordance with the database and the messages, and the targets with the plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence

from oslo_log import log as logging

from ironic_rules.db import pxe_filter as records
from ironic_rules.db.session import Database
from ironic_rules.pxe_filter import plan, report, targets
from ironic_rules.pxe_filter.reloader import Reloader
from ironic_rules.pxe_filter.settings import FilterSettings
from ironic_rules.pxe_filter.statistics import Statistics
from ironic_rules.pxe_filter.writer import Writer
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: Number of files that are taken over from the database while the plan is locked.
_FILES = 16
#: Maximum number of refused addresses that are remembered, to log each only once.
_MAX_REFUSED = 10_000


class Keeper:
    """A plan, its writer, its reloader and its targets.

    The database is read without the lock, so that messages are processed meanwhile; for the addresses of such messages,
    what was read may be older and is ignored. ``sync`` may be called from one thread, ``tell`` and ``write`` from any.
    """

    def __init__(self, settings: FilterSettings, db: Database) -> None:
        self.statistics = Statistics()
        self._settings = settings
        self._db = db
        self._lock = threading.Lock()
        layout = plan.Layout(settings.files)
        self._plan = plan.Plan(layout, deny_unknown=settings.deny_unknown, discovery=settings.discovery)
        self._targets = targets.make(settings, layout)
        self._lingers = any(target.lingers for target in self._targets)
        self._writer = Writer(self._plan, self._lock, self._targets, self.statistics)
        self._reloader = Reloader(self._plan, self._lock, self._writer, self._targets, settings.reload_after,
                                  self.statistics)
        self._reader = records.ChangeReader()
        #: addresses of messages since the last query of the database
        self._recent: set[str] = set()
        #: ids of nodes of such messages whose change was read at the same time: which one is newer is unknown
        self._unsure: set[int] = set()
        self._refused: set[str] = set()
        #: whether the plan was filled from the database
        self._filled = False
        self._synced = False
        #: when all ports were read; None: they must be read
        self._read_all_at: float | None = None

    def open(self) -> None:
        """Open the targets, and read what a filter has written there before.

        :raises ConfigurationError: one of them cannot be used, or is used by another filter
        """
        for target in self._targets:
            self._plan.remember(target.open())

    def close(self) -> None:
        """Close the targets; what is written remains."""
        for target in self._targets:
            target.close()

    @property
    def is_behind(self) -> bool:
        """Whether something has not been written yet."""
        return self._writer.is_behind

    def tell(self, allow: Sequence[str], deny: Sequence[str]) -> None:
        """Apply a message about addresses (normalised) to the plan; ``write`` writes what it has changed."""
        with self._lock:
            self.statistics.messages += 1
            if self._settings.scope != records.EVERYTHING:
                # Others are in the scope of another filter, or new, and read from the database now.
                allow, deny = ([mac for mac in macs if self._plan.node_of(mac)] for macs in (allow, deny))
            self._recent.update(allow, deny)
            dirty = self._plan.tell(allow, deny)
            # Before the ports have been read, the other addresses in those groups are not known.
            if self._filled:
                self._writer.note(dirty, urgent=True)

    def write(self) -> None:
        """Write what messages have changed, and what could not be written before."""
        self._writer.write()
        self._tell_unknown()

    def observe(self) -> None:
        """Look at what the servers have taken over, and make them reload if that is due."""
        self._writer.observe()
        if self._synced:
            self._reloader.reload_if_due(quiet=True)

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
        with self._lock:
            changes, first = self._plan.take_changes(), not self._synced
        self._synced = True
        if periodic:
            self._heal()
            self._remove_leftovers()
            self._reloader.reload_if_due(quiet=first)
        with self._lock:
            self._count(kind, time.monotonic() - began)
        self._writer.observe()
        if first:
            numbers = self.statistics
            LOG.info("%s addresses are in the files, %s nodes are on inspection, and unknown addresses are %s; it took "
                     "%.2f s", numbers.addresses, numbers.inspecting, "allowed" if numbers.allows_unknown else "denied",
                     numbers.duration_s)
        else:
            report.log_changes(changes, self._db)

    def _sync(self, periodic: bool) -> str:
        with self._lock:
            self._recent = set()
            known = self._plan.inspecting
        due = self._read_all_at is None or (
            periodic and time.monotonic() - self._read_all_at >= self._settings.full_sync_period)
        refused: set[str] = set()
        scope = self._settings.scope
        files: plan.Files | None = None
        with self._db.reader() as conn:
            changed = None if due else self._reader.changed(conn)
            if changed is None:
                self._reader.begin(conn)
            inspecting = set(records.on_inspection(conn, self._settings.interfaces, scope))
            if changed is None:
                files = self._plan.differences(lambda: records.all_ports(conn, scope), refused)
            else:
                asked = changed | (known ^ inspecting) | self._unsure
                ports = records.ports_of(conn, asked, scope)
        with self._lock:
            if files is not None:
                self._writer.note(self._plan.begin(inspecting, self._recent))
            else:
                self._writer.note(self._plan.update(changed or (), ports, inspecting, self._recent, refused))
        if files is not None:
            self._take_over(files)
        with self._lock:
            if periodic:
                self._writer.note(self._plan.forget_told(self._recent))
            if not self._lingers:
                self._writer.note(self._plan.forget_gone())
            subjects = {self._plan.node_of(mac) or plan.GONE for mac in self._recent} - {plan.GONE}
            self._unsure = subjects if changed is None else subjects & asked
            if not self._filled:
                self._filled = True
                self._writer.note(self._plan.files)
        self.write()
        self._refuse(refused, everything=files is not None)
        return "incremental" if files is None else "full"

    def _take_over(self, files: plan.Files) -> None:
        """Put what the database says of these files into the plan, a few at a time: messages come in between."""
        while files:
            some = dict(files.popitem() for _ in range(min(_FILES, len(files))))
            with self._lock:
                self._writer.note(self._plan.take_over(some))
        self._read_all_at = time.monotonic()

    def _tell_unknown(self) -> None:
        """Log when unknown addresses begin to be allowed or denied."""
        with self._lock:
            before, allowed = self.statistics.allows_unknown, self._plan.allows_unknown
            self.statistics.allows_unknown = allowed
        if self._synced and before != allowed:
            LOG.info("Unknown addresses are %s from now on", "allowed" if allowed else "denied")

    def _heal(self) -> None:
        """Write again what other processes have changed."""
        for target in self._targets:
            try:
                with self._writer.turn:
                    found = list(target.changed_by_others())
            except OSError as exc:
                LOG.error("Cannot read %s: %s", target.name, exc)
                continue
            with self._lock:
                for change in found:
                    if change.groups and self._writer.waits_for(target, change.groups):
                        continue
                    LOG.warning("%s of %s was changed by another process; it is written again", change.what,
                                target.name)
                    self.statistics.healed += 1
                    self._writer.note(change.groups | ({plan.UNKNOWN_FILE} if change.unknown else set()),
                                      target=target)
                    self._writer.note(self._plan.remember(change.addresses))
            if found:
                self.write()

    def _remove_leftovers(self) -> None:
        """Remove what is no longer needed, once everything else is written."""
        if self.is_behind:
            return
        with self._writer.turn, self._lock:
            for target in self._targets:
                self._writer.note(target.leftovers(), target=target)
        if self.is_behind:
            self.write()

    def _refuse(self, refused: Collection[str], *, everything: bool) -> None:
        for address in sorted(set(refused) - self._refused)[:_MAX_REFUSED]:
            LOG.error("A port has the address '%s', which is not a unicast MAC address. It is ignored",
                      printable(address, 64))
        if everything:
            self._refused = set()
        self._refused.update(sorted(refused)[:_MAX_REFUSED])

    def _count(self, kind: str, duration_s: float) -> None:
        numbers = self.statistics
        numbers.syncs[kind] += 1
        numbers.duration_s = duration_s
        numbers.synced_at = time.time()
        numbers.addresses, numbers.gone = len(self._plan), self._plan.gone
        numbers.inspecting = len(self._plan.inspecting)
        numbers.refused = len(self._refused)
