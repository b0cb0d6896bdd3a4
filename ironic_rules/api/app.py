"""The WSGI application: pecan, the order of the middleware, and the request that methods get.

``expose`` handles the errors of methods. Pecan, keystonemiddleware, the password file and the reading of a body raise
others; these become a 500 in the usual error format with version headers, because clients do not recognize the service
by the error page of a web server.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import webob
from oslo_config import cfg
from pecan import core, decorators
from webob.multidict import MultiDict

from ironic_rules import tracing
from ironic_rules.api import audit, authorization
from ironic_rules.api.access_log import RequestId, RequestLog, RequestMetrics
from ironic_rules.api.body import BodyLimit
from ironic_rules.api.expose import LockPatience, Sent
from ironic_rules.api.foreign_clients import ComputeFaults, InspectorClients
from ironic_rules.api.health import BrokerCheck, DatabaseCheck, DatabaseCounts
from ironic_rules.api.other_sites import OtherSites, OwnNames
from ironic_rules.api.page import Session, WebPage
from ironic_rules.api.request import Request
from ironic_rules.api.routes import NO_RESOURCE, Audience, FoundRoute, Routing
from ironic_rules.api.v1 import RootController
from ironic_rules.api.v1.deploy_steps import OfferedSteps
from ironic_rules.api.v1.fact_counts import FrequentValues
from ironic_rules.api.v1.fleet import NodeFailures
from ironic_rules.api.v1.ramdisk import ConductorCheck, ReportDigests
from ironic_rules.api.v1.rule_lists import RuleProblems
from ironic_rules.api.v1.trials import DryRuns
from ironic_rules.api.versions import Microversion
from ironic_rules.db import conductors, inspection_rules, legacy_rules
from ironic_rules.db.session import Database
from ironic_rules.httpd import faults
from ironic_rules.inspection.early import EarlyRules
from ironic_rules.inspection.journal import Journal, RefusedMachines
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.rule_sets import RuleCaches
from ironic_rules.inspection.rule_statistics import RuleStatistics
from ironic_rules.metrics import exporter
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc.pxe_filter import PXEFilterAPI


class Requests:
    """Makes a :class:`~ironic_rules.api.request.Request` of the environment of each request."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, rpc: Any, rules: RuleCaches,
                 pxe_filter: PXEFilterAPI, numbers: Numbers, make_pipeline: Callable[[], Pipeline]) -> None:
        self._conf = conf
        self._db = db
        self._rule_cache, self._legacy_rule_cache = rules.inspection, rules.legacy
        # Rules are compiled, and those that cannot be are logged, when the process starts.
        self._rule_cache.current()
        self._legacy_rule_cache.current()
        statistics = rules.statistics or RuleStatistics(
            db, conf.inspection_rules.statistics_interval, numbers, rules.settings.built_in)
        group = conf.inspection_journal
        self._make = functools.partial(
            Request, conf=conf, db=db, rpc=rpc, pxe_filter=pxe_filter, rules=rules.settings,
            rule_cache=self._rule_cache, legacy_rule_cache=self._legacy_rule_cache,
            rule_statistics=statistics, early_rules=EarlyRules(conf.inspection_rules.early_timeout, statistics),
            rule_problems=RuleProblems(rules.settings),
            dry_runs=DryRuns(conf.inspection_rules.dry_run_timeout, make_pipeline),
            journal=Journal(db, group.max_entries, group.max_days, keep_reports=group.keep_reports),
            rejected_reports=RefusedMachines(), refused_lookups=RefusedMachines(),
            refused_heartbeats=RefusedMachines(), node_failures=NodeFailures(),
            frequent_values=FrequentValues(),
            offered_steps=OfferedSteps(conf.conductor.heartbeat_timeout),
            report_digests=ReportDigests(db), conductor_check=ConductorCheck(conf.conductor.heartbeat_timeout),
            broker=BrokerCheck(rpc.ping_broker), database=DatabaseCheck(self._read_health), numbers=numbers,
            lock_patience=LockPatience(conf.api.lock_patience, max(1, conf.api.threads // 4)),
            metrics_page=exporter.page_of(exporter.NumbersCollector(numbers), "[api]serve_metrics")
            if conf.api.serve_metrics else None)

    def of(self, environ: WSGIEnvironment) -> Request:
        """Return what methods get."""
        return self._make(environ=environ, version=environ["ironic_rules.version"],
                          context=authorization.context(environ, self._conf))

    def _read_health(self) -> DatabaseCounts:
        with self._db.reader() as conn:
            alive = len(conductors.alive(conn, self._conf.conductor.heartbeat_timeout))
            revision, of_legacy = inspection_rules.revision(conn), legacy_rules.revision(conn)
        invalid = len(self._rule_cache.broken(revision)) + len(self._legacy_rule_cache.broken(of_legacy))
        return DatabaseCounts(alive, invalid)


class LastResort:
    """Catches errors outside controllers. In the API, only this class and ``expose`` catch unexpected exceptions."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return self._app(environ, start_response)
        except Exception as error:  # noqa: BLE001  (the outermost handler)
            return faults.send(faults.from_error(error), environ, start_response)


class Listener(NamedTuple):
    """The clients of an application, and the address on which it is served.

    :ivar address: None: it is not known, because another WSGI server listens
    """

    audience: Audience = Audience.ALL
    address: str | None = None


def make_app(conf: cfg.ConfigOpts, db: Database, rpc: object, rules: RuleCaches | None = None,
             pxe_filter: PXEFilterAPI | None = None, numbers: Numbers | None = None,
             make_pipeline: Callable[[], Pipeline] = lambda: Pipeline([]),
             address: str | None = None) -> WSGIApplication:
    """Return the WSGI application for all clients.

    :param address: of its :class:`Listener`; the other parameters are those of :func:`make_apps`
    """
    return make_apps(conf, db, rpc, rules, pxe_filter, numbers, make_pipeline, (Listener(address=address),))[0]


def make_apps(conf: cfg.ConfigOpts, db: Database, rpc: object, rules: RuleCaches | None,
              pxe_filter: PXEFilterAPI | None, numbers: Numbers | None, make_pipeline: Callable[[], Pipeline],
              listeners: Sequence[Listener]) -> list[WSGIApplication]:
    """Return a WSGI application for each listener; they share what the process knows.

    :param rpc: a :class:`~ironic_rules.rpc.api.ConductorAPI`
    :param rules: those of the process; None: compiled by the defaults of ``[inspection_rules]``
    :param pxe_filter: notifies the PXE filters of changes; None: no notifications
    :param numbers: where requests are counted, with what else is counted in this process
    :param make_pipeline: returns the hooks for dry runs; called when the first one is requested
    """
    numbers = numbers or Numbers()
    requests = Requests(conf, db, rpc, rules or RuleCaches(db), pxe_filter or PXEFilterAPI(), numbers, make_pipeline)
    auditing = audit.make(conf, db, numbers)
    return [_layered(Application(requests), conf, numbers, listener, auditing) for listener in listeners]


def _layered(app: WSGIApplication, conf: cfg.ConfigOpts, numbers: Numbers, listener: Listener,
             audited: audit.Audit | None) -> WSGIApplication:
    """Return an application with everything around it."""
    root = RootController()
    # From the inside out. The body is read after authentication: that of an unauthenticated client is never read.
    # Everything that may reply by itself is inside LastResort, which is inside what adds headers and the log line.
    app = BodyLimit(app, conf.api.max_json_body_size, conf.api.max_anonymous_body_size, numbers)
    app = authorization.middleware(app, conf)
    app = Routing(app, root, listener.audience)
    app = LastResort(app)
    app = Microversion(app)
    if conf.api.enable_ui and listener.audience is not Audience.RAMDISKS:
        app = Session(WebPage(app), conf)
    # Nothing outside of it has an effect, or replies with more than an error.
    app = OtherSites(app, OwnNames(conf, listener.address))
    app = ComputeFaults(app, enabled=conf.api.enable_compute_flavors)
    app = InspectorClients(app)
    if audited is not None:
        app = audit.AuditedRequests(app, root, audited)
    app = RequestMetrics(app, root, numbers)
    app = RequestLog(app)
    if tracing.is_on():
        app = tracing.TracedRequests(app)
    return RequestId(app)


class PecanRequest(webob.Request):
    """A request as pecan needs it: parameters come from the path only, and pecan does not read the body.

    pecan would parse JSON and forms itself, add their fields to the arguments, and negotiate content types.
    """

    accept = None
    content_type = ""
    GET = params = POST = property(lambda self: MultiDict())
    __setattr__ = object.__setattr__


class PecanResponse(webob.Response):
    """A reply of bytes."""

    def __init__(self) -> None:
        self._status = "200 OK"
        self._headers = None
        self._headerlist: faults.Headers = []
        self._app_iter: list[bytes] = []

    def set(self, status: int, headers: faults.Headers, body: bytes) -> None:
        """Set the reply; ``headers`` is copied."""
        self._status = faults.status_line(status)
        # The length of a 304 would be that of the reply that is not sent.
        length = ("Content-Length", str(len(body)))
        self._headerlist = [*headers] if status in (204, 304) else [*headers, length]
        self._app_iter = [body] if body else []

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        start_response(self._status, self._headerlist)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else self._app_iter


class Application(core.ExplicitPecan):  # type: ignore[misc]
    """pecan with the routes of :mod:`ironic_rules.api.routes`, and without requests that threads know."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(self.serve, force_canonical=False, guess_content_type_from_ext=False, request_cls=PecanRequest,
                         response_cls=PecanResponse)
        self._requests = requests

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return super().__call__(environ, start_response)
        finally:
            # pecan leaves the request and the response in the environment that the request refers to: a cycle, so that
            # the body of each reply would be kept until the garbage collector runs.
            environ.pop("pecan.locals", None)

    def route(self, req: object, node: Callable[..., Any], path: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
        return node, ()

    def invoke_controller(self, controller: Callable[..., Any], args: Any, kwargs: Any, state: Any) -> None:
        """Call :meth:`serve`, without a look at its parameters, which would take pecan longer than all else."""
        controller(*args)

    @decorators.expose(content_type="application/json")
    def serve(self, request: PecanRequest, response: PecanResponse) -> None:
        """Reply to a request by the method that was found for it: the one place where pecan's request is known."""
        response.set(*_reply(self._requests.of(request.environ)))

    def _handle_empty_response_body(self, state: object) -> None:
        """Do nothing: the status is the one that the route declares, whatever the body."""


def _reply(request: Request) -> Sent:
    route: FoundRoute = request.environ["ironic_rules.found"]
    if route.controller is not None:
        sent: Sent = route.controller(request, *route.arguments)
        return sent
    allow = route.allow if request.version >= route.since else ()
    # Clients show the description; without one, the whole reply.
    text = "This resource does not have the method." if allow else NO_RESOURCE
    return faults.from_status(405 if allow else 404, text, allow=allow)
