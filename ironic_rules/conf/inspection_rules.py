"""``[inspection_rules]``: which nodes the rules run on and what they may read."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup("inspection_rules", title="Inspection rules", help="The rule engine.")
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("mask_secrets", default="always",
               choices=[("always", "no rule can read a secret"), ("never", "every rule can"),
                        ("sensitive", "rules marked as sensitive can")],
               help="Whether secrets (passwords, tokens, keys) read as ****** in rules."),
    cfg.StrOpt("supported_interfaces", default="^(agent|inspector)$",
               help="Regular expression that a node's inspect interface must fully match for rules to run."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[inspection_rules]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
