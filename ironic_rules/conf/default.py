"""``[DEFAULT]``: the host, authentication, enabled hardware types; ``[audit]``, ``[events]``, ``[tracing]``."""

from __future__ import annotations

import socket

from oslo_config import cfg

from ironic_rules.models import secrets
from ironic_rules.models.events import LEVELS
from ironic_rules.models.nodes import INTERFACES

OPTS: list[cfg.Opt] = [
    cfg.HostAddressOpt("host", default=socket.gethostname(), sample_default="localhost",
                       help="Name of this conductor. Node locks contain it, so it must be unique among all "
                            "conductors and not change on restart."),
    cfg.StrOpt("state_path", default="ironic-rules-data",
               help="Folder for the local files of the service (the one-process service's SQLite database)."),
    cfg.StrOpt("auth_strategy", default="noauth",
               choices=[("noauth", "every client is an administrator"),
                        ("keystone", "tokens, checked by keystonemiddleware"),
                        ("http_basic", "HTTP basic, with http_basic_auth_user_file")],
               help="Authentication of API requests. The endpoints for ramdisks are always public."),
    cfg.StrOpt("http_basic_auth_user_file", default="/etc/ironic-rules/htpasswd",
               help="Apache-style file with user names and bcrypt hashes for auth_strategy = http_basic."),
    cfg.StrOpt("http_basic_auth_group_file",
               help="Apache-style file with lines 'ROLE: USER USER'. It gives the roles admin, member and reader to "
                    "users of http_basic_auth_user_file. Policies then apply as to users of Keystone with these "
                    "roles for the whole system. A user without a role may do nothing. Default: all users are "
                    "administrators."),
    cfg.IntOpt("http_basic_max_checks", default=2, min=1,
               help="Number of passwords that one API process checks at the same time with auth_strategy = http_basic. "
                    "Passwords that were right before need no check."),
    cfg.BoolOpt("rbac_service_role_elevated_access", default=True,
                help="With auth_strategy = keystone: whether users with the role service in the project "
                     "rbac_service_project_name may do what services such as Nova need. With a system-scoped token "
                     "they may in any case. Unlike in Ironic the default is true; without it, a service sees the nodes "
                     "that its project owns."),
    cfg.StrOpt("rbac_service_project_name", default="service",
               help="Name of the project, in the domain with the id default, that has the users of other services."),
    cfg.ListOpt("secret_words", default=list(secrets.WORDS),
                help="A value is a secret, shown as ******, if its key contains one of these words. Underscores and "
                     "hyphens separate the words of a key, and case does not matter: api_key matches bmc-api-key "
                     "and api_key_2, pin does not match cpu_pinning. Keys that oslo.utils masks (*password*, "
                     "*token*, *secret*, ...) are secret in any case. Must be the same for all processes."),
    cfg.BoolOpt("infiniband_addresses", default=False,
                help="Accept InfiniBand addresses, of 20 octets, and GUIDs as addresses of ports, from clients and "
                     "ramdisks. The port has the MAC address that stands for it: the GUID without its two middle "
                     "octets. The extra/client-id of the port identifies DHCP clients on InfiniBand. Must be the "
                     "same for all processes."),
    cfg.StrOpt("notification_level", choices=LEVELS,
               help="Lowest level of the events that the service sends as notifications, with the drivers of "
                    "[oslo_messaging_notifications]. Default: no notifications. Must be the same for all processes."),
    cfg.ListOpt("versioned_notifications_topics", default=["ironic_versioned_notifications"],
                help="Topics of the notifications. The names of RabbitMQ's queues are TOPIC.LEVEL."),
    cfg.BoolOpt("pecan_debug", default=False,
                help="Show tracebacks of API faults in error bodies. Do not use in production."),
]

_ENABLED: dict[str, list[str]] = {
    "bios": ["fake", "no-bios"], "boot": ["fake"], "console": ["fake", "no-console"], "deploy": [
        "direct", "ramdisk", "fake"],
    "firmware": ["fake", "no-firmware"], "inspect": ["agent", "fake", "no-inspect"], "management": ["fake", "noop"],
    "network": ["noop"], "power": ["fake"], "raid": ["fake", "no-raid"], "rescue": ["fake", "no-rescue"],
    "storage": ["noop", "fake"], "vendor": ["fake", "no-vendor"],
}

OPTS.append(cfg.ListOpt(
    "enabled_hardware_types", default=["fake-hardware"],
    help="Hardware types (entry points of ironic_rules.hardware.types) that this conductor supports."))
for _kind in INTERFACES:
    OPTS.append(cfg.ListOpt(
        f"enabled_{_kind}_interfaces", default=_ENABLED[_kind],
        help=f"{_kind.capitalize()} interfaces that nodes may use."))
    OPTS.append(cfg.StrOpt(
        f"default_{_kind}_interface",
        help=f"{_kind.capitalize()} interface of a node that does not set one. Default: the first enabled one that "
             "the hardware type supports."))

AUDIT_GROUP = cfg.OptGroup("audit", title="Audit", help="Who has changed what.")
AUDIT_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("log_file",
               help="File with a JSON line for each request that changes something, or gets 401 or 403. The service "
                    "opens the file again after a move: logrotate needs no signal. Default: none."),
    cfg.BoolOpt("events", default=False,
                help="Store these lines as events, too, which notifications and webhooks deliver."),
]

TRACING_GROUP = cfg.OptGroup("tracing", title="Tracing", help="Traces by OpenTelemetry.")
TRACING_OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("enabled", default=False,
                help="Trace requests, calls to conductors, their work, and statements. Needs the extra tracing. While "
                     "it is on, a statement takes the process several times as long."),
    cfg.StrOpt("endpoint", default="http://127.0.0.1:4318/v1/traces",
               help="URL to which processes send spans, by OTLP over HTTP."),
    cfg.StrOpt("service_name", default="ironic-rules", help="The service in the traces."),
    cfg.FloatOpt("sample_ratio", default=1.0, min=0.0, max=1.0,
                 help="Recorded share of the traces that begin here. A client decides about its own by the header "
                      "traceparent."),
]

EVENTS_GROUP = cfg.OptGroup("events", title="Events", help="Events of the service, and who receives them.")
EVENTS_OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("webhooks", default=False,
                help="Store events for webhooks, which users create at /v1/webhooks, and deliver them. Must be the "
                     "same for all processes."),
    cfg.IntOpt("webhook_timeout", default=10, min=1, max=60,
               help="Seconds that the receiver of a webhook may take for a reply."),
    cfg.IntOpt("webhook_workers", default=8, min=1, max=100,
               help="Maximum number of webhooks to which one conductor sends at the same time."),
    cfg.FloatOpt("interval", default=1.0, min=0.05,
                 help="Seconds between two looks of a conductor for events to deliver. It delivers the events of "
                      "its own process sooner."),
    cfg.IntOpt("keep_hours", default=24, min=1, max=24 * 365,
               help="Hours after which conductors give up an undelivered event: at most dead_letter_days."),
    cfg.IntOpt("dead_letter_days", default=14, min=1, max=3650,
               help="Days for which the service keeps events that a webhook did not receive, to read or deliver "
                    "them again. It keeps at most 10,000 of all webhooks."),
    cfg.IntOpt("max_events", default=1_000_000, min=1000,
               help="Maximum number of events that wait, about. Beyond it, conductors delete the oldest."),
]
