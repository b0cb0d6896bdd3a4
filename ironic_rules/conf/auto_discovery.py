"""``[auto_discovery]``: machines that nobody enrolled."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("auto_discovery", title="Auto-discovery", help="Enrolling unknown machines that send data.")
OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("enabled", default=False,
                help="Create a node for a machine that posts inspection data and that no node is known for, by MAC or "
                     "BMC address, in any state."),
    cfg.StrOpt("driver", help="Hardware type of nodes that are created so. Required when the feature is enabled."),
    cfg.StrOpt("inspection_scope", max_length=255, help="Inspection scope of nodes that are created so."),
    cfg.IntOpt("max_nodes_per_minute", default=60, min=1, max=100000,
               help="Nodes that may be created in a minute, by all API processes together. A machine beyond that gets "
                    "the same 404 as one that is not found, and tries again."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[auto_discovery]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
