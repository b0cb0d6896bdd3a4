"""``/v1/search``: one text, looked for among nodes, values of facts, traits and rules."""

from __future__ import annotations

from sqlalchemy import false

from ironic_rules import policy
from ironic_rules.api import filters, links, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1.asking import Questions
from ironic_rules.db import node_queries, search
from ironic_rules.db.questions import Asking, Condition
from ironic_rules.db.tables import fact_texts, node_traits
from ironic_rules.exceptions import Forbidden, InvalidParameterValue
from ironic_rules.facts.where import quoted
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import nodes as policies
from ironic_rules.policies import rules as rules_policies

#: Number of results of each type by default, and at most; and of characters of a text.
_FEW, _MOST, _LONGEST = 10, 100, 255


_QUERY = filters.Query(q=filters.text_of(_LONGEST), limit=filters.at_most(_MOST))


class SearchController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.LIST, query=_QUERY)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """Return what has the text ``q``: at most ``limit`` results of each ``type``.

        - ``node``: a part of the name, or the begin of the UUID, of that of the instance, of a port's MAC address in
          any notation, of a BMC address, or of a serial number or UUID of the machine; ``matched`` says which
        - ``fact`` and ``trait``: values and traits that begin with it, with ``where``, which lists their nodes
        - ``rule``: a part of the name, or the begin of the UUID

        Types that the caller may not see are missing.

        :raises InvalidParameterValue: 400
        """
        text, limit = query.get("q", "").strip(), query.get("limit", _FEW)
        if not text:
            raise InvalidParameterValue("q is required.")
        filters: JSONObject = {}
        node_access.confine(request, filters)
        own = node_queries.conditions(filters)
        with request.db.reader() as conn:
            questions = Questions(request, conn)
            sees_facts = True
            of_hardware: list[Condition] = [false()]
            try:
                of_hardware = questions.visible(Asking(conn, {}))
            except Forbidden:
                sees_facts = False
            results: list[JSONObject] = [{
                "type": "node", "matched": node.matched, "value": node.value, "uuid": node.uuid, "name": node.name,
                "links": links.resource(request.base, "nodes", node.uuid),
            } for node in search.find_nodes(conn, text, own, of_hardware, limit)]
            if sees_facts:
                visible = questions.visible(Asking(conn, {}, fact_texts.c.node_id))
                results += [{"type": "fact", "fact": name, "value": value, "where": _where(questions, name, value)}
                            for name, value in search.find_values(conn, text, questions.known, visible, limit)]
            of_traits = Asking(conn, {}, node_traits.c.node_id)
            conditions = [of_traits.of_nodes(*own)] if own else []
            results += [{"type": "trait", "trait": trait, "where": f"traits has {trait}"}
                        for trait in search.find_traits(conn, text, conditions, limit)]
            if policy.allows(request.conf, rules_policies.INSPECTION_LIST, request.context):
                results += [{"type": "rule", "uuid": rule.uuid, "name": rule.name, "description": rule.description,
                             "links": links.resource(request.base, "inspection_rules", rule.uuid)}
                            for rule in search.find_rules(conn, text, limit)]
        return {"q": text, "results": results}


def _where(questions: Questions, name: str, value: str) -> str:
    return f"{name} {'has' if questions.known[name].is_list else '='} {quoted(value)}"
