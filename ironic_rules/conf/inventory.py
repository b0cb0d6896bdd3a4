"""``[inventory]``: what is kept of the data that ramdisks send."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("inventory", title="Inventory", help="The inventory store.")
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("data_backend", default="database",
               choices=[("database", "the node_inventory table"), ("none", "nothing is kept once it was processed")],
               help="Where inventories are kept."),
    cfg.IntOpt("max_versions", default=3, min=1, help="Inspections whose data is kept per node."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[inventory]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
