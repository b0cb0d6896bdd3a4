"""Conditions and actions of rules, which may have passwords: a policy of their own decides who sees them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ironic_rules import policy
from ironic_rules.api.request import Request
from ironic_rules.models.rules import SEALED

#: Fields that show conditions and actions, or quote them.
DETAILS = frozenset({*SEALED, "problems"})
#: Filters of a list that compare with them.
_FILTERS = frozenset({"op", "writes"})


def are_shown(request: Request, name: str) -> bool:
    """Return whether the caller passes the policy ``name``, and sees conditions and actions."""
    return policy.allows(request.conf, name, request.context)


def fields(request: Request, query: Mapping[str, Any], name: str, every: Collection[str], summary: Collection[str], *,
           detail: bool) -> Collection[str]:
    """Return the fields of rules to show: those that the request names, else all of them or the summary.

    :param name: the policy of who sees conditions and actions; others get the summary
    :param detail: whether all fields are wanted
    :raises Forbidden: 403, a field or a filter that the request names needs the policy
    """
    asked: Collection[str] = query.get("fields") or ()
    if not DETAILS.isdisjoint(asked) or any(query.get(wanted) is not None for wanted in _FILTERS):
        policy.authorize(request.conf, name, request.context)
    return asked or (every if detail and are_shown(request, name) else summary)
