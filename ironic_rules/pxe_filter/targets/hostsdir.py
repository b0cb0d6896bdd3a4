"""The target ``hostsdir``: a folder that one dnsmasq watches (dnsmasq(8), ``--dhcp-hostsdir``).

A line ``MAC`` allows a client, ``MAC,ignore`` denies it, and ``*:*:*:*:*:*`` applies to every address without its own
line. A deleted line remains in effect until dnsmasq reloads, so what was written once stays in the files until then.
For each request dnsmasq compares the client with every line that it has read. If addresses without a line are denied
anyway, only the allowed ones are written, and those that were allowed since dnsmasq last reloaded.

dnsmasq looks at every line in its memory for each file that it reads; the lines of the file itself hardly count. So
when many groups change at once, their changed addresses are written into one file, and into the files of the groups
later.

A line in such a file overrides that of the group. It has a tag, and dnsmasq finds lines with a tag before all others,
whatever the order in which it has read them; the tag after ``!`` is never set. Lines that dnsmasq has read remain in
its memory until it reloads. So until then each change of such an address needs another line like that, and the address
is in one of these files.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from oslo_log import log as logging

from ironic_rules.pxe_filter import hostsdir, plan
from ironic_rules.pxe_filter.hostsdir import Hostsdir, Watch, addresses_of, is_override
from ironic_rules.pxe_filter.settings import TargetSettings
from ironic_rules.pxe_filter.targets.base import Batch, Found, InForce, Outcome, Target
from ironic_rules.text import printable

_TAG = "tag:!ironic-pxe-filter"


class Overrides:
    """The override lines in one folder, and in the memory of its dnsmasq.

    :param layout: assigns addresses to groups
    """

    def __init__(self, folder: Hostsdir, layout: plan.Layout) -> None:
        self._folder = folder
        self._layout = layout
        #: by group: address -> whether its line allows it; None: unknown, because others have written it
        self._verdicts: dict[str, dict[str, bool | None]] = {}
        #: addresses of each file, and the file of each address
        self._files: dict[str, set[str]] = {}
        self._file_of: dict[str, str] = {}
        self._next = 0
        #: names of files that are removed if dnsmasq reloads
        self._removed: set[str] = set()

    @property
    def lines(self) -> int:
        """Number of lines in the files."""
        return len(self._file_of)

    @property
    def denied(self) -> int:
        """Number of addresses whose lines do not allow them."""
        return sum(allowed is not True for group in self._verdicts.values() for allowed in group.values())

    @property
    def names(self) -> Set[str]:
        """Names of the files, now and later."""
        return self._files.keys()

    def doubt(self, name: str, addresses: Iterable[str]) -> set[str]:
        """Take note that others, or a filter before, have written a file; return the groups that must be written.

        :param addresses: that are in it, or were
        :raises OSError: some of them are also in another file, which cannot be removed
        """
        self._next = max(self._next, int(name.rpartition("-")[2], 16) + 1)
        mine = {*addresses, *self._files.get(name, ())}
        for other in {self._file_of[mac] for mac in mine if mac in self._file_of} - {name}:
            self._folder.remove(other)
            gone = self._files.pop(other)
            mine |= gone
            for mac in gone:
                del self._file_of[mac]
                self._verdicts[self._layout.file_of(mac)][mac] = None
        self._files[name] = mine
        for mac in mine:
            self._file_of[mac] = name
            self._verdicts.setdefault(self._layout.file_of(mac), {})[mac] = None
        return {self._layout.file_of(mac) for mac in mine}

    def contradicting(self, name: str, pairs: Sequence[tuple[str, bool]], *,
                      deny_others: bool = False) -> list[tuple[str, bool]]:
        """Return those addresses of a group that have an override line with another verdict.

        :param deny_others: addresses that are not in the group any more are denied; otherwise they do not matter
        """
        overrides = self._verdicts.get(name)
        if not overrides:
            return []
        verdicts = dict.fromkeys(overrides, False) | dict(pairs) if deny_others else dict(pairs)
        return [(mac, allowed) for mac, allowed in verdicts.items() if overrides.get(mac, allowed) is not allowed]

    def write(self, changes: Iterable[tuple[str, bool]]) -> int:
        """Write lines for these addresses, unless they have equal ones; return the number of files written.

        :raises OSError: the disk refuses; addresses that are not written count as unknown, and have to be written again
        """
        new = {mac: allowed for mac, allowed in changes
               if self._verdicts.get(self._layout.file_of(mac), {}).get(mac) is not allowed}
        if not new:
            return 0
        before: dict[str, set[str]] = {}
        for mac in new:
            self._verdicts.setdefault(self._layout.file_of(mac), {})[mac] = None
            if mac in self._file_of:
                before.setdefault(self._file_of[mac], set()).add(mac)
        written = 0
        # First, so that a dnsmasq that starts now never finds two lines for an address.
        for name, moved in before.items():
            written += self._keep(name, self._files[name] - moved)
            for mac in moved:
                del self._file_of[mac]
        name = f"changes-{self._next:08x}"
        self._folder.write(name, "".join([_line(mac, allowed) for mac, allowed in new.items()]))
        self._next += 1
        self._files[name] = set(new)
        for mac, allowed in new.items():
            self._file_of[mac] = name
            self._verdicts[self._layout.file_of(mac)][mac] = allowed
        return written + 1

    def _keep(self, name: str, addresses: set[str]) -> bool:
        """Write a file again, with only these addresses."""
        overrides = [(mac, allowed) for mac in sorted(addresses)
                     if (allowed := self._verdicts[self._layout.file_of(mac)][mac]) is not None]
        if overrides:
            changed = self._folder.write(name, "".join([_line(mac, allowed) for mac, allowed in overrides]))
            self._files[name] = addresses
            return changed
        self._folder.remove(name)
        del self._files[name]
        for mac in addresses:
            del self._file_of[mac]
        return True

    def remove(self) -> None:
        """Remove the files, before dnsmasq reloads. The files of all groups say the same; ``restore`` is possible."""
        for name in self._files:
            with contextlib.suppress(OSError):  # what cannot be removed is read again, and remains an override
                self._folder.remove(name)
                self._removed.add(name)

    def forget(self) -> None:
        """Forget what ``remove`` has removed: dnsmasq reloads."""
        for name in self._removed:
            for mac in self._files.pop(name):
                del self._file_of[mac], self._verdicts[self._layout.file_of(mac)][mac]
        self._removed = set()

    def restore(self) -> None:
        """Write the files again that ``remove`` has removed, because dnsmasq did not reload."""
        for name in self._removed:
            with contextlib.suppress(OSError):  # dnsmasq has the lines; they are missing only if it is restarted
                self._keep(name, self._files[name])
        self._removed = set()


def _line(mac: str, allowed: bool) -> str:
    return f"{mac},{_TAG}\n" if allowed else f"{mac},{_TAG},ignore\n"


LOG = logging.getLogger(__name__)

#: Seconds without any progress after which files that dnsmasq has not read are written again, at first and at most.
_OVERDUE_S, _MAX_PATIENCE_S = 5.0, 600.0
#: Seconds between two looks whether waiting for dnsmasq was interrupted.
_LOOK_S = 0.01
#: Maximum number of files of overrides; dnsmasq opens each of them when it starts.
_MAX_OVERRIDE_FILES = 4096


def lines(pairs: Iterable[tuple[str, bool]]) -> str:
    """Return the content of a file that says which addresses are allowed."""
    if isinstance(pairs, plan.Verdicts):
        if not pairs.allowed:
            return ",ignore\n".join([*pairs.macs, ""])
        # No address has such a character. This is faster than to look at every address.
        marked = [f"{mac}!" if mac in pairs.allowed else mac for mac in pairs.macs]
        return ",ignore\n".join([*marked, ""]).replace("!,ignore", "")
    return "".join([f"{mac}\n" if allowed else f"{mac},ignore\n" for mac, allowed in pairs])


class HostsdirTarget(Target):
    """One folder, and the dnsmasq that reads it.

    :param pid_file: the PID file of that dnsmasq; None: it is never made to reload
    :param layout: assigns addresses to files
    :param allowed_only: whether addresses without a line are denied, so that no others have to be
    """

    def __init__(self, path: str, pid_file: str | None, layout: plan.Layout, *, allowed_only: bool = False) -> None:
        self._folder = Hostsdir(path)
        self.name = self._folder.path
        self.lingers = not allowed_only
        self._pid_file = pid_file
        self._layout = layout
        self._allowed_only = allowed_only
        self._watch = Watch()
        self._overrides = Overrides(self._folder, layout)
        #: groups whose files do not have what the overrides say
        self._stale: set[str] = set()
        #: addresses in overrides of a filter with another policy, which are to be denied
        self._left: list[str] = []
        #: names of files that existed at start-up
        self._found: set[str] = set()
        #: names of the files that are to exist
        self._wanted: set[str] = set()
        #: with ``allowed_only``, by file: the addresses that are allowed, those that were, and the latter before a
        #: reload that is not certain yet
        self._allowed: dict[str, set[str]] = {}
        self._denied: dict[str, set[str]] = {}
        self._denied_before: dict[str, set[str]] = {}
        #: number of lines that dnsmasq has in memory
        self._read = 0
        self._process: str | None = None
        #: true if dnsmasq has read lines before this filter was started; their number is unknown
        self._unknown_lines = False
        #: true if a dnsmasq reads what is written
        self._is_heard = False
        #: files that were waited for in vain
        self._missed: set[str] = set()
        #: time at which the unread files were last fewer, and the pause until they are written again
        self._progress: tuple[float, frozenset[str]] = (0.0, frozenset())
        self._patience_s = _OVERDUE_S
        #: true if dnsmasq was started and has not read all files yet
        self._is_starting = False
        self._state: str | None = None
        #: files that could not be written
        self._unwritten: set[str] = set()

    @classmethod
    def make(cls, settings: TargetSettings, layout: plan.Layout) -> list[HostsdirTarget]:
        """Return one for each folder."""
        folders = settings.options.dhcp_hostsdir
        pid_files = settings.options.dnsmasq_pid_file or (None,) * len(folders)
        return [cls(path, pid_file, layout, allowed_only=settings.deny_unknown)
                for path, pid_file in zip(folders, pid_files, strict=True)]

    def open(self) -> Iterable[str]:
        """Lock the folder, and return the addresses in the files that a filter has left in it, in either layout."""
        self._folder.open()
        addresses: list[str] = []
        overridden: list[str] = []
        for name, text in self._folder.read():
            file_addresses = addresses_of(name, text)
            addresses += file_addresses
            if is_override(name):
                self._overrides.doubt(name, file_addresses)
                overridden += file_addresses
            else:
                self._found.add(name)
        foreign = self._folder.foreign_names()
        if foreign:
            LOG.warning("%s has files of other programs, which dnsmasq also reads: %s", self.name,
                        ", ".join(printable(name, 64) for name in foreign[:8]))
        self._observe()
        self._process = self._dnsmasq()
        self._unknown_lines = self._process is not None
        # A dnsmasq that is made to reload before it has read what is new reads that once more, and keeps it twice.
        self._is_heard = self._process is not None
        # Only files that are written again are read before that, of those that a filter has left.
        self._missed = self._found | self._overrides.names
        if self._pid_file is not None:
            self._watch.expect(self._found | self._overrides.names)
        if not self._allowed_only:
            return addresses
        self._deny(addresses)
        self._left = overridden
        return ()

    def peek(self) -> tuple[Sequence[str], str]:
        """Return the addresses in the files, and what the running filter has observed last."""
        state = self._folder.peek_state()
        addresses = list({mac: None for name, text in self._folder.peek() for mac in addresses_of(name, text)})
        if state is None:
            state = "unknown: no filter is running"
        return [] if self._allowed_only else addresses, state or "in effect"

    def _observe(self) -> None:
        try:
            self._watch.close()
            self._watch.open(self.name)
        except OSError as exc:
            LOG.warning("Which files of %s dnsmasq has read cannot be observed: %s", self.name, exc)

    def close(self) -> None:
        """Close the folder; the files remain unchanged."""
        self._watch.close()
        self._folder.close()

    def apply(self, batch: Batch) -> Outcome:
        """Write or remove the files that can be, the one about unknown addresses last."""
        written, problem, failed = 0, None, set()
        changes = [*((mac, False) for mac in self._left), *batch.changes]
        self._watch.begin()
        for name, pairs in batch.groups.items():
            try:
                written += self._write(name, pairs)
            except OSError as exc:
                problem = problem or exc
                failed.add(name)
            else:
                self._stale.discard(name)
                changes += self._overrides.contradicting(name, pairs, deny_others=self._allowed_only)
        changed = {self._layout.file_of(mac) for mac, _ in changes}
        try:
            written += self._overrides.write(changes)
            self._left = []
        except OSError as exc:
            problem = problem or exc
            failed |= changed
        self._stale |= changed - batch.groups.keys()
        unknown_failed = False
        if batch.allows_unknown is not None:
            try:
                written += self._put_unknown(batch.allows_unknown)
            except OSError as exc:
                problem = problem or exc
                unknown_failed = True
        self._unwritten = (self._unwritten - batch.groups.keys() - changed) | failed
        self._count_reads()
        self._repeat(self._watch.doubtful)
        return Outcome(frozenset(failed), unknown_failed, problem, written)

    def _repeat(self, names: Iterable[str]) -> None:
        """Write files again of which it is not known whether dnsmasq has read them."""
        for name in sorted(names):
            # If the disk refuses, the file remains unread, and is repeated later.
            with contextlib.suppress(OSError):
                self._folder.repeat(name)

    def _repeat_overdue(self) -> None:
        """Write the unread files again if dnsmasq runs and has read none of them for long: an event was lost.

        One that is busy is not disturbed: it reads file after file. One that hangs is left alone for longer each time.
        """
        now, unread = time.monotonic(), frozenset(self._watch.unread)
        since, before = self._progress
        if not unread:
            self._patience_s = _OVERDUE_S
        if not unread or self._process is None or not before <= unread or not before:
            self._progress = (now, unread)
        elif now - since > self._patience_s:
            LOG.info("dnsmasq has not read %s files of %s for %d seconds; they are written again", len(unread),
                     self.name, now - since)
            self._repeat(unread)
            self._patience_s = min(2 * self._patience_s, _MAX_PATIENCE_S)
            self._progress = (now, unread)

    def _write(self, name: str, pairs: Sequence[tuple[str, bool]]) -> bool:
        if self._allowed_only:
            allowed = {mac for mac, is_allowed in pairs if is_allowed}
            # Addresses that were allowed in the last version of the file and are not in this one join the denied ones.
            denied = (self._denied.get(name, set()) | self._allowed.get(name, set())) - allowed
            pairs = sorted([(mac, True) for mac in allowed] + [(mac, False) for mac in denied])
        if not pairs:
            self._folder.remove(name)
            self._wanted.discard(name)
            changed = False
        else:
            self._wanted.add(name)
            changed = self._put(name, lines(pairs))
        if self._allowed_only:
            self._allowed[name], self._denied[name] = allowed, denied
        return changed

    def _put(self, name: str, content: str) -> bool:
        changed = self._folder.write(name, content)
        if changed:
            self._missed.discard(name)
        if changed and not self._watch.is_open:
            self._read += self._folder.lines_of(name)
        return changed

    def _put_unknown(self, allowed: bool) -> bool:
        content = lines([(plan.WILDCARD, allowed)])
        try:
            return self._put(plan.UNKNOWN_FILE, content)
        except OSError:
            if allowed:
                raise
            # To deny them must not need space on the disk.
            self._folder.overwrite(plan.UNKNOWN_FILE, content)
            return True

    def _deny(self, addresses: Iterable[str]) -> set[str]:
        """Take note that dnsmasq may have a line for these addresses; return the files to write."""
        names = set()
        for mac in addresses:
            name = self._layout.file_of(mac)
            self._denied.setdefault(name, set()).add(mac)
            names.add(name)
        return names

    def changed_by_others(self) -> Iterator[Found]:
        """Yield the files that were changed, and everything if the folder was replaced by another one."""
        if self._folder.reopen_if_replaced():
            LOG.error("%s was replaced by another folder. A dnsmasq that watches the old one must be restarted",
                      self.name)
            self._observe()
            self._overrides, self._stale = Overrides(self._folder, self._layout), set()
            yield Found("The folder", frozenset(self._wanted), (), unknown=True)
        for name, text in list(self._folder.changed_by_others()):  # all, before some of them are removed here
            # dnsmasq has read the lines, and the last one that it reads is in effect.
            self._folder.forget(name)
            self._folder.forget(plan.UNKNOWN_FILE)
            addresses = addresses_of(name, text)
            groups = self._overrides.doubt(name, addresses) if is_override(name) else {name} - {plan.UNKNOWN_FILE}
            if self._allowed_only:
                groups |= self._deny(addresses)
                addresses = []
            yield Found(f"File {printable(name, 64)}", frozenset(groups), addresses, unknown=True)

    def leftovers(self) -> frozenset[str]:
        """Return the names of files of another layout, and of groups that only overrides are right for."""
        names, self._found = self._found, set()
        return frozenset((names - self._wanted - {plan.UNKNOWN_FILE}) | self._stale)

    @property
    def takes_changes(self) -> bool:
        """True if a dnsmasq runs that can be made to forget the lines, and there are not too many files."""
        return self._process is not None and len(self._overrides.names) < _MAX_OVERRIDE_FILES

    def settle(self, timeout_s: float, interrupted: Callable[[], bool] = lambda: False) -> float:
        """Wait until dnsmasq has read everything, if one has read anything since that was last in vain."""
        self._count_reads()
        if not self._is_heard:
            return 0.0
        began = time.monotonic()
        while self._watch.unread - self._missed and not interrupted():
            rest = began + timeout_s - time.monotonic()
            if rest <= 0:
                self._is_heard = False
                # It is not waited for again: one file that is never read must not delay all the others.
                self._missed = set(self._watch.unread)
                break
            self._watch.wait(min(rest, _LOOK_S))
        self._missed &= self._watch.unread
        self._count_reads()
        return time.monotonic() - began

    def _count_reads(self) -> None:
        """Follow what dnsmasq has in memory."""
        process = self._dnsmasq()
        reads = self._watch.take_reads()
        self._is_heard = self._is_heard or bool(reads)
        if process != self._process:
            self._process, self._unknown_lines = process, False
            self._is_starting = process is not None and bool(self._watch.unread)
            self._read = 0 if process is None else self._folder.lines
            if process is None:
                self._watch.expect(self._folder.names)
            return
        if self._is_starting:
            # It may read everything twice while it starts, but keeps it once.
            self._is_starting = bool(self._watch.unread)
            return
        for name, times in reads.items():
            self._read += times * self._folder.lines_of(name)

    def _dnsmasq(self) -> str | None:
        return None if self._pid_file is None else hostsdir.started(self._pid_file)

    def in_force(self) -> InForce:
        """Return the number of files that dnsmasq has not read since they were written."""
        self._count_reads()
        self._repeat_overdue()
        waiting = len(self._watch.unread)
        if self._unwritten:
            answer = InForce(waiting, f"{len(self._unwritten)} files cannot be written")
        elif not self._watch.is_open or self._watch.lost:
            answer = InForce(None, "it could not be observed which files dnsmasq has read")
        elif self._pid_file is None:
            # Another program may be the one that has read the files.
            answer = InForce(None, "[pxe_filter]dnsmasq_pid_file is not set")
        elif self._process is None:
            answer = InForce(waiting, "no dnsmasq runs with the process id in its PID file")
        else:
            answer = InForce(waiting, f"dnsmasq has not read {waiting} files yet" if waiting else "")
        self._leave(answer)
        return answer

    def _leave(self, answer: InForce) -> None:
        """Leave the answer in the folder for ``--status``."""
        state = answer.reason and f"{'unknown' if answer.waiting is None else 'not in effect'}: {answer.reason}"
        if state != self._state:
            with contextlib.suppress(OSError):  # the disk is full or read-only, which is reported for the files
                self._folder.write_state(state)
                self._state = state

    @property
    def needed(self) -> int:
        """Number of lines that dnsmasq would have in memory after a reload."""
        # With the closed policy, groups do not have lines yet for what overrides allow.
        overrides = self._overrides.denied if self._allowed_only else self._overrides.lines
        return self._folder.lines - sum(map(len, self._denied.values())) - overrides

    @property
    def surplus(self) -> int:
        """Number of lines that dnsmasq has in memory and does not need."""
        return self._read - self.needed

    @property
    def must_reload(self) -> bool:
        """True if dnsmasq has read an unknown number of lines, from a filter before this one."""
        return self._unknown_lines

    def can_reload(self) -> bool:
        """Return whether the PID file names a running dnsmasq."""
        return self._pid_file is not None and hostsdir.running(self._pid_file) is not None

    def prepare_reload(self) -> frozenset[str]:
        """Plan the removal of the lines of addresses that are denied anyway, or that are overridden."""
        self._denied_before, self._denied = self._denied, {}
        return frozenset(self._stale.union(name for name, denied in self._denied_before.items() if denied))

    def reload(self) -> bool:
        """Signal dnsmasq to read all files again."""
        if self._pid_file is None:
            return False
        before = self._read
        if not self._stale:
            self._overrides.remove()
        self._read = 0 if self._watch.is_open else self._folder.lines
        # Before the signal: what is read after it must not be missed.
        self._watch.take_reads()
        self._watch.expect(self._folder.names)
        if not hostsdir.reload(self._pid_file):
            self._read = before
            self._overrides.restore()
            return False
        if not self._stale:
            self._overrides.forget()
        self._denied_before, self._unknown_lines = {}, False
        return True

    def undo_reload(self) -> frozenset[str]:
        """Write the removed lines again."""
        for name, denied in self._denied_before.items():
            self._denied[name] = (self._denied.get(name, set()) | denied) - self._allowed.get(name, set())
        before, self._denied_before = self._denied_before, {}
        return frozenset(before)
