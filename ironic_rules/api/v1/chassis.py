"""``/v1/chassis``, and the nodes of a chassis."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.api import filters, patch, schemas
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1.served import Served
from ironic_rules.db import collection
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import NODE
from ironic_rules.models.resources import CHASSIS, Chassis
from ironic_rules.policies import nodes as node_policies

_CHASSIS = Served("chassis", CHASSIS, collection.CHASSIS, sub_resources=("nodes",))
_LIST = filters.Listing.of(CHASSIS, checked=False)
_ONE = filters.Query(fields=filters.names)
_NODES = filters.Listing.of(NODE, checked=False, without=("chassis_uuid",))


class ChassisDetailController(Resource):
    """``/v1/chassis/detail``."""

    @expose(policy=node_policies.CHASSIS_GET, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List chassis with all their fields."""
        return _CHASSIS.list_page(request, query, {}, detail=True)


class ChassisNodesDetailController(Resource):
    """``/v1/chassis/{chassis}/nodes/detail``."""

    @expose(policy=node_policies.LIST, query=_NODES)
    def get_all(self, request: Request, chassis: str, query: QueryValues) -> JSONObject:
        """List the nodes of a chassis with all their fields.

        :raises chassis_not_found: 404
        """
        return node_access.list_all_fields(request, {**query, "chassis_uuid": _uuid(request, chassis)})


class ChassisNodesController(Resource):
    """``/v1/chassis/{chassis}/nodes``."""

    below = {"detail": ChassisNodesDetailController()}

    @expose(policy=node_policies.LIST, query=_NODES)
    def get_all(self, request: Request, chassis: str, query: QueryValues) -> JSONObject:
        """List the nodes of a chassis.

        :raises chassis_not_found: 404
        """
        return node_access.list_nodes(
            request, {**query, "chassis_uuid": _uuid(request, chassis)}, detail=query.get("detail", False))


class ChassisController(Resource):
    """``/v1/chassis`` and ``/v1/chassis/{chassis}``; the ident is a UUID."""

    below = {"detail": ChassisDetailController()}
    below_item = {"nodes": ChassisNodesController()}

    @expose(policy=node_policies.CHASSIS_GET, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List chassis, with a few fields, those of ``fields``, or all (``detail``)."""
        return _CHASSIS.list_page(request, query, {})

    @expose(policy=node_policies.CHASSIS_GET, query=_ONE)
    def get_one(self, request: Request, chassis: str, query: QueryValues) -> JSONObject:
        """Return one chassis.

        :raises chassis_not_found: 404
        """
        return _CHASSIS.get_one(request, chassis, query)

    @expose(policy=node_policies.CHASSIS_CREATE, body=schemas.CHASSIS_CREATE, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a chassis; no field is required.

        :raises Invalid: 400;  chassis_already_exists: 409
        """
        values = _CHASSIS.given(request, body)
        return _CHASSIS.show_new(request, request.db.write(lambda conn: collection.CHASSIS.create(conn, values)))

    @expose(policy=node_policies.CHASSIS_UPDATE, body=patch.BODY)
    def patch(self, request: Request, chassis: str, body: list[JSONObject]) -> JSONObject:
        """Change a chassis by a JSON patch (RFC 6902).

        :raises chassis_not_found: 404;  Invalid: 400
        """
        operations = _CHASSIS.operations(request, body)

        def change(conn: sa.Connection) -> Chassis:
            row = collection.CHASSIS.get(conn, chassis, for_update=True)
            changed: Chassis = _CHASSIS.update(conn, row, _CHASSIS.changes(row, operations, schemas.CHASSIS_PATCHED))
            return changed

        return _CHASSIS.show(request, request.db.write(change))

    @expose(policy=node_policies.CHASSIS_DELETE, status=204)
    def delete(self, request: Request, chassis: str) -> None:
        """Delete a chassis without nodes.

        :raises chassis_not_found: 404;  chassis_not_empty: 400
        """
        request.db.write(lambda conn: collection.destroy_chassis(conn, chassis))


def _uuid(request: Request, chassis: str) -> str:
    with request.db.reader() as conn:
        uuid: str = collection.CHASSIS.get(conn, chassis).uuid
    return uuid
