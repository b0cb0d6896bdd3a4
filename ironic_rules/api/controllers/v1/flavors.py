"""``/v1/flavors``: Nova's flavors, without their access lists."""

from __future__ import annotations

from typing import Any, ClassVar

from ironic_rules.api import filters, links, pagination, schemas
from ironic_rules.api.controllers.v1 import flavor_explanation, flavor_extra_specs
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.views import flavors as views
from ironic_rules.db import flavors
from ironic_rules.exceptions import FlavorNotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.flavors import FIELDS, SORT_KEYS
from ironic_rules.policies import flavors as policies
from ironic_rules.text import printable

_LIST = filters.Listing(sort_keys=SORT_KEYS, fields=views.ALL, marker=filters.text, is_public=filters.boolean,
                        minRam=filters.positive, minDisk=filters.positive)


class FlavorDetailController(Resource):
    """``/v1/flavors/detail``."""

    @expose(policy=policies.LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List flavors with all fields, and with their extra specs, in the order of their IDs."""
        return _listed(request, {"detail": True, **query})


class FlavorsController(Resource):
    """A flavor is identified by its ID or, where no flavor has that as its ID, by its name."""

    below: ClassVar = {"detail": FlavorDetailController()}
    below_item: ClassVar = {"os-extra_specs": flavor_extra_specs.FlavorExtraSpecsController(),
                            "explanation": flavor_explanation.FlavorExplanationController()}

    @expose(policy=policies.LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List flavors in the order of their IDs: ID, name and description, unless ``detail`` or ``fields`` is given.

        ``minRam`` (MiB), ``minDisk`` (GiB) and ``is_public`` select some of them; the marker is an ID.
        """
        return _listed(request, query)

    @expose(policy=policies.GET, query=filters.Query(fields=filters.names))
    def get_one(self, request: Request, flavor: str, query: QueryValues) -> JSONObject:
        """Show a flavor with its extra specs.

        :raises FlavorNotFound: 404
        """
        filters.check_fields(query.get("fields", ()), views.ALL)
        with request.db.reader() as conn:
            found = flavors.get(conn, flavor, or_name=True)
        return {"flavor": views.flavor(found, links.url(request.base, "flavors"),
                                       fields=query.get("fields") or views.ALL)}

    @expose(policy=policies.CREATE, body=schemas.FLAVOR_CREATE)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a flavor without extra specs and return it, with the status 200, as Nova does.

        :raises Invalid: 400, with every problem
        :raises FlavorAlreadyExists, DuplicateFlavorName: 409
        """
        values = columns(body)
        found = request.db.write(lambda conn: flavors.create(conn, values))
        request.reply.headers.append(("Location", links.url(request.base, "flavors", found.flavorid)))
        return {"flavor": views.flavor(found, links.url(request.base, "flavors"))}

    @expose(policy=policies.UPDATE, body=schemas.FLAVOR_UPDATE)
    def put(self, request: Request, flavor: str, body: JSONObject) -> JSONObject:
        """Change the description of a flavor, which is all of it that can change, and return it.

        :raises FlavorNotFound: 404
        """
        description = body["flavor"]["description"]
        found = request.db.write(lambda conn: flavors.describe(
            conn, flavors.get(conn, flavor, or_name=True).flavorid, description))
        return {"flavor": views.flavor(found, links.url(request.base, "flavors"))}

    @expose(policy=policies.DELETE, status=202)
    def delete(self, request: Request, flavor: str) -> None:
        """Delete a flavor with its extra specs. Instances that were created with it are not affected.

        :raises FlavorNotFound: 404
        """
        destroy(request, flavor, or_name=True)


def columns(body: JSONObject) -> dict[str, Any]:
    """Return the columns of a new flavor from a body that passed the schema; null means the default."""
    return {FIELDS[name]: value for name, value in body["flavor"].items() if value is not None}


def destroy(request: Request, flavor: str, *, or_name: bool) -> None:
    """Delete a flavor.

    :raises FlavorNotFound: 404
    """
    if not request.db.write(
            lambda conn: flavors.destroy(conn, flavors.get_id(conn, flavor, or_name=or_name))):
        raise FlavorNotFound(flavor=printable(flavor, 255))


def _listed(request: Request, query: QueryValues) -> JSONObject:
    asked = pagination.page(request, {"sort_key": "flavorid", **query})
    fields = query.get("fields") or (views.ALL if query.get("detail") else views.SUMMARY)
    with request.db.reader() as conn:
        rows = flavors.list_flavors(
            conn, asked, is_public=query.get("is_public"), min_ram=query.get("minRam", 0),
            min_disk=query.get("minDisk", 0), with_specs="extra_specs" in fields)
    url = links.url(request.base, "flavors")
    reply = pagination.collection(request, "flavors", rows, asked, lambda shown: views.flavors(
        shown, url, views.NEWEST, fields), marker="flavorid")
    if "next" in reply:
        reply["flavors_links"] = views.next_links(reply["next"])
    return reply
