"""``[redfish]``: how BMCs are talked to that speak Redfish."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("redfish", title="Redfish", help="Hardware type redfish.")
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("auth_type", default="auto",
               choices=[("auto", "a session, else HTTP basic"), ("session", "a session"), ("basic", "HTTP basic")],
               help="How a BMC is logged in to, for nodes without driver_info/redfish_auth_type."),
    cfg.IntOpt("connect_timeout", default=10, min=1, help="Seconds that a BMC may take to accept a connection."),
    cfg.IntOpt("request_timeout", default=60, min=1, help="Seconds that a BMC may take to answer a request."),
    cfg.IntOpt("connection_attempts", default=3, min=1, max=100,
               help="How often a request is sent to a BMC that cannot be reached or has trouble of its own."),
    cfg.IntOpt("connection_retry_interval", default=4, min=1, help="Seconds between two such attempts."),
    cfg.IntOpt("configuration_timeout", default=1800, min=1,
               help="Seconds that a machine may take until settings of its firmware setup or its volumes are as a "
                    "deploy step wants them; it boots meanwhile."),
    cfg.IntOpt("connection_cache_size", default=1000, min=0,
               help="BMCs whose sessions are kept for the next request. 0: log in every time."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[redfish]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
