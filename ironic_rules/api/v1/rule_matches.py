"""``/v1/inspection_rules/matches``: one rule, tried on the nodes of a list, without the steps of each inspection.

A dry run explains one node, and an operation stores the results of all. This is for a person who writes a rule and
wants to know, after each change, on how many nodes it matches: nothing is stored, and a reply has the nodes that a
second is enough for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from ironic_rules import policy
from ironic_rules.api import schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access, trials
from ironic_rules.db import nodes
from ironic_rules.db.tables import nodes as nodes_table
from ironic_rules.exceptions import InvalidRule, IronicRulesError, Problem
from ironic_rules.inspection import trial_machines
from ironic_rules.inspection import trials as inspection_trials
from ironic_rules.inspection.trial_machines import StoredNode
from ironic_rules.inspection.trials import RulesToTry, TrialSetting
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.policies import rules as rules_policies
from ironic_rules.rules import RuleRuns
from ironic_rules.text import MAX_MESSAGE, printable

#: The place of the rule in what ``trials.check_rules`` checks.
_PLACE = "/as_if/0"
_LIMIT = 200
#: Nodes whose data are read at once, and seconds after which a reply ends.
_BATCH = 25
_ENOUGH_S = 1.0
#: The verdict on a node without data of an inspection.
_NO_DATA = "no data"


class RuleMatchesController(Resource):
    """Since API 1.96. Nothing is written, and no request is sent to another service."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_DRY_RUN, body=schemas.RULE_MATCHES)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Try a rule on nodes, with the stored rules; return whether it matches each of them.

        ``rule`` is added to the stored rules, or replaces the one with its ``uuid``. ``nodes`` has the filters of a
        list of nodes, such as ``where``; without them all nodes are tried. Each node runs over the data of its last
        inspection, in the order of creation. Its ``verdict`` is ``matched``, ``unmatched``, ``failed``, ``unreached``
        (the rule is disabled, of another scope or phase, or a rule before it fails), or ``no data``; ``reason`` says
        why the inspection would fail.

        A reply has at most ``limit`` nodes, and fewer if they take longer than a second. ``marker``, repeated in the
        next request, continues; null: these were the last ones. The first reply has the ``total`` of nodes.

        :raises InvalidRule: 400, with every problem of the rule;  InvalidParameterValue: 400, of a filter
        :raises Forbidden: 403, also by the policy ``baremetal:inspection_rule:get_details``
        :raises dry_run_too_long: 400, one node takes longer than a dry run may;  too_many_dry_runs: 503
        """
        policy.authorize(request.conf, rules_policies.INSPECTION_GET_DETAILS, request.context)
        filters = node_access.filters(request, node_access.filters_of_body(body.get("nodes", {})))
        with request.db.reader() as conn:
            node_access.resolve(request, conn, filters)
            query = nodes.uuids(filters)
            marker = body.get("marker")
            total = None if marker else conn.scalar(sa.select(sa.func.count()).select_from(query.subquery()))
            after = 0 if marker is None else nodes.get_id(conn, marker)
            limit = min(body.get("limit", _LIMIT), request.conf.api.max_limit)
            rows = conn.execute(query.add_columns(nodes_table.c.name).where(nodes_table.c.id > after).limit(limit + 1))
            names = {row.uuid: row.name for row in rows}
        tried = _tried(request, body["rule"], list(names), limit)
        return {"total": total, **tried, "nodes": [{**node, "name": names[node["uuid"]]} for node in tried["nodes"]]}


def _tried(request: Request, rule: JSON, uuids: Sequence[str], limit: int) -> JSONObject:
    """Return the verdicts on nodes.

    :param uuids: one more than ``limit``, if there are more
    """
    dry_runs, cache, legacy, db = request.dry_runs, request.rule_cache, request.legacy_rule_cache, request.db
    heartbeat_timeout, cleanup = request.conf.conductor.heartbeat_timeout, request.conf.legacy_rules.cleanup

    def work(tick: trials.Tick) -> JSONObject:
        begun = time.monotonic()
        checked = _checked(rule, trials.Stored(cache, legacy, db), tick)
        rules = checked.changes.rules(cache, legacy)
        setting = TrialSetting(dry_runs.pipeline(), db, heartbeat_timeout, cleanup, tick)
        shown: list[JSONObject] = []
        while len(shown) < min(limit, len(uuids)) and (not shown or time.monotonic() - begun < _ENOUGH_S):
            batch = uuids[len(shown):min(len(shown) + _BATCH, limit)]
            shown += _verdicts(setting, rules, checked.uuids[_PLACE], batch)
        marker = shown[-1]["uuid"] if len(shown) < len(uuids) else None
        return {"rule": checked.uuids[_PLACE], "nodes": shown, "marker": marker}

    result: JSONObject = dry_runs.run(work)
    return result


def _checked(rule: JSON, stored: trials.Stored, tick: trials.Tick) -> trials.Checked:
    try:
        return trials.check_rules(None, [rule], stored, tick)
    except InvalidRule as error:
        raise InvalidRule(problems=[Problem(f"/rule{problem.where.removeprefix(_PLACE)}", problem.text)
                                    for problem in error.problems]) from None


def _verdicts(setting: TrialSetting, rules: RulesToTry, rule: str, uuids: Sequence[str]) -> Iterator[JSONObject]:
    """Yield the verdict on each node, in the order of ``uuids``."""
    nodes = dict(trial_machines.stored_nodes(setting.db, uuids)) if setting.db is not None else {}
    for uuid in uuids:
        node = nodes[uuid]
        if not isinstance(node, StoredNode):
            yield {"uuid": uuid, "verdict": _NO_DATA, "reason": str(node)}
            continue
        runs, reason = RuleRuns(), None
        try:
            result = inspection_trials.try_rules(setting, node.machine, node.data(), rules, traces=False, runs=runs)
            failure = result.shown["failure"]
            reason = None if failure is None else failure["reason"]
        except IronicRulesError as error:  # a rule changes a machine with an instance as it may not
            reason = str(error)
        yield {"uuid": uuid, "verdict": inspection_trials.verdict(runs, rule),
               "reason": reason and printable(reason, MAX_MESSAGE)}
