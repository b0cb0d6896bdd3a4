"""``[inspection_rules]``: built-in rules, the nodes on which rules run, access to secrets, and limits."""

from __future__ import annotations

from oslo_config import cfg

from ironic_rules.conf.value_types import RegularExpression

GROUP = cfg.OptGroup("inspection_rules", title="Inspection rules", help="The rule engine.")
OPTS: list[cfg.Opt] = [
    cfg.StrOpt("mask_secrets", default="always",
               choices=[("always", "no rule can read secrets"), ("never", "every rule can read secrets"),
                        ("sensitive", "only rules marked as sensitive can read secrets")],
               help="Whether secrets (passwords, tokens, keys) are masked as ****** in rules."),
    cfg.Opt("supported_interfaces", type=RegularExpression(), default="^(agent|inspector)$",
            help="Regular expression that a node's inspect interface must fully match for rules to run."),
    cfg.StrOpt("built_in", deprecated_name="built_in_rules",
               help="YAML file with built-in rules, or a directory with .yaml files. Read once, at start, which fails "
                    "if a rule is not valid. The files must be the same for the API and conductors."),
    cfg.StrOpt("default_scope", max_length=255,
               help="Scope of rules that do not set one. Does not apply to built-in rules, nor to rules of phase "
                    "early, which have no scope."),
    cfg.IntOpt("keep_revisions", default=100, min=0, max=100000,
               help="Number of revisions of the rule set that are kept: who changed it when, and the rules that it had "
                    "then, so that it can be rolled back. 0: none."),
    cfg.IntOpt("statistics_interval", default=60, min=0, max=3600,
               help="Seconds after which the API and conductors add to the database what they have counted of rules. "
                    "0: nothing is counted."),
    cfg.ListOpt("api_call_allowed_hosts", default=[],
                help="Hosts to which the action api-call may send requests: HOST, on port 80 (http) or 443 (https), "
                     "or HOST:PORT; an IPv6 address with a port is written in brackets. Empty: the action is "
                     "disabled. The list must be the same for the API and conductors."),
    cfg.IntOpt("action_timeout", default=60, min=0,
               help="Seconds that an action may take in the conductor, in a loop for each item. After that the "
                    "inspection fails, and the worker is written off and replaced. 0: no limit."),
    cfg.IntOpt("dry_run_timeout", default=10, min=1, max=300,
               help="Seconds that a dry run of inspection rules may take. The API ends it then, and answers 400."),
    cfg.IntOpt("early_timeout", default=20, min=0,
               help="Seconds that all rules of phase early may take for a report, in the API. After that the report is "
                    "refused as by a rule that fails, and the thread is left to itself. 0: no limit."),
    cfg.IntOpt("max_conditions", default=100, min=1, max=10000, help="Maximum number of conditions of a rule."),
    cfg.IntOpt("max_actions", default=100, min=1, max=10000, help="Maximum number of actions of a rule."),
    cfg.IntOpt("max_loop_items", default=4096, min=1, max=1000000,
               help="Maximum number of items of a loop. A condition with more cannot be evaluated; an action with "
                    "more fails its rule."),
    cfg.IntOpt("max_depth", default=20, min=1, max=100,
               help="Maximum nesting depth of lists and objects in the arguments of a rule."),
    cfg.IntOpt("max_text_size", default=65536, min=256, max=16777216,
               help="Maximum number of characters of a text in a rule."),
    cfg.IntOpt("max_result_size", default=65536, min=256, max=16777216,
               help="Maximum number of characters of a text after its templates are rendered."),
    cfg.IntOpt("max_regex_subject", default=32768, min=256, max=16777216,
               help="Maximum size in bytes, in UTF-8, of a text that a regular expression is matched against, or of "
                    "all texts of a list. A condition with more cannot be evaluated. The slowest regular expression "
                    "that is accepted takes about a second for a text of the default size, and in proportion for "
                    "other sizes."),
    cfg.IntOpt("max_written_size", default=8388608, min=65536, max=1073741824,
               help="Approximate maximum number of characters that the actions of all rules of a phase may write for "
                    "one node. An action that exceeds it fails its rule."),
]
