"""``/v1/flavors/{flavor}/os-extra_specs`` (document 004)."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import extra_specs, filters, schemas
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.views import flavor_explanation as explanation_views
from ironic_rules.db import flavors
from ironic_rules.exceptions import ExtraSpecNotFound
from ironic_rules.extra_specs.check import MODES, STRICT
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import flavors as policies
from ironic_rules.text import printable

_WRITE = filters.Query(validation=filters.one_of(*MODES))


class FlavorExtraSpecsController(Resource):
    """``validation`` is ``strict`` (the default), ``permissive`` or ``off``.

    Values must be valid unless it is ``off``, and keys must be known if it is ``strict``. What is written without is
    logged if it is ``permissive``.
    """

    @expose(policy=policies.LIST_EXTRA_SPECS)
    def get_all(self, request: Request, flavor: str) -> JSONObject:
        """Return the extra specs of a flavor.

        :raises FlavorNotFound: 404
        """
        with request.db.reader() as conn:
            return {"extra_specs": flavors.get(conn, flavor, or_name=True).extra_specs}

    @expose(policy=policies.GET_EXTRA_SPEC)
    def get_one(self, request: Request, flavor: str, key: str) -> JSONObject:
        """Return one extra spec of a flavor, by its key.

        :raises FlavorNotFound, ExtraSpecNotFound: 404
        """
        with request.db.reader() as conn:
            return one(flavors.get(conn, flavor, or_name=True).extra_specs, flavor, key)

    @expose(policy=policies.CREATE_EXTRA_SPECS, body=schemas.EXTRA_SPECS, query=_WRITE)
    def post(self, request: Request, flavor: str, body: JSONObject, query: QueryValues) -> JSONObject:
        """Add extra specs to those of a flavor, or change them, and return them; all of them or none.

        ``warnings`` of the reply says what is deprecated and, if it is ``strict``, what keeps instances of the flavor
        from nodes.

        :raises FlavorNotFound: 404
        :raises Invalid: 400, with every problem
        """
        specs, mode = body["extra_specs"], query.get("validation", STRICT)
        warnings = extra_specs.write(request, flavor, specs, mode, "/extra_specs", or_name=True)
        return {"extra_specs": specs, **({"warnings": explanation_views.warnings(warnings)} if warnings else {})}

    @expose(policy=policies.UPDATE_EXTRA_SPEC, body=schemas.EXTRA_SPEC, query=_WRITE)
    def put(self, request: Request, flavor: str, key: str, body: JSONObject,
            query: QueryValues) -> JSONObject:
        """Set one extra spec of a flavor; the body is an object with just that key. ``warnings`` as of POST.

        :raises FlavorNotFound: 404
        :raises Invalid: 400, also for a body with another key
        """
        extra_specs.check_only(body, key)
        warnings = extra_specs.write(request, flavor, body, query.get("validation", STRICT), "", or_name=True)
        return {**({"warnings": explanation_views.warnings(warnings)} if warnings else {}), **body}

    @expose(policy=policies.DELETE_EXTRA_SPEC)
    def delete(self, request: Request, flavor: str, key: str) -> None:
        """Remove one extra spec from a flavor; the status is 200, as of Nova.

        :raises FlavorNotFound, ExtraSpecNotFound: 404
        """
        extra_specs.remove(request, flavor, key, or_name=True)


def one(specs: Any, flavor: str, key: str) -> JSONObject:
    """Return an extra spec as an object with just its key.

    :raises ExtraSpecNotFound: 404
    """
    if key not in specs:
        raise ExtraSpecNotFound(flavor=printable(flavor, 255), key=printable(key, 255))
    return {key: specs[key]}
