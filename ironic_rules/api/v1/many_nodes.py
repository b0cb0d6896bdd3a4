"""Actions on many nodes: on how many of them one is possible, why not on the others, and the operation that does it."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import sqlalchemy as sa

from ironic_rules import policy
from ironic_rules.api.request import Request
from ironic_rules.api.v1 import node_access
from ironic_rules.db import node_queries, nodes
from ironic_rules.db import operations as operations_db
from ironic_rules.db.node_queries import Alike
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import (
    Conflict,
    Invalid,
    IronicRulesError,
    NodeNotFound,
    Problem,
    inventory_not_found,
)
from ironic_rules.inspection import reapplying
from ironic_rules.models import node_actions
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.resources import REAPPLY
from ironic_rules.policies import nodes as policies

#: Action -> the policy of the same request for a single node.
_POLICIES = {
    **dict.fromkeys(node_actions.VERBS, policies.SET_PROVISION_STATE),
    node_actions.SET_MAINTENANCE: policies.SET_MAINTENANCE, node_actions.CLEAR_MAINTENANCE: policies.CLEAR_MAINTENANCE,
    node_actions.DELETE: policies.DELETE, REAPPLY: policies.REAPPLY}
#: Nodes that are named as examples for a reason.
_EXAMPLES = 10


class _Judged(NamedTuple):
    """The nodes of a request.

    :ivar possible: the query of the UUIDs of those on which the action is possible
    :ivar number: of them
    :ivar impossible: the others, by reason, as the reply shows them
    """

    possible: sa.Select[tuple[str]]
    number: int
    impossible: list[JSONObject]


def preview(request: Request, body: JSONObject) -> JSONObject:
    """Return on how many nodes an action is possible, and why not on the others; errors as those of :func:`create`."""
    with request.db.reader() as conn:
        judged = _judged(request, conn, body)
    impossible = sum(reason["number"] for reason in judged.impossible)
    return {"action": body["action"], "total": judged.number + impossible, "possible": judged.number,
            "impossible": judged.impossible}


def create(request: Request, body: JSONObject) -> tuple[Row, list[JSONObject]]:
    """Store the operation on the nodes on which the action is possible; return it, and the others by reason.

    :raises Invalid, InvalidParameterValue: 400;  Forbidden: 403, also by the policy of the action
    :raises Conflict: 409, it is possible on none of the nodes
    """
    action, chosen = body["action"], body.get("uuids")
    description: JSONObject = {"nodes": body.get("nodes") if chosen is None else {"chosen": len(chosen)}}
    if action == REAPPLY:
        description |= {"dry_run": False, "allow_deployed": False}
    if "reason" in body:
        description["reason"] = body["reason"]

    def write(conn: sa.Connection) -> tuple[Row, list[JSONObject]]:
        judged = _judged(request, conn, body)
        if not judged.number:
            reasons = " ".join(reason["reason"] for reason in judged.impossible[:3])
            raise Conflict(f"The action is possible on none of these nodes. {reasons}".strip())
        created = operations_db.create(conn, action, description, request.context.user_id, judged.possible)
        return created, judged.impossible

    result: tuple[Row, list[JSONObject]] = request.db.write(write)
    return result


def _judged(request: Request, conn: sa.Connection, body: JSONObject) -> _Judged:
    policy.authorize(request.conf, _POLICIES[body["action"]], request.context)
    selected = node_queries.decisive(_wanted(request, conn, body))
    reasons = _reasons(conn, body["action"], selected)
    possible = reasons.pop("", [])
    query = sa.select(selected.c.uuid).where(sa.or_(sa.false(), *(group.condition for group in possible)))
    return _Judged(query.order_by(selected.c.id), sum(group.number for group in possible), [{
        "reason": reason, "number": sum(group.number for group in alike), "nodes": [
            {"uuid": row.uuid, "name": row.name} for row in conn.execute(
                sa.select(selected.c.uuid, selected.c.name).where(sa.or_(*(group.condition for group in alike)))
                .order_by(selected.c.id).limit(_EXAMPLES))],
    } for reason, alike in reasons.items()])


def _reasons(conn: sa.Connection, action: str, selected: sa.Subquery) -> dict[str, list[Alike]]:
    """Return the nodes of a query in groups, by why an action is impossible on them; "": it is possible."""
    while True:
        reasons: dict[str, list[Alike]] = {}
        # The example of a group may have been deleted since: then the groups are read again.
        with contextlib.suppress(NodeNotFound):
            for group in node_queries.alike(conn, selected):
                reasons.setdefault(_obstacle(conn, action, group) or "", []).append(group)
            return reasons


def _wanted(request: Request, conn: sa.Connection, body: JSONObject) -> JSONObject:
    """Return the filters of the nodes that a request names."""
    if ("uuids" in body) == ("nodes" in body):
        raise Invalid("There are either nodes, or uuids.")
    if "reason" in body and body["action"] != node_actions.SET_MAINTENANCE:
        raise Invalid(problems=[Problem("/reason", f"can only be used with action {node_actions.SET_MAINTENANCE}")])
    if "nodes" in body:
        filters = node_access.filters(request, node_access.filters_of_body(body["nodes"]))
        node_access.resolve(request, conn, filters)
        return filters
    ids = nodes.ids(conn, body["uuids"])
    missing = [Problem(f"/uuids/{place}", "there is no such node")
               for place, uuid in enumerate(body["uuids"]) if uuid not in ids]
    if missing:
        raise Invalid(problems=missing)
    filters = {"id_in": sorted(ids.values())}
    node_access.confine(request, filters)
    return filters


def _obstacle(conn: sa.Connection, action: str, group: Alike) -> str | None:
    """Return why an action is impossible on nodes that are alike; None: it is possible."""
    row = nodes.get_by_id(conn, group.example)
    try:
        if action != REAPPLY:
            node_actions.check(row, action, nodes.child_of(conn, row.uuid))
            return None
        reapplying.check(row, allow_deployed=False)
        if not group.has_data:
            raise inventory_not_found(node=row.uuid)
    except IronicRulesError as error:
        return node_actions.of_many(str(error))
    return None
