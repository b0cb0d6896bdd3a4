"""One conductor: its parts, and what it does in each provision state. ``ironic_rules.service`` puts them together."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa
from oslo_config import cfg

from ironic_rules.conductor.database_contact import DatabaseContact
from ironic_rules.conductor.hardware_turns import HardwareTurns
from ironic_rules.conductor.lock_ages import LockAges
from ironic_rules.conductor.step_waits import StepWaits
from ironic_rules.conductor.worker_pool import WorkerPool
from ironic_rules.context import RequestContext
from ironic_rules.db import nodes
from ironic_rules.db.session import Database
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.rule_sets import LegacyRuleCache, RuleCache
from ironic_rules.inspection.rule_statistics import RuleStatistics
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models.inspections import Inspection
from ironic_rules.models.task import Task
from ironic_rules.rpc.pxe_filter import PXEFilterAPI
from ironic_rules.rpc.transport import SERVER_THREADS
from ironic_rules.rules import RuleRuns


@dataclass(slots=True)
class StateResult:
    """How a state ends.

    ``event`` leads on from it; ``error`` becomes ``last_error`` and an entry of the node's history; ``history`` is an
    entry without an error; ``also`` is called with the connection of the transaction that saves the node; ``sealed``
    says that the draft has what a sensitive rule wrote, so that no error may quote it. ``maintenance`` is why the node
    is put in maintenance, too, and ``fault`` which of Ironic's faults that is. ``again`` repeats the work of an
    inspection that others have overtaken (``state_machine.Attempt``) on copies of ``drafts``; None: all of it is
    repeated. ``inspection`` is what the history keeps of an inspection that ends.
    """

    event: str
    error: str | None = None
    history: str | None = None
    also: Callable[[sa.Connection], None] | None = None
    sealed: bool = False
    maintenance: str | None = None
    fault: str | None = None
    again: Callable[[Conductor, Task], StateResult] | None = None
    drafts: Task | None = None
    #: the stage of an inspection in which it ended, for the metrics
    stage: str = "save"
    inspection: Inspection | None = None
    #: what the rules did, for their statistics, and the UUIDs of those that changed the node
    runs: RuleRuns | None = None
    changed_by: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class StateWork:
    """What a conductor does with nodes in one provision state."""

    #: what is done in a transient state; None for a state in which the node waits. It may be called again from the
    #: start for the same node after a conductor's death, so it must not assume that it is the first.
    handle: Callable[[Conductor, Task], StateResult] | None = None
    #: what is undone when the state fails, on fresh drafts
    clean_up: Callable[[Conductor, Task], None] | None = None
    #: what the transaction that makes the node failed writes besides: ``(connection, conductor, node id)``
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
    #: where its work is counted
    numbers: Numbers = field(default_factory=Numbers)
    lock_ages: LockAges = field(default_factory=LockAges)
    contact: DatabaseContact = field(default_factory=DatabaseContact)
    step_waits: StepWaits = field(default_factory=StepWaits)
    #: who may wait for a BMC in a thread of RPC calls
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
