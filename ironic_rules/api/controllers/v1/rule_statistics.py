"""``/v1/inspection_rules/statistics`` and ``/v1/inspection_rules/{uuid}/statistics``: what has become of rules."""

from __future__ import annotations

import datetime

from ironic_rules.api import built_in_rules, filters, pagination, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.views import rule_statistics as views
from ironic_rules.db import rule_records
from ironic_rules.exceptions import InspectionRuleNotFound, Invalid
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import CountedRule
from ironic_rules.policies import inspection_rules as policies
from ironic_rules.text import is_uuid

_LIST = filters.Listing(sort_keys=views.SORT_KEYS, fields=(*views.FIELDS, "links"),
                        never_matched_since=filters.moment)


class RulesStatisticsController(Resource):
    """Since API 1.96. The API and conductors count in memory, and add to what is stored once a minute."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.STATISTICS, query=_LIST)
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
        asked = pagination.page(request, query)
        with request.db.reader() as conn:
            rows = [*rule_records.statistics_of_stored(conn), *views.of_built_in(
                request.rules.built_in, rule_records.statistics_of_built_in(conn))]
        fields = query.get("fields") or views.FIELDS
        return pagination.collection(
            request, "statistics", views.page([row for row in rows if since is None or not _matched_since(row, since)],
                                              asked),
            asked, lambda shown: [views.statistics(request.base, row, fields) for row in shown])


class RuleStatisticsController(Resource):
    """The statistics of one rule."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.STATISTICS)
    def get_all(self, request: Request, uuid: str) -> JSONObject:
        """Show the statistics of a rule, of one that was never counted with 0.

        :raises InspectionRuleNotFound: 404
        """
        if not is_uuid(uuid):
            raise Invalid("A rule is identified by its UUID.")
        ident = uuid.lower()
        built_in = built_in_rules.find(request, ident)
        with request.db.reader() as conn:
            if built_in is not None:
                found = views.of_built_in([built_in], rule_records.statistics_of_built_in(conn))
            else:
                found = list(rule_records.statistics_of_stored(conn, ident))
        if not found:
            raise InspectionRuleNotFound(rule=uuid)
        return views.statistics(request.base, found[0], views.FIELDS)


def _matched_since(row: CountedRule, since: datetime.datetime) -> bool:
    return row.last_matched_at is not None and row.last_matched_at >= since
