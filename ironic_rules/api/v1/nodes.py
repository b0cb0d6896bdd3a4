"""``/v1/nodes``."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules import policy
from ironic_rules.api import filters, links, pagination, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access, node_replies, node_update
from ironic_rules.api.v1.allocations import NodeAllocationController
from ironic_rules.api.v1.asking import SORTED
from ironic_rules.api.v1.deploy_steps import NodeCleanStepsController, NodeDeployStepsController
from ironic_rules.api.v1.facts import NodeFactsController
from ironic_rules.api.v1.journal import NodeJournalController
from ironic_rules.api.v1.node_hardware import (
    BIOSController,
    FirmwareController,
    ManagementController,
    VendorPassthruController,
    VmediaController,
)
from ironic_rules.api.v1.node_parts import TraitsController, VifsController
from ironic_rules.api.v1.node_records import (
    HistoryController,
    InspectionsController,
    InventoryController,
    LegacyValuesController,
    TraitOriginsController,
)
from ironic_rules.api.v1.node_states import MaintenanceController, StatesController
from ironic_rules.api.v1.portgroups import NodePortgroupsController
from ironic_rules.api.v1.ports import NodePortsController
from ironic_rules.api.v1.trials import NodesReapplyController
from ironic_rules.api.v1.volume import NodeVolumeController
from ironic_rules.db import nodes, outbox
from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.inspection import known_bmcs
from ironic_rules.models import node_actions
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import NODE
from ironic_rules.policies import nodes as policies


def field_or_fact(value: str) -> str:
    """A field of nodes, or ``fact:`` and the name of a fact."""
    return filters.text(value) if value.startswith(SORTED) else _by_field(value)


_by_field = filters.one_of(*sorted({*NODE.sort_keys, "natural_name"}))
_LIST = filters.Listing.of(NODE, checked=False, facts=filters.names, sort_key=field_or_fact)
_ONE = filters.Query(fields=filters.names)
_PATCH = filters.Query(reset_interfaces=filters.boolean)


class NodesDetailController(Resource):
    """``/v1/nodes/detail``."""

    @expose(policy=policies.LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List nodes with all their fields.

        :raises InvalidParameterValue: 400;  NotAcceptable: 406, a filter that the version does not support
        """
        return node_access.list_all_fields(request, query)


class NodesSearchController(Resource):
    """``/v1/nodes/search``, since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.LIST, query=_LIST, body=schemas.NODE_SEARCH)
    def post(self, request: Request, query: QueryValues, body: JSONObject) -> JSONObject:
        """List the nodes that fulfil ``conditions`` of a rule, and ``where``; otherwise as ``GET /v1/nodes``.

        A condition compares one fact (``{fact[memory_gib]}``), field of the node, trait or MAC address of a port with
        constants. Each further page is the same request to the URL in ``next``.

        :raises InvalidRule: 400, with the pointer of each problem;  InvalidParameterValue: 400
        """
        if "where" in body:
            if "where" in query:
                raise InvalidParameterValue("where is given in the URL and in the body.")
            query["where"] = body["where"]
        return node_access.list_nodes(request, query, detail=query.get("detail", False),
                                      conditions=body.get("conditions", []))


class ValidateController(Resource):
    """``/v1/nodes/{node}/validate``."""

    @expose(policy=policies.VALIDATE)
    def get_all(self, request: Request, node: str) -> JSONObject:
        """Return, per interface, whether its configuration is valid: ``{"power": {"result": true}, …}``.

        :raises NodeNotFound: 404;  RPCTimeout: 503
        """
        with request.db.reader() as conn:
            row = node_access.find(request, conn, node)
        result: JSONObject = request.rpc.validate_interfaces(
            request.context, row.uuid, group=row.conductor_group)
        return result


class NodesController(Resource):
    """``/v1/nodes`` and ``/v1/nodes/{node}``; a node is identified by its UUID or its name."""

    below = {"detail": NodesDetailController(), "reapply": NodesReapplyController(), "search": NodesSearchController()}
    below_item = {
        "allocation": NodeAllocationController(), "bios": BIOSController(), "firmware": FirmwareController(),
        "clean_steps": NodeCleanStepsController(), "deploy_steps": NodeDeployStepsController(),
        "history": HistoryController(),
        "facts": NodeFactsController(),
        "inspection_journal": NodeJournalController(), "inspections": InspectionsController(),
        "inventory": InventoryController(), "legacy_values": LegacyValuesController(),
        "maintenance": MaintenanceController(),
        "management": ManagementController(),
        "portgroups": NodePortgroupsController(), "ports": NodePortsController(), "states": StatesController(),
        "traits": TraitsController(), "trait_origins": TraitOriginsController(), "validate": ValidateController(),
        "vifs": VifsController(),
        "vendor_passthru": VendorPassthruController(),
        "vmedia": VmediaController(), "volume": NodeVolumeController(),
    }

    @expose(policy=policies.LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List nodes, with a few fields, those of ``fields``, or all (``detail``).

        :raises InvalidParameterValue: 400;  NotAcceptable: 406, a filter or field that the version does not support
        """
        return node_access.list_nodes(request, query, detail=query.get("detail", False))

    @expose(policy=policies.GET, query=_ONE)
    def get_one(self, request: Request, node: str, query: QueryValues) -> JSONObject:
        """Return one node.

        :raises NodeNotFound: 404;  NotAcceptable: 406, a field that the version does not support
        """
        fields = pagination.requested_fields(request, query, NODE)
        with request.db.reader() as conn:
            return node_replies.show_node(request, conn, node_access.find(request, conn, node), fields)

    @expose(policy=policies.CREATE, body=schemas.NODE_CREATE, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a node, in ``enroll`` (below 1.11: ``available``).

        Objects of a caller who is confined to a project belong to that project.

        :raises NotAcceptable: 406, a field that the version does not support
        :raises Forbidden: 403, the owner is another one, or cleaning is switched off
        :raises DriverNotFound, InterfaceNotFound: 400
        :raises node_already_exists, DuplicateNodeName, instance_associated: 409
        :raises no_valid_host: 503, no conductor is alive
        """
        confinement = request.confinement
        owner = {}
        if confinement is not None:
            owner = {"owner": confinement.owner(body.get("owner"))}
            if body.get("automated_clean") is False:
                policy.authorize(request.conf, policies.DISABLE_CLEANING, request.context)

        def create(conn: sa.Connection) -> JSONObject:
            row = nodes.create(conn, node_update.new_node(request, conn, {**body, **owner}))
            known_bmcs.follow(conn, row.id, {}, row.driver_info)
            return node_replies.show_node(request, conn, row)

        created = request.db.write(create)
        request.reply.headers.append(("Location", links.url(request.base, "nodes", created["uuid"])))
        return created

    @expose(policy=policies.UPDATE, body=patch.BODY, query=_PATCH)
    def patch(self, request: Request, node: str, body: list[JSONObject], query: QueryValues) -> JSONObject:
        """Change a node by a JSON patch (RFC 6902).

        ``reset_interfaces`` (1.45): with a new driver, interfaces that the patch does not set get its defaults.

        :raises Invalid: 400, with the JSON pointer
        :raises NotAcceptable: 406, a field that the version does not support
        :raises NodeLocked, Conflict, node_associated, instance_associated, DuplicateNodeName: 409
        """
        minor = request.version
        reset = query.get("reset_interfaces")
        if reset is not None and minor < versions.RESET_INTERFACES:
            raise versions.too_new("reset_interfaces", versions.RESET_INTERFACES)
        update = node_update.NodeUpdate(request, patch.operations(body), reset_interfaces=bool(reset))

        def change(conn: sa.Connection) -> JSONObject:
            row = node_access.hold(request, conn, node, update.policies)
            update.check_owner(row)
            changed = nodes.update(conn, row.id, update.changes(conn, row))
            known_bmcs.follow(conn, row.id, row.driver_info, changed.driver_info)
            outbox.note(conn, "node", "update", changed, row)
            return node_replies.show_node(request, conn, changed)

        return request.db.write(change)

    @expose(policy=policies.DELETE, status=204)
    def delete(self, request: Request, node: str) -> None:
        """Delete a node and everything that belongs to it.

        :raises NodeNotFound: 404;  node_protected: 403
        :raises NodeLocked: 409
        :raises node_associated, node_not_removable, node_has_children: 409, unless it is in maintenance
        """
        def destroy(conn: sa.Connection) -> None:
            row = node_access.hold(request, conn, node)
            node_actions.check_removable(row, nodes.child_of(conn, row.uuid))
            outbox.note(conn, "node", "delete", row)
            nodes.destroy(conn, row.id)

        request.db.write(destroy)
        # Its ports have been deleted too.
        request.pxe_filter.update_pxe_filters(request.context)
