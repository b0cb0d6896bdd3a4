"""The threads that work on nodes: a bounded pool with a bounded queue, one piece of work per node.

Code of a plug-in that does not end within its deadline would keep its thread for good. A watchdog looks at what each
worker does, writes such a worker off and starts another one in its place. A thread cannot be ended from outside: when
it returns after all, ``Watch.end`` raises in it before anything is saved.

The threads are in lanes. Requests of clients have one lane, resumed work and the ends of waits have one each: their
machines are often those that do not reply, and then other nodes' requests do not wait for them. Operations on many
nodes have one, so that they leave the rest to others. Nodes whose hardware has finished a step continue in one, too:
hundreds of them may do so at the same moment.
"""

from __future__ import annotations

import contextlib
import enum
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from ironic_rules import context, tracing
from ironic_rules.context import RequestContext
from ironic_rules.exceptions import NoFreeWorker
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models import task
from ironic_rules.models.task import Doing, Watch
from ironic_rules.text import forget_locals

LOG = logging.getLogger(__name__)

#: Seconds that a request waits for a thread that has released the node's lock but has not ended yet.
PATIENCE_S = 1.0
#: Seconds between two looks of the watchdog, at most: by so much a deadline can be exceeded.
_LOOK_EVERY_S = 1.0
#: Looks within the shortest deadline, at least.
_LOOKS = 5


def limits_s(conf: cfg.ConfigOpts) -> dict[str, float]:
    """Return the seconds that code of each kind of ``models.task`` may take; 0: no limit."""
    return {task.HOOK: conf.inspector.hook_timeout, task.ACTION: conf.inspection_rules.action_timeout,
            task.STEP: conf.conductor.step_timeout, task.WORK: conf.conductor.work_timeout}


class Lane(enum.Enum):
    """The purpose of a slot: each has its own threads and its own queue."""

    REQUESTS = "requests"
    RECOVERY = "recovery"
    TIMEOUTS = "timeouts"
    OPERATIONS = "operations"
    POLLS = "polls"


class _Threads:
    """The threads and the queue of a lane."""

    __slots__ = ("most", "number", "queued", "running", "size", "taken", "waiting")

    def __init__(self, size: int, queue_size: int) -> None:
        self.size = size
        self.most = size + queue_size
        self.waiting: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        #: numbers of taken slots, of those that wait for a thread, of running ones, and of threads
        self.taken = self.queued = self.running = self.number = 0


class _Job:
    """A piece of work on a node."""

    __slots__ = ("args", "context", "node_id", "seen", "since", "threads", "watch", "work")

    def __init__(self, threads: _Threads, node_id: int, work: Callable[..., None], args: tuple[object, ...],
                 current: RequestContext | None) -> None:
        self.threads = threads
        self.node_id = node_id
        self.work = work
        self.args = args
        #: context of the request that it is for
        self.context = current
        self.watch = Watch()
        #: code that the watchdog saw it run, and since when
        self.seen: Doing | None = None
        self.since = 0.0


class WorkerPool:
    """Runs work on nodes. A slot is taken *before* a node's lock, so that accepted work always finds a thread."""

    def __init__(self, size: int, queue_size: int, limits_s: Mapping[str, float] | None = None,
                 clock: Callable[[], float] = time.monotonic, recovery_size: int = 1,
                 numbers: Numbers | None = None, operation_size: int = 1, poll_size: int = 1) -> None:
        """Prepare; threads start when they are needed.

        :param recovery_size: threads for resumed work, and as many for the ends of waits
        :param limits_s: seconds that code of each kind of ``models.task`` may take; 0 or missing: no limit
        :param numbers: the metrics that have the state of the pool
        :param operation_size: threads for operations on many nodes
        :param poll_size: threads for nodes whose hardware has finished a step
        """
        self._lanes = {
            Lane.REQUESTS: _Threads(size, queue_size), Lane.RECOVERY: _Threads(recovery_size, queue_size),
            # Only a few wait for a thread: their nodes are locked already.
            Lane.TIMEOUTS: _Threads(recovery_size, recovery_size),
            # Few wait for a thread here: others may do what this process has not begun.
            Lane.OPERATIONS: _Threads(operation_size, operation_size),
            # The others are found again by the next poll.
            Lane.POLLS: _Threads(poll_size, poll_size)}
        self._limits_s = {kind: limit for kind, limit in (limits_s or {}).items() if limit}
        self._clock = clock
        self._guard = threading.Condition()
        #: the work on each node, in its lane: None for a slot that is not used yet
        self._active: dict[int, tuple[_Threads, _Job | None]] = {}
        self._running: set[_Job] = set()
        self._own = threading.local()
        self._watchdog: threading.Thread | None = None
        self._stopping = False
        self._stopped = threading.Event()
        #: numbers of workers that were written off, and of those that have not returned yet
        self.written_off = 0
        self.missing = 0
        self._numbers = numbers or Numbers()
        self._numbers.gauge("conductor_slots", self._slots)
        self._numbers.gauge("conductor_work", self._work)
        self._numbers.gauge("conductor_workers_missing", lambda: {(): self.missing})

    def take(self, node_id: int, patience_s: float = 0.0, lane: Lane = Lane.REQUESTS) -> Slot:
        """Return a slot for work on the node.

        :param patience_s: how long to wait for the end of this process' present work on the node
        :raises NoFreeWorker: pool and queue are full, the process is ending, or this process works on the node already
        """
        threads = self._lanes[lane]
        with self._guard:
            free = self._guard.wait_for(lambda: self._stopping or node_id not in self._active, patience_s)
            if not free or self._stopping or threads.taken >= threads.most:
                raise NoFreeWorker(node=node_id)
            self._active[node_id] = threads, None
            threads.taken += 1
        return Slot(self, node_id)

    def wait_for_room(self, lane: Lane, patience_s: float) -> bool:
        """Return whether a slot of the lane is free, or becomes free within ``patience_s`` seconds."""
        threads = self._lanes[lane]
        with self._guard:
            self._guard.wait_for(lambda: self._stopping or threads.taken < threads.most, patience_s)
            return not self._stopping and threads.taken < threads.most

    @property
    def is_stopping(self) -> bool:
        """True if the process is ending."""
        return self._stopping

    def wait_for_end(self, lane: Lane) -> None:
        """Return when all work in the lane has ended, or the process is ending."""
        threads = self._lanes[lane]
        with self._guard:
            self._guard.wait_for(lambda: self._stopping or not threads.taken)

    def is_active(self, node_id: int) -> bool:
        """Return whether this process works, or is about to work, on the node."""
        with self._guard:
            return node_id in self._active

    def watch(self) -> Watch:
        """Return where the calling worker notes what it is doing; one that is not watched if it is none of ours."""
        watch: Watch | None = getattr(self._own, "watch", None)
        return watch or Watch()

    def stop(self, grace_s: float) -> bool:
        """Accept no further work, drop what has not begun, and wait up to ``grace_s`` seconds for the rest.

        Workers that were written off are not waited for.

        :returns: whether all work that was accepted is finished
        """
        with self._guard:
            self._stopping = True
            dropped = sum(threads.queued for threads in self._lanes.values())
            for threads in self._lanes.values():
                with contextlib.suppress(queue.Empty):
                    while (job := threads.waiting.get_nowait()) is not None:
                        self._forget(job)
                for _ in range(threads.number):
                    threads.waiting.put(None)
            self._guard.notify_all()
            ended = self._guard.wait_for(lambda: not self._running, grace_s)
        self._stopped.set()
        return ended and not dropped

    def _slots(self) -> dict[tuple[str, ...], float]:
        with self._guard:
            return {(lane.value, state): number for lane, threads in self._lanes.items()
                    for state, number in (("taken", threads.taken), ("free", threads.most - threads.taken))}

    def _work(self) -> dict[tuple[str, ...], float]:
        with self._guard:
            return {(lane.value, state): number for lane, threads in self._lanes.items()
                    for state, number in (("running", threads.running), ("waiting", threads.queued))}

    def _submit(self, node_id: int, work: Callable[..., None], args: tuple[object, ...]) -> None:
        with self._guard:
            if self._stopping:
                self._leave(node_id)
                return
            threads, _ = self._active[node_id]
            self._enqueue(_Job(threads, node_id, work, args, context.current()))

    def _enqueue(self, job: _Job) -> None:
        threads = job.threads
        self._active[job.node_id] = threads, job
        threads.queued += 1
        threads.waiting.put(job)
        if threads.number < threads.size and threads.queued + threads.running > threads.number:
            threads.number += 1
            threading.Thread(target=self._serve, args=(threads,), name="worker", daemon=True).start()
        if self._limits_s and self._watchdog is None:
            self._watchdog = threading.Thread(target=self._look, name="watchdog", daemon=True)
            self._watchdog.start()

    def _serve(self, threads: _Threads) -> None:
        """Do one piece of work after the other, until the process ends or this worker is written off."""
        while (job := self._next(threads)) is not None:
            error: BaseException | None = None
            self._own.watch = job.watch
            (job.context or RequestContext(overwrite=False)).update_store()
            try:
                with tracing.span("work", None if job.context is None else job.context.trace):
                    job.work(*job.args)
            except BaseException as exc:  # noqa: BLE001  (this thread must serve the next node)
                error = exc
            goes_on = self._finished(job, error)
            if error is not None:
                forget_locals(error)
            del error
            if not goes_on:
                return

    def _next(self, threads: _Threads) -> _Job | None:
        job = threads.waiting.get()
        if job is None:
            return None
        with self._guard:
            if self._stopping:
                self._forget(job)
                return None
            threads.queued -= 1
            threads.running += 1
            job.since = self._clock()
            self._running.add(job)
            return job

    def _finished(self, job: _Job, error: BaseException | None) -> bool:
        """Note that a piece of work has ended; return whether its worker still belongs to the pool."""
        if error is not None and not job.watch.is_abandoned:
            # The node keeps its lock; recovery finds it without a worker and resumes it.
            LOG.error("Work on node id %s ended unexpectedly; it will be resumed", job.node_id, exc_info=error)
        with self._guard:
            if job in self._running:
                self._running.discard(job)
                job.threads.running -= 1
                self._forget(job)
                return True
            self.missing -= 1
        LOG.warning("A worker that was written off has returned from node id %s; what it did is discarded", job.node_id)
        return False

    def _forget(self, job: _Job) -> None:
        if self._active.get(job.node_id) == (job.threads, job):
            self._leave(job.node_id)
        self._guard.notify_all()

    def _give_back(self, node_id: int) -> None:
        with self._guard:
            self._leave(node_id)
            self._guard.notify_all()

    def _leave(self, node_id: int) -> None:
        if node_id in self._active:
            self._active.pop(node_id)[0].taken -= 1

    def _look(self) -> None:
        every_s = min(_LOOK_EVERY_S, min(self._limits_s.values()) / _LOOKS)
        while not self._stopped.wait(every_s):
            self.look()

    def look(self) -> None:
        """Write off the workers that have been doing the same for too long."""
        now = self._clock()
        with self._guard:
            running = list(self._running)
        for job in running:
            doing = job.watch.doing
            if doing is not job.seen:
                job.seen, job.since = doing, now
                continue
            limit_s = self._limits_s.get(task.WORK if doing is None else doing[0])
            if limit_s is None or now - job.since < limit_s:
                continue
            if doing is None:
                self._write_off(job, None, f"the work has waited for {limit_s:g} seconds ([conductor]work_timeout); it "
                                           "will be resumed")
            elif job.watch.on_overdue is not None:
                self._write_off(job, doing, task.overdue(doing, limit_s))

    def _write_off(self, job: _Job, doing: Doing | None, error: Exception | str) -> None:
        """Replace a worker. A plug-in's code that is overdue fails the node; other work is resumed by recovery."""
        with self._guard:
            # It may have ended since it was looked at; from here on its results do not count.
            if job not in self._running or not job.watch.abandon(doing):
                return
            self._running.discard(job)
            job.threads.running -= 1
            job.threads.number -= 1
            self.written_off += 1
            self._numbers.count("conductor_workers_written_off")
            self.missing += 1
            counts = self.written_off, self.missing
            if self._stopping or job.watch.on_overdue is None or isinstance(error, str):
                self._forget(job)
            else:
                self._enqueue(_Job(job.threads, job.node_id, job.watch.on_overdue, (error,), job.context))
        LOG.error("Node id %s: %s. The worker is written off and replaced: its thread cannot be ended, and keeps what "
                  "it holds. Written off since the start of this process: %d, of these not returned: %d", job.node_id,
                  str(error).rstrip("."), *counts)


class Slot:
    """The right to work on one node in this process; :meth:`run` or the end of the ``with`` block gives it back."""

    def __init__(self, workers: WorkerPool, node_id: int) -> None:
        self._workers = workers
        self._node_id = node_id
        self._used = False

    def run(self, work: Callable[..., None], *args: Any) -> None:
        """Start ``work(*args)`` in a thread. When the process is ending, nothing starts: recovery resumes the node."""
        self._used = True
        self._workers._submit(self._node_id, work, args)

    def __enter__(self) -> Slot:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if not self._used:
            self._workers._give_back(self._node_id)
