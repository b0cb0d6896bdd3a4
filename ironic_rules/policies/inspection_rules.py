"""Policies of ``/v1/inspection_rules``."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

LIST = "baremetal:inspection_rule:list_all"
GET = "baremetal:inspection_rule:get"
GET_DETAILS = "baremetal:inspection_rule:get_details"
CREATE = "baremetal:inspection_rule:create"
UPDATE = "baremetal:inspection_rule:update"
REVISIONS = "baremetal:inspection_rule:revisions"
STATISTICS = "baremetal:inspection_rule:statistics"
DRY_RUN = "baremetal:inspection_rule:dry_run"
DELETE = "baremetal:inspection_rule:delete"

_ALL = "/v1/inspection_rules"
_ONE = "/v1/inspection_rules/{uuid}"
_REVISIONS = "/v1/inspection_rules/revisions"
_REVISION = "/v1/inspection_rules/revisions/{revision}"
_ROLLBACK = "/v1/inspection_rules/revisions/{revision}/rollback"
RULES = [
    documented(LIST, READER, "List inspection rules without conditions and actions, and what they can be written with",
               ("GET", _ALL), ("GET", "/v1/inspection_rules/vocabulary"), ("GET", "/v1/inspection_rules/samples")),
    documented(GET, READER, "Show an inspection rule without conditions and actions", ("GET", _ONE)),
    documented(GET_DETAILS, ADMIN,
               "See conditions and actions of inspection rules, which may have passwords, and what rules write. "
               "A user who may change rules sees those that the user changes",
               ("GET", _ALL), ("GET", _ONE), ("GET", "/v1/inspection_rules/conflicts"), ("GET", _REVISION),
               ("POST", "/v1/inspection_rules/dry_run"), ("GET", "/v1/operations/{uuid}/nodes"),
               ("GET", "/v1/operations/{uuid}/groups")),
    documented(REVISIONS, READER, "List and show the kept revisions of the inspection rules",
               ("GET", _REVISIONS), ("GET", _REVISION)),
    documented(STATISTICS, READER, "Show how often inspection rules have matched, and on which node last",
               ("GET", "/v1/inspection_rules/statistics"), ("GET", "/v1/inspection_rules/{uuid}/statistics")),
    documented(CREATE, ADMIN, "Create inspection rules", ("POST", _ALL), ("PUT", _ALL), ("POST", _ROLLBACK)),
    documented(DRY_RUN, ADMIN, "Try inspection rules on data of a machine; the reply has the data, without secrets",
               ("POST", "/v1/inspection_rules/dry_run")),
    documented(UPDATE, ADMIN, "Change inspection rules", ("PATCH", _ONE), ("PUT", _ALL), ("POST", _ROLLBACK)),
    documented(DELETE, ADMIN, "Delete inspection rules; PUT needs it to delete those that it does not have",
               ("DELETE", _ONE), ("DELETE", _ALL), ("PUT", _ALL), ("POST", _ROLLBACK)),
]
