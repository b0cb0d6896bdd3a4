"""Admission of requests to the work on a node: those that are late, or were accepted before, are not carried out.

A conductor that hangs is still sent messages, and continues with them later, when the callers have given up and others
have acted. So a message says when its caller gives up, by the database's clock, and the transaction that takes the
node's lock compares after it has the lock: what is late changes nothing.
"""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.context import RequestContext
from ironic_rules.db import accepted_requests, clock
from ironic_rules.exceptions import RequestExpired, RequestRepeated


def admit(conn: sa.Connection, context: RequestContext, node_id: int, *, renew: bool = False) -> None:
    """Check, in the transaction that has just taken the node's lock, that a request may be accepted; remember it.

    :param renew: it may have been accepted before: the state of the node has shown that it is expected again
    :raises RequestExpired: its caller no longer waits
    :raises RequestRepeated: it was accepted before
    """
    if context.expires_at is None and context.mark is None:
        return
    # One statement notes the request and tells the time: an exception undoes it.
    now = clock.read(conn) if context.mark is None else accepted_requests.note(
        conn, node_id, context.mark, renew=renew)
    if context.expires_at is not None:
        late_s = (now - datetime.datetime.fromisoformat(context.expires_at)).total_seconds()
        if late_s > 0:
            raise RequestExpired(late_s=late_s)


def require_new(conductor: Conductor, context: RequestContext, node_id: int) -> None:
    """Check that a request was not accepted before: what it has changed since would be a reason to refuse it.

    :raises RequestRepeated: it was
    """
    if context.mark is not None:
        with conductor.db.reader() as conn:
            if accepted_requests.find(conn, context.mark.digest, node_id) is not None:
                raise RequestRepeated
