"""``/v1/inspection_rules``: rules that process a node's inspection data (document 000)."""

from __future__ import annotations

from typing import Any

import pecan
import sqlalchemy as sa

from ironic_rules import rules
from ironic_rules.api import built_in_rules, etags, filters, links, pagination, patch, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.resource import Resource
from ironic_rules.api.schemas import inspection_rules as schemas
from ironic_rules.api.views import inspection_rules as views
from ironic_rules.db import inspection_rules
from ironic_rules.exceptions import (
    InspectionRuleAlreadyExists,
    Invalid,
    InvalidPatch,
    InvalidRule,
    Problem,
    RuleChanged,
)
from ironic_rules.models.inspection_rules import RULE, SEALED, Rule
from ironic_rules.models.json_values import JSONObject
from ironic_rules.policies import inspection_rules as policies
from ironic_rules.text import is_uuid

_LIST = filters.Listing.of(RULE)
_ONE = filters.Query(fields=filters.names, detail=filters.boolean)

_READ_ONLY = RULE.where(lambda entry: entry.shown and not entry.patch)
#: The names by which the CLI's ``unset`` addresses single conditions and actions.
_ALIASES = {"condition": "conditions", "action": "actions"}


class InspectionRulesController(Resource):
    """Since API 1.96. Rules are identified by UUID."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.LIST, query=_LIST)
    def get_all(self, query: dict[str, Any]) -> dict[str, Any]:
        """List rules in the order of their creation, the built-in ones last.

        Conditions and actions are shown only with ``detail`` or ``fields``.
        """
        fields = query.get("fields") or (RULE.shown if query.get("detail") else RULE.summary)
        asked = pagination.page(query)
        wanted = pagination.filters(query)
        rows: list[Any] = []
        if built_in_rules.find(asked.marker) is None:
            with pecan.request.db.reader() as conn:
                rows = inspection_rules.list_rules(conn, wanted, asked, views.columns(fields), raw_json=True)
        rows += built_in_rules.page(wanted, asked, len(rows))
        return pagination.collection("inspection_rules", rows, asked, lambda shown: views.rules(shown, fields))

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET, query=_ONE)
    def get_one(self, uuid: str, query: dict[str, Any]) -> dict[str, Any] | None:
        """Show a rule, with its ``ETag``; 304 without a body if ``If-None-Match`` names that.

        :raises InspectionRuleNotFound: 404
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        filters.check_fields(query.get("fields", ()), RULE.shown)
        conditions = etags.read(pecan.request.environ)
        if built_in := built_in_rules.find(_uuid(uuid)):
            found, tag = built_in, built_in_rules.tag(built_in)
        else:
            with pecan.request.db.reader() as conn:
                found = inspection_rules.get(conn, _uuid(uuid))
            tag = _tag(found)
        conditions.check_match(tag)
        pecan.response.extra_headers.append(("ETag", tag))
        if conditions.has(tag):
            pecan.response.status_override = 304
            return None
        return views.rule(found, query.get("fields") or RULE.shown)

    @expose(since=versions.INSPECTION_RULES, policy=policies.CREATE, body=schemas.CREATE, status=201)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a rule and return it, with its ``ETag``.

        :raises InvalidRule: 400, with every problem
        :raises InspectionRuleAlreadyExists: 409
        """
        rule = rules.from_wire(body)
        if "scope" not in body:
            rule["scope"] = pecan.request.rules.default_scope
        _check(rule)
        if built_in_rules.find(rule.get("uuid")):
            raise InspectionRuleAlreadyExists(uuid=rule["uuid"])
        stored = pecan.request.db.write(lambda conn: inspection_rules.create(conn, rule))
        pecan.response.extra_headers += [
            ("Location", links.url("inspection_rules", stored.uuid)), ("ETag", _tag(stored))]
        return views.rule(stored)

    @expose(since=versions.INSPECTION_RULES, policy=policies.UPDATE, body=patch.BODY)
    def patch(self, uuid: str, body: list[dict[str, Any]]) -> dict[str, Any]:
        """Change a rule and return it, with its new ``ETag``. With ``If-Match`` only if it has one of those tags.

        :raises InspectionRuleNotFound: 404
        :raises InvalidPatch, InvalidRule: 400
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises RuleChanged: 409, another request changed it meanwhile
        """
        conditions = etags.read(pecan.request.environ)
        operations = patch.operations(body, aliases=_ALIASES)
        uuid = _uuid(uuid)
        built_in_rules.refuse(uuid)

        def write(conn: sa.Connection) -> Rule:
            old = inspection_rules.get(conn, uuid)
            conditions.check(_tag(old))
            changes = _patched(old, operations)
            return inspection_rules.update(conn, uuid, changes, revision=old.revision)

        with conditions.guard(RuleChanged):
            changed = pecan.request.db.write(write)
        pecan.response.extra_headers.append(("ETag", _tag(changed)))
        return views.rule(changed)

    @expose(since=versions.INSPECTION_RULES, policy=policies.DELETE, status=204)
    def delete_all(self) -> None:
        """Delete every rule but the built-in ones. The collection has no ``ETag``: ``If-Match`` can only be ``*``.

        :raises PreconditionFailed: 412, by ``If-Match``
        """
        etags.read(pecan.request.environ).check(None)
        pecan.request.db.write(inspection_rules.destroy_all)

    @expose(since=versions.INSPECTION_RULES, policy=policies.DELETE, status=204)
    def delete(self, uuid: str) -> None:
        """Delete a rule, or every rule if ``uuid`` is ``all``, as the CLI sends it.

        With ``If-Match`` a rule is deleted only if it has one of those tags.

        :raises InspectionRuleNotFound: 404
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises RuleChanged: 409, another request changed it meanwhile
        """
        conditions = etags.read(pecan.request.environ)
        if uuid == "all":
            conditions.check(None)
            pecan.request.db.write(inspection_rules.destroy_all)
            return
        ident = _uuid(uuid)
        built_in_rules.refuse(ident)

        def write(conn: sa.Connection) -> None:
            old = inspection_rules.get(conn, ident)
            conditions.check(_tag(old))
            inspection_rules.destroy(conn, ident, revision=old.revision if conditions.given else None)

        with conditions.guard(RuleChanged):
            pecan.request.db.write(write)


def _tag(rule: Rule) -> str:
    """Return the entity tag of a stored rule: every change of any field creates a new revision."""
    return etags.tag(rule.uuid, rule.revision)


def _uuid(ident: str) -> str:
    if not is_uuid(ident):
        raise Invalid("A rule is identified by its UUID.")
    return ident.lower()


def _check(rule: dict[str, Any]) -> None:
    problems = rules.validate(rule, limits=pecan.request.rules.limits)
    if problems:
        raise InvalidRule(problems=problems)


def _patched(old: Rule, operations: list[patch.Operation]) -> JSONObject:
    """Return the columns of a rule after a patch."""
    if old.sensitive:
        _refuse_looks_at_secrets(operations)
    document = {name: getattr(old, name) for name in RULE.columns}
    settings = pecan.request.rules
    defaults = {**RULE.defaults(), "scope": settings.default_scope}
    result = patch.apply(document, operations, defaults=defaults, read_only=_READ_ONLY, required=RULE.required)
    new = rules.from_wire({name: result[name] for name in schemas.PATCHABLE})
    # The result is checked: many different operations can end in "not sensitive".
    if old.sensitive and new["sensitive"] is not True:
        raise InvalidPatch(problems=[Problem("/sensitive", "a sensitive rule cannot be made non-sensitive")])
    problems = rules.validate(new, limits=settings.limits)
    if old.sensitive:
        problems = _without_secrets(problems, patch.touched(operations))
    if problems:
        raise InvalidRule(problems=problems)
    return new


def _refuse_looks_at_secrets(operations: list[patch.Operation]) -> None:
    """Allow conditions and actions of a sensitive rule to be replaced as a whole only: all else reveals them.

    :raises InvalidPatch: 400, with a text that does not depend on the stored values
    """
    for index, operation in enumerate(operations):
        whole = operation.op in ("add", "replace", "remove") and len(operation.path) == 1
        secret = operation.path[0] in SEALED or (operation.source and operation.source[0] in SEALED)
        if secret and not whole:
            raise InvalidPatch(problems=[Problem(
                f"/{index}/path", "of a sensitive rule, conditions and actions can only be replaced as a whole")])


def _without_secrets(problems: list[Problem], touched: set[str]) -> list[Problem]:
    """Return ``problems`` without those in conditions and actions that the caller did not send in this request."""
    stored = tuple(f"/{name}" for name in SEALED if name not in touched)
    told = [problem for problem in problems if not stored or not problem.where.startswith(stored)]
    if len(told) < len(problems):
        told.append(Problem("", "the stored conditions or actions do not fit this change"))
    return told
