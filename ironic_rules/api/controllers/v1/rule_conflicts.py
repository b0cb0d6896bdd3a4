"""``/v1/inspection_rules/conflicts``: what each rule writes, and which others write the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import orjson

from ironic_rules.api import filters, links, pagination, rule_list, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import MarkerNotFound
from ironic_rules.models import rules as rules_models
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import Rule
from ironic_rules.policies import inspection_rules as policies

_QUERY = filters.Query(limit=filters.positive, marker=filters.uuid)
_NEEDED = ("uuid", "name", "enabled", "phase", "scope", "sensitive", "actions")
#: More rules than any service has: conflicts are those of all rules.
_ALL = Page(limit=2**31 - 1, sort_key=rule_list.EXECUTION)


class RuleConflictsController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.GET_DETAILS, query=_QUERY)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List what each rule writes, and what other rules write, too, in the order in which they run.

        ``writes`` has each place that the rule itself names, so none that depends on a template and none of actions of
        plug-ins: the ``path`` as the filter ``writes`` of the list has it, the ``name`` of the trait or the capability
        (else null), and the ``effect``: ``set``, ``add`` or ``remove``. ``conflicts`` are those places that other
        enabled rules write for the same nodes with another effect, or with ``set``: ``count`` is the number of these
        rules, ``rules`` has the UUIDs of the first ten. A disabled rule has no conflicts. Both are null for a sensitive
        rule, which is in no other rule's conflicts either.
        """
        asked = pagination.page(request, query)
        with request.db.reader() as conn:
            rules = rule_list.page(request, conn, _ALL, {}, _NEEDED)
        start = 0
        if asked.marker is not None:
            start = next((place for place, rule in enumerate(rules, 1) if rule.uuid == asked.marker), 0)
            if not start:
                raise MarkerNotFound(marker=asked.marker)
        writes = {rule.uuid: [] if rule.sensitive else rules_models.written(_actions(rule)) for rule in rules}
        found = rules_models.conflicts(
            # The scope of an early rule is ignored.
            rules_models.RuleWriter(rule.uuid, None if rule.phase == "early" else rule.scope, writes[rule.uuid])
            for rule in rules if rule.enabled)

        def view(shown: Sequence[Row | Rule]) -> list[JSONObject]:
            return [{
                "uuid": rule.uuid, "name": rule.name, "enabled": rule.enabled, "sensitive": rule.sensitive,
                "writes": None if rule.sensitive else [each._asdict() for each in writes[rule.uuid]],
                "conflicts": None if rule.sensitive else [asdict(each) for each in found.get(rule.uuid, ())],
                "links": links.resource(request.base, "inspection_rules", rule.uuid),
            } for rule in shown]

        return pagination.collection(request, "conflicts", rules[start:start + asked.limit], asked, view)


def _actions(rule: Row | Rule) -> list[JSONObject]:
    """Return the actions of a built-in rule, or of a row, which has them as text."""
    found: list[JSONObject] = rule.actions if isinstance(rule, Rule) else orjson.loads(rule.actions)
    return found
