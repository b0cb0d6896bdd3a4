"""Allocations that have no result: the process that received them has ended, or all nodes that fit were locked."""

from __future__ import annotations

import datetime

from oslo_log import log as logging

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import allocations, clock
from ironic_rules.exceptions import IronicRulesError

LOG = logging.getLogger(__name__)

#: How long an allocation waits for nodes that are locked.
_PATIENCE = datetime.timedelta(seconds=60)
#: Allocations that one pass looks at, oldest first.
_MOST = 1000


def settle(conductor: Conductor) -> None:
    """Look for the nodes of all allocations that wait."""
    with conductor.db.reader() as conn:
        found = allocations.waiting(conn, _MOST)
    for uuid, created_at in found:
        give_up = clock.now() - created_at > _PATIENCE
        try:
            state = conductor.db.write(lambda conn: allocations.settle(conn, uuid, give_up=give_up))  # noqa: B023
        except IronicRulesError as error:  # it was deleted, or a node of it was changed meanwhile
            LOG.info("Allocation %s has no result yet: %s", uuid, error)
        else:
            LOG.info("Allocation %s is in state %s", uuid, state)
