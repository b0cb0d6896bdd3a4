"""Writes changes of the plan into the targets: each group once, however often it has changed since the last time.

Groups are written in slices. The plan is locked only while one is copied, and groups of messages come before all
others, so a message never waits for a complete synchronization. If many groups have changed, a target that takes single
changes gets the changed addresses instead: for some servers a group costs as much as hundreds of addresses.

Servers reload to free addresses without a port, and lines that were read several times.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from oslo_log import log as logging

from ironic_rules.pxe_filter.plan import UNKNOWN_FILE, Plan
from ironic_rules.pxe_filter.statistics import AreaStatistics
from ironic_rules.pxe_filter.targets.base import Batch, InForce, Outcome, Target

LOG = logging.getLogger(__name__)

#: Seconds that a slice may keep a server busy, or a message waiting. dnsmasq answers no request before it has read
#: every file that was written; so it is left alone for as long as it took, and the next slice is smaller if it took
#: twice as long.
_BUSY_S = 0.02
#: Maximum number of seconds to wait for a server to read a slice, and to leave it alone afterwards.
_PATIENCE_S = 1.0
#: Seconds for which messages are collected for single changes while something else is written.
_COLLECT_S = 0.01
#: Seconds between two looks for such messages while a server is left alone.
_LOOK_S = 0.005
#: More changed groups than this are written as single changes, and at most so many addresses (of whole groups) at once.
_FEW, _CHANGES = 8, 500

#: name of a group -> its addresses that have changed; None: it is written as a whole
_Groups = dict[str, set[str] | None]


class _Taken(NamedTuple):
    """The next thing to write: whole groups, or single addresses of others, with the names of these."""

    groups: list[str]
    addresses: list[str]
    groups_of_addresses: list[str]


class _Queue:
    """The backlog of one target: names of groups, and UNKNOWN_FILE for the one about unknown addresses."""

    def __init__(self, target: Target) -> None:
        self.target = target
        #: groups of messages since the last call of ``collect``, and of those before, oldest first
        self.noted: _Groups = {}
        self.urgent: _Groups = {}
        #: the others: ascending of each note, so that which files come first does not depend on chance
        self.others: _Groups = {}
        #: groups that failed in this round
        self.failed: set[str] = set()
        #: true if an address of those is to be denied
        self.lacks_denial = False
        self.is_broken = False
        #: true if unknown addresses are denied because a denial could not be written; None: they cannot be denied
        self.is_closed: bool | None = False
        #: maximum numbers of groups, and of single addresses of others than messages, that are written at once
        self.slice, self.portion = target.slice_size, _CHANGES
        #: seconds that the server has taken so far to read the last slice; None: it has read it
        self.reading_s: float | None = None
        #: time from which the server has had time for requests
        self.rested_at = 0.0
        self._collected_at = 0.0

    def __len__(self) -> int:
        return len(self.others) + sum(name not in self.others for name in {**self.noted, **self.urgent})

    def has(self, name: str) -> bool:
        """Return whether the group is to be written."""
        return name in self.noted or name in self.urgent or name in self.others

    def add(self, names: Iterable[str]) -> None:
        """Take note of groups in which anything may have changed."""
        self.others.update(dict.fromkeys(sorted(names)))

    def add_changes(self, names: Iterable[str], addresses: Mapping[str, set[str]],
                    of_message: Mapping[str, set[str]]) -> None:
        """Take note of groups in which only some addresses have changed.

        :param addresses: these, by group
        :param of_message: by group, the addresses of a message; they come first if they are still to be written
        """
        for name in names if of_message else sorted(names):
            changed = addresses.get(name, set())
            if of_message and name in self.others:
                waiting, sent = self.others[name], of_message.get(name, set())
                changed = changed | (sent if waiting is None else waiting & sent)
            if changed or name == UNKNOWN_FILE:
                _add(self.noted if of_message else self.others, name, changed)

    def collect(self) -> None:
        """From now on, groups of messages so far are urgent."""
        for name, addresses in self.noted.items():
            _add(self.urgent, name, addresses)
        self.noted = {}
        self._collected_at = time.monotonic()

    def is_hurried(self) -> bool:
        """Return whether something of a message can be written now."""
        is_collected = not self.target.takes_changes or time.monotonic() >= self._collected_at + _COLLECT_S
        return any(name != UNKNOWN_FILE and name not in self.failed
                   for name in itertools.chain(self.urgent, self.noted if is_collected else ()))

    def take(self) -> _Taken:
        """Remove and return what to write next, without what has failed and the statement about unknown addresses."""
        if self.target.takes_changes and len(self.urgent) + len(self.others) > _FEW:
            names, addresses = self._take_changes()
            if addresses:
                return _Taken([], addresses, names)
        skipped = {UNKNOWN_FILE, *self.failed}
        taken = list(itertools.islice((name for name in self.urgent if name not in skipped), self.slice))
        skipped.update(taken)
        taken += itertools.islice((name for name in self.others if name not in skipped), self.slice - len(taken))
        for name in taken:
            self._drop(name)
        return _Taken(taken, [], [])

    def _take_changes(self) -> tuple[list[str], list[str]]:
        names: list[str] = []
        addresses: set[str] = set()
        for groups, limit in ((self.urgent, _CHANGES), (self.others, self.portion)):
            if names:
                break
            complete = []
            for name, changed in groups.items():
                if len(addresses) >= limit:
                    break
                if changed is not None and name != UNKNOWN_FILE and name not in self.failed:
                    complete.append(name)
                    addresses |= changed
            for name in complete:
                del groups[name]
            names += complete
        return names, sorted(addresses)

    def take_unknown(self) -> bool:
        """Return whether the statement about unknown addresses must be written, and remove it."""
        if UNKNOWN_FILE in self.failed or not (UNKNOWN_FILE in self.urgent or UNKNOWN_FILE in self.others):
            return False
        self._drop(UNKNOWN_FILE)
        return True

    def _drop(self, name: str) -> None:
        self.urgent.pop(name, None)
        self.others.pop(name, None)


def _add(groups: _Groups, name: str, addresses: set[str] | None) -> None:
    waiting = groups.get(name, set())
    groups[name] = None if addresses is None or waiting is None else waiting | addresses


def _by_group(plan: Plan, addresses: Iterable[str]) -> dict[str, set[str]]:
    groups: dict[str, set[str]] = {}
    for mac in addresses:
        groups.setdefault(plan.layout.file_of(mac), set()).add(mac)
    return groups


class Writer:
    """Collects names of groups, and writes their current content.

    :param lock: protects the plan
    """

    def __init__(self, plan: Plan, lock: threading.Lock, targets: Sequence[Target], statistics: AreaStatistics) -> None:
        self._plan = plan
        self._lock = lock
        self._statistics = statistics
        self._queues = [_Queue(target) for target in targets]
        #: held by the thread that uses the targets, which also writes what others add; always taken before
        #: the lock of the plan
        self.turn = threading.Lock()

    def note(self, names: Iterable[str], *, target: Target | None = None) -> None:
        """Remember that these groups have to be written. The caller holds the lock of the plan.

        :param target: only there
        """
        names = list(names)
        for queue in self._queues:
            if target is None or queue.target is target:
                queue.add(names)
        self._statistics.unwritten = sum(map(len, self._queues))

    def note_changes(self, names: Iterable[str], addresses: Iterable[str], announced: Collection[str] = ()) -> None:
        """Remember that some addresses of these groups have to be written. The caller holds the lock of the plan.

        :param addresses: the only ones that have changed
        :param announced: the addresses of a message, which come before all others; the groups are theirs
        """
        names = list(names)
        changed, of_message = _by_group(self._plan, addresses), _by_group(self._plan, announced)
        for queue in self._queues:
            queue.add_changes(names, changed, of_message)
        self._statistics.unwritten = sum(map(len, self._queues))

    @property
    def is_behind(self) -> bool:
        """True if something has not been written yet, other than what the latest messages have changed."""
        return any(queue.urgent or queue.others for queue in self._queues)

    def write(self) -> bool:
        """Write everything that can be written; what cannot remains for the next call. Return whether all could be.

        Messages that are received during this are also written, unless nothing else is left: then they are collected
        until the next call.
        """
        with self.turn:
            problems: dict[Target, Exception] = {}
            with self._lock:
                for queue in self._queues:
                    queue.failed, queue.lacks_denial = set(), False
                    queue.collect()
            pending = list(self._queues)
            while pending:  # in turn, so that one target does not wait for all files of another
                pending = [queue for queue in pending if self._write_slice(queue, problems)]
            for queue in self._queues:
                self._report(queue, problems.get(queue.target))
            return not any(queue.failed for queue in self._queues)

    def observe(self) -> None:
        """Note in the statistics what the servers have taken over."""
        with self.turn:
            states = [_in_force(queue.target) for queue in self._queues]
        waiting = [state.waiting for state in states]
        self._statistics.unread = -1 if None in waiting else sum(number or 0 for number in waiting)
        self._statistics.in_force = not any(map(len, self._queues)) and not any(state.reason for state in states)

    def waits_for(self, target: Target, names: Collection[str]) -> bool:
        """Return whether all these groups are still to be written into the target. The caller holds the lock."""
        return any(queue.target is target and all(map(queue.has, names)) for queue in self._queues)

    def _write_slice(self, queue: _Queue, problems: dict[Target, Exception]) -> bool:
        """Write some groups; return whether there may be more."""
        self._leave_time(queue, problems)
        with self._lock:
            is_urgent = queue.is_hurried()
            if is_urgent and not queue.urgent and (queue.others or queue.reading_s is not None):
                queue.collect()
            portion = queue.take()
            groups = {name: self._plan.verdicts(name) for name in portion.groups}
            changes = [(mac, allowed) for mac in portion.addresses if (allowed := self._plan.verdict(mac)) is not None]
            unknown = None
            if not portion.groups and not portion.addresses:
                unknown = self._take_unknown(queue)
        if not groups and not changes and unknown is None:
            return bool(portion.addresses) or queue.reading_s is not None
        began = time.monotonic()
        outcome = _apply(queue.target, Batch(groups, unknown, changes), portion.groups_of_addresses)
        with self._lock:
            failed = outcome.failed | ({UNKNOWN_FILE} if outcome.unknown_failed else set())
            queue.failed |= failed
            queue.add(failed)
            queue.lacks_denial |= any(not allowed for name in outcome.failed for _, allowed in groups.get(name, ()))
            queue.lacks_denial |= bool(outcome.failed) and any(not allowed for _, allowed in changes)
            if unknown is not None:
                self._note_unknown(queue, unknown, is_written=not outcome.unknown_failed)
            self._statistics.written += outcome.written
            self._statistics.unwritten = sum(map(len, self._queues))
        if outcome.problem is not None:
            problems.setdefault(queue.target, outcome.problem)
        queue.reading_s = queue.reading_s or 0.0
        took_s = time.monotonic() - began
        if not is_urgent and took_s > 2 * _BUSY_S and self._is_hurried(queue):  # a message has waited for this
            queue.slice, queue.portion = max(1, queue.slice // 2), max(1, queue.portion // 2)
        elif changes and took_s < _BUSY_S:
            queue.portion = min(_CHANGES, queue.portion * 2)
        if is_urgent:
            # Nothing may be urgent for so long that the server cannot read it, or has no time for requests.
            self._settle(queue, problems)
            if queue.reading_s is None and time.monotonic() - began > 2 * _BUSY_S:
                time.sleep(max(queue.rested_at - time.monotonic(), 0))
        return True

    def _take_unknown(self, queue: _Queue) -> bool | None:
        """Return the verdict on unknown addresses to write; None: nothing to write. The caller holds the lock.

        If they were allowed, those whose denial could not be written would be, too. So they are not before all else is
        written; and where they are, they are denied when a denial cannot be written.
        """
        is_said = not any(self._plan.has_file(name) for name in queue.failed)
        if is_said or not self._plan.allows_unknown:
            return self._plan.allows_unknown if queue.take_unknown() else None
        is_to_close = queue.lacks_denial and not queue.is_closed and UNKNOWN_FILE not in queue.failed
        return False if is_to_close else None

    def _note_unknown(self, queue: _Queue, allowed: bool, *, is_written: bool) -> None:
        """Take note of what was written about unknown addresses. The caller holds the lock."""
        before, is_closing = queue.is_closed, allowed != self._plan.allows_unknown
        if is_closing:
            # Unknown addresses are allowed again when all else is written.
            queue.add({UNKNOWN_FILE})
            queue.is_closed = True if is_written else None
        elif is_written:
            queue.is_closed = False
        self._statistics.closed = sum(other.is_closed is True for other in self._queues)
        if queue.is_closed == before:
            return
        if queue.is_closed is None:
            LOG.critical("%s allows unknown addresses, and that cannot be changed, although addresses that are to be "
                         "denied are unknown there: machines in use may boot the inspection image", queue.target.name)
        elif queue.is_closed:
            LOG.error("Unknown addresses are denied by %s until it can be written: addresses that are to be denied are "
                      "unknown there", queue.target.name)
        else:
            LOG.info("%s has all addresses that are to be denied again; unknown ones are %s", queue.target.name,
                     "allowed" if allowed else "denied")

    def _leave_time(self, queue: _Queue, problems: dict[Target, Exception]) -> None:
        """Let the server read what was written, and answer requests for as long as that took; messages do not wait."""
        if queue.reading_s is not None and not self._is_hurried(queue):
            self._settle(queue, problems, lambda: self._is_hurried(queue))
        while queue.others and (rest_s := queue.rested_at - time.monotonic()) > 0 and not self._is_hurried(queue):
            time.sleep(min(rest_s, _LOOK_S))

    def _is_hurried(self, queue: _Queue) -> bool:
        with self._lock:
            return queue.is_hurried()

    def _settle(self, queue: _Queue, problems: dict[Target, Exception], interrupted: Callable[[], bool] | None = None
                ) -> None:
        """Wait until the server has read what was written, and decide how much it is given next."""
        assert queue.reading_s is not None
        is_interrupted = False
        try:
            if interrupted is not None and queue.target.takes_changes:
                queue.reading_s += queue.target.settle(_PATIENCE_S, interrupted)
                is_interrupted = interrupted()
            else:
                queue.reading_s += queue.target.settle(_PATIENCE_S)
        except Exception as exc:  # noqa: BLE001  (as of ``apply``: the other targets are not to wait for this one)
            problems.setdefault(queue.target, exc)
        if is_interrupted:
            return
        took_s, queue.reading_s = queue.reading_s, None
        if took_s > 2 * _BUSY_S:
            queue.slice = max(1, queue.slice // 2)
        elif took_s < _BUSY_S:
            queue.slice = min(queue.target.slice_size, queue.slice * 2)
        queue.rested_at = time.monotonic() + min(took_s, _PATIENCE_S)

    def _report(self, queue: _Queue, problem: Exception | None) -> None:
        if problem is not None:
            self._statistics.write_errors += 1
            if not queue.is_broken:
                expected = isinstance(problem, OSError)
                LOG.error("Cannot write into %s: %s. %s files are not up to date; writing them is retried",
                          queue.target.name, problem if expected else repr(problem), len(queue),
                          exc_info=None if expected else problem)
            queue.is_broken = True
        elif queue.is_broken:
            LOG.info("%s can be written again and is up to date", queue.target.name)
            queue.is_broken = False


def _apply(target: Target, batch: Batch, groups_of_changes: Sequence[str]) -> Outcome:
    """Let the target write a batch. With an error that it raises, nothing of the batch counts as written.

    :param groups_of_changes: names of the groups whose addresses are in ``changes``
    """
    try:
        outcome = target.apply(batch)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"apply() returned {outcome!r}, which is not an Outcome")
    except Exception as exc:  # noqa: BLE001  (it may be another package's, and the other targets must continue)
        return Outcome(frozenset((*batch.groups, *groups_of_changes)), batch.allows_unknown is not None, exc, 0)
    return outcome


def _in_force(target: Target) -> InForce:
    try:
        return target.in_force()
    except Exception as exc:  # noqa: BLE001  (as of ``apply``)
        return InForce(None, f"the target cannot tell: {exc!r}")


#: The cost of a request grows with the lines in the server's memory, so it reloads when more are superfluous than
#: needed; but not for fewer than this, which cost less than a millisecond.
_FEW_RELOADS = 1000
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
        #: true if addresses whose port was deleted before start-up must still be removed
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
            target.surplus + gone > min(self._after, max(target.needed, _FEW_RELOADS)) for target in self._targets)

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
            signalled = [target.reload() for target in self._targets]
        self._fails = not all(signalled)
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
