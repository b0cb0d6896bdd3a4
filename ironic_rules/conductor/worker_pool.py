"""The threads that work on nodes: a bounded pool with a bounded queue, one piece of work per node."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from oslo_log import log as logging

from ironic_rules.exceptions import NoFreeWorker

LOG = logging.getLogger(__name__)

#: Seconds that a request waits for a thread that has released the node's lock but has not ended yet.
PATIENCE_S = 1.0


class WorkerPool:
    """Runs work on nodes. A slot is taken *before* a node's lock, so that accepted work always finds a thread."""

    def __init__(self, size: int, queue_size: int) -> None:
        self._executor = ThreadPoolExecutor(max_workers=size, thread_name_prefix="worker")
        self._most = size + queue_size
        self._guard = threading.Condition()
        self._active: set[int] = set()
        self._running: set[Future[None]] = set()
        self._stopping = False

    def take(self, node_id: int, patience_s: float = 0.0) -> Slot:
        """Return a slot for work on the node.

        :param patience_s: how long to wait for the end of this process' present work on the node
        :raises NoFreeWorker: pool and queue are full, the process is ending, or this process works on the node already
        """
        with self._guard:
            free = self._guard.wait_for(lambda: self._stopping or node_id not in self._active, patience_s)
            if not free or self._stopping or len(self._active) >= self._most:
                raise NoFreeWorker(node=node_id)
            self._active.add(node_id)
        return Slot(self, node_id)

    def is_active(self, node_id: int) -> bool:
        """Return whether this process works, or is about to work, on the node."""
        with self._guard:
            return node_id in self._active

    def stop(self, grace_s: float) -> bool:
        """Accept no further work, drop what has not begun, and wait up to ``grace_s`` seconds for the rest.

        :returns: whether all work that was accepted is finished
        """
        with self._guard:
            self._stopping = True
            self._guard.notify_all()
            running = set(self._running)
        self._executor.shutdown(wait=False, cancel_futures=True)
        begun = {future for future in running if not future.cancelled()}
        return not wait(begun, timeout=grace_s).not_done and len(begun) == len(running)

    def _submit(self, node_id: int, work: Callable[..., None], args: tuple[Any, ...]) -> None:
        with self._guard:
            if self._stopping:
                self._active.discard(node_id)
                return
            future = self._executor.submit(work, *args)
            self._running.add(future)
        future.add_done_callback(lambda done: self._finished(node_id, done))

    def _finished(self, node_id: int, future: Future[None]) -> None:
        with self._guard:
            self._active.discard(node_id)
            self._running.discard(future)
            self._guard.notify_all()
        if not future.cancelled() and (error := future.exception()) is not None:
            # The node keeps its lock; recovery finds it without a worker and resumes it.
            LOG.error("Work on node id %s ended unexpectedly; it will be resumed", node_id, exc_info=error)

    def _give_back(self, node_id: int) -> None:
        with self._guard:
            self._active.discard(node_id)
            self._guard.notify_all()


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
