"""``/v1/nodes/{node}/trait_origins``: which rules gave a node its traits."""

from __future__ import annotations

from ironic_rules.api import versions
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import node_records, node_sets
from ironic_rules.db.paging import Page
from ironic_rules.models import inspections as inspections_models
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies

#: Inspections that are looked at, the newest first.
_MOST = 100


class TraitOriginsController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_INSPECTIONS)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """List the traits of a node, each with the ``rule`` that gave it last, in which ``inspection``, and when.

        Found in the node's last 100 inspections that are kept. Where no rule of them gave the trait, or a sensitive
        one, the other fields are null.

        :raises NodeNotFound: 404
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            names = node_sets.list_traits(conn, [row.id])[row.id]
            entries = node_records.list_inspections(conn, row.id, Page(_MOST, sort_dir="desc")) if names else ()
        found = inspections_models.trait_origins(entries)
        return {"trait_origins": [_view(name, found.get(name)) for name in names]}


def _view(trait: str, origin: inspections_models.TraitOrigin | None) -> JSONObject:
    if origin is None:
        return {"trait": trait, "rule": None, "inspection": None, "given_at": None}
    return {"trait": trait, "rule": origin.rule, "inspection": origin.inspection.uuid,
            "given_at": origin.inspection.created_at}
