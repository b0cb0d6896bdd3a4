"""``/v1/deploy-templates`` (document 003), and the same under Ironic's name, ``/v1/deploy_templates``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import sqlalchemy as sa

from ironic_rules.api import etags, filters, links, pagination, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import deploy_steps, node_access
from ironic_rules.api.views import resources
from ironic_rules.db import deploy_templates, outbox
from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.steps import DEPLOY_TEMPLATE, DeployTemplate, Step
from ironic_rules.policies import templates
from ironic_rules.steps import preview
from ironic_rules.steps.preview import StepWarning

_LIST = filters.Listing.of(DEPLOY_TEMPLATE)
_ONE = filters.Query(fields=filters.names, detail=filters.boolean)
_READ_ONLY = DEPLOY_TEMPLATE.where(lambda entry: entry.shown and not entry.patch)


class DeployTemplatesController(Resource):
    """Since API 1.55. Templates are identified by UUID or by name, which is a trait."""

    below_item: ClassVar = {"nodes": deploy_steps.TemplateNodesController()}

    def __init__(self, collection: str, *, detailed: bool) -> None:
        """Serve the collection under one of its two names.

        :param collection: the last part of the URL, and the key of the list in replies
        :param detailed: whether a list without ``detail`` and ``fields`` shows all fields, or a summary
        """
        self._collection = collection
        self._detailed = detailed

    @expose(since=versions.DEPLOY_TEMPLATES, policy=templates.TEMPLATE_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List templates in the order of their creation.

        ``deploy-templates`` shows all fields, ``deploy_templates`` a few, unless ``detail`` or ``fields`` is given.
        """
        default = DEPLOY_TEMPLATE.shown if query.get("detail", self._detailed) else DEPLOY_TEMPLATE.summary
        fields = query.get("fields") or default
        page = pagination.page(request, query)
        with request.db.reader() as conn:
            rows = deploy_templates.list_templates(conn, page, resources.template_columns(fields), raw_json=True)
            steps = None
            if "steps" in fields:
                steps = deploy_templates.steps_of(conn, [row.id for row in rows[:page.limit - 1]])
        return pagination.collection(
            request, self._collection, rows, page,
            lambda shown: resources.templates(request.base, shown, steps, fields, self._collection))

    @expose(since=versions.DEPLOY_TEMPLATES, policy=templates.TEMPLATE_GET, query=_ONE)
    def get_one(self, request: Request, template: str, query: QueryValues,
                conditions: etags.Preconditions) -> JSONObject | None:
        """Show a template, with its ``ETag``, and with ``warnings`` if there are any.

        304 without a body if ``If-None-Match`` names the tag.

        :raises deploy_template_not_found: 404
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        filters.check_fields(query.get("fields", ()), DEPLOY_TEMPLATE.shown)
        with request.db.reader() as conn:
            row = _find(conn, template)
        if request.reply.is_unchanged(_tag(row), conditions):
            return None
        if fields := query.get("fields"):
            return resources.template(request.base, row, self._collection, fields)
        return resources.template_with_warnings(request.base, row, self._collection, _warnings(request, row.steps))

    @expose(since=versions.DEPLOY_TEMPLATES, policy=templates.TEMPLATE_CREATE, body=schemas.TEMPLATE_CREATE, status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a template and return it, with its ``ETag``, and with ``warnings`` if there are any.

        :raises Invalid: 400, with every problem
        :raises deploy_template_already_exists, duplicate_deploy_template_name: 409
        """
        values = {name: value for name, value in body.items() if name != "steps" and value is not None}

        def create(conn: sa.Connection) -> DeployTemplate:
            created = deploy_templates.create(conn, values, _checked(request, body["steps"]))
            outbox.note(conn, "deploy template", "create", created)
            return created

        row = request.db.write(create)
        request.reply.headers += [("Location", links.url(request.base, self._collection, row.uuid)),
                                  ("ETag", _tag(row))]
        return resources.template_with_warnings(request.base, row, self._collection, _warnings(request, row.steps))

    @expose(since=versions.DEPLOY_TEMPLATES, policy=templates.TEMPLATE_UPDATE, body=patch.BODY)
    def patch(self, request: Request, template: str, body: list[JSONObject],
              conditions: etags.Preconditions) -> JSONObject:
        """Change a template and return it, with its new ``ETag``, and with ``warnings`` if there are any.

        A patch after which the template is the same writes nothing, and the ``ETag`` stays; one that writes steps with
        secrets always counts as a change.

        With ``If-Match`` only if it has one of those tags.

        :raises deploy_template_not_found: 404;  Invalid: 400
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises deploy_template_changed: 409, another request changed it first;  duplicate_deploy_template_name: 409
        """
        operations = patch.operations(body)
        _refuse_looks_at_secrets(operations)
        writes_steps = "steps" in patch.touched(operations)

        def write(conn: sa.Connection) -> DeployTemplate:
            old = _find(conn, template)
            conditions.check(_tag(old))
            values = _patched(old, operations)
            steps = _checked(request, values.pop("steps"))
            changes = {name: value for name, value in values.items() if patch.differs(getattr(old, name), value)}
            if not changes and not (writes_steps and _are_written(old.steps, steps)):
                return old
            changed = deploy_templates.update(conn, old, changes, steps if writes_steps else None)
            outbox.note(conn, "deploy template", "update", changed, old)
            return changed

        with conditions.guard():
            row = request.db.write(write)
        request.reply.headers.append(("ETag", _tag(row)))
        return resources.template_with_warnings(request.base, row, self._collection, _warnings(request, row.steps))

    @expose(since=versions.DEPLOY_TEMPLATES, policy=templates.TEMPLATE_DELETE, status=204)
    def delete(self, request: Request, template: str, conditions: etags.Preconditions) -> None:
        """Delete a template. With ``If-Match`` only if it has one of those tags.

        :raises deploy_template_not_found: 404
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises deploy_template_changed: 409, another request changed it first
        """

        def write(conn: sa.Connection) -> None:
            old = _find(conn, template)
            conditions.check(_tag(old))
            outbox.note(conn, "deploy template", "delete", old)
            deploy_templates.destroy(conn, old, only_unchanged=conditions.given)

        with conditions.guard():
            request.db.write(write)


def _find(conn: sa.Connection, ident: str) -> DeployTemplate:
    return deploy_templates.get(conn, node_access.check_ident(ident, "deploy template"))


def _tag(template: DeployTemplate) -> str:
    """Return the entity tag of a stored template. One that was deleted and created again differs in ``created_at``."""
    return etags.tag(template.uuid, template.created_at.isoformat(), template.revision)


def _warnings(request: Request, steps: Sequence[Step]) -> Sequence[StepWarning]:
    """Return the warnings about the steps of a stored template; none if no conductor is alive."""
    with request.db.reader() as conn:
        registered = request.offered_steps.current(conn).get(None)
    return () if registered is None else preview.warnings_of_template(registered, steps)


def _checked(request: Request, steps: list[JSONObject]) -> tuple[Step, ...]:
    """Return steps that passed the schema, after every check that does not need a node.

    :raises Invalid: 400, with every problem
    """
    checked = tuple(Step(**step) for step in steps)
    deploy_steps.check_steps(request, checked)
    return checked


def _are_written(old: Sequence[Step], new: Sequence[Step]) -> bool:
    """Return whether steps differ from the stored ones. Those with secrets always do: guesses must not be confirmed."""
    steps = [step.to_wire() for step in new]
    return patch.differs([step.to_wire() for step in old], steps) or secrets.mask(steps) != steps


def _patched(old: DeployTemplate, operations: list[patch.PatchOperation]) -> JSONObject:
    """Return the fields of a template after a patch, valid against the schema."""
    document = {name: getattr(old, name) for name in DEPLOY_TEMPLATE.columns}
    document["steps"] = [step.to_wire() for step in old.steps]
    defaults = DEPLOY_TEMPLATE.defaults()
    result = patch.apply(document, operations, defaults=defaults, read_only=_READ_ONLY,
                         required=DEPLOY_TEMPLATE.required)
    values: JSONObject = schemas.TEMPLATE_PATCHED.load({name: result[name] for name in schemas.TEMPLATE_FIELDS})
    return {name: defaults.get(name) if value is None else value for name, value in values.items()}


def _refuse_looks_at_secrets(operations: list[patch.PatchOperation]) -> None:
    """Refuse operations that read values masked in replies: that compare them, or copy them to where they are shown.

    :raises Invalid: 400, with a text that does not depend on the stored values
    """
    for index, operation in enumerate(operations):
        source = operation.path if operation.op == "test" else operation.source
        if source[:1] != ("steps",) or (len(source) == 3 and source[2] != "args"):
            continue
        # A whole step replaces another one: every value keeps its key, so it is still masked.
        if operation.op != "test" and len(source) == 2 and len(operation.path) == 2 and operation.path[0] == "steps":
            continue
        raise Invalid(problems=[Problem(f"/{index}/op", f"{operation.op} cannot read the arguments of steps")])
