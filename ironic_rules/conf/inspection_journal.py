"""``[inspection_journal]``: what is kept of refused callbacks."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("inspection_journal", title="Journal of refused callbacks",
                     help="What is kept of callbacks of ramdisks that were refused.")
OPTS: list[cfg.Opt] = [
    cfg.IntOpt("max_entries", default=10000, min=0, max=1000000,
               help="Number of machines and reasons that are kept. 0: none, and no callback is written."),
    cfg.IntOpt("max_days", default=30, min=1, max=3650, help="Days after which an entry is deleted."),
    cfg.BoolOpt("keep_reports", default=False,
                help="Whether the last report of the machine is kept, too, without secrets, if it has at most 1 MiB. "
                     "Anyone can send reports: there may be max_entries of them."),
]
