"""``/compute/v2.1/flavors``: flavors as Nova's clients know them."""

from __future__ import annotations

from typing import ClassVar

from ironic_rules.api import compute_versions, filters, pagination
from ironic_rules.api.controllers.compute import flavor_extra_specs
from ironic_rules.api.controllers.v1.flavors import columns, destroy
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.resource import Resource
from ironic_rules.api.schemas import flavors as schemas
from ironic_rules.api.views import flavors as views
from ironic_rules.db import flavors
from ironic_rules.exceptions import InvalidParameterValue, MarkerNotFound, NotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.flavors import SORT_KEYS, Flavor
from ironic_rules.policies import flavors as policies


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

    @expose(policy=policies.LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List flavors with all fields; from 2.61 also with their extra specs."""
        return _listed(request, query, views.ALL)


class ComputeFlavorsController(Resource):
    """A flavor is identified by its ID only, as in Nova."""

    below: ClassVar = {"detail": ComputeFlavorDetailController()}
    below_item: ClassVar = {"os-extra_specs": flavor_extra_specs.ComputeExtraSpecsController()}

    @expose(policy=policies.LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List flavors: public ones, unless ``is_public`` is given; it may be ``None`` for all."""
        return _listed(request, query, views.SUMMARY)

    @expose(policy=policies.GET)
    def get_one(self, request: Request, flavor: str) -> JSONObject:
        """Show a flavor.

        :raises FlavorNotFound: 404
        """
        with request.db.reader() as conn:
            return _shown(request, flavors.get(conn, flavor))

    @expose(policy=policies.CREATE, body=schemas.CREATE)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a flavor and return it; ``description`` needs 2.55.

        :raises Invalid: 400, with every problem
        :raises FlavorAlreadyExists, DuplicateFlavorName: 409
        """
        if request.version < compute_versions.DESCRIPTION:
            schemas.CREATE_WITHOUT_DESCRIPTION.load(body)
        values = columns(body)
        return _shown(request, request.db.write(lambda conn: flavors.create(conn, values)))

    @expose(policy=policies.UPDATE, body=schemas.UPDATE)
    def put(self, request: Request, flavor: str, body: JSONObject) -> JSONObject:
        """Change the description of a flavor and return it; 404 below 2.55.

        :raises FlavorNotFound: 404
        """
        if request.version < compute_versions.DESCRIPTION:
            raise NotFound("The description of a flavor needs version 2.55 or newer.")
        description = body["flavor"]["description"]
        return _shown(request, request.db.write(lambda conn: flavors.describe(conn, flavor, description)))

    @expose(policy=policies.DELETE, status=202)
    def delete(self, request: Request, flavor: str) -> None:
        """Delete a flavor with its extra specs.

        :raises FlavorNotFound: 404
        """
        destroy(request, flavor, or_name=False)


def _url(request: Request) -> str:
    return f"{request.base}/compute/v2.1/flavors"


def _shown(request: Request, found: Flavor) -> JSONObject:
    return {"flavor": views.flavor(found, _url(request), request.version)}


def _listed(request: Request, query: QueryValues, fields: tuple[str, ...]) -> JSONObject:
    minor = request.version
    given = {name: value for name, value in query.items() if not (name == "limit" and not value)}
    asked = pagination.page(request, {"sort_key": "flavorid", **given})
    try:
        with request.db.reader() as conn:
            rows = flavors.list_flavors(
                conn, asked, is_public=query.get("is_public", True), min_ram=query.get("minRam", 0),
                min_disk=query.get("minDisk", 0),
                with_specs="extra_specs" in fields and minor >= views.EXTRA_SPECS)
    except MarkerNotFound as error:
        raise InvalidParameterValue(str(error)) from error
    reply = pagination.collection(request, "flavors", rows, asked,
                                  lambda shown: views.flavors(shown, _url(request), minor, fields),
                                  marker="flavorid")
    following = reply.pop("next", None)
    if following is not None:
        reply["flavors_links"] = views.next_links(following)
    return reply
