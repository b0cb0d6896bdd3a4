"""The base of all policies: who may read and write, as role checks that operators can override by name.

Policies are plain values here and are converted to oslo.policy's in ``policies.list_rules``, so that a service in which
every user is an administrator need not load oslo.policy.
"""

from __future__ import annotations

from dataclasses import dataclass

ADMIN = "rule:admin_api"
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
    Policy("admin_api", "role:admin", "May write everything"),
    # In Keystone, every member of every project has the role reader. Nodes do not belong to a project: only readers
    # with system scope may see them.
    Policy("observer_api", "rule:admin_api or role:observer or (role:reader and system_scope:all)",
           "May read everything but secrets"),
]


def documented(name: str, check: str, description: str, *operations: tuple[str, str]) -> Policy:
    """Return the policy of an API method."""
    return Policy(name, check, description, operations)
