"""``/`` and ``/v1``: the supported API versions, and the resources with the version in which each was added.

One module per resource; each is a :class:`~ironic_rules.api.routes.Resource` with exposed methods.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar

from ironic_rules.api import openapi, versions
from ironic_rules.api.compute import ComputeController
from ironic_rules.api.expose import expose
from ironic_rules.api.health import HealthcheckController, MetricsController
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1.allocations import AllocationsController
from ironic_rules.api.v1.chassis import ChassisController
from ironic_rules.api.v1.continue_inspection import ContinueInspectionController
from ironic_rules.api.v1.deploy_templates import DeployTemplatesController
from ironic_rules.api.v1.drivers import DriversController
from ironic_rules.api.v1.extra_specs import ExtraSpecsController, ImagePropertiesController
from ironic_rules.api.v1.facts import FactChangesController, FactsController
from ironic_rules.api.v1.flavors import FlavorsController
from ironic_rules.api.v1.fleet import (
    ConductorsController,
    InspectionOutcomesController,
    NodeFailuresController,
    ShardsController,
    StateCountsController,
)
from ironic_rules.api.v1.inspection_rules import InspectionRulesController
from ironic_rules.api.v1.journal import InspectionJournalController, SharedMACsController
from ironic_rules.api.v1.legacy_rules import RulesController
from ironic_rules.api.v1.nodes import NodesController
from ironic_rules.api.v1.operations import OperationsController
from ironic_rules.api.v1.portgroups import PortgroupsController
from ironic_rules.api.v1.ports import PortsController
from ironic_rules.api.v1.ramdisk import HeartbeatController, LookupController
from ironic_rules.api.v1.runbooks import RunbooksController
from ironic_rules.api.v1.search import SearchController
from ironic_rules.api.v1.volume import VolumeController
from ironic_rules.api.v1.webhooks import WebhooksController
from ironic_rules.models.documents import JSONObject

#: Resource -> first minor version that advertises it.
ADVERTISED = {
    "runbooks": versions.RUNBOOKS, "shards": versions.SHARDS,
    "allocations": versions.ALLOCATIONS,
    "chassis": versions.MIN, "nodes": versions.MIN, "ports": versions.MIN, "drivers": versions.MIN,
    "portgroups": versions.PORTGROUPS, "volume": versions.VOLUME, "lookup": versions.RAMDISK,
    "heartbeat": versions.RAMDISK, "conductors": versions.CONDUCTORS, "deploy_templates": versions.DEPLOY_TEMPLATES,
    "inspection_rules": versions.INSPECTION_RULES, "continue_inspection": versions.CONTINUE_INSPECTION,
}


_DESCRIBED_BY = {"href": "https://docs.openstack.org/api-ref/baremetal/", "rel": "describedby", "type": "text/html"}


class OpenAPIController(Resource):
    """``/v1/openapi.json`` needs no authentication."""

    @expose(public=True)
    def get_all(self, request: Request) -> bytes:
        """Return the description of this API in OpenAPI 3.1, the same for every version and every caller."""
        return openapi.served(root(), request.base)


class V1Controller(Resource):
    """``GET /v1`` needs no authentication."""

    below: ClassVar = {
        "runbooks": RunbooksController(), "shards": ShardsController(),
        "allocations": AllocationsController(), "chassis": ChassisController(),
        "nodes": NodesController(), "node_states": StateCountsController(),
        "node_failures": NodeFailuresController(), "inspection_outcomes": InspectionOutcomesController(),
        "ports": PortsController(), "portgroups": PortgroupsController(),
        "drivers": DriversController(), "conductors": ConductorsController(), "volume": VolumeController(),
        # Document 003 has a hyphen and shows all fields; Ironic and its clients use the underscore.
        "deploy-templates": DeployTemplatesController("deploy-templates", detailed=True),
        "deploy_templates": DeployTemplatesController("deploy_templates", detailed=False),
        "inspection_journal": InspectionJournalController(), "shared_macs": SharedMACsController(),
        "inspection_rules": InspectionRulesController(), "lookup": LookupController(),
        "webhooks": WebhooksController(),
        "facts": FactsController(), "fact_changes": FactChangesController(),
        "search": SearchController(),
        "rules": RulesController(), "operations": OperationsController(),
        "heartbeat": HeartbeatController(), "continue_inspection": ContinueInspectionController(),
        "flavors": FlavorsController(), "extra_specs": ExtraSpecsController(),
        "image_properties": ImagePropertiesController(), "openapi.json": OpenAPIController(),
    }

    def __init__(self, version_document: Callable[[Request], JSONObject]) -> None:
        self._version_document = version_document

    @expose(public=True)
    def get_all(self, request: Request) -> JSONObject:
        """Return links to the resources that the requested version has."""
        base = request.base
        reply: JSONObject = {
            "id": "v1", "links": [{"href": f"{base}/v1/", "rel": "self"}, _DESCRIBED_BY],
            "media_types": {"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"},
            "version": self._version_document(request),
        }
        for name, since in ADVERTISED.items():
            if request.version >= since:
                reply[name] = [{"href": f"{base}/v1/{name}/", "rel": "self"},
                               {"href": f"{base}/{name}/", "rel": "bookmark"}]
        return reply


def version_document(request: Request) -> JSONObject:
    """Return the document by which clients discover version 1 of the API."""
    return {
        "id": "v1", "links": [{"href": f"{request.base}/v1/", "rel": "self"}], "status": "CURRENT",
        "min_version": versions.MIN_STRING, "version": versions.MAX_STRING,
    }


class RootController(Resource):
    """``GET /`` needs no authentication."""

    below: ClassVar = {"v1": V1Controller(version_document), "healthcheck": HealthcheckController(),
                       "metrics": MetricsController(), "compute": ComputeController()}

    @expose(public=True)
    def get_all(self, request: Request) -> JSONObject:
        """Return the version document; IPA reads ``default_version.version``."""
        document = version_document(request)
        return {
            "name": "OpenStack Ironic API",
            "description": "Bare metal machines: inspection, rules and deploy templates.",
            "default_version": document, "versions": [document],
        }


@functools.cache
def root() -> RootController:
    """Return the root of all resources, for what describes the API."""
    return RootController()
