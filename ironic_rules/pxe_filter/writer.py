"""Writes what has changed in the plan into the targets: each group once, however often it has changed meanwhile.

Groups are written in slices. The plan is locked only while one is copied, and groups of messages come before all
others, so a message never waits for a complete synchronisation.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Collection, Iterable, Sequence

from oslo_log import log as logging

from ironic_rules.pxe_filter.plan import UNKNOWN_FILE, Plan
from ironic_rules.pxe_filter.statistics import AreaStatistics
from ironic_rules.pxe_filter.targets.base import Batch, InForce, Outcome, Target

LOG = logging.getLogger(__name__)

#: Seconds that a slice may keep a server busy. dnsmasq answers no request before it has read every file that was
#: written, and each can take it 6 ms or more; so the next slice waits if this one took longer, and is smaller if it
#: took twice as long.
_BUSY_S = 0.05
#: Maximum number of seconds to wait for a server to read a slice, and to leave it alone afterwards.
_PATIENCE_S = 1.0


class _Queue:
    """What one target has not got yet: names of groups, and UNKNOWN_FILE for the one about unknown addresses."""

    def __init__(self, target: Target) -> None:
        self.target = target
        #: names of groups of messages, oldest first
        self.urgent: dict[str, None] = {}
        #: the others: ascending of each note, so that which files come first does not depend on chance
        self.others: dict[str, None] = {}
        #: of this round
        self.failed: set[str] = set()
        self.is_broken = False
        self.slice = target.slice_size

    def __len__(self) -> int:
        return len(self.others) + sum(name not in self.others for name in self.urgent)

    def add(self, names: Iterable[str], *, urgent: bool) -> None:
        if urgent:
            self.urgent.update(dict.fromkeys(names))
        else:
            self.others.update(dict.fromkeys(sorted(names)))

    def take(self, number: int) -> list[str]:
        """Remove and return up to ``number`` names, without those that have failed and the one of unknown addresses."""
        left = {UNKNOWN_FILE, *self.failed}
        taken = list(itertools.islice((name for name in self.urgent if name not in left), number))
        left.update(taken)
        taken += itertools.islice((name for name in self.others if name not in left), number - len(taken))
        self._drop(taken)
        return taken

    def take_unknown(self) -> bool:
        """Return whether the statement about unknown addresses must be written, and remove it."""
        if UNKNOWN_FILE in self.failed or not (UNKNOWN_FILE in self.urgent or UNKNOWN_FILE in self.others):
            return False
        self._drop([UNKNOWN_FILE])
        return True

    def _drop(self, names: Iterable[str]) -> None:
        for name in names:
            self.urgent.pop(name, None)
            self.others.pop(name, None)


class Writer:
    """Collects names of groups, and writes their current content.

    :param lock: protects the plan
    """

    def __init__(self, plan: Plan, lock: threading.Lock, targets: Sequence[Target], statistics: AreaStatistics) -> None:
        self._plan = plan
        self._lock = lock
        self._statistics = statistics
        self._queues = [_Queue(target) for target in targets]
        #: held by the thread that uses the targets, which also writes what others add meanwhile; always taken before
        #: the lock of the plan
        self.turn = threading.Lock()

    def note(self, names: Iterable[str], *, urgent: bool = False, target: Target | None = None) -> None:
        """Remember that these groups have to be written. The caller holds the lock of the plan.

        :param urgent: before all others
        :param target: only there
        """
        names = list(names)
        for queue in self._queues:
            if target is None or queue.target is target:
                queue.add(names, urgent=urgent)
        self._statistics.unwritten = sum(map(len, self._queues))

    @property
    def is_behind(self) -> bool:
        """Whether something has not been written yet."""
        return any(map(len, self._queues))

    def write(self) -> None:
        """Write everything that can be written; what cannot remains for the next call."""
        with self.turn:
            problems: dict[Target, Exception] = {}
            with self._lock:
                for queue in self._queues:
                    queue.failed = set()
            left = list(self._queues)
            while left:  # in turn, so that one target does not wait for all files of another
                left = [queue for queue in left if self._write_slice(queue, problems)]
            for queue in self._queues:
                self._report(queue, problems.get(queue.target))

    def observe(self) -> None:
        """Note in the statistics what the servers have taken over."""
        with self.turn:
            states = [_in_force(queue.target) for queue in self._queues]
        waiting = [state.waiting for state in states]
        self._statistics.unread = -1 if None in waiting else sum(number or 0 for number in waiting)
        self._statistics.in_force = not self.is_behind and not any(state.reason for state in states)

    def waits_for(self, target: Target, names: Collection[str]) -> bool:
        """Return whether all these groups are still to be written into the target. The caller holds the lock."""
        return any(queue.target is target and all(name in queue.urgent or name in queue.others for name in names)
                   for queue in self._queues)

    def _write_slice(self, queue: _Queue, problems: dict[Target, Exception]) -> bool:
        """Write some groups; return whether there may be more."""
        with self._lock:
            names = queue.take(queue.slice)
            groups = {name: self._plan.verdicts(name) for name in names}
            unknown = None
            if not names:
                # If unknown addresses were allowed, those whose denial could not be written would be, too.
                is_said = not any(self._plan.has_file(name) for name in queue.failed)
                if (is_said or not self._plan.allows_unknown) and queue.take_unknown():
                    unknown = self._plan.allows_unknown
        if not groups and unknown is None:
            return False
        outcome = _apply(queue.target, Batch(groups, unknown))
        with self._lock:
            failed = outcome.failed | ({UNKNOWN_FILE} if outcome.unknown_failed else set())
            queue.failed |= failed
            queue.add(failed, urgent=False)
            self._statistics.written += outcome.written
            self._statistics.unwritten = sum(map(len, self._queues))
        if outcome.problem is not None:
            problems.setdefault(queue.target, outcome.problem)
        try:
            self._leave_time(queue)
        except Exception as exc:  # noqa: BLE001  (as of ``apply``: the other targets are not to wait for this one)
            problems.setdefault(queue.target, exc)
        return True

    def _leave_time(self, queue: _Queue) -> None:
        """Let the server read what was written, and answer requests for as long as that took."""
        took_s = queue.target.settle(_PATIENCE_S)
        if took_s > 2 * _BUSY_S:
            queue.slice = max(1, queue.slice // 2)
        elif took_s < _BUSY_S:
            queue.slice = min(queue.target.slice_size, queue.slice * 2)
        if took_s > _BUSY_S and queue:
            time.sleep(min(took_s, _PATIENCE_S))

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


def _apply(target: Target, batch: Batch) -> Outcome:
    """Let the target write a batch. With an error that it raises, nothing of the batch counts as written."""
    try:
        outcome = target.apply(batch)
        if not isinstance(outcome, Outcome):
            raise TypeError(f"apply() returned {outcome!r}, which is not an Outcome")
    except Exception as exc:  # noqa: BLE001  (it may be another package's, and the other targets must continue)
        return Outcome(frozenset(batch.groups), batch.allows_unknown is not None, exc, 0)
    return outcome


def _in_force(target: Target) -> InForce:
    try:
        return target.in_force()
    except Exception as exc:  # noqa: BLE001  (as of ``apply``)
        return InForce(None, f"the target cannot tell: {exc!r}")
