"""Summaries of the fleet: ``/v1/shards``, ``/v1/node_states``, ``/v1/node_failures``, ``/v1/inspection_outcomes`` and
``/v1/conductors``.

They show the shards of nodes, the number of nodes in each provision state and for each reason of a failure, the
outcomes of inspections by the hour, and the registered conductors with whether each is alive. The reasons are cached:
pages request them every few seconds.
"""

from __future__ import annotations

import datetime
import threading
import time
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import filters, pagination, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import rule_lists
from ironic_rules.api.views import resources
from ironic_rules.db import clock, conductors, node_queries, node_records, nodes
from ironic_rules.models import inspections
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Failure
from ironic_rules.policies import nodes as nodes_policies


class ShardsController(Resource):
    """Since API 1.82."""

    @expose(since=versions.SHARDS, policy=nodes_policies.SHARD_GET)
    def get_all(self, request: Request) -> JSONObject:
        """Return each shard with the number of its nodes, the largest first; nodes without one are under null."""
        with request.db.reader() as conn:
            return {"shards": [{"name": name, "count": count} for name, count in nodes.shards(conn)]}


class StateCountsController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=nodes_policies.LIST_ALL)
    def get_all(self, request: Request) -> JSONObject:
        """Return each provision state that nodes have with the number of its nodes, the largest first.

        As in the list of nodes, those that have a parent are not counted.
        """
        with request.db.reader() as conn:
            counts = nodes.state_counts(conn)
        return {"node_states": [{"provision_state": name, "count": count} for name, count in counts]}


_LIST = filters.Query(limit=filters.positive)


class NodeFailuresController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=nodes_policies.LIST_ALL, query=_LIST)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """Group the nodes that have failed by ``provision_state`` and ``reason``, the largest group first.

        If a ``rule`` failed their inspections, the reason is its message before values were filled in; if a ``hook``
        did, the reason that it gave. ``name`` is that of the rule, else its description, or the hook; it is null if
        neither failed them, or the rule was deleted. Otherwise, the reason is the beginning of their ``last_error``.
        In reasons that are no messages of rules, ``…`` stands for what each machine has of its own: UUIDs, MAC
        addresses, numbers. ``failure`` identifies the group: as a filter of a list of nodes, and of
        ``POST /v1/nodes/reapply``, it selects its nodes. ``groups`` is their number, of which the first ``limit`` are
        shown. As in the list of nodes, those that have a parent are not counted. In a large fleet the numbers may
        be some seconds old.
        """
        with request.db.reader() as conn:
            groups = request.node_failures.groups(conn)
            shown = groups[:min(query.get("limit", request.conf.api.max_limit), request.conf.api.max_limit)]
            names = node_queries.rules_called(conn, {group.rule for group in shown if group.rule is not None})
        for group in shown:
            if group.rule is not None and (built_in := rule_lists.find_built_in(request, group.rule)):
                names[group.rule] = built_in.name or built_in.description or group.rule
        return {"groups": len(groups), "node_failures": [
            {"failure": group.ident, "provision_state": group.provision_state, "reason": group.reason,
             "count": group.number, "rule": group.rule, "hook": group.hook,
             "name": names.get(group.rule or "", group.hook)} for group in shown]}


#: Hours of the outcomes of inspections by default, and at most.
_DAY, _WEEK = 24, 168
_HOURS = filters.Query(hours=filters.at_most(_WEEK))


class InspectionOutcomesController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=nodes_policies.LIST_ALL, query=_HOURS)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """Count the inspections that ended in each of the last ``hours`` (24, at most 168), by outcome.

        Each hour has the time ``from`` which it counts, and the numbers ``finished``, ``failed``, ``aborted`` and
        ``timed_out``; the last hour is the present one. Inspections that the history no longer has are not counted.
        """
        present = clock.now().replace(minute=0, second=0, microsecond=0)
        begin = present - datetime.timedelta(hours=query.get("hours", _DAY) - 1)
        bounds = [begin + datetime.timedelta(hours=hour) for hour in range(query.get("hours", _DAY) + 1)]
        with request.db.reader() as conn:
            outcomes = node_records.inspection_outcomes(conn, bounds)
        return {"inspection_outcomes": [
            {"from": bound.isoformat(), **{outcome.replace(" ", "_"): counted[outcome] for outcome in _OUTCOMES}}
            for bound, counted in zip(bounds, outcomes, strict=False)]}


_OUTCOMES = (inspections.FINISHED, inspections.FAILED, inspections.ABORTED, inspections.TIMED_OUT)


#: Seconds from which on a result is remembered.
_CHEAP_S = 0.05
#: A result is used for this many times as long as it took, so that a process spends a tenth of its time at most.
_SHARE = 9


class NodeFailures:
    """The groups of failed nodes; those of a large fleet are remembered for a while. One per process; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: list[Failure] = []
        self._good_until = 0.0

    def groups(self, conn: sa.Connection) -> list[Failure]:
        """Return the groups, the largest first."""
        with self._lock:
            began = time.monotonic()
            if began >= self._good_until:
                self._found = node_queries.failure_groups(conn)
                took = time.monotonic() - began
                self._good_until = began + took + (_SHARE * took if took > _CHEAP_S else 0)
            return self._found

    def find(self, conn: sa.Connection, ident: str) -> Failure | None:
        """Return a group; None: there is none, or it has no node any more."""
        return next((group for group in self.groups(conn) if group.ident == ident), None)


_SORT_KEYS = ("hostname", "conductor_group", "created_at", "updated_at")
_LINKS = (*resources.CONDUCTOR_FIELDS, "links")


class ConductorsController(Resource):
    """Since API 1.49. The marker is the host name."""

    @expose(since=versions.CONDUCTORS, policy=nodes_policies.CONDUCTOR_GET,
            query=filters.Listing(sort_keys=_SORT_KEYS, fields=_LINKS, marker=filters.text))
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """List conductors by host name; with ``detail`` also ``drivers``, ``created_at`` and ``updated_at``."""
        page = pagination.page(request, {"sort_key": "hostname", **query})
        with request.db.reader() as conn:
            rows = conductors.list_conductors(conn)
            alive = _alive(request, conn)
        fields = query.get("fields") or (resources.CONDUCTOR_FIELDS if query.get("detail")
                                         else resources.CONDUCTOR_SUMMARY)
        return pagination.collection(
            request, "conductors", pagination.of_few(rows, page, "hostname"), page,
            lambda shown: [resources.conductor(request.base, row, alive, fields) for row in shown], marker="hostname")

    @expose(since=versions.CONDUCTORS, policy=nodes_policies.CONDUCTOR_GET, query=filters.Query(fields=filters.names))
    def get_one(self, request: Request, hostname: str, query: QueryValues) -> JSONObject:
        """Show one conductor.

        :raises conductor_not_found: 404
        """
        filters.check_fields(query.get("fields", ()), _LINKS)
        with request.db.reader() as conn:
            return resources.conductor(request.base, conductors.get(conn, hostname), _alive(request, conn),
                                       query.get("fields") or resources.CONDUCTOR_FIELDS)


def _alive(request: Request, conn: Any) -> set[str]:
    return {row.hostname for row in conductors.alive(conn, request.conf.conductor.heartbeat_timeout)}
