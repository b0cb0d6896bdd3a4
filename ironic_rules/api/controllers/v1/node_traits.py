"""``/v1/nodes/{node}/traits``, since API 1.37."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.api import links, schemas, versions
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.expose import RAW, expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import node_sets
from ironic_rules.exceptions import Invalid, InvalidParameterValue, Problem
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.traits import MAX_PER_NODE, is_trait
from ironic_rules.policies import nodes as policies


class TraitsController(Resource):
    """The traits of a node."""

    @expose(since=versions.TRAITS, policy=policies.LIST_TRAITS, unacceptable=True)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return ``{"traits": [names, sorted]}``.

        :raises NodeNotFound: 404
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            return {"traits": node_sets.list_traits(conn, [row.id])[row.id]}

    @expose(since=versions.TRAITS, policy=policies.SET_TRAITS, body=RAW, status=204)
    def put(self, request: Request, node: str, trait: str | None = None, *, body: JSON) -> None:
        """Add one trait (no body), or replace all by those of the body (``{"traits": [names]}``).

        :raises InvalidParameterValue: 400, a name that is not a trait, or more than 50
        :raises NodeNotFound: 404;  NodeLocked: 409
        """
        if trait is not None:
            self._add(request, node, trait, body)
            return
        names = sorted(set(schemas.TRAITS.load(body)["traits"]))

        def replace(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            _check_number(row.uuid, len(names))
            node_sets.set_traits(conn, row.id, names)

        request.db.write(replace)

    def _add(self, request: Request, node: str, trait: str, body: JSON) -> None:
        if body:
            raise Invalid("This request takes no body.")
        if not is_trait(trait):
            raise InvalidParameterValue(problems=[Problem("trait", "must be a standard trait (os-traits), or CUSTOM_ "
                                                                   "followed by A-Z, 0-9 and _")])

        def add(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            _check_number(row.uuid, len({*node_sets.list_traits(conn, [row.id])[row.id], trait}))
            node_sets.add_trait(conn, row.id, trait)

        request.db.write(add)
        request.reply.headers.append(("Location", links.url(request.base, "nodes", node, "traits", trait)))

    @expose(since=versions.TRAITS, policy=policies.DELETE_TRAITS, status=204, hidden=True)
    def delete(self, request: Request, node: str, trait: str | None = None) -> None:
        """Remove one trait, or all.

        :raises NodeNotFound, TraitNotFound: 404;  NodeLocked: 409
        """
        def remove(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            if trait is None:
                node_sets.remove_all_traits(conn, row.id)
            else:
                node_sets.remove_trait(conn, row.id, trait)

        request.db.write(remove)


def _check_number(node: str, count: int) -> None:
    if count > MAX_PER_NODE:
        raise InvalidParameterValue(f"Could not modify traits for node {node} as it would exceed the maximum number of "
                                    f"traits per node ({count} vs. {MAX_PER_NODE})")
