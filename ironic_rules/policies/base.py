"""The base of all policies: who may read and write, as role checks that operators can override by name.

Policies are plain values here and are converted to oslo.policy's in ``policies.list_rules``, so that a service in which
every user is an administrator need not load oslo.policy.
"""

from __future__ import annotations

from dataclasses import dataclass

ADMIN = "rule:admin_api"
#: Administrators, and other services such as Nova.
SERVICE = "rule:service_api"
#: Those, and members of the system.
MEMBER = "rule:member_api"
READER = "rule:observer_api"
PUBLIC = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule by name, its default check, and the operations ``(method, path)`` that it guards (none: an alias)."""

    name: str
    check: str
    description: str
    operations: tuple[tuple[str, str], ...] = ()


RULES = [
    # An administrator of a domain has this role too, and a token with the domain as its scope: that is not the system.
    Policy("admin_api", "role:admin and domain_id:None", "May write everything"),
    # As in Ironic, but only in the domain of the cloud's own projects: everybody may name a project in their domain.
    Policy("service_role",
           "role:service and (system_scope:all or (project_name:%(config.service_project_name)s and "
           "(project_domain_id:default or project_domain_id:None)))",
           "Another service, such as Nova. [DEFAULT]rbac_service_role_elevated_access is whether this includes those "
           "in the project [DEFAULT]rbac_service_project_name"),
    Policy("service_api", "rule:admin_api or rule:service_role",
           "May create and delete ports and port groups, besides what members may"),
    # In Keystone, every user of every project has the roles reader and member in it. Nodes do not belong to a project:
    # only those with system scope may see or change them.
    Policy("member_api", "rule:service_api or (role:member and system_scope:all)",
           "May change and use nodes, and what belongs to them"),
    Policy("observer_api",
           "rule:member_api or (role:observer and domain_id:None) or (role:reader and system_scope:all)",
           "May read everything but secrets"),
]


def documented(name: str, check: str, description: str, *operations: tuple[str, str]) -> Policy:
    """Return the policy of an API method."""
    return Policy(name, check, description, operations)
