"""Operations on many nodes: conductors claim a few nodes at a time, and do each of them in one transaction.

A kind of operation is a function that works on one node in the connection of that transaction, and returns whether it
has changed anything. Its errors are the result of that node; the others are done nevertheless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import legacy_cleanup
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import errors, operations
from ironic_rules.db.operations import Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import IronicRulesError
from ironic_rules.text import MAX_MESSAGE, printable

LOG = logging.getLogger(__name__)

Kind = Callable[[sa.Connection, Conductor, Row, Item], bool]
#: What is done with a node, by the kind of the operation.
KINDS: Mapping[str, Kind] = {legacy_cleanup.KIND: legacy_cleanup.clean}
#: Nodes that are claimed at once: as many wait for the end of the lease if this process dies.
_BATCH = 20
#: Nodes of one operation that one pass does at most, so that it ends soon, and other operations have their turn.
_MOST = 1000
_UNEXPECTED = "an unexpected error occurred; the conductor's log has the details"


def work(conductor: Conductor) -> int:
    """Do a part of each operation that has not ended; return the number of nodes."""
    with conductor.db.reader() as conn:
        found = operations.running(conn)
    return sum(_work_on(conductor, operation) for operation in found if operation.kind in KINDS)


def _work_on(conductor: Conductor, operation: Row) -> int:
    done = 0
    while done < _MOST:
        claimed = conductor.db.write(
            lambda conn: operations.claim(conn, operation.id, conductor.instance, _BATCH))
        if not claimed:
            if conductor.db.write(lambda conn: operations.finish(conn, operation.id)):
                LOG.info("Operation %s (%s) has ended", operation.uuid, operation.kind)
            break
        for item in claimed:
            _do(conductor, operation, item)
        done += len(claimed)
    return done


def _do(conductor: Conductor, operation: Row, item: Item) -> None:
    """Work on a node, and note the result in the same transaction; a failure is noted in one of its own."""

    def attempt(conn: sa.Connection) -> None:
        if operations.begin(conn, operation.id, item, conductor.instance):
            changed = KINDS[operation.kind](conn, conductor, operation, item)
            operations.end(conn, item, operations.CHANGED if changed else operations.UNCHANGED)

    def fail(conn: sa.Connection) -> None:
        if operations.begin(conn, operation.id, item, conductor.instance):
            operations.end(conn, item, operations.FAILED, printable(reason, MAX_MESSAGE))

    try:
        conductor.db.write(attempt)
        return
    except errors.AWAY:
        raise
    except IronicRulesError as exc:
        reason = str(exc)
    except Exception:  # one node must not keep the others from being done
        LOG.exception("Operation %s failed on node %s", operation.uuid, item.node_uuid)
        reason = _UNEXPECTED
    conductor.db.write(fail)
