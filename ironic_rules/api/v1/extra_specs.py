"""``/v1/extra_specs`` and ``/v1/image_properties``: what is known, and checks without a flavor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import orjson

from ironic_rules.api import etags, filters, pagination, schemas
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import flavors
from ironic_rules.exceptions import NotFound
from ironic_rules.extra_specs import check, installed, output
from ironic_rules.extra_specs.registry import SpecRegistry
from ironic_rules.extra_specs.validators import STATUSES
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import templates
from ironic_rules.text import printable

_TYPES = ("int", "bool", "str")
_SORT_KEYS = ("name", "namespace", "type", "status")
_SUMMARY = ("name", "namespace", "description", "status", "value")


class _Known(NamedTuple):
    name: str
    namespace: str
    type: str
    status: str
    shown: JSONObject


def _fields() -> tuple[str, ...]:
    return tuple(next(iter(_known(installed.extra_specs).values())).shown)


class _Listing(filters.Listing):
    def complete(self, values: JSONObject) -> JSONObject:
        values = super().complete(values)
        filters.check_fields(values.get("fields", ()), _fields())
        return values


_LIST = _Listing(sort_keys=_SORT_KEYS, marker=filters.text, namespace=filters.text, type=filters.one_of(*_TYPES),
                 status=filters.one_of(*STATUSES), text=filters.text)


class ValidateController(Resource):
    """``/v1/extra_specs/validate``."""

    @expose(policy=templates.FLAVOR_VALIDATE, body=schemas.EXTRA_SPECS,
            query=filters.Query(validation=filters.one_of(*check.MODES)))
    def post(self, request: Request, body: JSONObject, query: QueryValues) -> JSONObject:
        """Check extra specs as a write of them would, and store nothing.

        The status is 200 also if there are problems. ``problems`` has those for which a write would be refused,
        ``warnings`` those for which it would not; each with ``key``, ``pointer``, ``kind``, ``text``, the values that
        are ``allowed``, and the ``nearest`` valid key or value. ``valid`` is whether there are no problems.

        :raises Invalid: 400, more extra specs than a flavor may have
        """
        specs, mode = body["extra_specs"], query.get("validation", check.STRICT)
        flavors.refuse_too_many(specs, request.conf.api.max_flavor_extra_specs, "/extra_specs")
        problems = flavors.problems_of_extra_specs(specs, mode, "/extra_specs")
        return {"valid": not problems, "problems": [problem.to_wire() for problem in problems],
                "warnings": [warning.to_wire() for warning in check.warnings(specs, mode, pointer="/extra_specs")]}


class ExtraSpecsController(Resource):
    """The extra specs that this service knows: its own, and those of plug-ins."""

    below: ClassVar = {"validate": ValidateController()}

    @expose(policy=templates.FLAVOR_LIST_KNOWN, query=_LIST)
    def get_all(self, request: Request, query: QueryValues, conditions: etags.Preconditions) -> bytes | None:
        """List extra specs by name; parameters of names are in braces. The reply has an ``ETag``.

        ``namespace`` is the text before the colon (empty: without one), ``type`` the type of the values, ``status`` is
        ``supported``, ``deprecated`` or ``removed``. ``text`` selects by names and descriptions. The marker is a name.
        ``plugin_warnings`` names plug-ins that do not work, or whose extra specs have names of others.
        """
        warnings = [{"entry_point": warning.entry_point, "distribution": warning.distribution, "kind": warning.kind,
                     "text": warning.text} for warning in installed.extra_specs().warnings]
        return _list(request, "extra_specs", installed.extra_specs, query, conditions, {"plugin_warnings": warnings})

    @expose(policy=templates.FLAVOR_GET_KNOWN)
    def get_one(self, request: Request, name: str) -> JSONObject:
        """Describe an extra spec, by its name or by a key that it describes, such as ``hw:numa_cpus.0``.

        :raises NotFound: 404, with the nearest name
        """
        registry = installed.extra_specs()
        lookup = registry.find(name)
        definition = registry.get(name) or (lookup[0] if lookup else None)
        if definition is None:
            nearest = registry.hints.nearest(name)
            hint = f" Did you mean '{nearest}'?" if nearest else ""
            raise NotFound(f"No extra spec {printable(name, 255)} is known.{hint}")
        return output.describe(definition)


class ImagePropertiesController(Resource):
    """The properties of images that this service knows. They are not checked: images are Glance's."""

    @expose(policy=templates.FLAVOR_LIST_IMAGE_PROPERTIES, query=_LIST)
    def get_all(self, request: Request, query: QueryValues, conditions: etags.Preconditions) -> bytes | None:
        """List image properties by name; parameters and reply as those of ``/v1/extra_specs``."""
        return _list(request, "image_properties", installed.image_properties, query, conditions, {})


@functools.cache
def _known(registry: Callable[[], SpecRegistry]) -> dict[str, _Known]:
    return {item.validator.name: _Known(item.validator.name, item.validator.namespace, shown["value"]["type"],
                                        item.validator.status, shown)
            for item in registry() for shown in (output.describe(item),)}


def _list(request: Request, name: str, registry: Callable[[], SpecRegistry], query: QueryValues,
          conditions: etags.Preconditions, more: JSONObject) -> bytes | None:
    described = _known(registry)
    matching = output.matching(registry(), query.get("namespace"), query.get("type"), query.get("status"),
                               query.get("text"))
    rows = [described[item.validator.name] for item in matching]
    page = pagination.page(request, {"sort_key": "name", **query})
    fields = query.get("fields") or (_fields() if query.get("detail") else _SUMMARY)
    reply = pagination.collection(
        request, name, pagination.of_few(rows, page, "name"), page,
        lambda shown: [{field: item.shown[field] for field in item.shown if field in fields} for item in shown],
        marker="name")
    body = orjson.dumps({**reply, **more})
    if request.reply.is_unchanged(etags.tag(body), conditions):
        return None
    return body
