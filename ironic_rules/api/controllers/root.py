"""``/``: the supported API versions."""

from __future__ import annotations

from typing import ClassVar

from ironic_rules.api import versions
from ironic_rules.api.compute import ComputeController
from ironic_rules.api.controllers.v1 import V1Controller
from ironic_rules.api.expose import expose
from ironic_rules.api.health import HealthcheckController, MetricsController
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.models.documents import JSONObject


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
