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
               help="Number of inspections in the history of a node: when, how long, matching rules, their changes. "
                    "0: none."),
]


FACTS_GROUP = cfg.OptGroup("facts", title="Facts", help="Named values that are found in the data of inspections.")
FACTS_OPTS: list[cfg.Opt] = [
    cfg.IntOpt("max_facts", default=5000, min=0, max=10000,
               help="Maximum number of facts, built-in ones included. Each inspection finds all of them."),
    cfg.IntOpt("change_days", default=90, min=0, max=3650,
               help="Days for which the service keeps changes of facts. 0: none."),
]


JOURNAL_GROUP = cfg.OptGroup("inspection_journal", title="Journal of rejected reports",
                             help="What is kept of Rejected reports of ramdisks.")
JOURNAL_OPTS: list[cfg.Opt] = [
    cfg.IntOpt("max_entries", default=10000, min=0, max=1000000,
               help="Number of machines and reasons in the journal. 0: none, and no reports."),
    cfg.IntOpt("max_days", default=30, min=1, max=3650, help="Days after which the service deletes an entry."),
    cfg.BoolOpt("keep_reports", default=False,
                help="Keep the last report of the machine, too, without secrets, if it has at most 1 MiB. Anyone "
                     "can send reports: there may be max_entries of them."),
]


RULES_GROUP = cfg.OptGroup("inspection_rules", title="Inspection rules", help="The rule engine.")
RULES_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("mask_secrets", default="always",
               choices=[("always", "no rule can read secrets"), ("never", "every rule can read secrets"),
                        ("sensitive", "only rules marked as sensitive can read secrets")],
               help="Masking of secrets (passwords, tokens, keys) as ****** in rules."),
    cfg.Opt("supported_interfaces", type=RegularExpression(), default="^(agent|inspector)$",
            help="Regular expression that a node's inspect interface must fully match for rules to run."),
    cfg.StrOpt("built_in", deprecated_name="built_in_rules",
               help="YAML file with built-in rules, or a directory with .yaml files. Read once, at start, which fails "
                    "if a rule is not valid. The files must be the same for the API and conductors."),
    cfg.StrOpt("default_scope", max_length=255,
               help="Scope of rules that do not set one. Does not apply to built-in rules, nor to rules of phase "
                    "early, which have no scope."),
    cfg.IntOpt("keep_revisions", default=100, min=0, max=100000,
               help="Number of revisions of the rule set to which it can return: who changed it when, and the rules "
                    "that it had then. 0: none."),
    cfg.IntOpt("statistics_interval", default=60, min=0, max=3600,
               help="Seconds after which the API and conductors add their counts of rules to the database. 0: no "
                    "counts."),
    cfg.ListOpt("api_call_allowed_hosts", default=[],
                help="Hosts to which the action api-call may send requests: HOST, on port 80 (http) or 443 (https), "
                     "or HOST:PORT. Write an IPv6 address with a port in brackets. An empty list disables the "
                     "action. The list must be the same for the API and conductors."),
    cfg.IntOpt("action_timeout", default=60, min=0,
               help="Seconds that an action may take in the conductor, in a loop for each item. After that the "
                    "inspection fails, and another worker replaces this one. 0: no limit."),
    cfg.IntOpt("dry_run_timeout", default=10, min=1, max=300,
               help="Seconds that a dry run of inspection rules may take. The API ends it then, and answers 400."),
    cfg.IntOpt("early_timeout", default=20, min=0,
               help="Seconds that all rules of phase early may take for a report, in the API. After that the API "
                    "rejects the report as for a failed rule, and leaves the thread to itself. 0: no limit."),
    cfg.IntOpt("max_conditions", default=100, min=1, max=10000, help="Maximum number of conditions of a rule."),
    cfg.IntOpt("max_actions", default=100, min=1, max=10000, help="Maximum number of actions of a rule."),
    cfg.IntOpt("max_loop_items", default=4096, min=1, max=1000000,
               help="Maximum number of items of a loop. An inspection cannot evaluate a condition with more; an "
                    "action with more fails its rule."),
    cfg.IntOpt("max_depth", default=20, min=1, max=100,
               help="Maximum nesting depth of lists and objects in the arguments of a rule."),
    cfg.IntOpt("max_text_size", default=65536, min=256, max=16777216,
               help="Maximum number of characters of a text in a rule."),
    cfg.IntOpt("max_result_size", default=65536, min=256, max=16777216,
               help="Maximum number of characters of a text with rendered templates."),
    cfg.IntOpt("max_regex_subject", default=32768, min=256, max=16777216,
               help="Maximum size in bytes, in UTF-8, of a text for a regular expression, or of all texts of a "
                    "list. An inspection cannot evaluate a condition with more. The slowest valid regular "
                    "expression takes about a second for a text of the default size, and in proportion for other "
                    "sizes."),
    cfg.IntOpt("max_written_size", default=8388608, min=65536, max=1073741824,
               help="Approximate maximum number of characters that the actions of all rules of a phase may write for "
                    "one node. An action that exceeds it fails its rule."),
]


INVENTORY_GROUP = cfg.OptGroup("inventory", title="Inventory", help="The inventory store.")
INVENTORY_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("data_backend", default="database",
               choices=[("database", "the node_inventory table"), ("none", "nothing is stored after processing")],
               help="Storage of inventories."),
    cfg.IntOpt("max_versions", default=3, min=1, help="Number of inspections per node with stored data."),
]


LEGACY_RULES_GROUP = cfg.OptGroup("legacy_rules", title="Legacy rules", help="Rules of ironic-inspector, at /v1/rules.")
LEGACY_RULES_OPTS: list[cfg.Opt] = [
    cfg.StrOpt("cleanup", default="own",
               choices=[("own", "restore the values before those of a rule, unless another user changed them"),
                        ("any", "delete values that a rule without a match would write, also those of other users"),
                        ("off", "keep all values, as in ironic-inspector 12")],
               help="Reaction of an inspection to legacy rules that do not match."),
]


DISCOVERY_GROUP = cfg.OptGroup("auto_discovery", title="Auto-discovery",
                               help="Enrolment of unknown machines by inspection data.")
DISCOVERY_OPTS: list[cfg.Opt] = [
    cfg.BoolOpt("enabled", default=False,
                help="Create a node for a machine that posts inspection data, if there is no node, in any state, with "
                     "its MAC or BMC addresses."),
    cfg.StrOpt("driver", help="Hardware type of discovered nodes. Required for auto-discovery."),
    cfg.StrOpt("known_serial", default="warn",
               choices=[("warn", "enroll the machine and log a warning"), ("refuse", "do not enroll the machine"),
                        ("ignore", "do not compare them")],
               help="Reaction to a machine whose MAC and BMC addresses are unknown, but whose serial number or "
                    "system UUID is a known one."),
    cfg.StrOpt("inspection_scope", max_length=255, help="Inspection scope of discovered nodes."),
    cfg.IntOpt("max_nodes_per_minute", default=60, min=1, max=100000, mutable=True,
               help="Maximum number of nodes created per minute, by all API processes together. Further machines "
                    "get the same 404 as unknown machines, and retry."),
    cfg.IntOpt("max_bytes_per_minute", default=64 * 1024 * 1024, min=1024 * 1024,
               help="Maximum size in bytes per minute of the reports from which all API processes together create "
                    "nodes. Inventory and plug-in data count, as JSON; the database stores up to twice as much."),
    cfg.IntOpt("max_unclaimed_nodes", default=10000, min=0,
               help="Maximum number of discovered nodes without any request of a provision state. At this number, "
                    "the API enrolls no further machine. 0: no limit."),
    cfg.IntOpt("unclaimed_timeout", default=0, min=0,
               help="Seconds after which a conductor deletes a discovered node, if it got no request of a provision "
                    "state and no change for as long. Conductors keep nodes in maintenance, protected nodes and "
                    "nodes with an instance. Set this option for conductors. 0: no deletion."),
]
