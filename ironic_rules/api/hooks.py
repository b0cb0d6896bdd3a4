"""The attributes of ``pecan.request`` in every request.

``context``, ``conf``, ``db``, ``rpc``, ``pxe_filter``, ``rules`` (their settings), ``rule_cache``, ``early_rules``,
``legacy_rule_cache``, ``rule_problems``, ``dry_runs``, ``journal``, ``node_failures``, ``offered_steps``,
``report_digests``, ``conductor_check``, ``broker`` and ``database`` (their checks), ``numbers``, ``metrics_page``,
``lock_patience`` and ``version`` (the minor).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oslo_config import cfg
from pecan import hooks

from ironic_rules.api import auth
from ironic_rules.api.broker_check import BrokerCheck
from ironic_rules.api.database_check import DatabaseCheck, Found
from ironic_rules.api.dry_runs import DryRuns
from ironic_rules.api.lock_patience import LockPatience
from ironic_rules.api.marks import ReportDigests
from ironic_rules.api.node_failures import NodeFailures
from ironic_rules.api.offered_steps import OfferedSteps
from ironic_rules.api.ramdisk import ConductorCheck
from ironic_rules.api.rule_problems import RuleProblems
from ironic_rules.db import conductors, inspection_rules, legacy_rules
from ironic_rules.db.session import Database
from ironic_rules.inspection.early import EarlyRules
from ironic_rules.inspection.journal import Journal
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.refusals import RefusedMachines
from ironic_rules.inspection.rule_cache import RuleCaches
from ironic_rules.inspection.rule_statistics import RuleStatistics
from ironic_rules.metrics import exposition
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc.pxe_filter import PXEFilterAPI


class DependenciesHook(hooks.PecanHook):
    """Sets the dependencies and the caller's context on the request, before any controller runs."""

    priority = 10

    def __init__(self, conf: cfg.ConfigOpts, db: Database, rpc: Any, rules: RuleCaches,
                 pxe_filter: PXEFilterAPI, numbers: Numbers, make_pipeline: Callable[[], Pipeline]) -> None:
        self._conf = conf
        self._db = db
        self._rpc = rpc
        self._rules = rules.settings
        self._pxe_filter = pxe_filter
        self._rule_cache, self._legacy_rule_cache = rules.inspection, rules.legacy
        # Rules are compiled, and those that cannot be are logged, when the process starts.
        self._rule_cache.current()
        self._legacy_rule_cache.current()
        self._rule_problems = RuleProblems(self._rules)
        self._dry_runs = DryRuns(conf.inspection_rules.dry_run_timeout, make_pipeline)
        self._early_rules = EarlyRules(conf.inspection_rules.early_timeout, RuleStatistics(
            db, conf.inspection_rules.statistics_interval, numbers, self._rules.built_in))
        group = conf.inspection_journal
        self._journal = Journal(db, group.max_entries, group.max_days, keep_reports=group.keep_reports)
        self._refused = [RefusedMachines() for _ in range(3)]
        self._broker = BrokerCheck(rpc.ping_broker)
        self._database = DatabaseCheck(self._read_health)
        self._report_digests = ReportDigests(db)
        self._conductor_check = ConductorCheck(conf.conductor.heartbeat_timeout)
        self._offered_steps = OfferedSteps(conf.conductor.heartbeat_timeout)
        self._node_failures = NodeFailures()
        self._numbers = numbers
        self._lock_patience = LockPatience(conf.api.lock_patience, max(1, conf.api.threads // 4))
        self._metrics_page = exposition.page_of(
            exposition.NumbersCollector(numbers), "[api]serve_metrics") if conf.api.serve_metrics else None

    def on_route(self, state: Any) -> None:
        request = state.request
        request.conf = self._conf
        request.db = self._db
        request.rpc = self._rpc
        request.pxe_filter = self._pxe_filter
        request.rules = self._rules
        request.rule_cache = self._rule_cache
        request.legacy_rule_cache = self._legacy_rule_cache
        request.early_rules = self._early_rules
        request.rule_problems = self._rule_problems
        request.dry_runs = self._dry_runs
        request.journal = self._journal
        request.refused_callbacks, request.refused_lookups, request.refused_heartbeats = self._refused
        request.node_failures = self._node_failures
        request.offered_steps = self._offered_steps
        request.report_digests = self._report_digests
        request.conductor_check = self._conductor_check
        request.broker = self._broker
        request.database = self._database
        request.numbers = self._numbers
        request.lock_patience = self._lock_patience
        request.metrics_page = self._metrics_page
        request.version = request.environ["ironic_rules.version"]
        request.context = auth.context(request.environ, self._conf.auth_strategy)

    def _read_health(self) -> Found:
        with self._db.reader() as conn:
            alive = len(conductors.alive(conn, self._conf.conductor.heartbeat_timeout))
            revision, of_legacy = inspection_rules.revision(conn), legacy_rules.revision(conn)
        invalid = len(self._rule_cache.broken(revision)) + len(self._legacy_rule_cache.broken(of_legacy))
        return Found(alive, invalid)
