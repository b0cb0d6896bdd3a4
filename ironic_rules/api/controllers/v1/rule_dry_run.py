"""``/v1/inspection_rules/dry_run``: what an inspection would do, with the stored rules or with others."""

from __future__ import annotations

import functools
from collections.abc import Callable
from urllib.parse import urlencode

import sqlalchemy as sa

from ironic_rules import policy
from ironic_rules.api import dry_run_rules, schemas, versions
from ironic_rules.api.controllers.v1 import node_reapply
from ironic_rules.api.controllers.v1.node_reapply import FILTERS
from ironic_rules.api.dry_run_rules import Checked
from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access, operations
from ironic_rules.api.views import inspection_rules as rule_views
from ironic_rules.db import inventory, ports
from ironic_rules.exceptions import Invalid, InvalidInventory, InventoryNotFound, LookupFailed, MachineUnknown, Problem
from ironic_rules.inspection import discovery, lookup, payload, trial_machines, trials
from ironic_rules.inspection.trial_machines import Machine
from ironic_rules.inspection.trials import TrialSetting
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.inventories import InspectionData
from ironic_rules.policies import inspection_rules as policies

#: Called between the steps of a dry run; raises to end it.
Tick = Callable[[], None]
#: The inspect interface that waits for the report of a ramdisk.
_IN_BAND = "agent"


class RuleDryRunController(Resource):
    """Since API 1.96. Nothing is written, and no request is sent to another service."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.DRY_RUN, body=schemas.RULE_DRY_RUN, allow_nul=True)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Run hooks and rules over data of a machine, and return what each of them did and what would be saved.

        The data are those of the last inspection of ``node``, or of the one with ``version`` (as its history names it),
        or ``report``, in the form that a ramdisk sends. With both, ``node`` sends ``report``. With a report only, the
        node is looked up as for a callback; an unknown machine is discovered as the configuration says. With
        ``imagined`` the machine of the report is a new one, with a node that no database has, whatever the
        configuration says: for samples, and for reports of other places.

        The rules are the stored ones, or only ``rules``, or the stored ones as if those of ``as_if`` were different: a
        rule is added, or replaces the stored one with its ``uuid``; ``{"uuid", "patch"}`` changes a stored rule, and
        ``{"uuid", "left_out": true}`` leaves it out. A sensitive rule cannot be patched. With ``compare`` the answer
        has the result of the stored rules, too, and the difference. ``given`` is the UUID of each rule of the request,
        ``warnings`` are about them, as when they are stored.

        With ``nodes``, an object with filters of a list of nodes, the dry run is an operation, which is returned with
        202: of each node over the data of its last inspection. Then there are no ``node``, ``report`` and ``compare``.

        The answer shows conditions and actions of stored rules, so this needs the policy for that, too.

        Early rules run over a ``report`` only: stored data have passed them. ``previous`` is the last successful
        inventory of the node, for stored data the one before them.

        Secrets are masked in the answer by their keys, what a sensitive rule wrote by its place, and with them what
        other rules made of them. The outcomes of conditions are shown.

        :raises InvalidRule: 400, with every problem of every rule;  InvalidInventory: 400, of the report
        :raises Forbidden: 403, also by the policy ``baremetal:inspection_rule:get_details``
        :raises NodeNotFound, InventoryNotFound: 404
        :raises DryRunTooLong: 400, by ``[inspection_rules]dry_run_timeout``;  TooManyDryRuns: 503
        """
        policy.authorize(request.conf, policies.GET_DETAILS, request.context)
        if "nodes" in body:
            return _of_many(request, body)
        if "node" not in body and "report" not in body:
            raise Invalid("A node, a report, or both are required.")
        if "version" in body and ("node" not in body or "report" in body):
            raise Invalid("A version is one of the stored inventories of a node.")
        if body.get("imagined") and ("report" not in body or "node" in body):
            raise Invalid("A machine is imagined for a report, without a node.")
        sent = _report(request, body["report"]) if "report" in body else None
        check = _checking(request, body)
        with request.db.reader() as conn:
            machine, data = _machine(request, conn, body, sent)
        work = _work(request, machine, data, check, early=sent is not None, compare=body.get("compare", False))
        result: JSONObject = request.dry_runs.run(work)
        return result


def _of_many(request: Request, body: JSONObject) -> JSONObject:
    """Begin the dry run of many nodes; return the operation.

    :raises InvalidRule: 400, with every problem of every rule
    """
    if others := sorted(set(body) - {"nodes", "rules", "as_if"}):
        raise Invalid(f"A dry run of nodes takes rules or as_if, and not {', '.join(others)}.")
    check = _checking(request, body)
    given = {name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
             for name, value in body["nodes"].items()}
    shown = FILTERS.load(urlencode(given))
    wanted = node_access.filters(request, shown)
    found = request.dry_runs.run(check)
    if not set(found.changes.left_out).isdisjoint(request.legacy_rule_cache.uuids()):
        raise Invalid("A dry run of many nodes cannot leave out legacy rules.")
    said = {"nodes": shown, "dry_run": True, "rules": found.changes.to_json()}
    created = request.db.write(functools.partial(node_reapply.create_operation, request, wanted=wanted, said=said))
    return operations.begun(request, created) | _about(found)


def _about(found: Checked) -> JSONObject:
    return {"given": found.uuids, "warnings": rule_views.warnings(found.warnings)}


def _checking(request: Request, body: JSONObject) -> Callable[[Tick], Checked]:
    """Return what checks the rules of the request, in another thread."""
    given, as_if = body.get("rules"), body.get("as_if") or ()
    if given is not None and as_if:
        raise Invalid("There are either rules, or as_if.")
    stored = dry_run_rules.Stored(request.rule_cache, request.legacy_rule_cache, request.db)
    return functools.partial(dry_run_rules.check_rules, given, as_if, stored)


def _work(request: Request, machine: Machine | LookupFailed, data: InspectionData, check: Callable[[Tick], Checked], *,
          early: bool, compare: bool) -> Callable[[Tick], JSONObject]:
    """Return the work of the dry run, which another thread does: it gets all that it needs from here."""
    db, runs, cache, legacy = request.db, request.dry_runs, request.rule_cache, request.legacy_rule_cache
    heartbeat_timeout, cleanup = request.conf.conductor.heartbeat_timeout, request.conf.legacy_rules.cleanup

    def work(tick: Tick) -> JSONObject:
        found = check(tick)
        given = found.changes.rules(cache, legacy, tick)
        setting = TrialSetting(runs.pipeline(), db, heartbeat_timeout, cleanup, tick)
        result = trials.try_rules(setting, machine, data, given, traces=True, early=early)
        shown = result.shown | _about(found)
        if compare:
            stored = trials.try_rules(
                setting, machine, data, trials.stored_rules(cache, legacy), traces=True, early=early)
            shown |= {"stored": stored.shown, "difference": trials.difference_of(stored, result)}
        return shown

    return work


def _report(request: Request, report: JSON) -> payload.Payload:
    try:
        return payload.split(report, infiniband=request.conf.infiniband_addresses)
    except InvalidInventory as error:
        raise InvalidInventory(
            problems=[Problem(f"/report{problem.where}", problem.text) for problem in error.problems]) from error


def _machine(request: Request, conn: sa.Connection, body: JSONObject,
             sent: payload.Payload | None) -> tuple[Machine | LookupFailed, InspectionData]:
    """Return the machine, or why its callback is refused, and the data of its inspection.

    :raises NodeNotFound, InventoryNotFound: 404
    """
    if sent is None:
        row = node_access.find(request, conn, body["node"])
        version = body.get("version")
        found = inventory.latest(conn, row.id) if version is None else inventory.get(conn, row.id, version)
        if found is None:
            raise InventoryNotFound(node=row.uuid)
        data = InspectionData(found.inventory_data, found.received_plugin_data)
        return trial_machines.stored_machine(conn, request.db, row, data, found.id), data
    data = InspectionData(sent.inventory, sent.plugin_data)
    if body.get("imagined"):
        driver = request.conf.auto_discovery.driver
        return trial_machines.imagined_machine({"driver": driver, "inspect_interface": _IN_BAND}), data
    if "node" in body:
        row = node_access.find(request, conn, body["node"])
        return trial_machines.stored_machine(conn, request.db, row, data), data
    try:
        return _looked_up(request, conn, sent, data), data
    except LookupFailed as error:
        return error, data


def _looked_up(request: Request, conn: sa.Connection, sent: payload.Payload, data: InspectionData) -> Machine:
    owners, _ = ports.owners_and_rules_revision(conn, sent.macs)
    try:
        found = lookup.find_node(conn, None, sent.macs, sent.bmc_addresses, owners)
    except MachineUnknown:
        values, created_ports = discovery.preview(conn, request.conf, sent)
        return trial_machines.created_machine(conn, values, created_ports, data)
    return trial_machines.stored_machine(conn, request.db, node_access.find(request, conn, found.uuid), data)
