"""Options of inspections: rules, stored data, history and journal, and discovery.

======================  ======================================================================================
``auto_discovery``      machines that are not enrolled
``facts``               how many there are, and how long their changes are kept
``inspection_history``  entries that are kept of inspections
``inspection_journal``  entries that are kept of rejected reports
``inspection_rules``    built-in rules, the nodes on which rules run, access to secrets, and limits
``inventory``           storage of the data that ramdisks send
``legacy_rules``        values that rules of ironic-inspector have set and would not set again
======================  ======================================================================================
"""

from __future__ import annotations

from oslo_config import cfg

from ironic_rules.conf.value_types import RegularExpression

HISTORY_GROUP = cfg.OptGroup("inspection_history", title="History of inspections", help="What is kept of inspections.")
HISTORY_OPTS: list[cfg.Opt] = [
    cfg.IntOpt("max_entries", default=100, min=0, max=100000,
               help="Number of inspections that are kept per node: when, how long, which rules matched, what they "
                    "changed. 0: none."),
]


FACTS_GROUP = cfg.OptGroup("facts", title="Facts", help="Named values that are found in the data of inspections.")
FACTS_OPTS: list[cfg.Opt] = [
    cfg.IntOpt("max_facts", default=5000, min=0, max=10000,
               help="Maximum number of facts, built-in ones included. Each inspection finds all of them."),
    cfg.IntOpt("change_days", default=90, min=0, max=3650,
               help="Days for which changes of facts are kept. 0: none are kept."),
]


JOURNAL_GROUP = cfg.OptGroup("inspection_journal", title="Journal of rejected reports",
                             help="What is kept of Rejected reports of ramdisks.")
JOURNAL_OPTS: list[cfg.Opt] = [
    cfg.IntOpt("max_entries", default=10000, min=0, max=1000000,
               help="Number of machines and reasons that are kept. 0: none, and no report is written."),
    cfg.IntOpt("max_days", default=30, min=1, max=3650, help="Days after which an entry is deleted."),
    cfg.BoolOpt("keep_reports", default=False,
                help="Whether the last report of the machine is kept, too, without secrets, if it has at most 1 MiB. "
                     "Anyone can send reports: there may be max_entries of them."),
]


RULES_GROUP = cfg.OptGroup("inspection_rules", title="Inspection rules", help="The rule engine.")
RULES_OPTS: list[cfg.Opt] = [
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


INVENTORY_GROUP = cfg.OptGroup("inventory", title="Inventory", help="The inventory store.")
INVENTORY_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("data_backend", default="database",
               choices=[("database", "the node_inventory table"), ("none", "nothing is stored after processing")],
               help="Where inventories are stored."),
    cfg.IntOpt("max_versions", default=3, min=1, help="Number of inspections whose data is stored per node."),
]


LEGACY_RULES_GROUP = cfg.OptGroup("legacy_rules", title="Legacy rules", help="Rules of ironic-inspector, at /v1/rules.")
LEGACY_RULES_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("cleanup", default="own",
               choices=[("own", "what a rule has written is taken back, unless someone has changed it since; the value "
                                "that was there before returns"),
                        ("any", "what a rule that does not match would write is deleted, no matter who wrote it"),
                        ("off", "nothing is taken back, as in ironic-inspector 12")],
               help="Reaction of an inspection to legacy rules that do not match."),
]


DISCOVERY_GROUP = cfg.OptGroup("auto_discovery", title="Auto-discovery",
                               help="Enrolment of unknown machines by inspection data.")
DISCOVERY_OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("enabled", default=False,
                help="Create a node for a machine that posts inspection data, if there is no node, in any state, with "
                     "its MAC or BMC addresses."),
    cfg.StrOpt("driver", help="Hardware type of discovered nodes. Required if auto-discovery is enabled."),
    cfg.StrOpt("known_serial", default="warn",
               choices=[("warn", "enroll the machine and log a warning"), ("refuse", "do not enroll the machine"),
                        ("ignore", "do not compare them")],
               help="Reaction to a machine whose MAC and BMC addresses are unknown, but whose serial number or "
                    "system UUID is a known one."),
    cfg.StrOpt("inspection_scope", max_length=255, help="Inspection scope of discovered nodes."),
    cfg.IntOpt("max_nodes_per_minute", default=60, min=1, max=100000, mutable=True,
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
