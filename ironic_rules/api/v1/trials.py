"""Dry runs of rules, and re-runs of hooks and rules over stored data, without a machine.

``/v1/inspection_rules/dry_run`` shows an inspection with the stored rules, those of the request, or the stored ones
with some of them changed. ``/v1/nodes/{node}/inventory/reapply`` and ``/v1/nodes/reapply`` re-run hooks and rules.

Dry runs have threads of their own, few at a time, each with a deadline. The thread of the request waits until the
deadline at most. The dry run itself looks at the clock between its steps and ends soon after; a hook or an action of
another package that never ends keeps its place.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_log import log as logging
from oslo_utils import uuidutils

from ironic_rules import policy, rules
from ironic_rules.api import filters, patch, schemas, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access, operations, rule_sets
from ironic_rules.api.views import rules as rules_views
from ironic_rules.db import facts, inspection_rules, inventory, nodes, ports
from ironic_rules.db import operations as operations_db
from ironic_rules.db.projection import Row
from ironic_rules.db.session import Database
from ironic_rules.exceptions import (
    ConfigurationError,
    Invalid,
    InvalidInventory,
    InvalidRule,
    IronicRulesError,
    LookupFailed,
    MachineUnknown,
    Problem,
    Unavailable,
    dry_run_too_long,
    inventory_not_found,
    too_many_dry_runs,
)
from ironic_rules.inspection import discovery, lookup, payload, reapplying, trial_machines, trials
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.inspection.rule_sets import LegacyRuleCache, RuleCache
from ironic_rules.inspection.trial_machines import Machine
from ironic_rules.inspection.trials import RuleChanges, TrialSetting
from ironic_rules.models import addresses, machine_ids
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.inventories import Catalogue, InspectionData
from ironic_rules.models.nodes import NODE
from ironic_rules.models.resources import REAPPLY
from ironic_rules.models.rules import RULE, Rule
from ironic_rules.models.task import Abandoned
from ironic_rules.policies import nodes as nodes_policies
from ironic_rules.policies import rules as rules_policies
from ironic_rules.rules import CompiledRule, RuleWarning
from ironic_rules.text import is_uuid

LOG = logging.getLogger(__name__)

T = TypeVar("T")
#: Dry runs at a time in one process.
MOST = 4


class DryRuns:
    """Runs work with a deadline. One per process; thread-safe.

    :param timeout_s: seconds that a dry run may take
    :param make_pipeline: called once, when it is needed: the API runs without the packages of hooks as well
    """

    def __init__(self, timeout_s: float, make_pipeline: Callable[[], Pipeline]) -> None:
        self._timeout_s = timeout_s
        self._places = threading.BoundedSemaphore(MOST)
        self._make_pipeline = functools.cache(make_pipeline)

    def pipeline(self) -> Pipeline:
        """Return the hooks as the conductor runs them.

        :raises Unavailable: 503, they cannot be loaded on this host
        """
        try:
            return self._make_pipeline()
        except ConfigurationError as error:
            raise Unavailable(f"This API cannot do dry runs: {error}") from error

    def run(self, work: Callable[[Callable[[], None]], T]) -> T:
        """Return the result of ``work``, which gets the function to be called between its steps.

        :raises too_many_dry_runs: 503, as many as possible are in progress
        :raises dry_run_too_long: 400, it takes longer than it may
        """
        deadline = time.monotonic() + self._timeout_s
        if not self._places.acquire(timeout=self._timeout_s / 2):
            raise too_many_dry_runs(most=MOST)
        result: list[Any] = []
        ended = threading.Event()

        def tick() -> None:
            if time.monotonic() > deadline:
                raise Abandoned

        def run() -> None:
            try:
                result[:] = [None, work(tick)]
            except IronicRulesError as error:
                result[:] = [error]
            except Abandoned:
                pass
            except BaseException as error:  # of a plug-in, or a defect: the request reports it, not the thread
                LOG.exception("A dry run failed")
                result[:] = [error if isinstance(error, Exception) else RuntimeError(type(error).__name__)]
            finally:
                self._places.release()
                ended.set()

        threading.Thread(target=run, name="dry-run", daemon=True).start()
        if not ended.wait(deadline - time.monotonic()) or not result:
            raise dry_run_too_long(seconds=self._timeout_s)
        if result[0] is not None:
            raise result[0]
        outcome: T = result[1]
        return outcome


_PATCHABLE = RULE.where(lambda entry: entry.patch)
#: The position of rules that are not stored: after the stored ones of their priority, before the built-in ones.
_LAST = 1 << 31
#: Rules are not warned of after so many warnings.
_MANY_WARNINGS = 1000


@dataclass(slots=True)
class Checked:
    """The rules of a request, which are valid.

    :ivar uuids: which rule each place of the request stands for
    :ivar warnings: about the rules of the request
    """

    changes: RuleChanges
    uuids: dict[str, str]
    warnings: Sequence[RuleWarning]


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored rules of this process, and the paths that inventories have."""

    cache: RuleCache
    legacy: LegacyRuleCache
    db: Database

    def named(self, as_if: Sequence[object]) -> dict[str, Rule]:
        """Return the stored rules that a request names, by UUID."""
        uuids = {item["uuid"].lower() for item in as_if if isinstance(item, dict) and is_uuid(item.get("uuid"))}
        with self.db.reader() as conn:
            return {rule.uuid: rule for rule in inspection_rules.some_rules(conn, sorted(uuids))}

    def known_paths(self) -> Catalogue:
        """Return the paths that inventories have."""
        with self.db.reader() as conn:
            return inventory.known_paths(conn)

    def known_facts(self) -> set[str]:
        """Return the names of all facts."""
        with self.db.reader() as conn:
            return facts.names(conn)


def check_rules(rules: Sequence[object] | None, as_if: Sequence[object], stored: Stored,
                tick: Callable[[], None]) -> Checked:
    """Return the rules of a request.

    :param rules: the only rules; None: the stored ones
    :param as_if: a rule to add, or in place of the stored one with its UUID; or ``{"uuid", "patch"}``, or
        ``{"uuid", "left_out": true}``
    :param tick: called between rules
    :raises InvalidRule: 400, with every problem of every rule
    """
    return _Check(stored, stored.named(as_if), tick).run(rules, as_if)


class _Check:
    def __init__(self, stored: Stored, named: Mapping[str, Rule], tick: Callable[[], None]) -> None:
        self._named = named
        self._settings = stored.cache.settings
        self._stored = stored
        self._tick = tick
        self._problems: list[Problem] = []
        self._uuids: dict[str, str] = {}
        self._removed: set[str] = set()
        #: UUIDs of left-out rules, of either kind, without another one in their place
        self._left_out: set[str] = set()
        self._added: list[Rule] = []
        self._compiled: list[CompiledRule] = []
        self._warnings: list[RuleWarning] = []
        self._known_paths = functools.cache(stored.known_paths)
        self._known_facts = functools.cache(stored.known_facts)

    def run(self, rules: Sequence[Any] | None, as_if: Sequence[Any]) -> Checked:
        for place, rule in enumerate(rules or ()):
            self._add(f"/rules/{place}", rule)
        for place, item in enumerate(as_if):
            self._as_if(f"/as_if/{place}", item)
        if self._problems:
            raise InvalidRule(problems=self._problems)
        if rules is not None:
            changes = RuleChanges([], self._added, self._compiled, only=True)
        else:
            changes = RuleChanges(
                sorted(self._removed), self._added, self._compiled, only=False, left_out=frozenset(self._left_out))
        return Checked(changes, self._uuids, self._warnings)

    def _as_if(self, where: str, item: JSON) -> None:
        if not isinstance(item, Mapping) or not ("patch" in item or "left_out" in item):
            self._add(where, item)
            return
        uuid = str(item.get("uuid")).lower()
        stored = self._named.get(uuid)
        unknown = set(item) - {"uuid", "patch", "left_out"}
        if unknown or len(item) != 2:
            self._complain(where, "has a uuid, and either a patch or left_out, and nothing else")
        elif item.get("left_out") is True:
            if stored is None and uuid not in self._others:
                self._complain(f"{where}/uuid", "there is no such rule")
            self._left_out.add(uuid)
            self._remove(where, uuid)
        elif "left_out" in item:
            self._complain(f"{where}/left_out", "must be true")
        elif stored is None:
            self._complain(f"{where}/uuid", "there is no such stored rule")
        elif stored.sensitive:
            self._complain(where, "a sensitive rule can be left out or replaced as a whole, not patched")
        else:
            self._patch(where, stored, item["patch"])

    @functools.cached_property
    def _others(self) -> frozenset[str]:
        """The UUIDs of the built-in and of the legacy rules."""
        return frozenset(self._stored.legacy.uuids()).union(rule.uuid for rule in self._settings.built_in)

    def _patch(self, where: str, stored: Rule, operations: JSON) -> None:
        try:
            result = rule_sets.patched(
                stored, patch.operations(patch.BODY.load(operations)), self._settings.default_scope)
        except Invalid as error:
            placed = [Problem(f"{where}/patch{problem.where}", problem.text) for problem in error.problems]
            self._problems += placed or [Problem(f"{where}/patch", str(error))]
            return
        self._add(where, {"uuid": stored.uuid, **{name: result[name] for name in _PATCHABLE}})

    def _add(self, where: str, definition: JSON) -> None:
        self._tick()
        if not isinstance(definition, Mapping):
            self._complain(where, "a rule is an object")
            return
        written = rules.from_wire(definition, default_scope=self._settings.default_scope)
        checked = rules.check(written, limits=self._settings.limits, known_paths=self._known_paths,
                              known_facts=self._known_facts)
        self._problems += [Problem(where + problem.where, problem.text) for problem in checked.problems]
        if checked.problems:
            return
        if len(self._warnings) < _MANY_WARNINGS:
            self._warnings += [replace(warning, where=where + warning.where) for warning in checked.warnings]
        uuid = written.get("uuid") or uuidutils.generate_uuid()
        stored = self._named.get(uuid)
        if stored is None and any(rule.uuid == uuid for rule in self._settings.built_in):
            self._complain(f"{where}/uuid", "is that of a built-in rule, which can be left out, but not replaced")
            return
        if not self._remove(where, uuid):
            return
        position = stored.position if stored is not None else _LAST + len(self._added)
        rule = replace(Rule.of({**written, "uuid": uuid}), position=position)
        self._added.append(rule)
        if rule.enabled:
            self._compiled.append(checked.of(rule))

    def _remove(self, where: str, uuid: str) -> bool:
        """Note that the request says something about a rule; return whether it is for the first time."""
        if uuid in self._removed:
            self._complain(f"{where}/uuid", "is given more than once")
            return False
        self._removed.add(uuid)
        self._uuids[where] = uuid
        return True

    def _complain(self, where: str, text: str) -> None:
        self._problems.append(Problem(where, text))


#: The filters of ``GET /v1/nodes``.
FILTERS = filters.Query(**filters.of(NODE))


class ReapplyController(Resource):
    """Since API 1.96. The provision state does not change."""

    @expose(since=versions.INSPECTION_RULES, policy=nodes_policies.REAPPLY, body=schemas.REAPPLY, status=202)
    def post(self, request: Request, node: str, body: JSONObject | None) -> JSONObject:
        """Run hooks and rules again over the data of the last inspection, as they were received; return the operation.

        The node is in ``enroll``, ``manageable``, ``available`` or ``inspect failed``. If it has an instance,
        ``allow_deployed`` is required, and only rules change it, without adding or removing ports. With ``dry_run``
        the node may be in any state, and the operation's result is what would change.

        :raises NodeNotFound, inventory_not_found: 404;  invalid_state: 400, by its provision state
        :raises node_associated: 409, it has an instance
        """
        options = body or {}

        def write(conn: sa.Connection) -> Row:
            row = node_access.find(request, conn, node)
            if not options.get("dry_run"):
                reapplying.check(row, allow_deployed=options.get("allow_deployed", False))
            if inventory.newest_report(conn, row.id) is None:
                raise inventory_not_found(node=row.uuid)
            return create_operation(request, conn, {"id_in": [row.id]}, _said({"uuid": row.uuid}, options))

        return operations.begun(request, request.db.write(write))


class NodesReapplyController(Resource):
    """Since API 1.96."""

    @expose(since=versions.INSPECTION_RULES, policy=nodes_policies.REAPPLY, query=FILTERS, body=schemas.REAPPLY,
            status=202)
    def post(self, request: Request, query: QueryValues, body: JSONObject | None) -> JSONObject:
        """Run hooks and rules again on all nodes, or on those that pass the filters of a list; return the operation.

        The operation names the nodes on which this is not possible. A node that is locked is tried again at the end.

        :raises InvalidParameterValue: 400;  NotAcceptable: 406, a filter that the version does not support
        """
        filters, description = node_access.filters(request, query), _said(query, body or {})
        return operations.begun(request, request.db.write(
            functools.partial(create_operation, request, filters=filters, description=description)))


def _said(shown: JSONObject, options: JSONObject) -> JSONObject:
    return {"nodes": shown, **{name: options.get(name, False) for name in ("dry_run", "allow_deployed")}}


def create_operation(request: Request, conn: sa.Connection, filters: JSONObject, description: JSONObject) -> Row:
    """Store an operation in which hooks and rules run again, also one that is a dry run.

    :param filters: filters of its nodes, as ``node_access.filters`` returns them
    :param description: the filters as they were requested, as ``nodes``, and the options of the operation
    """
    resolved = dict(filters)
    node_access.resolve(request, conn, resolved)
    return operations_db.create(conn, REAPPLY, description, request.context.user_id, nodes.uuids(resolved))


#: Called between the steps of a dry run; raises to end it.
Tick = Callable[[], None]
#: The inspect interface that waits for the report of a ramdisk.
_IN_BAND = "agent"


class RuleDryRunController(Resource):
    """Since API 1.96. Nothing is written, and no request is sent to another service."""

    @expose(since=versions.INSPECTION_RULES, policy=rules_policies.INSPECTION_DRY_RUN, body=schemas.RULE_DRY_RUN,
            allow_nul=True)
    def post(self, request: Request, body: JSONObject) -> JSONObject:
        """Run hooks and rules over data of a machine, and return what each of them did and what would be saved.

        The data are those of the last inspection of ``node``, or of the one with ``version`` (as its history names it),
        or ``report``, in the form that a ramdisk sends. With both, ``node`` sends ``report``. With a report only, the
        node is looked up as for a report; an unknown machine is discovered as the configuration says. With
        ``imagined`` the machine of the report is a new one, with a node that no database has, whatever the
        configuration says: for samples, and for reports of other places.

        The rules are the stored ones, or only ``rules``, or the stored ones as if those of ``as_if`` were different: a
        rule is added, or replaces the stored one with its ``uuid``; ``{"uuid", "patch"}`` changes a stored rule, and
        ``{"uuid", "left_out": true}`` leaves it out. A sensitive rule cannot be patched. With ``compare`` the answer
        has the result of the stored rules, too, and the difference. ``given`` is the UUID of each rule of the request,
        ``warnings`` are about them, as when they are stored.

        With ``nodes``, an object with filters of a list of nodes, or ``where``, which is one of them, the dry run is an
        operation, which is returned with 202: of each node over the data of its last inspection. Then there are no
        ``node``, ``report`` and ``compare``.

        The answer shows conditions and actions of stored rules, so this needs the policy for that, too.

        Early rules run over a ``report`` only: stored data have passed them. ``previous`` is the last successful
        inventory of the node, for stored data the one before them.

        Secrets are masked in the answer by their keys, what a sensitive rule wrote by its place, and with them what
        other rules made of them. The outcomes of conditions are shown.

        :raises InvalidRule: 400, with every problem of every rule;  InvalidInventory: 400, of the report
        :raises Forbidden: 403, also by the policy ``baremetal:inspection_rule:get_details``
        :raises NodeNotFound, inventory_not_found: 404
        :raises dry_run_too_long: 400, by ``[inspection_rules]dry_run_timeout``;  too_many_dry_runs: 503
        """
        policy.authorize(request.conf, rules_policies.INSPECTION_GET_DETAILS, request.context)
        if "where" in body:
            if "nodes" in body:
                raise Invalid("There are either nodes, or where.")
            body["nodes"] = {"where": body.pop("where")}
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
    if unknown := sorted(set(body) - {"nodes", "rules", "as_if"}):
        raise Invalid(f"A dry run of nodes takes rules or as_if, and not {', '.join(unknown)}.")
    check = _checking(request, body)
    shown = node_access.filters_of_body(body["nodes"])
    filters = node_access.filters(request, shown)
    checked = request.dry_runs.run(check)
    if not set(checked.changes.left_out).isdisjoint(request.legacy_rule_cache.uuids()):
        raise Invalid("A dry run of many nodes cannot leave out legacy rules.")
    description = {"nodes": shown, "dry_run": True, "rules": checked.changes.to_json()}
    created = request.db.write(functools.partial(create_operation, request, filters=filters, description=description))
    return operations.begun(request, created) | _about(checked)


def _about(checked: Checked) -> JSONObject:
    return {"given": checked.uuids, "warnings": rules_views.warnings(checked.warnings)}


def _checking(request: Request, body: JSONObject) -> Callable[[Tick], Checked]:
    """Return what checks the rules of the request, in another thread."""
    rules, as_if = body.get("rules"), body.get("as_if") or ()
    if rules is not None and as_if:
        raise Invalid("There are either rules, or as_if.")
    stored = Stored(request.rule_cache, request.legacy_rule_cache, request.db)
    return functools.partial(check_rules, rules, as_if, stored)


def _work(request: Request, machine: Machine | LookupFailed, data: InspectionData, check: Callable[[Tick], Checked], *,
          early: bool, compare: bool) -> Callable[[Tick], JSONObject]:
    """Return the work of the dry run, which another thread does: it gets all that it needs from here."""
    db, runs, cache, legacy = request.db, request.dry_runs, request.rule_cache, request.legacy_rule_cache
    heartbeat_timeout, cleanup = request.conf.conductor.heartbeat_timeout, request.conf.legacy_rules.cleanup

    def work(tick: Tick) -> JSONObject:
        checked = check(tick)
        rules = checked.changes.rules(cache, legacy)
        setting = TrialSetting(runs.pipeline(), db, heartbeat_timeout, cleanup, tick)
        result = trials.try_rules(setting, machine, data, rules, traces=True, early=early)
        shown = result.shown | _about(checked)
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
    """Return the machine, or why its report is rejected, and the data of its inspection.

    :raises NodeNotFound, inventory_not_found: 404
    """
    if sent is None:
        row = node_access.find(request, conn, body["node"])
        version = body.get("version")
        stored = inventory.latest(conn, row.id) if version is None else inventory.get(conn, row.id, version)
        if stored is None:
            raise inventory_not_found(node=row.uuid)
        data = InspectionData(stored.inventory_data, stored.received_plugin_data)
        return trial_machines.stored_machine(conn, request.db, row, data, stored.id), data
    data = sent.to_store()
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
    options = request.conf.inspector
    macs = addresses.without_ignored(sent.macs, options.ignored_macs)
    owners, _ = ports.owners_and_rules_revision(conn, macs)
    try:
        node = lookup.find_node(conn, None, macs, sent.bmc_addresses, owners, options.foreign_bmc,
                                ids=lambda: machine_ids.of_report(sent.inventory, sent.plugin_data),
                                ignored=options.ignored_macs)
    except MachineUnknown:
        values, created_ports = discovery.preview(conn, request.conf, sent)
        return trial_machines.created_machine(conn, values, created_ports, data)
    return trial_machines.stored_machine(conn, request.db, node_access.find(request, conn, node.uuid), data)
