"""Actions that a person takes on many nodes, and what keeps a node from one: the same checks as for a single node.

Re-runs of rules, another action on many nodes, have theirs in ``inspection.reapplying``.
"""

from __future__ import annotations

import re

from ironic_rules.exceptions import (
    Conflict,
    node_associated,
    node_has_children,
    node_not_removable,
    node_protected,
)
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node

SET_MAINTENANCE, CLEAR_MAINTENANCE, DELETE = "set-maintenance", "clear-maintenance", "delete"
#: Targets of ``states/provision``.
VERBS = ("inspect", "manage", "provide", "abort")
ACTIONS = (*VERBS, SET_MAINTENANCE, CLEAR_MAINTENANCE, DELETE)
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAMED = re.compile(f'(node|instance) "?{_UUID}"?', re.IGNORECASE)
_EXAMPLE = re.compile(f", such as {_UUID}")


def check(node: Node, action: str, child: str | None) -> None:
    """Check that an action is possible on a node, also on one that is locked.

    :param child: UUID of a node whose parent it is
    :raises Invalid: 400, not in its state;  node_protected: 403
    :raises Conflict, node_associated, node_not_removable, node_has_children: 409
    """
    if action in VERBS:
        states.after_verb(node, action, holder=node.reservation)
    elif action == DELETE:
        check_removable(node, child)
    elif action == SET_MAINTENANCE and node.maintenance:
        raise Conflict(f"Node {node.uuid} is in maintenance already.")
    elif action == CLEAR_MAINTENANCE and not node.maintenance:
        raise Conflict(f"Node {node.uuid} is not in maintenance.")


def check_removable(node: Node, child: str | None) -> None:
    """Check that a node may be deleted; arguments and errors as those of :func:`check`."""
    if node.instance_uuid is not None and not node.maintenance:
        raise node_associated(node=node.uuid, instance=node.instance_uuid)
    if node.protected:
        raise node_protected(node=node.uuid, action="deletion")
    if node.provision_state not in states.DELETE_ALLOWED and not node.maintenance:
        raise node_not_removable(node=node.uuid, state=node.provision_state)
    if child is not None and not node.maintenance:
        raise node_has_children(node=node.uuid, child=child)


def maintenance(is_on: bool, reason: str | None = None) -> JSONObject:
    """Return the columns that maintenance sets, or its end."""
    ended = {} if is_on else {"fault": None}
    return {"maintenance": is_on, "maintenance_reason": reason, **ended}


def of_many(text: str) -> str:
    """Return the text of an error about one node as one about all nodes that are like it."""
    return _NAMED.sub(_unnamed, _EXAMPLE.sub("", text))


def _unnamed(match: re.Match[str]) -> str:
    noun = match[1]
    article = "an" if noun.lower() == "instance" else "a"
    return f"{article.capitalize()} {noun.lower()}" if noun[0].isupper() else f"{article} {noun}"
