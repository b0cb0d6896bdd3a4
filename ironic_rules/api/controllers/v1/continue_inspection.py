"""``/v1/continue_inspection``: where a ramdisk delivers what it found (document 001)."""

from __future__ import annotations

from typing import Any

import pecan
import sqlalchemy as sa
from oslo_log import log

from ironic_rules.api import agent_token, filters, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.ramdisk import require_endpoints
from ironic_rules.api.resource import Resource
from ironic_rules.api.schemas import continue_inspection as schemas
from ironic_rules.api.views import ramdisk as views
from ironic_rules.exceptions import LookupFailed, NodeLocked, NotFound, RuleFailed, Unavailable
from ironic_rules.inspection import early, lookup, payload
from ironic_rules.policies import ramdisk as policies

LOG = log.getLogger(__name__)


class ContinueInspectionController(Resource):
    """At the base version as Inspector did it; since API 1.84 also in the place of a lookup."""

    @expose(public=True, policy=policies.CONTINUE_INSPECTION, query=filters.Query(node_uuid=filters.uuid),
            body=schemas.BODY, allow_nul=True)
    def post(self, body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
        """Store the data and continue the node's inspection; 200 means that they are safe.

        :returns: ``{"uuid"}``, since 1.84 what ``/v1/lookup`` returns
        :raises Invalid: 400, the data themselves are malformed, or contain nothing to find a node by
        :raises LookupFailed: 404, always the same: none, several, not waiting for data, or refused by an early rule
        :raises Unavailable: 503, safe to repeat
        """
        request = pecan.request
        require_endpoints(request.conf)
        minor = request.version
        if versions.MIN < minor < versions.CONTINUE_INSPECTION:
            raise NotFound(f"API version 1.{versions.CONTINUE_INSPECTION} or newer is required.")
        sent = payload.split(body)
        with request.db.reader() as conn:
            _run_early_rules(conn, sent)
            node = lookup.find_node(conn, query.get("node_uuid"), sent.macs, sent.bmc_addresses)
        try:
            request.rpc.continue_inspection(request.context, node.uuid, sent.inventory, sent.plugin_data,
                                            group=node.conductor_group)
        except NotFound as error:
            raise LookupFailed() from error
        except NodeLocked as error:
            # 409 would tell a stranger that there is such a node.
            raise Unavailable() from error
        if minor < versions.CONTINUE_INSPECTION:
            return {"uuid": node.uuid}
        return views.lookup(node, request.db.write(
            lambda conn: agent_token.claim_after_callback(conn, node.id)), request.conf)


def _run_early_rules(conn: sa.Connection, sent: payload.Payload) -> None:
    """Run the early rules.

    :raises LookupFailed: 404, one of them refuses the machine
    """
    try:
        rules = pecan.request.rule_cache.current(conn)
    except RuleFailed as error:
        # A conductor meets the same, and ends the inspection with this text where the operator looks.
        LOG.error("No early rules are run: %s", error)
    else:
        early.run(rules, sent)
