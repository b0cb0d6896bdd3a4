"""Policies of inspection rules and those of Inspector, operations, facts, rejected reports, shared MACs, webhooks."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented, listed

INSPECTION_LIST = "baremetal:inspection_rule:list_all"
INSPECTION_GET = "baremetal:inspection_rule:get"
INSPECTION_GET_DETAILS = "baremetal:inspection_rule:get_details"
INSPECTION_CREATE = "baremetal:inspection_rule:create"
INSPECTION_UPDATE = "baremetal:inspection_rule:update"
INSPECTION_REVISIONS = "baremetal:inspection_rule:revisions"
INSPECTION_STATISTICS = "baremetal:inspection_rule:statistics"
INSPECTION_DRY_RUN = "baremetal:inspection_rule:dry_run"
INSPECTION_DELETE = "baremetal:inspection_rule:delete"

_INSPECTION_ALL = "/v1/inspection_rules"
_INSPECTION_ONE = "/v1/inspection_rules/{uuid}"
_INSPECTION_REVISIONS = "/v1/inspection_rules/revisions"
_INSPECTION_REVISION = "/v1/inspection_rules/revisions/{revision}"
_INSPECTION_ROLLBACK = "/v1/inspection_rules/revisions/{revision}/rollback"
INSPECTION_RULES = [
    documented(INSPECTION_LIST, READER,
               "List inspection rules without conditions and actions, and what they can be written with",
               ("GET", _INSPECTION_ALL), ("GET", "/v1/inspection_rules/vocabulary"),
               ("GET", "/v1/inspection_rules/samples")),
    documented(INSPECTION_GET, READER, "Show an inspection rule without conditions and actions",
               ("GET", _INSPECTION_ONE)),
    documented(INSPECTION_GET_DETAILS, ADMIN,
               "See conditions and actions of inspection rules, which may have passwords, and what rules write. "
               "A user who may change rules sees those that the user changes",
               ("GET", _INSPECTION_ALL), ("GET", _INSPECTION_ONE), ("GET", "/v1/inspection_rules/conflicts"),
               ("GET", _INSPECTION_REVISION),
               ("POST", "/v1/inspection_rules/dry_run"), ("POST", "/v1/inspection_rules/matches"),
               ("GET", "/v1/operations/{uuid}/nodes"),
               ("GET", "/v1/operations/{uuid}/groups")),
    documented(INSPECTION_REVISIONS, READER, "List and show the kept revisions of the inspection rules",
               ("GET", _INSPECTION_REVISIONS), ("GET", _INSPECTION_REVISION)),
    documented(INSPECTION_STATISTICS, READER, "Show how often inspection rules have matched, and on which node last",
               ("GET", "/v1/inspection_rules/statistics"), ("GET", "/v1/inspection_rules/{uuid}/statistics")),
    documented(INSPECTION_CREATE, ADMIN, "Create inspection rules", ("POST", _INSPECTION_ALL), ("PUT", _INSPECTION_ALL),
               ("POST", _INSPECTION_ROLLBACK)),
    documented(INSPECTION_DRY_RUN, ADMIN,
               "Try inspection rules on data of a machine; the reply has the data, without secrets",
               ("POST", "/v1/inspection_rules/dry_run"), ("POST", "/v1/inspection_rules/matches")),
    documented(INSPECTION_UPDATE, ADMIN, "Change inspection rules", ("PATCH", _INSPECTION_ONE),
               ("PUT", _INSPECTION_ALL), ("POST", _INSPECTION_ROLLBACK)),
    documented(INSPECTION_DELETE, ADMIN, "Delete inspection rules; PUT needs it to delete those that it does not have",
               ("DELETE", _INSPECTION_ONE), ("DELETE", _INSPECTION_ALL), ("PUT", _INSPECTION_ALL),
               ("POST", _INSPECTION_ROLLBACK)),
]


LEGACY_LIST = "baremetal:legacy_rule:list_all"
LEGACY_GET = "baremetal:legacy_rule:get"
LEGACY_GET_DETAILS = "baremetal:legacy_rule:get_details"
LEGACY_CREATE = "baremetal:legacy_rule:create"
LEGACY_UPDATE = "baremetal:legacy_rule:update"
LEGACY_DELETE = "baremetal:legacy_rule:delete"

_LEGACY_ALL = "/v1/rules"
_LEGACY_ONE = "/v1/rules/{uuid}"
LEGACY_RULES = [
    documented(LEGACY_LIST, READER, "List legacy rules without conditions and actions", ("GET", _LEGACY_ALL)),
    documented(LEGACY_GET, READER, "Show a legacy rule without conditions and actions", ("GET", _LEGACY_ONE)),
    documented(LEGACY_GET_DETAILS, ADMIN, "See conditions and actions of legacy rules", ("GET", _LEGACY_ALL),
               ("GET", _LEGACY_ONE)),
    documented(LEGACY_CREATE, ADMIN, "Create a legacy rule", ("POST", _LEGACY_ALL), ("PUT", _LEGACY_ONE)),
    documented(LEGACY_UPDATE, ADMIN, "Replace a legacy rule", ("PUT", _LEGACY_ONE)),
    documented(LEGACY_DELETE, ADMIN, "Delete legacy rules", ("DELETE", _LEGACY_ONE), ("DELETE", _LEGACY_ALL)),
]


OPERATION_LIST = "baremetal:operation:list_all"
OPERATION_GET = "baremetal:operation:get"
OPERATION_CREATE = "baremetal:operation:create"
OPERATION_CANCEL = "baremetal:operation:cancel"

_OPERATION_ALL = "/v1/operations"
_OPERATION_ONE = "/v1/operations/{uuid}"
OPERATION_RULES = [
    documented(OPERATION_LIST, READER, "List operations on many nodes", ("GET", _OPERATION_ALL)),
    documented(OPERATION_GET, READER, "Show an operation on many nodes", ("GET", _OPERATION_ONE),
               ("GET", f"{_OPERATION_ONE}/nodes"), ("GET", f"{_OPERATION_ONE}/groups")),
    documented(OPERATION_CREATE, ADMIN, "Act on many nodes; the policy of the action on a single node is needed, too",
               ("POST", _OPERATION_ALL)),
    documented(OPERATION_CANCEL, ADMIN, "Cancel an operation on many nodes", ("DELETE", _OPERATION_ONE)),
]


FACT_LIST = "baremetal:fact:list"
FACT_LIST_ALL = "baremetal:fact:list_all"
FACT_CREATE = "baremetal:fact:create"
FACT_UPDATE = "baremetal:fact:update"
FACT_DELETE = "baremetal:fact:delete"

_FACT_ALL, _FACT_ONE = "/v1/facts", "/v1/facts/{fact}"
FACT_RULES = [
    *listed(FACT_LIST, FACT_LIST_ALL, "facts, with their problems and changes on nodes", ("GET", _FACT_ALL),
            ("GET", _FACT_ONE), ("GET", "/v1/fact_changes"), ("GET", "/v1/facts/values"),
            ("GET", f"{_FACT_ONE}/values"), ("GET", "/v1/facts/vocabulary"),
            ("POST", "/v1/inspection_rules/conditions")),
    documented(FACT_CREATE, ADMIN, "Create facts", ("POST", _FACT_ALL), ("PUT", _FACT_ALL)),
    documented(FACT_UPDATE, ADMIN, "Change facts", ("PATCH", _FACT_ONE), ("PUT", _FACT_ALL)),
    documented(FACT_DELETE, ADMIN, "Delete facts; PUT needs it to delete those that it does not have",
               ("DELETE", _FACT_ONE), ("PUT", _FACT_ALL)),
]


JOURNAL_GET = "baremetal:inspection_journal:get"
JOURNAL_ENROLL = "baremetal:inspection_journal:enroll"
SHARED_MAC_GET = "baremetal:shared_mac:get"
SHARED_MAC_DELETE = "baremetal:shared_mac:delete"

JOURNAL_RULES = [
    documented(JOURNAL_GET, ADMIN, "Show rejected reports of ramdisks: which machines call, and why they are refused",
               ("GET", "/v1/inspection_journal"), ("GET", "/v1/inspection_journal/{entry}"),
               ("GET", "/v1/nodes/{node_ident}/inspection_journal")),
    documented(JOURNAL_ENROLL, ADMIN, "Create a node for a machine whose report was rejected",
               ("POST", "/v1/inspection_journal/{entry}/enroll")),
    documented(SHARED_MAC_GET, READER, "List MAC addresses that machines of several nodes have reported",
               ("GET", "/v1/shared_macs")),
    documented(SHARED_MAC_DELETE, ADMIN, "Forget that a MAC address is shared",
               ("DELETE", "/v1/shared_macs/{address}")),
]

WEBHOOK_GET = "baremetal:webhook:get"
WEBHOOK_CREATE = "baremetal:webhook:create"
WEBHOOK_UPDATE = "baremetal:webhook:update"
WEBHOOK_DELETE = "baremetal:webhook:delete"
WEBHOOK_REDELIVER = "baremetal:webhook:redeliver"

_WEBHOOK = "/v1/webhooks/{webhook}"
_DEAD_LETTERS = f"{_WEBHOOK}/dead_letters"
#: URLs often contain a token, so only administrators see them.
WEBHOOK_RULES = [
    documented(WEBHOOK_GET, ADMIN, "List and show webhooks, and the events that could not be delivered to them",
               ("GET", "/v1/webhooks"), ("GET", _WEBHOOK), ("GET", _DEAD_LETTERS),
               ("GET", f"{_DEAD_LETTERS}/{{event}}")),
    documented(WEBHOOK_CREATE, ADMIN, "Create a webhook", ("POST", "/v1/webhooks")),
    documented(WEBHOOK_UPDATE, ADMIN, "Change a webhook", ("PATCH", _WEBHOOK)),
    documented(WEBHOOK_DELETE, ADMIN, "Delete a webhook", ("DELETE", _WEBHOOK)),
    documented(WEBHOOK_REDELIVER, ADMIN, "Deliver events again that could not be delivered, or delete them",
               ("POST", f"{_WEBHOOK}/redeliver"), ("DELETE", _DEAD_LETTERS), ("DELETE", f"{_DEAD_LETTERS}/{{event}}")),
]
