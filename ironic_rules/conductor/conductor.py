"""One conductor: its parts, and what it does in each provision state. ``ironic_rules.service`` puts them together.

The parts in this module are shared by its threads: the ages of locks, the contact with the database, and the turns to
wait for BMCs.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules.conductor.worker_pool import WorkerPool
from ironic_rules.context import RequestContext, hashed_token
from ironic_rules.db import nodes
from ironic_rules.db.nodes import Lock
from ironic_rules.db.session import Database
from ironic_rules.exceptions import too_many_calls
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.rule_sets import LegacyRuleCache, RuleCache
from ironic_rules.inspection.rule_statistics import RuleStatistics
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models.inspections import Inspection
from ironic_rules.models.nodes import Cause, Node
from ironic_rules.models.task import Task
from ironic_rules.rpc.pxe_filter import PXEFilterAPI
from ironic_rules.rpc.transport import SERVER_THREADS
from ironic_rules.rules import RuleRuns


class StepWaits:
    """``begun`` is called with the id of each node that begins to wait, and calls the listener, if there is one."""

    def __init__(self) -> None:
        self._listener: Callable[[int], None] = lambda node_id: None

    def listen(self, listener: Callable[[int], None]) -> None:
        """Let ``listener`` be called from now on."""
        self._listener = listener

    def begun(self, node_id: int) -> None:
        """Tell the listener."""
        self._listener(node_id)


#: Seconds.
BOUNDS = (0, 60, 600, 3600)


class LockAges:
    """Since when each lock is known."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[Lock, float] = {}

    def note(self, locks: Iterable[Lock]) -> None:
        """Note all locks that there are now."""
        now, before = self._clock(), self._since
        self._since = {lock: before.get(lock, now) for lock in locks}

    def older_than(self) -> dict[tuple[str, ...], float]:
        """Return how many locks are at least as old as each of the bounds."""
        now = self._clock()
        ages = [now - since for since in self._since.values()]
        return {(str(bound),): sum(age >= bound for age in ages) for bound in BOUNDS}


#: Seconds that a heartbeat may take before the database counts as lost.
_SLOW_S = 2.0


class DatabaseContact:
    """The contact of a conductor with its database, as its last heartbeat, or the one in progress, knows it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._begun: float | None = None
        self._failed = False

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Note that a heartbeat is written in the block, and whether that succeeds."""
        with self._guard:
            self._begun = self._clock()
        failed = True
        try:
            yield
            failed = False
        finally:
            with self._guard:
                self._begun, self._failed = None, failed

    @property
    def is_lost(self) -> bool:
        """True if the last heartbeat has failed, or the present one takes too long."""
        with self._guard:
            return self._failed or (self._begun is not None and self._clock() - self._begun > _SLOW_S)


#: Maximum number of agents whose tokens are known.
_MOST_AGENTS = 10_000


class AgentTokens:
    """The tokens of agents that wait for work (fast track), by the ids of their nodes; they are in memory only."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._tokens: dict[int, str] = {}

    def note(self, node_id: int, token: str) -> None:
        """Keep the token of a heartbeat; beyond the maximum number, the one that came first is forgotten."""
        with self._guard:
            self._tokens.pop(node_id, None)
            self._tokens[node_id] = token
            if len(self._tokens) > _MOST_AGENTS:
                del self._tokens[next(iter(self._tokens))]

    def of(self, node: Node) -> str | None:
        """Return the token of the node's agent; None if it is unknown, or invalid by now."""
        with self._guard:
            token = self._tokens.get(node.id)
        return token if token is not None and hashed_token(token) == node.agent_token_hash else None


class HardwareTurns:
    """``most`` turns, half of them for each node."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._taken: Counter[int] = Counter()

    @contextlib.contextmanager
    def turn(self, node: Node) -> Iterator[None]:
        """Occupy a turn.

        :raises too_many_calls: 503, none is free
        """
        with self._guard:
            if self._taken.total() >= self._most or self._taken[node.id] >= max(1, self._most // 2):
                raise too_many_calls(node=node.uuid)
            self._taken[node.id] += 1
        try:
            yield
        finally:
            with self._guard:
                self._taken[node.id] -= 1
                if not self._taken[node.id]:
                    del self._taken[node.id]


@dataclass(slots=True)
class StateResult:
    """The end of a state.

    ``event`` leads on from it; ``error`` becomes ``last_error`` and an entry of the node's history; ``history`` is an
    entry without an error; ``also`` is called with the connection of the transaction that saves the node; ``sealed``
    says that the draft has what a sensitive rule wrote, so that no error may quote it. ``cause`` is the rule or hook
    that failed the inspection, and its message. ``maintenance`` is why the node
    is put in maintenance, too, and ``fault`` which of Ironic's faults that is. ``again`` repeats the work of an
    inspection that others have overtaken (``state_machine.Attempt``) on copies of ``drafts``; None: all of it is
    repeated. ``inspection`` is what the history keeps of an inspection that ends. ``committed`` is called after that
    transaction.
    """

    event: str
    error: str | None = None
    history: str | None = None
    also: Callable[[sa.Connection], None] | None = None
    sealed: bool = False
    cause: Cause | None = None
    maintenance: str | None = None
    fault: str | None = None
    again: Callable[[Conductor, Task], StateResult] | None = None
    drafts: Task | None = None
    #: the stage of an inspection in which it ended, for the metrics
    stage: str = "save"
    inspection: Inspection | None = None
    #: runs of rules, for their statistics, and the UUIDs of those that changed the node
    runs: RuleRuns | None = None
    changed_by: Collection[str] = ()
    committed: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class StateWork:
    """The work of a conductor on nodes in one provision state."""

    #: work in a transient state; None for a state in which the node waits. It may be called again from the
    #: start for the same node after a conductor's death, so it must not assume that it is the first.
    handle: Callable[[Conductor, Task], StateResult] | None = None
    #: clean-up when the state fails, on fresh drafts
    clean_up: Callable[[Conductor, Task], None] | None = None
    #: further writes of the transaction that makes the node failed: ``(connection, conductor, node id)``
    on_failure: Callable[[sa.Connection, Conductor, int], None] | None = None
    #: purpose of the lock -> how a request is finished of which only the lock is left
    unfinished: Mapping[str, Callable[[Conductor, RequestContext, nodes.Lock], None]] = field(default_factory=dict)


#: In states that are not in the table nothing is done.
NO_WORK = StateWork()


@dataclass(frozen=True)
class Conductor:
    """One conductor's parts. ``host`` is the name on its locks; ``group`` the conductor group that it serves."""

    host: str
    group: str
    conf: cfg.ConfigOpts
    db: Database
    hardware: EnabledHardware
    pipeline: Pipeline
    rules: RuleCache
    legacy_rules: LegacyRuleCache
    workers: WorkerPool
    #: by provision state
    work: Mapping[str, StateWork]
    pxe_filter: PXEFilterAPI
    rule_statistics: RuleStatistics
    #: metrics of its work
    numbers: Numbers = field(default_factory=Numbers)
    lock_ages: LockAges = field(default_factory=LockAges)
    contact: DatabaseContact = field(default_factory=DatabaseContact)
    step_waits: StepWaits = field(default_factory=StepWaits)
    agent_tokens: AgentTokens = field(default_factory=AgentTokens)
    #: turns to wait for a BMC in a thread of RPC calls
    hardware_turns: HardwareTurns = field(default_factory=lambda: HardwareTurns(SERVER_THREADS // 2))
    #: this run of the process, in its registration and its locks
    instance: str = field(default_factory=lambda: str(uuid.uuid4()))
    #: numbers of acquisitions of locks
    _serials: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def new_lock(self, node_id: int) -> nodes.Lock:
        """Return a lock of the node for this conductor, different from all others; it is not taken yet."""
        return nodes.Lock(node_id, self.host, f"{self.instance}:{next(self._serials)}")

    def work_in(self, provision_state: str) -> StateWork:
        """Return what is done with nodes in that state."""
        return self.work.get(provision_state, NO_WORK)
