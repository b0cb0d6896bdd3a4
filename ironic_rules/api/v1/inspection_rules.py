"""``/v1/inspection_rules``: rules that process a node's inspection data (document 000)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import sqlalchemy as sa

from ironic_rules import policy, rules
from ironic_rules.api import etags, filters, links, pagination, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import rule_lists, rule_sets
from ironic_rules.api.v1.rule_facts import (
    RuleConditionsController,
    RuleConflictsController,
    RuleSamplesController,
    RulesStatisticsController,
    RuleStatisticsController,
    RuleVocabularyController,
)
from ironic_rules.api.v1.rule_matches import RuleMatchesController
from ironic_rules.api.v1.rule_sets import RuleRevisionsController
from ironic_rules.api.v1.trials import RuleDryRunController
from ironic_rules.api.views import rules as rules_views
from ironic_rules.db import facts, inspection_rules, inventory
from ironic_rules.exceptions import (
    Invalid,
    InvalidRule,
    Problem,
    inspection_rule_already_exists,
)
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import RULE, SEALED, SUMMARY, Rule
from ironic_rules.policies import rules as rules_policies
from ironic_rules.rules import Checked
from ironic_rules.text import is_uuid

_LIST = filters.Listing.of(RULE, sort_keys=[rule_lists.EXECUTION])
_ONE = filters.Query(fields=filters.names, detail=filters.boolean)

#: The names by which the CLI's ``unset`` addresses single conditions and actions.
_ALIASES = {"condition": "conditions", "action": "actions"}


class InspectionRulesController(Resource):
    """Since API 1.96. Rules are identified by UUID."""

    below: ClassVar = {"revisions": RuleRevisionsController(), "dry_run": RuleDryRunController(),
                       "statistics": RulesStatisticsController(), "vocabulary": RuleVocabularyController(),
                       "samples": RuleSamplesController(), "conditions": RuleConditionsController(),
                       "conflicts": RuleConflictsController(), "matches": RuleMatchesController()}
    below_item: ClassVar = {"statistics": RuleStatisticsController()}

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_LIST, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List rules in the order of their creation, the built-in ones last.

        ``sort_key=execution`` is the order in which they run: phase, priority descending, creation, the built-in rules
        in their places. ``description`` matches a part of it, without case; ``op`` an operator or action by its name,
        which includes the inverse (``!eq`` only the inverse); ``writes`` rules with an action that writes at or below a
        path of the node (``/driver``, ``/properties/capabilities``, ``/traits``), of its ports (``/ports/extra``) or of
        the plug-in data (``/plugin_data/site``), as far as the rule itself has the path. ``op`` and ``writes`` never
        match a sensitive rule.

        Conditions and actions are shown only with ``detail`` or ``fields``, and only to administrators: to others,
        ``detail`` shows the same as without it, and ``fields`` with ``conditions``, ``actions`` or ``problems``, ``op``
        and ``writes`` are refused. The ``ETag`` is that of the whole set of rules, whatever the list shows.

        :raises Forbidden: 403, by the policy ``baremetal:inspection_rule:get_details``
        """
        fields = rule_lists.fields(
            request, query, rules_policies.INSPECTION_GET_DETAILS, RULE.shown, SUMMARY,
            detail=query.get("detail", False))
        page = pagination.page(request, query)
        with request.db.reader() as conn:
            # Read first: if the set changes in between, the tag is already an old one.
            request.reply.headers.append(("ETag", rule_sets.tag(inspection_rules.revision(conn))))
            rows = rule_lists.page_of_rules(request, conn, page, pagination.filters(query), fields)
            problems = rule_lists.problems(request, conn, rows, fields)
        return pagination.collection(
            request, "inspection_rules", rows, page,
            lambda shown: rules_views.rules(request.base, shown, fields, problems))

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_GET, query=_ONE)
    def get_one(self, request: Request, uuid: str, query: QueryValues,
                conditions: etags.Preconditions) -> JSONObject | None:
        """Show a rule, with its ``ETag``; 304 without a body if ``If-None-Match`` names that.

        ``nodes_counted`` is the number of nodes, of ``max_nodes``, that the rule has run on. The ``ETag`` does not
        change with it, so a rule with ``max_nodes`` is shown in any case. A caller who does not see conditions and
        actions gets the fields of a list.

        :raises inspection_rule_not_found: 404
        :raises Forbidden: 403, by the policy ``baremetal:inspection_rule:get_details``, of fields that are named
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        filters.check_fields(query.get("fields", ()), RULE.shown)
        fields = rule_lists.fields(request, query, rules_policies.INSPECTION_GET_DETAILS, RULE.shown, SUMMARY,
                                   detail=True)
        if built_in := rule_lists.find_built_in(request, _uuid(uuid)):
            rule = built_in
            tag = rule_lists.tag_of_built_in(built_in,
                                             details=rule_lists.are_shown(request,
                                                                          rules_policies.INSPECTION_GET_DETAILS))
        else:
            with request.db.reader() as conn:
                rule = inspection_rules.get(conn, _uuid(uuid))
            tag = _tag(rule)
        conditions.check_match(tag)
        request.reply.headers.append(("ETag", tag))
        if conditions.has(tag) and rule.max_nodes is None:
            request.reply.status = 304
            return None
        return rules_views.rule(request.base, rule, fields, () if rule.built_in else _problems(request, rule))

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_CREATE, body=schemas.RULE_CREATE,
            status=201)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Create a rule and return it, with its ``ETag``, and with ``warnings`` if there are any.

        :raises InvalidRule: 400, with every problem
        :raises inspection_rule_already_exists: 409
        """
        rule = rules.from_wire(body, default_scope=request.rules.default_scope)
        checked = _check(request, rule)
        if rule_lists.find_built_in(request, rule.get("uuid")):
            raise inspection_rule_already_exists(uuid=rule["uuid"])
        stored = request.db.write(lambda conn: inspection_rules.create(conn, rule, author=rule_sets.author(request)))
        request.rules.keep(stored.uuid, stored.revision, checked)
        request.reply.headers += [
            ("Location", links.url(request.base, "inspection_rules", stored.uuid)), ("ETag", _tag(stored))]
        return rules_views.warned(request.base, stored, checked.warnings)

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_CREATE, body=schemas.RULE_SET)
    def put(self, request: Request, body: JSONObject, conditions: etags.Preconditions) -> JSONObject:
        """Make the rules of a bundle those of the request, as one revision or not at all.

        A rule is matched with a stored one of the bundle (null: those without a bundle) by ``uuid``, else by ``name``,
        without either by equal content with one that has no name; what matches none is created. Fields that a rule does
        not have get their defaults. With ``prune`` the other rules of the bundle are deleted. With ``dry_run`` nothing
        is written. A rule that is not enabled, and not sensitive, may have the problems that the stored one has: it was
        valid once. Needs the policies for creating and changing rules, with ``prune`` also that for deleting them.

        The answer has the lists ``created``, ``changed`` (each with the ``patch``, RFC 6902, that makes the new rule of
        the stored one), ``replaced`` (sensitive rules, whether or not they differ), ``unchanged`` and ``removed``; and
        ``revision`` with its ``ETag``. ``If-Match`` is compared with that tag, which the list of rules has, too.

        :raises InvalidRule: 400, with every problem of every rule, below ``/rules/N``
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        prune, dry_run, bundle = body.get("prune", False), body.get("dry_run", False), body.get("bundle")
        for name in (rules_policies.INSPECTION_UPDATE, rules_policies.INSPECTION_DELETE)[:1 + prune]:
            policy.authorize(request.conf, name, request.context)
        result = rule_sets.apply(request, body["rules"], bundle, conditions, prune=prune, dry_run=dry_run)
        request.reply.headers.append(("ETag", rule_sets.tag(result.revision)))
        return rule_sets.result_view(result, bundle, dry_run=dry_run)

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_UPDATE, body=patch.BODY)
    def patch(self, request: Request, uuid: str, body: list[JSONObject], conditions: etags.Preconditions) -> JSONObject:
        """Change a rule and return it, with its new ``ETag``, and with ``warnings`` if there are any.

        A rule that is no longer valid can be changed if it is then valid or not enabled. With ``If-Match`` a rule is
        changed only if it has one of those tags. If the rule already is as the patch makes it, nothing is written, and
        it keeps its ``ETag`` and ``updated_at``; a sensitive rule is always written. Warnings about a sensitive rule
        concern only the conditions and actions of this request.

        :raises inspection_rule_not_found: 404
        :raises Invalid, InvalidRule: 400
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises rule_changed: 409, another request changed it first
        """
        operations = patch.operations(body, aliases=_ALIASES)
        uuid = _uuid(uuid)
        rule_lists.refuse_built_in(request, uuid)

        def write(conn: sa.Connection) -> tuple[Rule, Checked]:
            old = inspection_rules.get(conn, uuid)
            conditions.check(_tag(old))
            changes, checked = _patched(request, conn, old, operations)
            changed = inspection_rules.update(conn, uuid, changes, revision=old.revision,
                                              author=rule_sets.author(request))
            return changed, checked

        with conditions.guard():
            changed, checked = request.db.write(write)
        if not checked.problems:
            request.rules.keep(changed.uuid, changed.revision, checked)
            request.rule_problems.passed([(changed.uuid, changed.revision)])
        request.reply.headers.append(("ETag", _tag(changed)))
        return rules_views.warned(request.base, changed, checked.warnings, _problems(request, changed))

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_DELETE, status=204)
    def delete_all(self, request: Request, conditions: etags.Preconditions) -> None:
        """Delete every rule but the built-in ones. ``If-Match`` is compared with the tag of the list of rules.

        :raises PreconditionFailed: 412, by ``If-Match``
        """
        rule_sets.destroy(request, conditions)

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_DELETE, status=204)
    def delete(self, request: Request, uuid: str, conditions: etags.Preconditions) -> None:
        """Delete a rule, or every rule if ``uuid`` is ``all``, as the CLI sends it.

        With ``If-Match`` a rule is deleted only if it has one of those tags.

        :raises inspection_rule_not_found: 404
        :raises PreconditionFailed: 412, by ``If-Match``
        :raises rule_changed: 409, another request changed it first
        """
        if uuid == "all":
            rule_sets.destroy(request, conditions)
            return
        ident = _uuid(uuid)
        rule_lists.refuse_built_in(request, ident)

        def write(conn: sa.Connection) -> None:
            old = inspection_rules.get(conn, ident)
            conditions.check(_tag(old))
            inspection_rules.destroy(conn, ident, revision=old.revision if conditions.given else None,
                                     author=rule_sets.author(request))

        with conditions.guard():
            request.db.write(write)


def _tag(rule: Rule) -> str:
    """Return the entity tag of a stored rule: every change of any field creates a new revision."""
    return etags.tag(rule.uuid, rule.revision)


def _uuid(ident: str) -> str:
    if not is_uuid(ident):
        raise Invalid("A rule is identified by its UUID.")
    return ident.lower()


def _problems(request: Request, rule: Rule) -> Sequence[Problem]:
    """Return why a stored rule is invalid."""
    problems: Sequence[Problem] = request.rule_problems.invalid([rule]).get(rule.uuid, ())
    return problems


def _check(request: Request, rule: JSONObject) -> Checked:
    """Return a new rule, compiled, with the warnings about it."""
    checked: Checked = rules.check(rule, limits=request.rules.limits,
                                   known_paths=lambda: rule_sets.known_paths(request),
                                   known_names=lambda: rule_sets.known_names(request),
                                   known_facts=lambda: rule_sets.known_facts(request))
    if checked.problems:
        raise InvalidRule(problems=checked.problems)
    return checked


def _patched(request: Request, conn: sa.Connection, old: Rule,
             operations: list[patch.PatchOperation]) -> tuple[JSONObject, Checked]:
    """Return the columns of a rule after a patch, and the same compiled, with the warnings about it."""
    if old.sensitive:
        _refuse_looks_at_secrets(operations)
    settings = request.rules
    result = rule_sets.patched(old, operations, settings.default_scope)
    new = rules.from_wire({name: result[name] for name in schemas.RULE_PATCHABLE})
    # The result is checked: many different operations can end in "not sensitive".
    if old.sensitive and new["sensitive"] is not True:
        raise Invalid(problems=[Problem("/sensitive", "a sensitive rule cannot be made non-sensitive")])
    touched = patch.touched(operations)
    if old.sensitive:
        _refuse_guesses_of_groups(request, new, touched)
    checked = rules.check(
        new, limits=settings.limits, known_paths=lambda: inventory.known_paths(conn),
        known_names=lambda: rule_sets.offered_names(conn, request.conf.conductor.heartbeat_timeout),
        known_facts=lambda: facts.names(conn), warn_of=touched if new["sensitive"] else SEALED)
    problems = checked.problems
    if problems and not (old.sensitive and touched.intersection(SEALED)):
        # New conditions and actions of a sensitive rule are not compared with the problems of the stored ones.
        accepted = rule_sets.tolerated(request, old, new["enabled"])
        problems = [problem for problem in problems if problem not in accepted]
    if old.sensitive:
        problems = _without_secrets(problems, touched)
    if problems:
        raise InvalidRule(problems=problems)
    return new, checked


def _refuse_looks_at_secrets(operations: list[patch.PatchOperation]) -> None:
    """Allow conditions and actions of a sensitive rule to be replaced as a whole only: all else reveals them.

    :raises Invalid: 400, with a text that does not depend on the stored values
    """
    for index, operation in enumerate(operations):
        whole = operation.op in ("add", "replace", "remove") and len(operation.path) == 1
        secret = operation.path[0] in SEALED or (operation.source and operation.source[0] in SEALED)
        if secret and not whole:
            raise Invalid(problems=[Problem(
                f"/{index}/path", "of a sensitive rule, conditions and actions can only be replaced as a whole")])


def _refuse_guesses_of_groups(request: Request, new: JSONObject, touched: set[str]) -> None:
    """Refuse to combine new actions with the groups of stored conditions, or the reverse: whether they fit tells names.

    :raises Invalid: 400, with a text that does not depend on these names
    """
    if len(touched.intersection(SEALED)) == 1 and rules.reads_groups(
            new["actions"], limits=request.rules.limits):
        raise Invalid(problems=[Problem(
            "", "of a sensitive rule with actions that read {match[..]}, conditions and actions can only be replaced "
                "together")])


def _without_secrets(problems: list[Problem], touched: set[str]) -> list[Problem]:
    """Return ``problems`` without those in conditions and actions that the caller did not send in this request."""
    stored = tuple(f"/{name}" for name in SEALED if name not in touched)
    shown = [problem for problem in problems if not stored or not problem.where.startswith(stored)]
    if len(shown) < len(problems):
        shown.append(Problem("", "the stored conditions or actions do not fit this change"))
    return shown
