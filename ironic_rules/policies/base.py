"""What all policies share: who reads and who writes, as role checks that operators can override by name.

Policies are plain values here and become oslo.policy's in ``policies.list_rules``, so that a service in which everybody
is an administrator need not load oslo.policy.
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
    # Keystone gives the role reader to every member of every project. Nodes are no project's: only the whole system's
    # readers may see them.
    Policy("observer_api", "rule:admin_api or role:observer or (role:reader and system_scope:all)",
           "May read everything but secrets"),
]


def documented(name: str, check: str, description: str, *operations: tuple[str, str]) -> Policy:
    """Return the policy of an API method."""
    return Policy(name, check, description, operations)
