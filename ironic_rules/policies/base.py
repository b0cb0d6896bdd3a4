"""The base of all policies: who may read and write, as role checks that operators can override by name.

Policies are plain values here and are converted to oslo.policy's in ``policies.list_rules``, so that a service in which
every user is an administrator need not load oslo.policy. The policies of ``/metrics`` and of the endpoints that
ramdisks call without authentication are here too; ``!`` disables an endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

ADMIN = "rule:admin_api"
#: Administrators, and other services such as Nova.
SERVICE = "rule:service_api"
#: Administrators, other services, and members of the system.
MEMBER = "rule:member_api"
READER = "rule:observer_api"
PUBLIC = ""
# Each of these adds, for callers in a project, those whose project owns or leases the node.
_OWNS, _USES = "rule:is_node_owner", "(rule:is_node_owner or rule:is_node_lessee)"
_ADMIN_ROLE, _OWNERS_SERVICE = "(role:admin or role:manager)", f"(role:service and {_OWNS})"
NODE_READER = f"{READER} or (role:reader and {_USES}) or {_OWNERS_SERVICE}"
NODE_MEMBER = f"{MEMBER} or (role:member and {_USES})"
OWNER_READER = f"{READER} or (role:reader and {_OWNS}) or {_OWNERS_SERVICE}"
OWNER_MEMBER = f"{MEMBER} or (role:member and {_OWNS}) or {_OWNERS_SERVICE}"
OWNER_ADMIN = f"{MEMBER} or ({_ADMIN_ROLE} and {_OWNS}) or {_OWNERS_SERVICE}"
#: As the last one, but members of the system may not.
SERVICE_OR_OWNER_ADMIN = f"{SERVICE} or ({_ADMIN_ROLE} and {_OWNS}) or {_OWNERS_SERVICE}"
OWNER_MEMBER_OR_LESSEE_ADMIN = f"{OWNER_MEMBER} or ({_ADMIN_ROLE} and rule:is_node_lessee)"
OWNER_OR_LESSEE_ADMIN = f"{OWNER_ADMIN} or ({_ADMIN_ROLE} and rule:is_node_lessee)"
#: Every user who may read anything: lists are confined to the caller's project.
ANY_READER = f"{READER} or role:reader or role:service"


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule by name, its default check, and the operations ``(method, path)`` that it guards (none: an alias).

    :ivar of: on what it depends for callers in a project: "node" or "runbook", each that a request names, or
        "project", the project alone, to which the request is confined; empty: nothing is theirs
    :ivar everywhere: name of the rule whose callers are not confined; empty: this one
    :ivar own: name of the rule that is checked for callers who are confined; empty: this one
    """

    name: str
    check: str
    description: str
    operations: tuple[tuple[str, str], ...] = ()
    of: str = ""
    everywhere: str = ""
    own: str = ""


RULES = [
    # As in Ironic: an administrator of a project, or a domain, administers what belongs to it, not the system.
    Policy("admin_api", "role:admin and system_scope:all", "May write everything"),
    # As in Ironic, but only in the domain of the cloud's own projects: everybody may name a project in their domain.
    Policy("service_role",
           "role:service and (system_scope:all or (project_name:%(config.service_project_name)s and "
           "(project_domain_id:default or project_domain_id:None)))",
           "Another service, such as Nova. [DEFAULT]rbac_service_role_elevated_access is whether this includes those "
           "in the project [DEFAULT]rbac_service_project_name"),
    Policy("service_api", "rule:admin_api or rule:service_role",
           "May create and delete ports and port groups, in addition to the rights of members"),
    # In Keystone, every user of every project has the roles reader and member in it: only those with system scope may
    # see or change the nodes of all projects.
    Policy("member_api", "rule:service_api or (role:member and system_scope:all)",
           "May change and use nodes, and what belongs to them"),
    Policy("observer_api",
           "rule:member_api or (role:observer and domain_id:None) or (role:reader and system_scope:all)",
           "May read everything but secrets"),
    Policy("is_node_owner", "project_id:%(node.owner)s", "In the project that owns the node"),
    Policy("is_node_lessee", "project_id:%(node.lessee)s", "In the project that leases the node"),
    Policy("is_runbook_owner", "project_id:%(runbook.owner)s", "In the project that owns the runbook"),
]


def documented(name: str, check: str, description: str, *operations: tuple[str, str], of: str = "",
               everywhere: str = "", own: str = "") -> Policy:
    """Return the policy of an API method; ``of``, ``everywhere`` and ``own`` as :class:`Policy` has them."""
    return Policy(name, check, description, operations, of, everywhere, own)


def listed(name: str, everywhere: str, things: str, *operations: tuple[str, str],
           only_all: tuple[tuple[str, str], ...] = ()) -> list[Policy]:
    """Return the policies of a list: of those that belong to the caller's project, and of all.

    :param only_all: operations that are about those of all projects in any case
    """
    return [documented(name, ANY_READER, f"List {things} of one's own project", *operations, of="project",
                       everywhere=everywhere),
            documented(everywhere, READER, f"List {things} of all projects", *operations, *only_all)]


LOOKUP = "baremetal:driver:ipa_lookup"
HEARTBEAT = "baremetal:node:ipa_heartbeat"
CONTINUE_INSPECTION = "baremetal:driver:ipa_continue_inspection"
#: Policies of the routes that ramdisks use.
RAMDISK_POLICIES = frozenset((LOOKUP, HEARTBEAT, CONTINUE_INSPECTION))

RAMDISK_RULES = [
    documented(LOOKUP, PUBLIC, "Look a node up by its addresses", ("GET", "/v1/lookup")),
    documented(HEARTBEAT, PUBLIC, "Send a heartbeat from a ramdisk", ("POST", "/v1/heartbeat/{node}")),
    documented(CONTINUE_INSPECTION, PUBLIC, "Send inspection data from a ramdisk", ("POST", "/v1/continue_inspection")),
]


METRICS_GET = "baremetal:metrics:get"

METRICS_RULES = [
    documented(METRICS_GET, READER, "Read the metrics of an API process", ("GET", "/metrics")),
]
