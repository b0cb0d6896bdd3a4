"""``/v1/node_failures``: why nodes failed, and how many for each reason."""

from __future__ import annotations

from ironic_rules.api import filters, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies

_LIST = filters.Query(limit=filters.positive)


class NodeFailuresController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.LIST_ALL, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """Group the nodes that have failed by ``provision_state`` and ``reason``, the largest group first.

        The reason is the beginning of their ``last_error``, in which ``…`` stands for what each machine has of its own:
        UUIDs, MAC addresses, numbers. ``failure`` identifies the group: as a filter of a list of nodes, and of
        ``POST /v1/nodes/reapply``, it selects its nodes. ``groups`` is their number, of which the first ``limit`` are
        shown. As in the list of nodes, those that have a parent are not counted. In a large fleet the numbers may
        be some seconds old.
        """
        asked = request
        with asked.db.reader() as conn:
            found = asked.node_failures.groups(conn)
        most = min(query.get("limit", asked.conf.api.max_limit), asked.conf.api.max_limit)
        return {"groups": len(found), "node_failures": [
            {"failure": group.ident, "provision_state": group.provision_state, "reason": group.reason,
             "count": group.number} for group in found[:most]]}
