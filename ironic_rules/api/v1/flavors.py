"""``/v1/flavors``: Nova's flavors, without their access lists, and their extra specs (document 004).

Writes of extra specs check, store and log them, and warn about those that keep an instance from every node.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ironic_rules.api import filters, links, pagination, schemas
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import flavor_explanation
from ironic_rules.api.views import resources
from ironic_rules.db import flavors
from ironic_rules.exceptions import Invalid, Problem, extra_spec_not_found, flavor_not_found
from ironic_rules.extra_specs import check, values
from ironic_rules.extra_specs.check import MODES, STRICT
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.flavors import FIELDS, SORT_KEYS, Flavor, wrong_key, wrong_value
from ironic_rules.policies import templates
from ironic_rules.text import pointer_token, printable

LOG = logging.getLogger(__name__)
_SHOWN = 64


def write_extra_specs(request: Request, flavor: str, specs: Mapping[str, Any], mode: str, pointer: str, *,
                      or_name: bool) -> list[Problem]:
    """Store extra specs of a flavor beside those that it has; return the warnings about them.

    :param mode: one of ``check.MODES``
    :param pointer: JSON pointer to ``specs`` in the body
    :param or_name: ``flavor`` may be a name, too
    :raises flavor_not_found: 404
    :raises Invalid: 400, with every problem; nothing is stored
    """
    conf = request.conf
    most = conf.api.max_flavor_extra_specs
    refuse_too_many(specs, most, pointer)
    refused = problems_of_extra_specs(specs, mode, pointer)
    if refused:
        raise Invalid(problems=[Problem(problem.pointer, problem.text) for problem in refused])

    def store(conn: Any) -> tuple[Flavor, dict[str, str]]:
        row = flavors.lock(conn, flavor, or_name=or_name)
        return row, flavors.write_specs(conn, row, specs, most)

    written, together = request.db.write(store)
    spec_problems = check.warnings(specs, mode, pointer=pointer)
    if mode == check.PERMISSIVE:
        for warning in spec_problems:
            if warning.kind == values.UNKNOWN:
                LOG.warning("Flavor %s has got the extra spec %s, which is not known (request %s).",
                            written.flavorid, printable(warning.key, _SHOWN), request.context.request_id)
    problems = [Problem(warning.pointer, warning.text) for warning in spec_problems]
    if mode == check.STRICT:
        with request.db.reader() as conn:
            problems += flavor_explanation.flavor_warnings(conn, written, together)
    return problems


def remove_extra_spec(request: Request, flavor: str, key: str, *, or_name: bool) -> None:
    """Remove an extra spec.

    :raises flavor_not_found, extra_spec_not_found: 404
    """
    request.db.write(lambda conn: flavors.remove_spec(conn, flavors.lock(conn, flavor, or_name=or_name), key))


def check_only(body: Mapping[str, object], key: str) -> None:
    """Check that the body of a request has the key of its URL, and no other.

    :raises Invalid: 400
    """
    if key not in body:
        raise Invalid(problems=[Problem("", "must have the key that is in the URL")])
    if len(body) > 1:
        raise Invalid(problems=[Problem(f"/{pointer_token(other)}", "is not the key that is in the URL")
                                for other in list(body)[:2] if other != key])


def refuse_too_many(specs: Mapping[str, object], most: int, pointer: str) -> None:
    """Check that a flavor may have as many extra specs as these, before they are looked at.

    :raises Invalid: 400
    """
    if len(specs) > most:
        raise Invalid(problems=[Problem(pointer, f"has {len(specs)} extra specs; at most {most} are allowed "
                                                 "([api]max_flavor_extra_specs)")])


def problems_of_extra_specs(specs: Mapping[str, object], mode: str, pointer: str) -> list[values.SpecProblem]:
    """Return all problems of extra specs that do not depend on a flavor, one for each of them at most."""
    problems = check.check(specs, mode, pointer=pointer)
    named = {problem.pointer for problem in problems}
    return problems + [problem for problem in _malformed(specs, pointer) if problem.pointer not in named]


def _malformed(specs: Mapping[str, Any], pointer: str) -> Iterator[values.SpecProblem]:
    """Yield what no mode lets pass: keys and values that cannot be stored, or that Nova's clients cannot address."""
    for key, value in specs.items():
        text = wrong_key(key) or wrong_value(value)
        if text is not None:
            yield values.problem_of(key, pointer, values.PATTERN, text)


_WRITE = filters.Query(validation=filters.one_of(*MODES))


class FlavorExtraSpecsController(Resource):
    """``validation`` is ``strict`` (the default), ``permissive`` or ``off``.

    Values must be valid unless it is ``off``, and keys must be known if it is ``strict``. Values written without it are
    logged if it is ``permissive``.
    """

    @expose(policy=templates.FLAVOR_LIST_EXTRA_SPECS)
    def get_all(self, request: Request, flavor: str) -> JSONObject:
        """Return the extra specs of a flavor.

        :raises flavor_not_found: 404
        """
        with request.db.reader() as conn:
            return {"extra_specs": flavors.get(conn, flavor, or_name=True).extra_specs}

    @expose(policy=templates.FLAVOR_GET_EXTRA_SPEC)
    def get_one(self, request: Request, flavor: str, key: str) -> JSONObject:
        """Return one extra spec of a flavor, by its key.

        :raises flavor_not_found, extra_spec_not_found: 404
        """
        with request.db.reader() as conn:
            return one(flavors.get(conn, flavor, or_name=True).extra_specs, flavor, key)

    @expose(policy=templates.FLAVOR_CREATE_EXTRA_SPECS, body=schemas.EXTRA_SPECS, query=_WRITE)
    def post(self, request: Request, flavor: str, body: JSONObject, query: QueryValues) -> JSONObject:
        """Add extra specs to those of a flavor, or change them, and return them; all of them or none.

        ``warnings`` of the reply says what is deprecated and, if it is ``strict``, what keeps instances of the flavor
        from nodes.

        :raises flavor_not_found: 404
        :raises Invalid: 400, with every problem
        """
        specs, mode = body["extra_specs"], query.get("validation", STRICT)
        warnings = write_extra_specs(request, flavor, specs, mode, "/extra_specs", or_name=True)
        return {"extra_specs": specs, **({"warnings": flavor_explanation.warnings(warnings)} if warnings else {})}

    @expose(policy=templates.FLAVOR_UPDATE_EXTRA_SPEC, body=schemas.EXTRA_SPEC, query=_WRITE)
    def put(self, request: Request, flavor: str, key: str, body: JSONObject, query: QueryValues) -> JSONObject:
        """Set one extra spec of a flavor; the body is an object with just that key. ``warnings`` as of POST.

        :raises flavor_not_found: 404
        :raises Invalid: 400, also for a body with another key
        """
        check_only(body, key)
        warnings = write_extra_specs(request, flavor, body, query.get("validation", STRICT), "", or_name=True)
        return {**({"warnings": flavor_explanation.warnings(warnings)} if warnings else {}), **body}

    @expose(policy=templates.FLAVOR_DELETE_EXTRA_SPEC)
    def delete(self, request: Request, flavor: str, key: str) -> None:
        """Remove one extra spec from a flavor; the status is 200, as of Nova.

        :raises flavor_not_found, extra_spec_not_found: 404
        """
        remove_extra_spec(request, flavor, key, or_name=True)


def one(specs: Any, flavor: str, key: str) -> JSONObject:
    """Return an extra spec as an object with just its key.

    :raises extra_spec_not_found: 404
    """
    if key not in specs:
        raise extra_spec_not_found(flavor=printable(flavor, 255), key=printable(key, 255))
    return {key: specs[key]}


_LIST = filters.Listing(sort_keys=SORT_KEYS, fields=resources.FLAVOR_ALL, marker=filters.text,
                        is_public=filters.boolean,
                        minRam=filters.positive, minDisk=filters.positive)


class FlavorDetailController(Resource):
    """``/v1/flavors/detail``."""

    @expose(policy=templates.FLAVOR_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List flavors with all fields, and with their extra specs, in the order of their IDs."""
        return _listed(request, {"detail": True, **query})


class FlavorsController(Resource):
    """A flavor is identified by its ID or, where no flavor has that as its ID, by its name."""

    below: ClassVar = {"detail": FlavorDetailController()}
    below_item: ClassVar = {"os-extra_specs": FlavorExtraSpecsController(),
                            "explanation": flavor_explanation.FlavorExplanationController()}

    @expose(policy=templates.FLAVOR_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List flavors in the order of their IDs: ID, name and description, unless ``detail`` or ``fields`` is given.

        ``minRam`` (MiB), ``minDisk`` (GiB) and ``is_public`` select some of them; the marker is an ID.
        """
        return _listed(request, query)

    @expose(policy=templates.FLAVOR_GET, query=filters.Query(fields=filters.names))
    def get_one(self, request: Request, flavor: str, query: QueryValues) -> JSONObject:
        """Show a flavor with its extra specs.

        :raises flavor_not_found: 404
        """
        filters.check_fields(query.get("fields", ()), resources.FLAVOR_ALL)
        with request.db.reader() as conn:
            row = flavors.get(conn, flavor, or_name=True)
        return {"flavor": resources.flavor(row, links.url(request.base, "flavors"),
                                           fields=query.get("fields") or resources.FLAVOR_ALL)}

    @expose(policy=templates.FLAVOR_CREATE, body=schemas.FLAVOR_CREATE)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a flavor without extra specs and return it, with the status 200, as Nova does.

        :raises Invalid: 400, with every problem
        :raises flavor_already_exists, duplicate_flavor_name: 409
        """
        values = columns(body)
        created = request.db.write(lambda conn: flavors.create(conn, values))
        request.reply.headers.append(("Location", links.url(request.base, "flavors", created.flavorid)))
        return {"flavor": resources.flavor(created, links.url(request.base, "flavors"))}

    @expose(policy=templates.FLAVOR_UPDATE, body=schemas.FLAVOR_UPDATE)
    def put(self, request: Request, flavor: str, body: JSONObject) -> JSONObject:
        """Change the description of a flavor, which is all of it that can change, and return it.

        :raises flavor_not_found: 404
        """
        description = body["flavor"]["description"]
        changed = request.db.write(lambda conn: flavors.describe(
            conn, flavors.get(conn, flavor, or_name=True).flavorid, description))
        return {"flavor": resources.flavor(changed, links.url(request.base, "flavors"))}

    @expose(policy=templates.FLAVOR_DELETE, status=202)
    def delete(self, request: Request, flavor: str) -> None:
        """Delete a flavor with its extra specs. Instances that were created with it are not affected.

        :raises flavor_not_found: 404
        """
        destroy(request, flavor, or_name=True)


def columns(body: JSONObject) -> JSONObject:
    """Return the columns of a new flavor from a body that passed the schema; null means the default."""
    return {FIELDS[name]: value for name, value in body["flavor"].items() if value is not None}


def destroy(request: Request, flavor: str, *, or_name: bool) -> None:
    """Delete a flavor.

    :raises flavor_not_found: 404
    """
    if not request.db.write(
            lambda conn: flavors.destroy(conn, flavors.get_id(conn, flavor, or_name=or_name))):
        raise flavor_not_found(flavor=printable(flavor, 255))


def _listed(request: Request, query: QueryValues) -> JSONObject:
    page = pagination.page(request, {"sort_key": "flavorid", **query})
    fields = query.get("fields") or (resources.FLAVOR_ALL if query.get("detail") else resources.FLAVOR_SUMMARY)
    with request.db.reader() as conn:
        rows = flavors.list_flavors(
            conn, page, is_public=query.get("is_public"), min_ram=query.get("minRam", 0),
            min_disk=query.get("minDisk", 0), with_specs="extra_specs" in fields)
    url = links.url(request.base, "flavors")
    reply = pagination.collection(request, "flavors", rows, page, lambda shown: resources.flavors(
        shown, url, resources.FLAVOR_NEWEST, fields), marker="flavorid")
    if "next" in reply:
        reply["flavors_links"] = resources.flavor_next_links(reply["next"])
    return reply
