"""``/v1/inspection_rules/revisions``: the history of the rule set, and the way back."""

from __future__ import annotations

from typing import ClassVar

from ironic_rules import policy
from ironic_rules.api import etags, filters, pagination, rule_details, rule_set, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.views import rule_set as views
from ironic_rules.db import rule_revisions
from ironic_rules.exceptions import Invalid
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import inspection_rules as policies

_LIST = filters.Query(limit=filters.positive, marker=filters.positive, sort_dir=filters.one_of("asc", "desc"))


class RollbackController(Resource):
    """``POST`` makes a revision the current one again."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.UPDATE, body=schemas.ROLLBACK)
    def post(self, request: Request, revision: str, body: JSONObject | None,
             conditions: etags.Preconditions) -> JSONObject:
        """Make the rules those of a revision, as a new revision.

        Rules that were deleted exist again, with the same UUID; rules that were created since are deleted. Rules that
        are sensitive stay sensitive. Needs the policies for creating, changing and deleting rules. The answer is that
        of ``PUT /v1/inspection_rules``.

        :raises RuleRevisionNotFound: 404, it is not kept
        :raises InvalidRule: 400, rules of the revision that are enabled are no longer valid
        :raises PreconditionFailed: 412, by ``If-Match``
        """
        for name in (policies.CREATE, policies.DELETE):
            policy.authorize(request.conf, name, request.context)
        dry_run = (body or {}).get("dry_run", False)
        made = rule_set.rollback(request, _number(revision), conditions, dry_run=dry_run)
        request.reply.headers.append(("ETag", rule_set.tag(made.revision)))
        return views.result(made, None, dry_run=dry_run)


class RuleRevisionsController(Resource):
    """Every change of the rules is a revision; ``[inspection_rules]keep_revisions`` of them are kept."""

    below_item: ClassVar = {"rollback": RollbackController()}

    @expose(since=versions.INSPECTION_RULES, policy=policies.REVISIONS, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List the revisions that are kept, the newest first.

        ``marker`` is the number of a revision.
        """
        asked = pagination.page(request, {"sort_dir": "desc", **query})
        with request.db.reader() as conn:
            rows = rule_revisions.list_revisions(
                conn, asked.limit, query.get("marker"), ascending=asked.sort_dir == "asc")
        return pagination.collection(request, "revisions", rows, asked,
                                     lambda shown: views.revisions(request.base, shown), marker="revision")

    @expose(since=versions.INSPECTION_RULES, policy=policies.REVISIONS)
    def get_one(self, request: Request, revision: str) -> JSONObject:
        """Show a revision with its rules, in the order of their creation.

        Conditions and actions are null for rules that are or became sensitive. Who may not see those of any rule gets
        the fields of a list of rules.

        :raises RuleRevisionNotFound: 404, it is not kept
        """
        number = _number(revision)
        with request.db.reader() as conn:
            found = rule_revisions.rules_at(conn, number)
            row = rule_revisions.get(conn, number)
        return views.revision(request.base, row, found, request.rule_problems.invalid(found),
                              details=rule_details.are_shown(request, policies.GET_DETAILS))


def _number(revision: str) -> int:
    # Columns have 32 bits.
    if not (revision.isascii() and revision.isdecimal() and len(revision) < 10):
        raise Invalid("A revision is identified by its number.")
    return int(revision)
