"""The request as methods get it: the sender and the form, the parts that the process has for all requests, and headers.

``api.app`` makes it, and ``api.expose`` gives it to methods. Nothing of it is found through the thread that serves
the request, so that a function that needs it says so, and other threads can get what they need of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from wsgiref.types import WSGIEnvironment

from ironic_rules.api import links

if TYPE_CHECKING:
    # Only names of types: this module is imported by all that takes a request, also by some of these.
    from oslo_config import cfg

    from ironic_rules.api.authorization import Confinement
    from ironic_rules.api.expose import LockPatience
    from ironic_rules.api.health import BrokerCheck, DatabaseCheck
    from ironic_rules.api.v1.deploy_steps import OfferedSteps
    from ironic_rules.api.v1.fleet import NodeFailures
    from ironic_rules.api.v1.ramdisk import ConductorCheck, ReportDigests
    from ironic_rules.api.v1.rule_lists import RuleProblems
    from ironic_rules.api.v1.trials import DryRuns
    from ironic_rules.context import RequestContext
    from ironic_rules.db.session import Database
    from ironic_rules.httpd.faults import Headers
    from ironic_rules.inspection.early import EarlyRules
    from ironic_rules.inspection.journal import Journal, RefusedMachines
    from ironic_rules.inspection.rule_sets import LegacyRuleCache, RuleCache, RuleSettings
    from ironic_rules.metrics.numbers import Numbers
    from ironic_rules.rpc.api import ConductorAPI
    from ironic_rules.rpc.pxe_filter import PXEFilterAPI


@dataclass(slots=True)
class ReplyHead:
    """The head of a reply: a method sets it beside its result.

    :ivar headers: those that it adds, e.g. ``Location``
    :ivar status: for the few methods whose status depends on the result; None: that of the route
    :ivar media_type: of what is not JSON
    """

    headers: Headers = field(default_factory=list)
    status: int | None = None
    media_type: str | None = None


@dataclass(slots=True, kw_only=True)
class Request:
    """One request.

    :ivar version: the minor version of the API, or of the compute API
    :ivar rules: the settings of ``[inspection_rules]``
    :ivar broker: the check whether the message bus can be reached
    :ivar database: the check whether the database can be reached
    :ivar metrics_page: None: this service shows none
    :ivar confinement: what the caller is confined to; None: nothing, or the policy was not checked yet
    """

    environ: WSGIEnvironment
    version: int
    context: RequestContext
    conf: cfg.ConfigOpts
    db: Database
    rpc: ConductorAPI
    pxe_filter: PXEFilterAPI
    rules: RuleSettings
    rule_cache: RuleCache
    legacy_rule_cache: LegacyRuleCache
    early_rules: EarlyRules
    rule_problems: RuleProblems
    dry_runs: DryRuns
    journal: Journal
    refused_callbacks: RefusedMachines
    refused_lookups: RefusedMachines
    refused_heartbeats: RefusedMachines
    node_failures: NodeFailures
    offered_steps: OfferedSteps
    report_digests: ReportDigests
    conductor_check: ConductorCheck
    broker: BrokerCheck
    database: DatabaseCheck
    numbers: Numbers
    lock_patience: LockPatience
    metrics_page: Callable[[str], tuple[str, bytes]] | None
    confinement: Confinement | None = None
    reply: ReplyHead = field(default_factory=ReplyHead)

    @property
    def method(self) -> str:
        """The HTTP method."""
        method: str = self.environ["REQUEST_METHOD"]
        return method

    @property
    def base(self) -> str:
        """The URL of the service without a trailing slash, e.g. ``http://127.0.0.1:6385``, for links."""
        configured: str | None = self.conf.api.public_endpoint
        return configured.rstrip("/") if configured else links.from_environ(self.environ)
