"""``[conductor]``: workers, heartbeats, locks and timeouts."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("conductor", title="Conductor", help="The processes that work on nodes.")
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("conductor_group", default="",
               help="Group of this conductor; it serves the nodes whose conductor_group equals it."),
    cfg.IntOpt("workers", default=1, min=1, max=256,
               help="Processes that ironic-rules-conductor works with. Each is a conductor of its own: the first is "
                    "called [DEFAULT]host, the next host:2, then host:3 and so on."),
    cfg.IntOpt("workers_pool_size", default=32, min=2, max=1000,
               help="Nodes that one process works on at the same time."),
    cfg.IntOpt("queue_size", default=1000, min=0,
               help="Tasks that may wait for a worker. What comes on top is refused with 503, to be repeated."),
    cfg.IntOpt("heartbeat_interval", default=10, min=1, help="Seconds between two signs of life of a conductor."),
    cfg.IntOpt("heartbeat_timeout", default=60, min=2,
               help="Seconds after its last sign of life until a conductor counts as dead and loses its nodes."),
    cfg.IntOpt("recovery_interval", default=10, min=1,
               help="Seconds between two looks for dead conductors, unfinished work and overdue nodes."),
    cfg.IntOpt("inspect_wait_timeout", default=1800, min=0,
               help="Seconds that a node may wait for its ramdisk in 'inspect wait'. 0: for ever."),
    cfg.IntOpt("deploy_callback_timeout", default=1800, min=0,
               help="Seconds that a node may wait in 'wait call-back' for its machine's next sign of life. "
                    "0: for ever."),
    cfg.StrOpt("pin_release_version",
               help="Set it, to the release that is upgraded from, while conductors of two releases run side by side: "
                    "no deploy template is applied then, and a warning says so. Unset it when all are upgraded."),
    cfg.IntOpt("power_state_change_timeout", default=60, min=2,
               help="Seconds that a machine may take to reach the power state that it was told to."),
    cfg.IntOpt("soft_power_off_timeout", default=600, min=2,
               help="Seconds that the operating system of a machine may take to switch it off in order."),
    cfg.IntOpt("node_history_max_entries", default=300, min=0, help="History entries kept per node. 0: no history."),
    cfg.IntOpt("shutdown_grace", default=1, min=0, max=3600,
               help="Seconds that work in flight gets to finish when the process is told to end. What is not finished "
                    "then is stored and resumed by the next conductor."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[conductor]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
