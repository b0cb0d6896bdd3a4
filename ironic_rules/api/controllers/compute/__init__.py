"""``/compute``: as much of Nova's compute API as its clients need for flavors and their extra specs."""

from __future__ import annotations

from typing import ClassVar

from ironic_rules.api import compute_versions
from ironic_rules.api.controllers.compute.flavors import ComputeFlavorsController
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.resource import Resource
from ironic_rules.models.documents import JSONObject

#: When version 2.1 of the compute API was published.
_UPDATED = "2013-07-23T11:33:21Z"


def _version(request: Request) -> JSONObject:
    return {"id": "v2.1", "status": "CURRENT", "version": compute_versions.MAX_STRING,
            "min_version": compute_versions.MIN_STRING, "updated": _UPDATED,
            "links": [{"rel": "self", "href": f"{request.base}/compute/v2.1/"}]}


class ComputeV21Controller(Resource):
    """``/compute/v2.1``."""

    below: ClassVar = {"flavors": ComputeFlavorsController()}

    @expose(public=True)
    def get_all(self, request: Request) -> JSONObject:
        """Return the version document, with the first and the last version of the compute API that is served."""
        media_type = {"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}
        return {"version": {**_version(request), "media-types": [media_type]}}


class ComputeController(Resource):
    """Served unless ``[api]enable_compute_flavors`` is false. Errors have Nova's format."""

    below: ClassVar = {"v2.1": ComputeV21Controller()}

    @expose(public=True)
    def get_all(self, request: Request) -> JSONObject:
        """Return the version documents of the compute API: there is one."""
        return {"versions": [_version(request)]}
