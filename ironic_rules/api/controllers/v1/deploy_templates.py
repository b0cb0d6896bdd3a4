"""``/v1/deploy-templates`` (document 003), and the same as ``/v1/deploy_templates``, as Ironic's clients call it."""

from __future__ import annotations

from typing import Any, ClassVar

import pecan
import sqlalchemy as sa

from ironic_rules.api import etags, filters, links, pagination, patch, versions
from ironic_rules.api.controllers.v1 import deploy_steps, node_access
from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.api.schemas import deploy_templates as schemas
from ironic_rules.api.views import deploy_templates as views
from ironic_rules.db import deploy_templates
from ironic_rules.exceptions import DeployTemplateChanged, Invalid, InvalidPatch, Problem
from ironic_rules.models.deploy_templates import DEPLOY_TEMPLATE, DeployTemplate
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.steps import Step
from ironic_rules.policies import deploy_templates as policies
from ironic_rules.steps import checks
from ironic_rules.text import printable

_LIST = filters.Listing.of(DEPLOY_TEMPLATE)
_ONE = filters.Query(fields=filters.names, detail=filters.boolean)
_READ_ONLY = DEPLOY_TEMPLATE.where(lambda entry: entry.shown and not entry.patch)


class DeployTemplatesController(Resource):
    """Since API 1.55. Templates are identified by UUID or by name, which is a trait."""

    below_item: ClassVar = {"nodes": deploy_steps.TemplateNodesController()}

    def __init__(self, collection: str, *, detailed: bool) -> None:
        """Serve the collection under one of its two names.

        :param collection: the last part of the URL, and the key of the list in replies
        :param detailed: what a list without ``detail`` and ``fields`` shows: everything, or a summary
        """
        self._collection = collection
        self._detailed = detailed

    @expose(since=versions.DEPLOY_TEMPLATES, policy=policies.LIST, query=_LIST)
    def get_all(self, query: dict[str, Any]) -> dict[str, Any]:
        """List templates in the order of their creation.

        ``deploy-templates`` shows all fields, ``deploy_templates`` a few, unless ``detail`` or ``fields`` is given.
        """
        default = DEPLOY_TEMPLATE.shown if query.get("detail", self._detailed) else DEPLOY_TEMPLATE.summary
        fields = query.get("fields") or default
        asked = pagination.page(query)
        with pecan.request.db.reader() as conn:
            rows = deploy_templates.list_templates(conn, asked, views.columns(fields), raw_json=True)
            steps = None
            if "steps" in fields:
                steps = deploy_templates.steps_of(conn, [row.id for row in rows[:asked.limit - 1]])
        return pagination.collection(
            self._collection, rows, asked, lambda shown: views.templates(shown, steps, fields, self._collection))

    @expose(since=versions.DEPLOY_TEMPLATES, policy=policies.GET, query=_ONE)
    def get_one(self, template: str, query: dict[str, Any]) -> dict[str, Any] | None:
        """Show a template, with its ``ETag``; 304 without a body if ``If-None-Match`` names that.

        :raises DeployTemplateNotFound: 404
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        filters.check_fields(query.get("fields", ()), DEPLOY_TEMPLATE.shown)
        conditions = etags.read(pecan.request.environ)
        with pecan.request.db.reader() as conn:
            found = _find(conn, template)
        tag = _tag(found)
        conditions.check_match(tag)
        pecan.response.extra_headers.append(("ETag", tag))
        if conditions.has(tag):
            pecan.response.status_override = 304
            return None
        return views.template(found, self._collection, query.get("fields") or DEPLOY_TEMPLATE.shown)

    @expose(since=versions.DEPLOY_TEMPLATES, policy=policies.CREATE, body=schemas.CREATE, status=201)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a template and return it, with its ``ETag``.

        :raises Invalid: 400, with every problem
        :raises DeployTemplateAlreadyExists, DuplicateDeployTemplateName: 409
        """
        values = {name: value for name, value in body.items() if name != "steps" and value is not None}
        found = pecan.request.db.write(
            lambda conn: deploy_templates.create(conn, values, _checked(body["steps"], _known(conn))))
        pecan.response.extra_headers += [("Location", links.url(self._collection, found.uuid)), ("ETag", _tag(found))]
        return views.template(found, self._collection)

    @expose(since=versions.DEPLOY_TEMPLATES, policy=policies.UPDATE, body=patch.BODY)
    def patch(self, template: str, body: list[dict[str, Any]]) -> dict[str, Any]:
        """Change a template and return it, with its new ``ETag``. ``If-Match`` changes only what has one of its tags.

        :raises DeployTemplateNotFound: 404;  InvalidPatch, Invalid: 400
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises DeployTemplateChanged: 409, another request changed it meanwhile;  DuplicateDeployTemplateName: 409
        """
        conditions = etags.read(pecan.request.environ)
        operations = patch.operations(body)
        _refuse_looks_at_secrets(operations)
        writes_steps = "steps" in patch.touched(operations)

        def write(conn: sa.Connection) -> DeployTemplate:
            old = _find(conn, template)
            conditions.check(_tag(old))
            values = _patched(old, operations)
            # Steps that stay are no concern of a request that changes something else, whatever drivers there are now.
            steps = _checked(values.pop("steps"), _known(conn) if writes_steps else ())
            return deploy_templates.update(conn, old, values, steps if writes_steps else None)

        with conditions.guard(DeployTemplateChanged):
            found = pecan.request.db.write(write)
        pecan.response.extra_headers.append(("ETag", _tag(found)))
        return views.template(found, self._collection)

    @expose(since=versions.DEPLOY_TEMPLATES, policy=policies.DELETE, status=204)
    def delete(self, template: str) -> None:
        """Delete a template. ``If-Match`` deletes only what has one of its tags.

        :raises DeployTemplateNotFound: 404
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises DeployTemplateChanged: 409, another request changed it meanwhile
        """
        conditions = etags.read(pecan.request.environ)

        def write(conn: sa.Connection) -> None:
            old = _find(conn, template)
            conditions.check(_tag(old))
            deploy_templates.destroy(conn, old, only_unchanged=conditions.given)

        with conditions.guard(DeployTemplateChanged):
            pecan.request.db.write(write)


def _find(conn: sa.Connection, ident: str) -> DeployTemplate:
    return deploy_templates.get(conn, node_access.check_ident(ident, "deploy template"))


def _tag(template: DeployTemplate) -> str:
    """Return the entity tag of a stored template. One that is made anew has another time of its creation."""
    return etags.tag(template.uuid, template.created_at.isoformat(), template.revision)


def _known(conn: sa.Connection) -> tuple[checks.StepCheck, ...]:
    """Return the check against what living conductors offer; none if none is alive."""
    registered = pecan.request.offered_steps.current(conn).get(None)
    return () if registered is None else (checks.fits(registered),)


def _checked(steps: list[dict[str, Any]], more: tuple[checks.StepCheck, ...]) -> tuple[Step, ...]:
    """Return steps that passed the schema, after all that can be checked without a node.

    :param more: checks of the steps on top of those that need nothing but the configuration
    :raises Invalid: 400, with every problem
    """
    checked = tuple(Step(**step) for step in steps)
    disallowed = frozenset(pecan.request.conf.api.disallow_deploy_steps)
    problems = checks.problems(checked, (checks.without(disallowed), checks.real_secrets, *more))
    if problems:
        raise Invalid(problems=[Problem(printable(problem.where, 256), problem.text) for problem in problems])
    return checked


def _patched(old: DeployTemplate, operations: list[patch.Operation]) -> JSONObject:
    """Return the fields of a template after a patch, valid against the schema."""
    document = {name: getattr(old, name) for name in DEPLOY_TEMPLATE.columns}
    document["steps"] = [step.to_wire() for step in old.steps]
    defaults = DEPLOY_TEMPLATE.defaults()
    result = patch.apply(document, operations, defaults=defaults, read_only=_READ_ONLY,
                         required=DEPLOY_TEMPLATE.required)
    values: JSONObject = schemas.PATCHED.load({name: result[name] for name in schemas.FIELDS})
    return {name: defaults.get(name) if value is None else value for name, value in values.items()}


def _refuse_looks_at_secrets(operations: list[patch.Operation]) -> None:
    """Let no operation read what replies hide: not compare it, and not copy it to where it would be shown.

    :raises InvalidPatch: 400, the same for whatever is stored
    """
    for index, operation in enumerate(operations):
        source = operation.path if operation.op == "test" else operation.source
        if source[:1] != ("steps",) or (len(source) == 3 and source[2] != "args"):
            continue
        # A whole step in the place of another one: every key stays what it is.
        if operation.op != "test" and len(source) == 2 and len(operation.path) == 2 and operation.path[0] == "steps":
            continue
        raise InvalidPatch(problems=[Problem(f"/{index}/op", f"{operation.op} cannot read the arguments of steps")])
