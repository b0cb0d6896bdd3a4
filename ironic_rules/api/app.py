"""The WSGI application: pecan, and the order of the middleware."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import webob
from oslo_config import cfg
from pecan import core, decorators
from webob.multidict import MultiDict

from ironic_rules.api import auth, hooks
from ironic_rules.api.controllers.root import RootController
from ironic_rules.api.expose import Sent
from ironic_rules.api.middleware.body_limit import BodyLimit
from ironic_rules.api.middleware.compute_faults import ComputeFaults
from ironic_rules.api.middleware.inspector_clients import InspectorClients
from ironic_rules.api.middleware.last_resort import LastResort
from ironic_rules.api.middleware.microversion import Microversion
from ironic_rules.api.middleware.other_sites import OtherSites
from ironic_rules.api.middleware.page import WebPage
from ironic_rules.api.middleware.request_id import RequestId
from ironic_rules.api.middleware.request_log import RequestLog
from ironic_rules.api.middleware.request_metrics import RequestMetrics
from ironic_rules.api.middleware.route import Routing
from ironic_rules.api.middleware.session import Session
from ironic_rules.api.own_names import OwnNames
from ironic_rules.api.request import Request
from ironic_rules.api.resource import Found
from ironic_rules.db.session import Database
from ironic_rules.httpd import faults
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.rule_cache import RuleCaches
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.rpc.pxe_filter import PXEFilterAPI


def make_app(conf: cfg.ConfigOpts, db: Database, rpc: Any, rules: RuleCaches | None = None,
             pxe_filter: PXEFilterAPI | None = None, numbers: Numbers | None = None,
             make_pipeline: Callable[[], Pipeline] = lambda: Pipeline([]),
             address: str | None = None) -> WSGIApplication:
    """Return the WSGI application.

    :param rpc: a :class:`~ironic_rules.rpc.api.ConductorAPI`
    :param rules: those of the process; None: compiled by the defaults of ``[inspection_rules]``
    :param pxe_filter: notifies the PXE filters of changes; None: no notifications
    :param numbers: where requests are counted, with what else is counted in this process
    :param make_pipeline: returns the hooks for dry runs; called when the first one is requested
    :param address: on which the service listens; None: it is not known, because another WSGI server listens
    """
    root = RootController()
    numbers = numbers or Numbers()
    dependencies = hooks.DependenciesHook(
        conf, db, rpc, rules or RuleCaches(db), pxe_filter or PXEFilterAPI(), numbers, make_pipeline)
    app: WSGIApplication = Application(root, hooks=lambda: [dependencies], force_canonical=False,
                           guess_content_type_from_ext=False, request_cls=PecanRequest, response_cls=PecanResponse)
    # From the inside out. The body is read after authentication: that of an unauthenticated client is never read.
    # Everything that may reply by itself is inside LastResort, which is inside what adds headers and the log line.
    app = BodyLimit(app, conf.api.max_json_body_size, conf.api.max_anonymous_body_size, numbers)
    app = auth.middleware(app, conf)
    app = Routing(app, root)
    app = LastResort(app)
    app = Microversion(app)
    if conf.api.enable_ui:
        app = Session(WebPage(app), conf)
    # Nothing outside of it has an effect, or replies with more than an error.
    app = OtherSites(app, OwnNames(conf, address))
    app = ComputeFaults(app, enabled=conf.api.enable_compute_flavors)
    app = InspectorClients(app)
    app = RequestMetrics(app, root, numbers)
    app = RequestLog(app)
    return RequestId(app)


class PecanRequest(webob.Request):
    """A request as pecan needs it: parameters come from the path only, and pecan does not read the body.

    pecan would parse JSON and forms itself, add their fields to the arguments, and negotiate content types.

    :ivar typed: what methods get
    """

    typed: Request

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
    """pecan with the routes of :mod:`ironic_rules.api.resource`, and without requests that threads know."""

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return super().__call__(environ, start_response)
        finally:
            # pecan leaves the request and the response in the environment that the request refers to: a cycle, so that
            # the body of each reply would be kept until the garbage collector runs.
            environ.pop("pecan.locals", None)

    def route(self, req: Any, node: Any, path: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
        return self.serve, ()

    def invoke_controller(self, controller: Callable[..., Any], args: Any, kwargs: Any, state: Any) -> None:
        """Call :meth:`serve`, without a look at its parameters, which would take pecan longer than all else."""
        controller(*args)

    @decorators.expose(content_type="application/json")
    def serve(self, request: PecanRequest, response: PecanResponse) -> None:
        """Reply to a request by the method that was found for it: the one place where pecan's request is known."""
        response.set(*_reply(request.typed))

    def _handle_empty_response_body(self, state: Any) -> None:
        """Do nothing: the status is the one that the route declares, whatever the body."""


def _reply(request: Request) -> Sent:
    found: Found = request.environ["ironic_rules.found"]
    if found.controller is not None:
        sent: Sent = found.controller(request, *found.arguments)
        return sent
    allow = found.allow if request.version >= found.since else ()
    # Clients show the description; without one, the whole reply.
    text = "This resource does not have the method." if allow else "There is no such resource."
    return faults.from_status(405 if allow else 404, text, allow=allow)
