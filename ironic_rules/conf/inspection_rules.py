"""``[inspection_rules]``: built-in rules, which nodes rules run on, what they may read and how large they may get."""

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
    cfg.StrOpt("built_in", deprecated_name="built_in_rules",
               help="YAML file with built-in rules, or a directory whose .yaml files have them. Read once, at start, "
                    "which fails if a rule is not valid. Give API and conductors the same files."),
    cfg.StrOpt("default_scope", max_length=255,
               help="Scope of rules that do not set one. Built-in rules are excepted."),
    cfg.ListOpt("api_call_allowed_hosts", default=[],
                help="Hosts that the action api-call may send requests to: HOST, on port 80 (http) or 443 (https), or "
                     "HOST:PORT; an IPv6 address with a port is written in brackets. Empty: the action is off. Give "
                     "API and conductors the same hosts."),
    cfg.IntOpt("max_conditions", default=100, min=1, max=10000, help="Conditions that a rule may have."),
    cfg.IntOpt("max_actions", default=100, min=1, max=10000, help="Actions that a rule may have."),
    cfg.IntOpt("max_loop_items", default=4096, min=1, max=1000000,
               help="Items that a loop may have. A condition over more cannot be evaluated, an action over more fails "
                    "its rule."),
    cfg.IntOpt("max_depth", default=20, min=1, max=100,
               help="Levels to which lists and objects in the arguments of a rule may be nested."),
    cfg.IntOpt("max_text_size", default=65536, min=256, max=16777216,
               help="Characters that a text in a rule may have."),
    cfg.IntOpt("max_result_size", default=65536, min=256, max=16777216,
               help="Characters that a text may have after its templates are filled in."),
    cfg.IntOpt("max_regex_subject", default=32768, min=256, max=16777216,
               help="Bytes, in UTF-8, of a text on which a regular expression is tried, or of all texts of a list. A "
                    "condition on more cannot be evaluated. The worst regular expression that is accepted takes about "
                    "a second for a text of the default size, and in proportion for other sizes."),
    cfg.IntOpt("max_written_size", default=8388608, min=65536, max=1073741824,
               help="Characters, about, of all that actions get to write while the rules of a phase run on one node. "
                    "An action that gets more fails its rule."),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register ``[inspection_rules]``."""
    conf.register_group(GROUP)
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    """Return the options by group."""
    return {GROUP.name: OPTS}
