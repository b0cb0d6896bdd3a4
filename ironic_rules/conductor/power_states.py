"""Power states: those that the BMCs report are read periodically, and stored where they differ.

A machine may lose its power, or be switched by hand. Each conductor reads its share of the nodes of its group, without
their locks and with a bounded number of requests at once, evenly over the interval. A BMC that does not answer is given
up soon, and asked more and more seldom; the threads that such BMCs hold are replaced, so that no other BMC waits.
"""

from __future__ import annotations

import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules import context
from ironic_rules.conductor import notices
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import conductors, node_queries, nodes
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import IronicRulesError, NodeLocked, NodeNotFound
from ironic_rules.hardware import waiting
from ironic_rules.models import secrets, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.internal_keys import AGENT_ADDRESS
from ironic_rules.models.known_secrets import KNOWN
from ironic_rules.models.task import Task
from ironic_rules.text import MAX_MESSAGE, printable

LOG = logging.getLogger(__name__)

_PURPOSE = "power state: read"
#: The part of the interval within which the requests are spread, and that of a random pause before the first one.
_SPREAD, _JITTER = 0.8, 0.1
#: Seconds between two looks whether the conductor ends.
_LOOK_S = 0.5
#: Maximum number of rounds in which a BMC that does not answer is left out; from so many on, the number is random, so
#: that those that fell silent together are not asked together.
_MOST_ROUNDS, _RANDOM_ROUNDS = 32, 8
#: Seconds that a BMC may take for its power state, with the login and all attempts.
_ANSWER_S = 30.0
#: Seconds after which a thread is held by its BMC, and maximum number of such threads for each of
#: ``[conductor]sync_power_state_workers``.
_HELD_S, _MOST_HELD = 3.0, 16


def ask(conductor: Conductor, task: Task) -> str:
    """Return the power state that the BMC reports, which is also noted in the task.

    :raises IronicRulesError: it cannot be asked, does not answer in time, or sends an invalid response
    """
    try:
        with waiting.time_limit(_ANSWER_S):
            state: str = conductor.hardware.interface(task.node, "power").get_power_state(task)
    except IronicRulesError:
        raise
    except Exception as exc:  # a BMC may answer anything
        LOG.info("The BMC of node %s sent an invalid response", task.node.uuid, exc_info=True)
        raise IronicRulesError(f"it sent an invalid response ({type(exc).__name__})") from exc
    task.node.power_state = state
    return state


class _Threads:
    """The threads of one round. One that its BMC holds is not counted, within a bound.

    :param most: number of the others
    """

    def __init__(self, check: Callable[[Row], object], most: int, stopped: threading.Event) -> None:
        self._check, self._most, self._stopped = check, most, stopped
        self._waiting: queue.Queue[Row | None] = queue.Queue(1)
        self._threads: list[threading.Thread] = []
        #: thread -> the time at which its request began
        self._began: dict[int, float] = {}

    def give(self, row: Row | None) -> bool:
        """Give a node to the next free thread, or None to end one; return False if the conductor ends."""
        while not self._stopped.is_set():
            self._start()
            with contextlib.suppress(queue.Full):
                self._waiting.put(row, timeout=_LOOK_S)
                return True
        return False

    def end(self) -> None:
        """Wait for the requests in progress, unless the conductor ends."""
        for _ in self._threads:
            self.give(None)
        for thread in self._threads:
            thread.join(0 if self._stopped.is_set() else None)

    def _start(self) -> None:
        before = time.monotonic() - _HELD_S
        held = min(sum(began < before for began in list(self._began.values())), _MOST_HELD * self._most)
        has_idle = len(self._began) + self._waiting.qsize() < len(self._threads)
        if not has_idle and len(self._threads) < self._most + held:
            # A daemon: a process that ends must not wait for BMCs.
            thread = threading.Thread(target=self._work, name="power-state", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        thread = threading.get_ident()
        while not self._stopped.is_set():
            with contextlib.suppress(queue.Empty):
                if (row := self._waiting.get(timeout=_LOOK_S)) is None:
                    return
                self._began[thread] = time.monotonic()
                try:
                    self._check(row)
                except Exception:  # one node must not end the thread, for which the round would wait
                    LOG.exception("The power state of node %s cannot be read", row.uuid)
                finally:
                    del self._began[thread]


class PowerStates:
    """Reads the power states of one conductor's share of its group."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor
        self._stopped = threading.Event()
        #: by node, for how many rounds its BMC is left out, and how many of them are left
        self._silent: dict[int, tuple[int, int]] = {}

    def stop(self) -> None:
        """Begin no further requests."""
        self._stopped.set()

    def sync(self) -> int:
        """Read the power state of each node of the share once; return how many were other than stored."""
        options = self._conductor.conf.conductor
        interval_s = float(options.sync_power_state_interval)
        self._stopped.wait(random.uniform(0, _JITTER * interval_s))
        place, count = self._share()
        total = node_queries.count_with_power(self._conductor.db, self._conductor.group, place, count)
        changed: list[bool] = []
        threads = _Threads(
            lambda row: changed.append(self._check(row)), options.sync_power_state_workers, self._stopped)
        began = time.monotonic()
        for number, row in enumerate(self._nodes(place, count)):
            self._stopped.wait(max(0.0, began + _SPREAD * interval_s * number / max(total, 1) - time.monotonic()))
            if not threads.give(row):
                break
        threads.end()
        return sum(changed)

    def _share(self) -> tuple[int, int]:
        """Return the place of this conductor among those of its group, and their number."""
        conductor = self._conductor
        with conductor.db.reader() as conn:
            living = conductors.living_hosts(conn, conductor.conf.conductor.heartbeat_timeout)
        hosts = sorted(row.hostname for row in living if row.conductor_group == conductor.group)
        return (hosts.index(conductor.host), len(hosts)) if conductor.host in hosts else (0, 1)

    def _nodes(self, place: int, count: int) -> Iterator[Row]:
        for page in node_queries.pages_with_power(self._conductor.db, self._conductor.group, place, count):
            for row in page:
                rounds, rounds_left = self._silent.get(row.id, (0, 0))
                if rounds_left > 0:
                    self._silent[row.id] = (rounds, rounds_left - 1)
                else:
                    yield row

    def _check(self, row: Row) -> bool:
        """Read the power state of a node; return whether another one was stored."""
        task = Task(NodeDraft(row._asdict()), context=context.admin())
        KNOWN.learn(task.node.driver_info)
        try:
            state = ask(self._conductor, task)
        except IronicRulesError as exc:
            rounds, _ = self._silent.get(row.id, (0, 0))
            rounds = min(max(1, 2 * rounds), _MOST_ROUNDS)
            rounds_left = rounds if rounds < _RANDOM_ROUNDS else random.randint(rounds // 2, rounds)
            self._silent[row.id] = (rounds, rounds_left)
            tell = LOG.warning if rounds == 1 else LOG.debug
            tell("The power state of node %s cannot be read; it remains '%s': %s", row.uuid, row.power_state,
                 printable(secrets.mask_text(str(exc)), MAX_MESSAGE))
            return False
        if self._silent.pop(row.id, None) is not None:
            LOG.info("The power state of node %s can be read again", row.uuid)
        if state == row.power_state:
            return False
        try:
            return self._store(row, state)
        except (NodeLocked, NodeNotFound):
            return False  # its work knows more
        except Exception:  # of the database: the next round reads it again
            LOG.exception("The power state of node %s cannot be stored", row.uuid)
            return False

    def _store(self, row: Row, state: str) -> bool:
        lock = self._conductor.new_lock(row.id)

        def store(conn: sa.Connection) -> bool:
            # In one transaction, so that no request finds the node locked.
            if not nodes.is_lockable(conn, row.id):
                return False
            locked = nodes.reserve(conn, lock, _PURPOSE)
            is_same = (locked.power_state, locked.provision_state) == (row.power_state, row.provision_state)
            values: JSONObject = {"power_state": state}
            if state == states.POWER_OFF and locked.provision_state in states.FAST_TRACK:
                # The ramdisk that waited for work has ended; the next one may have another address.
                values |= {"agent_token_hash": None, "driver_internal_info": {
                    key: value for key, value in locked.driver_internal_info.items() if key not in AGENT_ADDRESS}}
            nodes.release(conn, lock, values if is_same else None)
            if is_same:
                notices.corrected_power(conn, locked)
            return is_same

        if stored := self._conductor.db.write(store):
            LOG.warning("Node %s: the BMC reports '%s', but '%s' was stored; the state is corrected", row.uuid, state,
                        row.power_state)
        return stored
