"""``/v1/nodes/{node}/legacy_values``: what legacy rules have written on a node."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import filters, pagination
from ironic_rules.api.controllers.v1 import node_access
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db import legacy_values
from ironic_rules.db.projection import Row
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.policies import nodes as policies

_LIST = filters.Query(limit=filters.positive, marker=filters.positive)


class LegacyValuesController(Resource):
    """In every version of the API."""

    @expose(policy=policies.LIST_LEGACY_VALUES, query=_LIST)
    def get_all(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """List the values in the order in which they were written; they are taken back in the reverse order.

        ``place`` is a path below the node, of a capability or a trait its name. ``written`` is what the rule has
        written, unless it has removed what was there (``is_set`` false); ``before`` is what was there before, if
        ``had_before``. Of a capability with ``made`` -1, ``before`` is all capabilities as they were written. Secrets
        are shown as ``******``. ``marker`` is the ``id`` of the last value of a page.

        :raises NodeNotFound: 404
        """
        page = pagination.page(request, query)
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
            found = legacy_values.list_values(conn, row.id, page.limit, query.get("marker"))
        return pagination.collection(request, "legacy_values", found, page, lambda shown: list(map(_view, shown)),
                                     marker="id")


def _view(row: Row) -> JSONObject:
    is_secret = any(secrets.is_secret_key(token) for token in row.place.split("/"))

    def masked(value: JSON) -> Any:
        return secrets.MASK if is_secret and value is not None else secrets.mask(value)

    # Names of columns that are words of SQL are not plain texts.
    shown = {str(name): value for name, value in row._asdict().items()}
    return {**shown, "written": masked(row.written), "before": masked(row.before)}
