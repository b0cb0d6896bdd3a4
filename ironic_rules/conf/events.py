"""``[events]``: which events are kept and how they are delivered; ``[audit]``; ``[tracing]``."""

from __future__ import annotations

from oslo_config import cfg

AUDIT_GROUP = cfg.OptGroup("audit", title="Audit", help="Who has changed what.")
AUDIT_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("log_file",
               help="File with a JSON line for each request that changes something, or that was refused with 401 or "
                    "403. It is opened again when it was moved away: logrotate needs no signal. Default: none."),
    cfg.BoolOpt("events", default=False,
                help="Store these lines as events, too, which notifications and webhooks deliver."),
]

TRACING_GROUP = cfg.OptGroup("tracing", title="Tracing", help="Traces by OpenTelemetry.")
TRACING_OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("enabled", default=False,
                help="Trace requests, calls to conductors, their work, and statements. Needs the extra tracing. While "
                     "it is on, a statement takes the process several times as long."),
    cfg.StrOpt("endpoint", default="http://127.0.0.1:4318/v1/traces",
               help="URL to which spans are sent, by OTLP over HTTP."),
    cfg.StrOpt("service_name", default="ironic-rules", help="The service in the traces."),
    cfg.FloatOpt("sample_ratio", default=1.0, min=0.0, max=1.0,
                 help="Share of the traces that are recorded, of those that begin here. A client decides about its own "
                      "by the header traceparent."),
]

GROUP = cfg.OptGroup("events", title="Events", help="Events of the service, and who receives them.")
OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("webhooks", default=False,
                help="Store events for webhooks, which users create at /v1/webhooks, and deliver them. Must be the "
                     "same for all processes."),
    cfg.IntOpt("webhook_timeout", default=10, min=1, max=60,
               help="Seconds that the receiver of a webhook may take for a reply."),
    cfg.IntOpt("webhook_workers", default=8, min=1, max=100,
               help="Maximum number of webhooks to which one conductor sends at the same time."),
    cfg.FloatOpt("interval", default=1.0, min=0.05,
                 help="Seconds between two looks of a conductor for events to deliver. Those of its own process are "
                      "delivered sooner."),
    cfg.IntOpt("keep_hours", default=24, min=1, max=24 * 365,
               help="Hours after which an event is given up that could not be delivered."),
    cfg.IntOpt("dead_letter_days", default=14, min=1, max=3650,
               help="Days for which events are kept that could not be delivered to a webhook, so that they can be read "
                    "and delivered again. At most 10,000 of all webhooks are kept."),
    cfg.IntOpt("max_events", default=1_000_000, min=1000,
               help="Maximum number of events that wait, about. Beyond it, the oldest are deleted."),
]
