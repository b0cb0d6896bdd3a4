"""Periodic loops. They wait for an event, so that ``stop`` takes effect immediately.

One of them repeats allocations without a result: the process that received such a one has ended, or all nodes that fit
were locked.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable

from oslo_log import log as logging

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import allocations, clock, conductors, facts
from ironic_rules.exceptions import IronicRulesError

LOG = logging.getLogger(__name__)

#: A pass that comes a little early, because no clock and no sleep is exact, is not skipped.
_EARLY = 0.9


def in_turn(conductor: Conductor, name: str, interval_s: float, body: Callable[[Conductor], object]) -> None:
    """Call ``body`` unless another conductor of the group has begun to within the last ``interval_s`` seconds."""
    if conductors.claim_periodic_task(conductor.db, f"{name} of group '{conductor.group}'", conductor.host,
                                      interval_s * _EARLY):
        body(conductor)


class Loop:
    """Calls ``body`` every ``interval_s`` seconds in a thread of its own; a pass that fails is logged."""

    def __init__(self, name: str, interval_s: float, body: Callable[[], object], *, until_idle: bool = False) -> None:
        """Prepare.

        :param until_idle: a pass that returns something true is followed by the next one without a pause
        """
        self._name = name
        self._interval_s = interval_s
        self._body = body
        self._until_idle = until_idle
        self._stopped = threading.Event()
        self._began: float | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first pass comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Make the loop end after the pass it is in."""
        self._stopped.set()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end of the last pass."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    @property
    def busy_s(self) -> float:
        """Seconds since the beginning of the pass that it is in; 0 between two passes."""
        began = self._began
        return 0.0 if began is None else time.monotonic() - began

    def _run(self) -> None:
        pause_s = self._interval_s
        while not self._stopped.wait(pause_s):
            self._began = time.monotonic()
            result: object = None
            try:
                result = self._body()
            except Exception:  # a pass that fails must not stop the loop
                LOG.exception("A pass of the loop '%s' failed; the loop continues", self._name)
            self._began = None
            pause_s = 0 if result and self._until_idle else self._interval_s


def prune_fact_changes(conductor: Conductor) -> None:
    """Delete the changes of facts that are older than ``[facts]change_days``."""
    days = conductor.conf.facts.change_days
    while days and conductor.db.write(lambda conn: facts.prune_changes(conn, days)):
        pass


#: Longest time that an allocation waits for nodes that are locked.
_PATIENCE = datetime.timedelta(seconds=60)
#: Allocations that one pass looks at, oldest first.
_MOST = 1000


def settle_allocations(conductor: Conductor) -> None:
    """Look for the nodes of all allocations that wait."""
    with conductor.db.reader() as conn:
        waiting = allocations.waiting(conn, _MOST)
    for uuid, created_at in waiting:
        give_up = clock.now() - created_at > _PATIENCE
        try:
            state = conductor.db.write(lambda conn: allocations.settle(conn, uuid, give_up=give_up))  # noqa: B023
        except IronicRulesError as error:  # it was deleted, or a node of it was changed
            LOG.info("Allocation %s has no result yet: %s", uuid, error)
        else:
            LOG.info("Allocation %s is in state %s", uuid, state)
