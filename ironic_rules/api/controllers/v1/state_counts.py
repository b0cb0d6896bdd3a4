"""``/v1/node_states``: how many nodes are in each provision state."""

from __future__ import annotations

from ironic_rules.api import versions
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import nodes
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies


class StateCountsController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.LIST_ALL)
    def get_all(self, request: Request) -> JSONObject:
        """Return each provision state that nodes have with the number of its nodes, the largest first.

        As in the list of nodes, those that have a parent are not counted.
        """
        with request.db.reader() as conn:
            found = nodes.state_counts(conn)
        return {"node_states": [{"provision_state": name, "count": count} for name, count in found]}
