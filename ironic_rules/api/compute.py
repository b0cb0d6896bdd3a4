"""``/compute``: as much of Nova's compute API as its clients need for flavors and their extra specs.

``/compute/v2.1/flavors`` has flavors as Nova's clients know them. Extra specs are validated from version 2.86 on
(document 004).
"""

from __future__ import annotations

from typing import ClassVar

from ironic_rules.api import filters, pagination, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import flavors as flavors_v1
from ironic_rules.api.v1.flavors import columns, destroy, one
from ironic_rules.api.views import resources
from ironic_rules.db import flavors
from ironic_rules.exceptions import InvalidParameterValue, MarkerNotFound, NotFound
from ironic_rules.extra_specs.check import MODES, OFF, STRICT
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.flavors import SORT_KEYS, Flavor
from ironic_rules.policies import templates

_WRITE = filters.Query(validation=filters.one_of(*MODES))


class ComputeExtraSpecsController(Resource):
    """Bodies as Nova's, so without warnings; a number as a value is stored as text."""

    @expose(policy=templates.FLAVOR_LIST_EXTRA_SPECS)
    def get_all(self, request: Request, flavor: str) -> JSONObject:
        """Return the extra specs of a flavor.

        :raises flavor_not_found: 404
        """
        with request.db.reader() as conn:
            return {"extra_specs": flavors.get(conn, flavor).extra_specs}

    @expose(policy=templates.FLAVOR_GET_EXTRA_SPEC)
    def get_one(self, request: Request, flavor: str, key: str) -> JSONObject:
        """Return one extra spec of a flavor.

        :raises flavor_not_found, extra_spec_not_found: 404
        """
        with request.db.reader() as conn:
            return one(flavors.get(conn, flavor).extra_specs, flavor, key)

    @expose(policy=templates.FLAVOR_CREATE_EXTRA_SPECS, body=schemas.EXTRA_SPECS, query=_WRITE)
    def post(self, request: Request, flavor: str, body: JSONObject, query: QueryValues) -> JSONObject:
        """Add extra specs to those of a flavor, or change them, and return them. ``validation`` needs 2.86.

        :raises flavor_not_found: 404
        :raises Invalid: 400, with every problem
        """
        flavors_v1.write_extra_specs(request, flavor, _as_texts(body["extra_specs"]), _mode(request, query),
                                     "/extra_specs",
                                     or_name=False)
        return body

    @expose(policy=templates.FLAVOR_UPDATE_EXTRA_SPEC, body=schemas.EXTRA_SPEC, query=_WRITE)
    def put(self, request: Request, flavor: str, key: str, body: JSONObject, query: QueryValues) -> JSONObject:
        """Set one extra spec of a flavor; the body is an object with just that key.

        :raises flavor_not_found: 404
        :raises Invalid: 400, also for a body with another key
        """
        flavors_v1.check_only(body, key)
        flavors_v1.write_extra_specs(request, flavor, _as_texts(body), _mode(request, query), "", or_name=False)
        return body

    @expose(policy=templates.FLAVOR_DELETE_EXTRA_SPEC)
    def delete(self, request: Request, flavor: str, key: str) -> None:
        """Remove one extra spec from a flavor.

        :raises flavor_not_found, extra_spec_not_found: 404
        """
        flavors_v1.remove_extra_spec(request, flavor, key, or_name=False)


def _mode(request: Request, query: QueryValues) -> str:
    if request.version >= versions.COMPUTE_VALIDATION:
        return str(query.get("validation", STRICT))
    if "validation" in query:
        raise InvalidParameterValue(f"validation: needs version 2.{versions.COMPUTE_VALIDATION} or newer.")
    return OFF


def _as_texts(specs: JSONObject) -> JSONObject:
    return {key: str(value) if type(value) in (int, float) else value for key, value in specs.items()}


def _public(value: str) -> bool | None:
    """A Boolean, or ``None`` for all flavors."""
    return None if value.lower() == "none" else filters.boolean(value)


def _amount(value: str) -> int:
    """An integer of at least 0."""
    number = filters.integer(value)
    if number < 0:
        raise ValueError("must not be negative")
    return number


_LIST = filters.Query(limit=_amount, marker=filters.text, is_public=_public, minRam=_amount, minDisk=_amount,
                      sort_key=filters.one_of(*SORT_KEYS), sort_dir=filters.one_of("asc", "desc"))


class ComputeFlavorDetailController(Resource):
    """``/compute/v2.1/flavors/detail``."""

    @expose(policy=templates.FLAVOR_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List flavors with all fields; from 2.61 also with their extra specs."""
        return _listed(request, query, resources.FLAVOR_ALL)


class ComputeFlavorsController(Resource):
    """A flavor is identified by its ID only, as in Nova."""

    below: ClassVar = {"detail": ComputeFlavorDetailController()}
    below_item: ClassVar = {"os-extra_specs": ComputeExtraSpecsController()}

    @expose(policy=templates.FLAVOR_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List flavors: public ones, unless ``is_public`` is given; it may be ``None`` for all."""
        return _listed(request, query, resources.FLAVOR_SUMMARY)

    @expose(policy=templates.FLAVOR_GET)
    def get_one(self, request: Request, flavor: str) -> JSONObject:
        """Show a flavor.

        :raises flavor_not_found: 404
        """
        with request.db.reader() as conn:
            return _shown(request, flavors.get(conn, flavor))

    @expose(policy=templates.FLAVOR_CREATE, body=schemas.FLAVOR_CREATE)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a flavor and return it; ``description`` needs 2.55.

        :raises Invalid: 400, with every problem
        :raises flavor_already_exists, duplicate_flavor_name: 409
        """
        if request.version < versions.COMPUTE_DESCRIPTION:
            schemas.CREATE_WITHOUT_DESCRIPTION.load(body)
        values = columns(body)
        return _shown(request, request.db.write(lambda conn: flavors.create(conn, values)))

    @expose(policy=templates.FLAVOR_UPDATE, body=schemas.FLAVOR_UPDATE)
    def put(self, request: Request, flavor: str, body: JSONObject) -> JSONObject:
        """Change the description of a flavor and return it; 404 below 2.55.

        :raises flavor_not_found: 404
        """
        if request.version < versions.COMPUTE_DESCRIPTION:
            raise NotFound("The description of a flavor needs version 2.55 or newer.")
        description = body["flavor"]["description"]
        return _shown(request, request.db.write(lambda conn: flavors.describe(conn, flavor, description)))

    @expose(policy=templates.FLAVOR_DELETE, status=202)
    def delete(self, request: Request, flavor: str) -> None:
        """Delete a flavor with its extra specs.

        :raises flavor_not_found: 404
        """
        destroy(request, flavor, or_name=False)


def _url(request: Request) -> str:
    return f"{request.base}/compute/v2.1/flavors"


def _shown(request: Request, row: Flavor) -> JSONObject:
    return {"flavor": resources.flavor(row, _url(request), request.version)}


def _listed(request: Request, query: QueryValues, fields: tuple[str, ...]) -> JSONObject:
    minor = request.version
    parameters = {name: value for name, value in query.items() if not (name == "limit" and not value)}
    page = pagination.page(request, {"sort_key": "flavorid", **parameters})
    try:
        with request.db.reader() as conn:
            rows = flavors.list_flavors(
                conn, page, is_public=query.get("is_public", True), min_ram=query.get("minRam", 0),
                min_disk=query.get("minDisk", 0),
                with_specs="extra_specs" in fields and minor >= resources.EXTRA_SPECS)
    except MarkerNotFound as error:
        raise InvalidParameterValue(str(error)) from error
    reply = pagination.collection(request, "flavors", rows, page,
                                  lambda shown: resources.flavors(shown, _url(request), minor, fields),
                                  marker="flavorid")
    following = reply.pop("next", None)
    if following is not None:
        reply["flavors_links"] = resources.flavor_next_links(following)
    return reply


#: Date of publication of version 2.1 of the compute API.
_UPDATED = "2013-07-23T11:33:21Z"


def _version(request: Request) -> JSONObject:
    return {"id": "v2.1", "status": "CURRENT", "version": versions.COMPUTE_MAX_STRING,
            "min_version": versions.COMPUTE_MIN_STRING, "updated": _UPDATED,
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
