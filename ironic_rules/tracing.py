"""Tracing by OpenTelemetry: spans of requests, of calls to conductors, of their work, and of statements.

Without ``[tracing]enabled`` nothing of OpenTelemetry is imported, and :func:`span` does nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.text import installation_of

#: The tracer of this process; None: nothing is traced.
_tracer: Any = None
#: Provider of the tracer, and the engine whose statements are traced.
_provider: Any = None
_engine: object = None
_NOTHING = contextlib.nullcontext()
#: Seconds that a collector may take. Spans that it does not take are dropped.
_TIMEOUT_S = 5


def start(conf: cfg.ConfigOpts, engine: object) -> None:
    """Trace from now on, if the configuration says so. A forked process calls it again, with an engine of its own.

    :param engine: the database's; with SQLAlchemy, as its statements are not executed without it while one listens
    :raises ConfigurationError: the library is missing
    """
    global _tracer, _provider, _engine
    options = conf.tracing
    if not options.enabled or _engine is engine:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError as exc:
        raise ConfigurationError(f"[tracing]enabled needs OpenTelemetry; {installation_of('tracing')}") from exc
    instrumentor = SQLAlchemyInstrumentor()
    if _provider is None:
        _provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(options.sample_ratio)),
            resource=Resource.create({"service.name": options.service_name, "service.instance.id": conf.host}))
        _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(options.endpoint, timeout=_TIMEOUT_S)))
        _tracer = _provider.get_tracer("ironic_rules")
    else:
        # The engine of the process that has forked is not used here.
        instrumentor.uninstrument()
    # The library's bound of versions is older than the versions it works with; a test looks at the spans.
    instrumentor.instrument(engine=engine, tracer_provider=_provider, skip_dep_check=True)
    _engine = engine


def is_on() -> bool:
    """Return whether this process is traced."""
    return _tracer is not None


def span(name: str, parent: Mapping[str, str] | None = None, kind: str = "INTERNAL",
         **attributes: str) -> contextlib.AbstractContextManager[Any]:
    """Return a context that is a span; None is its value if nothing is traced.

    :param parent: from :func:`carrier`, of another thread or process; None: the span of this thread
    :param kind: of OpenTelemetry's ``SpanKind``
    """
    if _tracer is None:
        return _NOTHING
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind

    manager: contextlib.AbstractContextManager[Any] = _tracer.start_as_current_span(
        name, None if parent is None else propagate.extract(parent), SpanKind[kind], attributes)
    return manager


def carrier() -> dict[str, str] | None:
    """Return the span of this thread as headers of W3C; None: there is none."""
    if _tracer is None:
        return None
    from opentelemetry import propagate

    headers: dict[str, str] = {}
    propagate.inject(headers)
    return headers or None


class TracedRequests:
    """Makes a span of each request: of the trace that the client names by ``traceparent``, or of a new one."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        parent = {name: value for name in ("traceparent", "tracestate")
                  if (value := environ.get(f"HTTP_{name.upper()}")) is not None}
        method = environ["REQUEST_METHOD"]
        with span(method, parent or None, "SERVER", **{"http.request.method": method}) as traced:
            traced.set_attribute("ironic_rules.request_id", environ.get("openstack.request_id", ""))

            def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
                route = environ.get("ironic_rules.found")
                if route is not None and route.controller is not None:
                    policy = route.controller.route.policy
                    traced.update_name(f"{method} {policy or environ.get('PATH_INFO', '')}")
                traced.set_attribute("http.response.status_code", int(status[:3]))
                return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)

            return self._app(environ, start)
