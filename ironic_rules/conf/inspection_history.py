"""``[inspection_history]``: what is kept of inspections."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("inspection_history", title="History of inspections", help="What is kept of inspections.")
OPTS: list[cfg.Opt] = [
    cfg.IntOpt("max_entries", default=100, min=0, max=100000,
               help="Number of inspections that are kept per node: when, how long, which rules matched, what they "
                    "changed. 0: none."),
]
