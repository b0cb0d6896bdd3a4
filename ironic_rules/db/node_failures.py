"""Failed nodes, grouped by why they failed."""

from __future__ import annotations

from collections import Counter

import sqlalchemy as sa

from ironic_rules.db.tables import nodes
from ironic_rules.models import nodes as nodes_models
from ironic_rules.models.nodes import Failure

#: The part of an error that a reason is made of. Most errors have nothing of their machine but the node's UUID: without
#: it, the database finds them equal.
_ERROR = sa.func.coalesce(sa.func.substr(
    sa.func.replace(nodes.c.last_error, nodes.c.uuid, nodes_models.OWN_PART), 1, nodes_models.MAX_REASON), "")
_ROWS = 1000


def groups(conn: sa.Connection) -> list[Failure]:
    """Return the failed nodes without a parent by state and reason, the largest group first.

    All of them are counted: the database counts equal errors, and only different ones are read.
    """
    error = _ERROR.label("error")
    query = sa.select(nodes.c.provision_state, error, sa.func.count().label("number")).where(
        nodes.c.provision_state.in_(sorted(nodes_models.FAILED_STATES)), nodes.c.parent_node.is_(None)).group_by(
        nodes.c.provision_state, error)
    found: Counter[tuple[str, str]] = Counter()
    with conn.execution_options(yield_per=_ROWS).execute(query) as rows:
        for state, text, number in rows:
            found[state, nodes_models.failure_reason(text)] += number
    return sorted((Failure(*key, number) for key, number in found.items()),
                  key=lambda group: (-group.number, group.provision_state, group.reason))


def condition(group: Failure | None) -> sa.ColumnElement[bool]:
    """Return the condition for the nodes of a group; None: it has none any more."""
    if group is None:
        return sa.false()
    pattern = group.reason.replace("!", "!!").replace("%", "!%").replace("_", "!_").replace(nodes_models.OWN_PART, "%")
    return sa.and_(nodes.c.provision_state == group.provision_state, _ERROR.like(pattern, escape="!"))
