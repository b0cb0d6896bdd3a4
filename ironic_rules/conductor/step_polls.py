"""Polling of hardware that carries out steps by itself, without a worker and without the lock of the node.

The polls are in the database (:mod:`ironic_rules.steps.procedures`), so every ``[conductor]step_poll_interval``
seconds one conductor of the group polls the hardware of all waiting nodes, in threads that do nothing else. Most steps
take less than that: the conductor that began one also polls soon, with growing pauses. A poll that ends resumes its
node in workers of their own, and the outcome is stored in the same transaction; so nothing is lost if this process
dies.
"""

from __future__ import annotations

import functools
import heapq
import queue
import threading
import time
from collections.abc import Callable

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules import context
from ironic_rules.conductor import notices, state_machine
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import Lane
from ironic_rules.db import clock, node_queries, nodes
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import HardwareFailed, IronicRulesError, NodeLocked, NodeNotFound, NoFreeWorker, identified
from ironic_rules.models import secrets, states
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.internal_keys import STEP_POLL
from ironic_rules.models.known_secrets import KNOWN
from ironic_rules.models.task import Task
from ironic_rules.steps import procedures
from ironic_rules.steps.procedures import Poll

LOG = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.25
_GROWTH = 1.5
_PURPOSE = "hardware: step ended"
#: Seconds after which a thread that polls is not counted any more: its BMC answers too slowly for every time-out, and
#: must not keep the threads from the others.
_HELD_S = 120.0
#: Maximum number of such threads, in multiples of ``[conductor]step_poll_workers``.
_MOST_HELD = 4


class StepPolls:
    """Polls the hardware of the nodes of one conductor's group; at most ``[conductor]step_poll_workers`` at once."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._guard = threading.Condition()
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        #: the nodes that are being polled or wait for a thread
        self._busy: set[int] = set()
        #: times at which the polls in progress began, by node
        self._began: dict[int, float] = {}
        self._threads = 0
        self._soon: list[tuple[float, int, float]] = []
        self._scheduler: threading.Thread | None = None
        self._stopped = False

    def stop(self) -> None:
        """Begin no further polls. Those in progress end in their threads, without effect."""
        with self._guard:
            self._stopped = True
            self._guard.notify_all()

    def poll_all(self) -> int:
        """Begin to poll the hardware of every waiting node of the group; return how many."""
        count = 0
        for page in node_queries.polled_pages(self._conductor.db, self._conductor.group, STEP_POLL):
            for row in page:
                count += self._begin(row.id, functools.partial(self._poll, row))
        return count

    def wait(self, timeout_s: float | None = None) -> bool:
        """Return whether the polls that have begun are over, or become so within ``timeout_s`` seconds."""
        with self._guard:
            return self._guard.wait_for(lambda: not self._busy, timeout_s)

    def expect(self, node_id: int, pause_s: float = _FIRST_PAUSE_S) -> None:
        """Poll the hardware of a node after ``pause_s`` seconds, and again, until it is the turn of the rounds."""
        if pause_s >= self._conductor.conf.conductor.step_poll_interval:
            return
        with self._guard:
            heapq.heappush(self._soon, (time.monotonic() + pause_s, node_id, pause_s))
            if self._scheduler is None:
                self._scheduler = threading.Thread(target=self._schedule, name="step-polls", daemon=True)
                self._scheduler.start()
            self._guard.notify_all()

    def _schedule(self) -> None:
        while True:
            with self._guard:
                while not self._stopped and (not self._soon or self._soon[0][0] > time.monotonic()):
                    self._guard.wait(self._soon[0][0] - time.monotonic() if self._soon else None)
                if self._stopped:
                    return
                _, node_id, pause_s = heapq.heappop(self._soon)
            self._begin(node_id, functools.partial(self._poll_soon, node_id, pause_s))

    def _poll_soon(self, node_id: int, pause_s: float) -> None:
        row = node_queries.polled_node(self._conductor.db, node_id)
        # None: the node is locked or waits no longer. The lock may be that of the work that has just begun to wait.
        if row is None or not self._poll(row):
            self.expect(node_id, pause_s * _GROWTH)

    def _begin(self, node_id: int, work: Callable[[], object]) -> bool:
        """Let a thread work for a node, unless one does already."""

        def job() -> None:
            with self._guard:
                self._began[node_id] = time.monotonic()
            try:
                work()
            except Exception:  # a node that cannot be polled must not end the thread; the next round tries again
                LOG.exception("The hardware of node id %s cannot be polled", node_id)
            finally:
                with self._guard:
                    self._busy.discard(node_id)
                    self._began.pop(node_id, None)
                    self._guard.notify_all()

        with self._guard:
            if self._stopped:
                return False
            begins = node_id not in self._busy
            if begins:
                self._busy.add(node_id)
                self._waiting.put(job)
            most = self._conductor.conf.conductor.step_poll_workers
            held = min(self._held(), _MOST_HELD * most)
            if self._threads - held < min(most, len(self._busy) - held):
                self._threads += 1
                threading.Thread(target=self._work, name="step-poll", daemon=True).start()
        return begins

    def _held(self) -> int:
        """Return how many threads are held by BMCs; the caller has the guard."""
        before = time.monotonic() - _HELD_S
        return sum(began < before for began in self._began.values())

    def _work(self) -> None:
        while True:
            self._waiting.get()()
            with self._guard:
                if self._threads - self._held() > self._conductor.conf.conductor.step_poll_workers:
                    self._threads -= 1
                    return

    def _poll(self, row: Row) -> bool:
        """Ask the hardware of a node; return whether its step has ended, or it does not wait (any more)."""
        poll = procedures.pending_poll(row.driver_internal_info)
        if self._stopped or poll is None or poll.ended:
            return True
        if poll.interface == procedures.POLL_CLOCK:
            return clock.now() >= poll.until and self._resume(row, poll, None)
        state = self._ask(row, poll)
        if state is None:
            return self._resume(row, poll, None)
        if isinstance(state, HardwareFailed):
            return self._resume(row, poll, identified(state))
        if clock.now() >= poll.until:
            return self._resume(row, poll, procedures.overdue_poll(poll, str(state)))
        return False

    def _ask(self, row: Row, poll: Poll) -> str | Exception | None:
        """Return None if the hardware is done, the text about what is missing, or why that is not known."""
        task = Task(NodeDraft(row._asdict()), context=context.admin())
        KNOWN.learn(task.node.driver_info)
        try:
            state: str | None = self._conductor.hardware.interface(task.node, poll.interface).poll(task, poll.what)
        except IronicRulesError as exc:
            LOG.debug("The hardware of node %s cannot be asked now: %s", row.uuid, exc)
            return exc
        except Exception as exc:  # a BMC may answer anything
            LOG.info("The hardware of node %s sent an invalid response", row.uuid, exc_info=True)
            return IronicRulesError(f"it sent an invalid response ({type(exc).__name__})")
        return state

    def _resume(self, row: Row, poll: Poll, error: str | None) -> bool:
        """Store how a step has ended and continue the node; return false if it is locked now."""
        conductor, lock = self._conductor, self._conductor.new_lock(row.id)
        text = None if error is None else secrets.message(error)

        def store(conn: sa.Connection) -> bool:
            # A request for the node has priority; this is repeated.
            if not nodes.is_lockable(conn, row.id):
                raise NodeLocked(node=row.uuid, host="an unfinished transaction of the database")
            locked = nodes.reserve(conn, lock, _PURPOSE)
            transition = states.after_event(locked, "resume")
            if transition is None or not poll.is_same(procedures.pending_poll(locked.driver_internal_info)):
                nodes.release(conn, lock)
                return False
            nodes.update_locked(conn, lock,
                                {"driver_internal_info": procedures.end_poll(locked.driver_internal_info, text),
                                             **state_machine.state_values(transition)})
            notices.provision(conn, locked, "resume")
            return True

        try:
            with conductor.workers.take(row.id, lane=Lane.POLLS) as slot:
                if conductor.db.write(store):
                    slot.run(state_machine.run, conductor, lock, context.admin())
        except (NoFreeWorker, NodeLocked):
            return False
        except NodeNotFound:
            pass
        return True
