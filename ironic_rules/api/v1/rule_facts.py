"""``/v1/inspection_rules``: statistics, conflicts, and for new rules the vocabulary, samples and conditions.

``statistics`` shows how often each rule matched and failed; ``conflicts`` what each rule writes, and the other rules
that write the same.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import asdict

import orjson

from ironic_rules import samples
from ironic_rules.api import filters, links, pagination, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access, rule_lists
from ironic_rules.api.v1.asking import Questions
from ironic_rules.api.views import rules
from ironic_rules.db import inventory, rule_records
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import Invalid, MarkerNotFound, inspection_rule_not_found
from ironic_rules.models import rules as rules_models
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import CountedRule, Rule
from ironic_rules.policies import rules as rules_policies
from ironic_rules.rules import vocabulary
from ironic_rules.text import is_uuid

_LIST = filters.Listing(sort_keys=rules.STATISTICS_KEYS, fields=(*rules.STATISTICS_FIELDS, "links"),
                        never_matched_since=filters.moment)


class RulesStatisticsController(Resource):
    """Since API 1.96. The counts of this process are included; other processes add theirs once a minute."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_STATISTICS, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List the statistics of all rules in the order of their creation, the built-in ones last.

        An inspection has ``considered`` a rule if it came to its phase, and to its place there, and the rule was
        enabled and in its scope. It has ``evaluated`` it if the index, which answers one condition of each rule for all
        of them at once, did not exclude it. ``matched`` counts inspections in which it was applied, ``failed`` those
        that it failed, also by its action ``fail``; ``nodes_changed`` is the number of nodes that it has changed, or
        the ports of which. ``evaluated`` and ``nodes_changed`` of a sensitive rule are null. Dry runs are not counted.

        ``never_matched_since`` is a time, e.g. ``2026-03-01T00:00:00Z``: rules that have not matched then or later.
        """
        since = query.get("never_matched_since")
        page = pagination.page(request, query)
        request.rule_statistics.flush()
        with request.db.reader() as conn:
            rows = [*rule_records.statistics_of_stored(conn), *rules.statistics_of_built_in(
                request.rules.built_in, rule_records.statistics_of_built_in(conn))]
        fields = query.get("fields") or rules.STATISTICS_FIELDS
        return pagination.collection(
            request, "statistics",
            rules.statistics_page([row for row in rows if since is None or not _matched_since(row, since)],
                                                         page),
            page, lambda shown: [rules.statistics(request.base, row, fields) for row in shown])


class RuleStatisticsController(Resource):
    """The statistics of one rule."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_STATISTICS)
    def get_all(self, request: Request, uuid: str) -> JSONObject:
        """Show the statistics of a rule, of one that was never counted with 0.

        :raises inspection_rule_not_found: 404
        """
        if not is_uuid(uuid):
            raise Invalid("A rule is identified by its UUID.")
        ident = uuid.lower()
        built_in = rule_lists.find_built_in(request, ident)
        request.rule_statistics.flush()
        with request.db.reader() as conn:
            if built_in is not None:
                counted = rules.statistics_of_built_in([built_in], rule_records.statistics_of_built_in(conn))
            else:
                counted = list(rule_records.statistics_of_stored(conn, ident))
        if not counted:
            raise inspection_rule_not_found(rule=uuid)
        return rules.statistics(request.base, counted[0], rules.STATISTICS_FIELDS)


def _matched_since(row: CountedRule, since: datetime.datetime) -> bool:
    return row.last_matched_at is not None and row.last_matched_at >= since


_QUERY = filters.Query(limit=filters.positive, marker=filters.uuid)
_NEEDED = ("uuid", "name", "enabled", "phase", "scope", "sensitive", "actions")
#: More rules than any service has: conflicts are those of all rules.
_ALL = Page(limit=2**31 - 1, sort_key=rule_lists.EXECUTION)


class RuleConflictsController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_GET_DETAILS, query=_QUERY)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List what each rule writes, and what other rules write, too, in the order in which they run.

        ``writes`` has each place that the rule itself names, so none that depends on a template and none of actions of
        plug-ins: the ``path`` as the filter ``writes`` of the list has it, the ``name`` of the trait or the capability
        (else null), and the ``effect``: ``set``, ``add`` or ``remove``. ``conflicts`` are those places that other
        enabled rules write for the same nodes with another effect, or with ``set``: ``count`` is the number of these
        rules, ``rules`` has the UUIDs of the first ten. A disabled rule has no conflicts. Both are null for a sensitive
        rule, which is in no other rule's conflicts either.
        """
        page = pagination.page(request, query)
        with request.db.reader() as conn:
            rules = rule_lists.page_of_rules(request, conn, _ALL, {}, _NEEDED)
        start = 0
        if page.marker is not None:
            start = next((place for place, rule in enumerate(rules, 1) if rule.uuid == page.marker), 0)
            if not start:
                raise MarkerNotFound(marker=page.marker)
        writes = {rule.uuid: [] if rule.sensitive else rules_models.written(_actions(rule)) for rule in rules}
        conflicts = rules_models.conflicts(
            # The scope of an early rule is ignored.
            rules_models.RuleWriter(rule.uuid, None if rule.phase == "early" else rule.scope, writes[rule.uuid])
            for rule in rules if rule.enabled)

        def view(shown: Sequence[Row | Rule]) -> list[JSONObject]:
            return [{
                "uuid": rule.uuid, "name": rule.name, "enabled": rule.enabled, "sensitive": rule.sensitive,
                "writes": None if rule.sensitive else [write._asdict() for write in writes[rule.uuid]],
                "conflicts": None if rule.sensitive else [asdict(place) for place in conflicts.get(rule.uuid, ())],
                "links": links.resource(request.base, "inspection_rules", rule.uuid),
            } for rule in shown]

        return pagination.collection(request, "conflicts", rules[start:start + page.limit], page, view)


def _actions(rule: Row | Rule) -> list[JSONObject]:
    """Return the actions of a built-in rule, or of a row, which has them as text."""
    actions: list[JSONObject] = rule.actions if isinstance(rule, Rule) else orjson.loads(rule.actions)
    return actions


class RuleVocabularyController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_LIST)
    def get_all(self, request: Request) -> JSONObject:
        """Show what rules of this service can be written with.

        ``operators``, ``actions`` (those of other packages included) and ``conversions`` each have a ``name``, a
        ``text`` and an ``example``; ``arguments`` their ``name``, whether one is ``required``, and its ``values`` if
        there are only some. ``paths`` are those that inventories have, ``/interfaces/*/name``: ``*`` is any index or a
        key that is data, and of what is below ``**`` nothing is known.
        """
        with request.db.reader() as conn:
            paths = inventory.list_paths(conn)
        return {**vocabulary(), "paths": paths}


class RuleSamplesController(Resource):
    """Since API 1.96. The inventories of fictitious machines that the package has."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_LIST)
    def get_all(self, request: Request) -> JSONObject:
        """List samples of reports; each ``report`` can be that of a dry run."""
        return {"samples": [{"name": name, "report": samples.inventory(name)} for name in samples.inventory_names()]}


class RuleConditionsController(Resource):
    """Since API 1.96. Nothing is stored."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.FACT_LIST, body=schemas.CLAUSE)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Return ``{"conditions": [...]}``: those of a rule that matches the nodes that ``where`` selects.

        :raises InvalidParameterValue: 400, with the column of each problem, and of ``or``, which rules do not have
        """
        with request.db.reader() as conn:
            questions = Questions(request, conn)
            node_access.confine(request, {})
            return {"conditions": questions.conditions_of_rule(body["where"])}
