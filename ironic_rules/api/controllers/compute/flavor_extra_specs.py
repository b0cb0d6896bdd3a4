"""``/compute/v2.1/flavors/{flavor}/os-extra_specs``, validated from version 2.86 on (document 004)."""

from __future__ import annotations

from ironic_rules.api import compute_versions, extra_specs, filters
from ironic_rules.api.controllers.v1.flavor_extra_specs import one
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.resource import Resource
from ironic_rules.api.schemas import flavors as schemas
from ironic_rules.db import flavors
from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.extra_specs.check import MODES, OFF, STRICT
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import flavors as policies

_WRITE = filters.Query(validation=filters.one_of(*MODES))


class ComputeExtraSpecsController(Resource):
    """Bodies as Nova's, so without warnings; a number as a value is stored as text."""

    @expose(policy=policies.LIST_EXTRA_SPECS)
    def get_all(self, request: Request, flavor: str) -> JSONObject:
        """Return the extra specs of a flavor.

        :raises FlavorNotFound: 404
        """
        with request.db.reader() as conn:
            return {"extra_specs": flavors.get(conn, flavor).extra_specs}

    @expose(policy=policies.GET_EXTRA_SPEC)
    def get_one(self, request: Request, flavor: str, key: str) -> JSONObject:
        """Return one extra spec of a flavor.

        :raises FlavorNotFound, ExtraSpecNotFound: 404
        """
        with request.db.reader() as conn:
            return one(flavors.get(conn, flavor).extra_specs, flavor, key)

    @expose(policy=policies.CREATE_EXTRA_SPECS, body=schemas.EXTRA_SPECS, query=_WRITE)
    def post(self, request: Request, flavor: str, body: JSONObject, query: QueryValues) -> JSONObject:
        """Add extra specs to those of a flavor, or change them, and return them. ``validation`` needs 2.86.

        :raises FlavorNotFound: 404
        :raises Invalid: 400, with every problem
        """
        extra_specs.write(request, flavor, _as_texts(body["extra_specs"]), _mode(request, query), "/extra_specs",
                          or_name=False)
        return body

    @expose(policy=policies.UPDATE_EXTRA_SPEC, body=schemas.EXTRA_SPEC, query=_WRITE)
    def put(self, request: Request, flavor: str, key: str, body: JSONObject,
            query: QueryValues) -> JSONObject:
        """Set one extra spec of a flavor; the body is an object with just that key.

        :raises FlavorNotFound: 404
        :raises Invalid: 400, also for a body with another key
        """
        extra_specs.check_only(body, key)
        extra_specs.write(request, flavor, _as_texts(body), _mode(request, query), "", or_name=False)
        return body

    @expose(policy=policies.DELETE_EXTRA_SPEC)
    def delete(self, request: Request, flavor: str, key: str) -> None:
        """Remove one extra spec from a flavor.

        :raises FlavorNotFound, ExtraSpecNotFound: 404
        """
        extra_specs.remove(request, flavor, key, or_name=False)


def _mode(request: Request, query: QueryValues) -> str:
    if request.version >= compute_versions.VALIDATION:
        return str(query.get("validation", STRICT))
    if "validation" in query:
        raise InvalidParameterValue(f"validation: needs version 2.{compute_versions.VALIDATION} or newer.")
    return OFF


def _as_texts(specs: JSONObject) -> JSONObject:
    return {key: str(value) if type(value) in (int, float) else value for key, value in specs.items()}
