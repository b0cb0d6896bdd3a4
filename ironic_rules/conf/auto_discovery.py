"""``[auto_discovery]``: discovery of machines that are not enrolled."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("auto_discovery", title="Auto-discovery", help="Enrolment of unknown machines by inspection data.")
OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("enabled", default=False,
                help="Create a node for a machine that posts inspection data, if there is no node, in any state, with "
                     "its MAC or BMC addresses."),
    cfg.StrOpt("driver", help="Hardware type of discovered nodes. Required if auto-discovery is enabled."),
    cfg.StrOpt("known_serial", default="warn",
               choices=[("warn", "enrol the machine and log a warning"), ("refuse", "do not enrol the machine"),
                        ("ignore", "do not compare them")],
               help="What happens with a machine whose MAC and BMC addresses are unknown, but whose serial number or "
                    "system UUID is a known one."),
    cfg.StrOpt("inspection_scope", max_length=255, help="Inspection scope of discovered nodes."),
    cfg.IntOpt("max_nodes_per_minute", default=60, min=1, max=100000,
               help="Maximum number of nodes created per minute, by all API processes together. Further machines get "
                    "the same 404 as one that is not found, and retry."),
    cfg.IntOpt("max_bytes_per_minute", default=64 * 1024 * 1024, min=1024 * 1024,
               help="Maximum size in bytes of the reports from which nodes are created per minute, by all API "
                    "processes together. Inventory and plug-in data count, as JSON; up to twice as much is stored."),
    cfg.IntOpt("max_unclaimed_nodes", default=10000, min=0,
               help="Maximum number of discovered nodes for which no provision state was requested yet. While there "
                    "are as many, no further machine is enrolled. 0: no limit."),
    cfg.IntOpt("unclaimed_timeout", default=0, min=0,
               help="Seconds after which a discovered node is deleted if no provision state was requested for it since "
                    "its discovery, and nothing of it was changed for as long. Nodes that are in maintenance, "
                    "protected, or have an instance are kept. Conductors need this option. 0: none is deleted."),
]
