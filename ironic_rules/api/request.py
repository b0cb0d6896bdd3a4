"""The request as methods get it: its sender, its mark, the parts that the process has for all requests, and headers.

A repetition of a request is recognized by its mark. The client chooses that, with the header ``Idempotency-Key``.

``api.app`` makes it, and ``api.expose`` gives it to methods. Nothing of it is found through the thread that serves
the request, so that a function that needs it says so, and other threads can get what they need of it.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from wsgiref.types import WSGIEnvironment

import orjson

from ironic_rules.api import links
from ironic_rules.context import Mark
from ironic_rules.db import accepted_requests
from ironic_rules.exceptions import Conflict, Invalid

if TYPE_CHECKING:
    # Only names of types: this module is imported by all that takes a request, also by some of these.
    import sqlalchemy as sa
    from oslo_config import cfg

    from ironic_rules.api.authorization import Confinement
    from ironic_rules.api.etags import Preconditions
    from ironic_rules.api.expose import LockPatience
    from ironic_rules.api.health import BrokerCheck, DatabaseCheck
    from ironic_rules.api.v1.deploy_steps import OfferedSteps
    from ironic_rules.api.v1.fact_counts import FrequentValues
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
    from ironic_rules.inspection.rule_statistics import RuleStatistics
    from ironic_rules.metrics.numbers import Numbers
    from ironic_rules.models.documents import JSONObject
    from ironic_rules.rpc.api import ConductorAPI
    from ironic_rules.rpc.pxe_filter import PXEFilterAPI

_HEADER = "Idempotency-Key"
_VARIABLE = "HTTP_IDEMPOTENCY_KEY"
_FORM = re.compile(r"[!-~]{1,255}")


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

    def is_unchanged(self, tag: str, conditions: Preconditions) -> bool:
        """Set the entity tag of what is read; return whether the client has it already: then the reply is 304.

        :raises PreconditionFailed: 412
        """
        conditions.check_match(tag)
        self.headers.append(("ETag", tag))
        if conditions.has(tag):
            self.status = 304
        return self.status == 304


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
    rule_statistics: RuleStatistics
    early_rules: EarlyRules
    rule_problems: RuleProblems
    dry_runs: DryRuns
    journal: Journal
    rejected_reports: RefusedMachines
    refused_lookups: RefusedMachines
    refused_heartbeats: RefusedMachines
    node_failures: NodeFailures
    frequent_values: FrequentValues
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

    def mark(self, purpose: str, body: JSONObject) -> Mark:
        """Return the mark of a request that changes a node. Without the header, only this one message has it.

        :param purpose: names what ``body`` is about
        :raises Invalid: 400, the header has no valid key
        """
        key = self.environ.get(_VARIABLE)
        if key is None:
            key = f"{uuid.uuid4()} of the message"  # no client's key has blanks
        elif _FORM.fullmatch(key) is None:
            raise Invalid(f"The header {_HEADER} must consist of 1 to 255 printable ASCII characters without blanks.")
        content = b" ".join((purpose.encode(), orjson.dumps(body, option=orjson.OPT_SORT_KEYS)))
        return Mark(_digest(key.encode()), _digest(content))

    def was_accepted(self, conn: sa.Connection, node_id: int, mark: Mark) -> bool:
        """Return whether a request with this mark was accepted in the last minutes.

        :raises Conflict: 409, another request was accepted with the same key
        """
        if _VARIABLE not in self.environ:
            return False
        first = accepted_requests.find(conn, mark.digest, node_id)
        if first is not None and first.content != mark.content:
            raise Conflict(f"The {_HEADER} was used for another request on this node.")
        return first is not None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=32).hexdigest()
