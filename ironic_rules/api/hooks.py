"""Makes the request that methods get: what the process has for all requests, and what this one has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from oslo_config import cfg
from pecan import hooks

from ironic_rules.api import auth
from ironic_rules.api.broker_check import BrokerCheck
from ironic_rules.api.database_check import DatabaseCheck, DatabaseCounts
from ironic_rules.api.dry_runs import DryRuns
from ironic_rules.api.lock_patience import LockPatience
from ironic_rules.api.marks import ReportDigests
from ironic_rules.api.node_failures import NodeFailures
from ironic_rules.api.offered_steps import OfferedSteps
from ironic_rules.api.ramdisk import ConductorCheck
from ironic_rules.api.request import Request
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
    """Makes a :class:`~ironic_rules.api.request.Request` of each of pecan's requests, as ``typed``."""

    priority = 10

    def __init__(self, conf: cfg.ConfigOpts, db: Database, rpc: Any, rules: RuleCaches,
                 pxe_filter: PXEFilterAPI, numbers: Numbers, make_pipeline: Callable[[], Pipeline]) -> None:
        self._conf = conf
        self._db = db
        self._rule_cache, self._legacy_rule_cache = rules.inspection, rules.legacy
        # Rules are compiled, and those that cannot be are logged, when the process starts.
        self._rule_cache.current()
        self._legacy_rule_cache.current()
        group = conf.inspection_journal
        self._make = functools.partial(
            Request, conf=conf, db=db, rpc=rpc, pxe_filter=pxe_filter, rules=rules.settings,
            rule_cache=self._rule_cache, legacy_rule_cache=self._legacy_rule_cache,
            early_rules=EarlyRules(conf.inspection_rules.early_timeout, RuleStatistics(
                db, conf.inspection_rules.statistics_interval, numbers, rules.settings.built_in)),
            rule_problems=RuleProblems(rules.settings),
            dry_runs=DryRuns(conf.inspection_rules.dry_run_timeout, make_pipeline),
            journal=Journal(db, group.max_entries, group.max_days, keep_reports=group.keep_reports),
            refused_callbacks=RefusedMachines(), refused_lookups=RefusedMachines(),
            refused_heartbeats=RefusedMachines(), node_failures=NodeFailures(),
            offered_steps=OfferedSteps(conf.conductor.heartbeat_timeout),
            report_digests=ReportDigests(db), conductor_check=ConductorCheck(conf.conductor.heartbeat_timeout),
            broker=BrokerCheck(rpc.ping_broker), database=DatabaseCheck(self._read_health), numbers=numbers,
            lock_patience=LockPatience(conf.api.lock_patience, max(1, conf.api.threads // 4)),
            metrics_page=exposition.page_of(exposition.NumbersCollector(numbers), "[api]serve_metrics")
            if conf.api.serve_metrics else None)

    def on_route(self, state: Any) -> None:
        environ = state.request.environ
        state.request.typed = self._make(environ=environ, version=environ["ironic_rules.version"],
                                         context=auth.context(environ, self._conf.auth_strategy))

    def _read_health(self) -> DatabaseCounts:
        with self._db.reader() as conn:
            alive = len(conductors.alive(conn, self._conf.conductor.heartbeat_timeout))
            revision, of_legacy = inspection_rules.revision(conn), legacy_rules.revision(conn)
        invalid = len(self._rule_cache.broken(revision)) + len(self._legacy_rule_cache.broken(of_legacy))
        return DatabaseCounts(alive, invalid)
