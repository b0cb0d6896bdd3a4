"""``/v1/rules``: the rules of ironic-inspector (document 002)."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules import legacy, policy
from ironic_rules.api import etags, filters, foreign_clients, links, pagination, patch, schemas
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import operations as operations_v1
from ironic_rules.api.v1 import rule_lists, rule_sets
from ironic_rules.api.views import rules as views
from ironic_rules.db import legacy_rules, legacy_values, operations
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import Invalid, InvalidRule, Problem
from ironic_rules.legacy import conversion
from ironic_rules.models import rules
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import LEGACY_RULE, LegacyRule
from ironic_rules.policies import rules as policies
from ironic_rules.rules.values import Warnings
from ironic_rules.text import is_uuid, printable

_LIST = filters.Listing.of(LEGACY_RULE)
_ONE = filters.Query(fields=filters.names)
_CREATE = filters.Query(convert_only=filters.boolean)
_DELETE = filters.Query(cleanup=filters.boolean)


class RulesController(Resource):
    """In every version of the API. Rules are identified by UUID."""

    @expose(policy=policies.LEGACY_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List rules in the order of their creation, in which they run.

        Conditions and actions are shown only with ``detail`` or ``fields``, and only to administrators: to others,
        ``detail`` shows the same as without it. A caller who may see them and may not replace rules sees ``******`` for
        what actions write under a secret key. The ``ETag`` is that of the whole set of rules, whatever the list shows.

        :raises Forbidden: 403, by the policy ``baremetal:legacy_rule:get_details``, of fields that are named
        """
        fields = rule_lists.fields(request, query, policies.LEGACY_GET_DETAILS, LEGACY_RULE.shown, LEGACY_RULE.summary,
                                   detail=query.get("detail", False))
        page = pagination.page(request, query)
        with request.db.reader() as conn:
            # Read first: if the set changes in between, the tag is already an old one.
            request.reply.headers.append(("ETag", _set_tag(legacy_rules.revision(conn))))
            rows = legacy_rules.list_rules(conn, page, views.legacy_columns(fields), raw_json=True)
        return pagination.collection(request, views.LEGACY_COLLECTION, rows, page, lambda shown: views.legacy_rules(
            request.base, shown, fields, masked=_is_masked(request)))

    @expose(policy=policies.LEGACY_GET, query=_ONE)
    def get_one(self, request: Request, uuid: str, query: QueryValues,
                conditions: etags.Preconditions) -> JSONObject | None:
        """Show a rule, with its ``ETag``; 304 without a body if ``If-None-Match`` names that.

        Secrets are hidden as in lists. Each condition has ``invert`` and ``multiple``, also where the request that
        created it left them out.

        :raises legacy_rule_not_found: 404
        :raises Forbidden: 403, by the policy ``baremetal:legacy_rule:get_details``, of fields that are named
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        filters.check_fields(query.get("fields", ()), LEGACY_RULE.shown)
        fields = rule_lists.fields(
            request, query, policies.LEGACY_GET_DETAILS, LEGACY_RULE.shown, LEGACY_RULE.summary, detail=True)
        with request.db.reader() as conn:
            rule = legacy_rules.get(conn, _uuid(uuid))
        if request.reply.is_unchanged(_tag(rule), conditions):
            return None
        return views.legacy_rule(request.base, rule, fields, masked=_is_masked(request))

    @expose(policy=policies.LEGACY_CREATE, query=_CREATE, body=schemas.LEGACY_RULE, status=201)
    def post(self, request: Request, query: QueryValues, body: JSONObject) -> JSONObject:
        """Create a rule and return it, with its ``ETag``; 200 for clients of versions of Inspector's API before 1.6.

        ``warnings`` are in the reply if the rule is valid and hardly does what is meant, as for inspection rules.

        With ``convert_only`` nothing is stored. The reply is 200 and has the inspection rule that is equivalent in
        ``rule``, null if there is none, the ``verdict``, what differs in ``notes``, why there is none in ``problems``,
        each with a ``pointer`` and a ``text``, and in ``not_undone`` pointers to actions whose effect an inspection
        rule does not take back.

        :raises InvalidRule: 400, with every problem
        :raises legacy_rule_already_exists: 409
        """
        if query.get("convert_only"):
            settings = request.rules
            request.reply.status = 200
            return conversion.convert_body(body, limits=settings.limits, plugins=settings.plugins).to_wire()
        warnings = _new_warnings(request)
        values = _checked(request, body, warnings)
        stored = request.db.write(lambda conn: legacy_rules.create(conn, values))
        minor = request.environ.get("ironic_rules.inspector_version")
        if minor is not None and minor < foreign_clients.CREATED:
            request.reply.status = 200
        return _written(request, stored, warnings)

    @expose(policy=policies.LEGACY_UPDATE, body=schemas.LEGACY_RULE)
    def put(self, request: Request, uuid: str, body: JSONObject, conditions: etags.Preconditions) -> JSONObject:
        """Replace a rule, or create it (201), and return it, with its new ``ETag``, and ``warnings`` as for POST.

        A rule that is replaced keeps its place in the order, and what it has written: the next inspection of each node
        takes that back, unless the new rule writes it again. With ``If-Match`` it is replaced only if it has one of
        those tags, with ``If-None-Match: *`` only created. To create one needs the policy for that, too.

        :raises InvalidRule: 400, with every problem
        :raises PreconditionFailed: 412, by ``If-Match`` or ``If-None-Match``
        :raises legacy_rule_changed: 409, another request changed it first
        """
        ident, warnings = _uuid(uuid), _new_warnings(request)
        values = _checked(request, {"uuid": ident, **body}, warnings)
        if values.pop("uuid") != ident:
            raise InvalidRule(problems=[Problem("/uuid", "is not that of the URL")])

        def write(conn: sa.Connection) -> tuple[LegacyRule, bool]:
            legacy_rules.lock(conn)
            old = legacy_rules.find(conn, ident)
            if old is None:
                policy.authorize(request.conf, policies.LEGACY_CREATE, request.context)
                conditions.check_absent()
                return legacy_rules.create(conn, {**values, "uuid": ident}), True
            conditions.check(_tag(old))
            return legacy_rules.update(conn, ident, values, revision=old.revision), False

        with conditions.guard():
            stored, is_new = request.db.write(write)
        if is_new:
            request.reply.status = 201
        return _written(request, stored, warnings)

    @expose(policy=policies.LEGACY_DELETE, query=_DELETE, status=204)
    def delete_all(self, request: Request, query: QueryValues, conditions: etags.Preconditions) -> JSONObject | None:
        """Delete every rule. ``If-Match`` is compared with the tag of the list.

        Nodes keep what the rules have set. With ``cleanup`` that is taken back on every node: the reply is 202, and the
        operation that does it.

        :raises PreconditionFailed: 412, by ``If-Match``
        """
        cleanup = query.get("cleanup", False)

        def write(conn: sa.Connection) -> Row | None:
            conditions.check(_set_tag(legacy_rules.lock(conn)))
            deleted = sorted(legacy_rules.uuids(conn)) if cleanup else []
            legacy_rules.destroy_all(conn, forget=not cleanup)
            return _begin_cleanup(request, conn, deleted, legacy_values.nodes_of()) if cleanup else None

        return _answer(request, request.db.write(write))

    @expose(policy=policies.LEGACY_DELETE, query=_DELETE, status=204)
    def delete(self, request: Request, uuid: str, query: QueryValues,
               conditions: etags.Preconditions) -> JSONObject | None:
        """Delete a rule. With ``If-Match`` only if it has one of those tags.

        Nodes keep what the rule has set. With ``cleanup`` that is taken back on every node: the reply is 202, and the
        operation that does it.

        :raises legacy_rule_not_found: 404
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises legacy_rule_changed: 409, another request changed it first
        """
        ident, cleanup = _uuid(uuid), query.get("cleanup", False)

        def write(conn: sa.Connection) -> Row | None:
            old = legacy_rules.get(conn, ident)
            conditions.check(_tag(old))
            legacy_rules.destroy(
                conn, ident, revision=old.revision if conditions.given else None, forget=not cleanup)
            return _begin_cleanup(request, conn, [ident], legacy_values.nodes_of(ident)) if cleanup else None

        with conditions.guard():
            return _answer(request, request.db.write(write))


def _begin_cleanup(request: Request, conn: sa.Connection, deleted: list[str], nodes: sa.Select[tuple[str]]) -> Row:
    """Store the operation that takes back what deleted rules have written."""
    return operations.create(
        conn, legacy_values.CLEANUP, {"rules": deleted}, request.context.user_id, nodes)


def _answer(request: Request, operation: Row | None) -> JSONObject | None:
    """Return the reply to a request that has deleted rules, with the operation that it has begun."""
    return None if operation is None else operations_v1.begun(request, operation)


def _is_masked(request: Request) -> bool:
    return not policy.allows(request.conf, policies.LEGACY_UPDATE, request.context)


def _new_warnings(request: Request) -> Warnings:
    return Warnings(known_names=lambda: rule_sets.known_names(request))


def _checked(request: Request, body: JSONObject, warnings: Warnings) -> JSONObject:
    """Return the columns of a rule as a user writes it.

    :param warnings: to which those about the rule are added

    :raises InvalidRule: 400, with every problem
    """
    settings = request.rules
    actions = body.get("actions")
    if isinstance(actions, list) and (places := list(dict.fromkeys(rules.masks_in_actions(actions)))):
        raise InvalidRule(problems=[Problem(printable(where, 256), patch.HIDDEN) for where in places])
    return legacy.parse(body, limits=settings.limits, plugins=settings.plugins, warnings=warnings).said()


def _written(request: Request, stored: LegacyRule, warnings: Warnings) -> JSONObject:
    request.reply.headers += [("Location", links.url(request.base, views.LEGACY_COLLECTION, stored.uuid)),
                                     ("ETag", _tag(stored))]
    return views.legacy_rule(request.base, stored) | (
        {"warnings": views.warnings(warnings.found)} if warnings.found else {})


def _tag(rule: LegacyRule) -> str:
    """Return the entity tag of a stored rule. One that was deleted and created again has another revision."""
    return etags.tag(legacy_rules.RULE_SET, rule.uuid, rule.revision)


def _set_tag(revision: int) -> str:
    return etags.tag(legacy_rules.RULE_SET, revision)


def _uuid(ident: str) -> str:
    if not is_uuid(ident):
        raise Invalid("A rule is identified by its UUID.")
    return ident.lower()
