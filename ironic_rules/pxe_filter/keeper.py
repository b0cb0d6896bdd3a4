"""Keeps the files in accordance with the plan, and the plan with the database and the messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Sequence

from oslo_log import log as logging

from ironic_rules.db import pxe_filter as records
from ironic_rules.db.session import Database
from ironic_rules.pxe_filter import dnsmasq, plan, report
from ironic_rules.pxe_filter.hostsdir import Hostsdir
from ironic_rules.pxe_filter.settings import FilterSettings
from ironic_rules.pxe_filter.statistics import Statistics
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: Maximum number of refused addresses that are remembered, to log each only once.
_MAX_REFUSED = 10_000


class Keeper:
    """The plan, and the folders with its files.

    The database is read without the lock, so that messages are processed meanwhile; for the addresses of such messages,
    what was read may be older and is ignored. ``sync`` may be called from one thread, ``tell`` from any.
    """

    def __init__(self, settings: FilterSettings, db: Database) -> None:
        self.statistics = Statistics()
        self._settings = settings
        self._db = db
        self._folders = [Hostsdir(path) for path in settings.folders]
        self._plan = plan.Plan(plan.Layout(settings.files), deny_unknown=settings.deny_unknown,
                               discovery=settings.discovery)
        self._reader = records.ChangeReader()
        self._lock = threading.Lock()
        #: addresses of messages since the last query of the database
        self._recent: set[str] = set()
        #: ids of nodes of such messages whose change was read at the same time: which one is newer is unknown
        self._unsure: set[int] = set()
        #: files to write, by folder; those that could not be written remain
        self._unwritten: dict[Hostsdir, set[str]] = {folder: set() for folder in self._folders}
        self._broken: set[Hostsdir] = set()
        self._refused: set[str] = set()
        #: whether the plan was filled from the database
        self._filled = False
        self._synced = False
        #: when all ports were read; None: they must be read
        self._read_all_at: float | None = None
        self._reload_fails = False
        #: names of files that existed at start-up
        self._found: set[str] = set()
        #: whether addresses whose port was deleted before start-up must still be removed, by a reload of dnsmasq
        self._purges = True

    def open(self) -> None:
        """Open the folders and read the files that a filter has left in them, in either layout.

        :raises ConfigurationError: a folder is missing, not writable, or used by another filter
        """
        for folder in self._folders:
            folder.open()
            for name, text in folder.read():
                self._found.add(name)
                self._plan.remember(plan.addresses_of(name, text))
            foreign = folder.foreign_names()
            if foreign:
                LOG.warning("%s has files of other programs, which dnsmasq also reads: %s", folder.path,
                            ", ".join(printable(name, 64) for name in foreign[:8]))

    def close(self) -> None:
        """Close the folders; the files remain unchanged."""
        for folder in self._folders:
            folder.close()

    @property
    def is_behind(self) -> bool:
        """Whether files could not be written."""
        return any(self._unwritten.values())

    def tell(self, allow: Sequence[str], deny: Sequence[str]) -> None:
        """Apply a message about addresses (normalised) to the plan, and write the files."""
        with self._lock:
            self.statistics.messages += 1
            self._recent.update(allow, deny)
            dirty = self._plan.tell(allow, deny)
            # Before the ports have been read, the other addresses in those files are not known.
            if self._filled:
                self._write(dirty)

    def retry(self) -> None:
        """Write the files that could not be written before."""
        with self._lock:
            self._write(())

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
                self._reload(first)
            self._count(kind, time.monotonic() - began)
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
        files: plan.Files | None = None
        with self._db.reader() as conn:
            changed = None if due else self._reader.changed(conn)
            if changed is None:
                self._reader.begin(conn)
            inspecting = set(records.on_inspection(conn, self._settings.interfaces))
            if changed is None:
                files = self._plan.layout.arrange(records.all_ports(conn), refused)
            else:
                asked = changed | (known ^ inspecting) | self._unsure
                ports = records.ports_of(conn, asked)
        with self._lock:
            if files is not None:
                dirty = self._plan.replace(files, inspecting, self._recent)
                self._read_all_at = time.monotonic()
            else:
                dirty = self._plan.update(changed or (), ports, inspecting, self._recent, refused)
            if periodic:
                dirty |= self._plan.forget_told(self._recent)
            subjects = {self._plan.node_of(mac) or plan.GONE for mac in self._recent} - {plan.GONE}
            self._unsure = subjects if changed is None else subjects & asked
            self._filled = True
            self._write(dirty)
        self._refuse(refused, everything=files is not None)
        return "incremental" if files is None else "full"

    def _write(self, names: Iterable[str]) -> None:
        """Write the files, and those that could not be written before, into every folder that is writable."""
        names = set(names)
        for folder, unwritten in self._unwritten.items():
            unwritten |= names
            problem = self._write_into(folder, unwritten)
            if problem is not None:
                self.statistics.write_errors += 1
                if folder not in self._broken:
                    LOG.error("Cannot write into %s: %s. %s files are not up to date; writing them is retried",
                              folder.path, problem, len(unwritten))
                self._broken.add(folder)
            elif folder in self._broken:
                LOG.info("%s can be written again and is up to date", folder.path)
                self._broken.discard(folder)
        self.statistics.unwritten = sum(map(len, self._unwritten.values()))
        if self._synced and self.statistics.allows_unknown != self._plan.allows_unknown:
            LOG.info("Unknown addresses are %s from now on", "allowed" if self._plan.allows_unknown else "denied")
        self.statistics.allows_unknown = self._plan.allows_unknown

    def _write_into(self, folder: Hostsdir, unwritten: set[str]) -> OSError | None:
        """Write the files that can be written, and remove them from ``unwritten``; return the first error."""
        problem: OSError | None = None
        is_said = True  # whether all files about single addresses were written
        # In this order: the files about single addresses come before the one about unknown addresses.
        for name in sorted(unwritten):
            if not is_said and name == plan.UNKNOWN_FILE and self._plan.allows_unknown:
                break  # it would allow those whose denial could not be written
            try:
                if self._plan.has_file(name):
                    self.statistics.written += folder.write(name, self._plan.content(name))
                else:
                    folder.remove(name)
            except OSError as exc:
                problem = problem or exc
                is_said = is_said and not self._plan.has_file(name)
            else:
                unwritten.discard(name)
        return problem

    def _heal(self) -> None:
        """Repair files that other processes have changed."""
        for folder in self._folders:
            dirty: set[str] = set()
            try:
                if folder.reopen_if_replaced():
                    LOG.error("%s was replaced by another folder. A dnsmasq that watches the old one must be restarted",
                              folder.path)
                    dirty |= self._plan.files
                for name, text in folder.changed_by_others():
                    if name in self._unwritten[folder]:
                        continue
                    LOG.warning("File %s of %s was changed by another process; it is written again",
                                printable(name, 64), folder.path)
                    self.statistics.healed += 1
                    # dnsmasq has read the lines, and the last one that it reads is in effect.
                    dirty |= {name, plan.UNKNOWN_FILE} | self._plan.remember(plan.addresses_of(name, text))
            except OSError as exc:
                LOG.error("Cannot read %s: %s", folder.path, exc)
                continue
            for name in dirty:
                folder.forget(name)
            if dirty:
                self._write(dirty)

    def _remove_leftovers(self) -> None:
        """Delete files of another layout, once their content is in the files of this one."""
        if self._found and not self.is_behind:
            found, self._found = self._found, set()
            self._write({name for name in found if not self._plan.has_file(name)})

    def _reload(self, first: bool) -> None:
        """Make dnsmasq reload, to free addresses that have no port, and lines that it has read several times."""
        pid_files = self._settings.pid_files
        surplus = max(folder.lines for folder in self._folders) - len(self._plan) + self._plan.gone
        self._purges = self._purges and self._plan.gone > 0
        due = self._purges or surplus > self._settings.reload_after
        if not pid_files or not due or self.is_behind:
            return
        absent = [pid_file for pid_file in pid_files if dnsmasq.running(pid_file) is None]
        if absent:
            # At start-up, dnsmasq may be waiting for the filter.
            if not first and not self._reload_fails:
                LOG.warning("No dnsmasq runs with the process id in %s; addresses without a port remain in the files",
                            ", ".join(absent))
            self._reload_fails = not first
            return
        gone = self._plan.gone_macs()
        self._write(self._plan.forget_gone())
        self._reload_fails = not dnsmasq.reload(pid_files)
        if self._reload_fails or self.is_behind:
            self._write(self._plan.remember(gone))
            return
        for folder in self._folders:
            folder.lines = len(self._plan)
        self._purges = False
        self.statistics.reloads += 1
        LOG.info("dnsmasq was signalled to reload; %s addresses without a port are removed", len(gone))

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
