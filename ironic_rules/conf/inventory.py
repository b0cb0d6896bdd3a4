"""``[inventory]``: storage of the data that ramdisks send."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("inventory", title="Inventory", help="The inventory store.")
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("data_backend", default="database",
               choices=[("database", "the node_inventory table"), ("none", "nothing is stored after processing")],
               help="Where inventories are stored."),
    cfg.IntOpt("max_versions", default=3, min=1, help="Number of inspections whose data is stored per node."),
]
