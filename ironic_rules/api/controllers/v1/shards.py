"""``/v1/shards``: the shards that nodes belong to."""

from __future__ import annotations

from ironic_rules.api import versions
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import nodes
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import shards as policies


class ShardsController(Resource):
    """Since API 1.82."""

    @expose(since=versions.SHARDS, policy=policies.GET)
    def get_all(self, request: Request) -> JSONObject:
        """Return each shard with the number of its nodes, the largest first; nodes without one are under null."""
        with request.db.reader() as conn:
            return {"shards": [{"name": name, "count": count} for name, count in nodes.shards(conn)]}
