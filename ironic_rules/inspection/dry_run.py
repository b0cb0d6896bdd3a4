"""Dry runs: an inspection without its commit. Hooks and rules change drafts that nothing saves.

As far as the result goes, the same as in the conductor: the pipeline with legacy rules, and the choice of interfaces
after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock, inventory, legacy_values, portgroups, ports, rule_nodes, traits
from ironic_rules.db.session import Database
from ironic_rules.exceptions import DriverNotFound, HookFailed, InterfaceNotFound, LookupFailed, RuleFailed
from ironic_rules.inspection import fitting
from ironic_rules.inspection.explained_steps import TrialSteps, messages
from ironic_rules.inspection.payload import Payload
from ironic_rules.inspection.pipeline import LegacyRun, Pipeline
from ironic_rules.legacy import LegacyRuleSet
from ironic_rules.models import json_patch, mac, states
from ironic_rules.models.concealment import Concealment
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.fields import Fields, Type, values_of
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.legacy_rules import OwnedValue
from ironic_rules.models.nodes import NODE, Node
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.task import PortChanges, Task
from ironic_rules.rules import Facts, RuleSet
from ironic_rules.rules.changes import difference_of_port, hide_changes

FINISHED, FAILED, REFUSED = "finished", "failed", "refused"


@dataclass(frozen=True, slots=True)
class Machine:
    """What an inspection begins with.

    :ivar node: values of its fields
    :ivar is_new: discovery would create it
    :ivar foreign: MAC addresses of the data that belong to other nodes
    :ivar spent: the rules that may not run on it, and on how many others each has
    :ivar previous: the inventory of the last successful inspection before this one
    :ivar owned: what legacy rules own on it
    """

    node: JSONObject
    traits: Sequence[str] = ()
    ports: Sequence[JSONObject] = ()
    port_groups: Sequence[JSONObject] = ()
    is_new: bool = False
    foreign: frozenset[str] = frozenset()
    spent: Mapping[str, int] = field(default_factory=dict)
    previous: JSONObject | None = None
    owned: Sequence[OwnedValue] = ()

    def disowned(self, rules: Collection[str]) -> Machine:
        """Return it as after some legacy rules were deleted: what they own stays, and is not theirs any more."""
        return replace(self, owned=[value for value in self.owned if value.rule_uuid not in rules])

    def task(self) -> Task:
        """Return new drafts of it."""
        node = {**self.node, "provision_state": states.INSPECTING}
        found = Task(NodeDraft(node, self.traits), map(PortDraft, self.ports), self.port_groups)
        found.begin_inspection(self.foreign, lambda: self.previous)
        return found


def stored(conn: sa.Connection, row: Node, data: InspectionData, version: int | None = None) -> Machine:
    """Return a node of the database, as it is when it is inspected with these data.

    :param version: of the data, if they are stored: those of inspections before it are the previous ones
    """
    return Machine(
        values_of(NODE, row), traits.list_for(conn, [row.id])[row.id],
        [values_of(PORT, port) for port in ports.for_node(conn, row.id)],
        [values_of(PORT_GROUP, group) for group in portgroups.for_node(conn, row.id)],
        foreign=foreign(conn, data, row.id), spent=rule_nodes.spent(conn, row.uuid),
        previous=inventory.latest_inventory(conn, row.id, version),
        owned=tuple(legacy_values.for_node(conn, row.id).values()))


def imagined(node: Mapping[str, Any], traits: Sequence[str] = (), ports: Sequence[Mapping[str, Any]] = (),
             previous: JSONObject | None = None) -> Machine:
    """Return a node that no database has, with defaults for the fields that are not given."""
    made = [{**_initial(PORT), "id": number, "uuid": uuidutils.generate_uuid(), **port}
            for number, port in enumerate(ports, start=1)]
    values = {**_initial(NODE), "id": 1, "uuid": uuidutils.generate_uuid(), **node}
    return Machine(values, traits, made, previous=previous)


def _initial(fields: Fields) -> JSONObject:
    return {name: None if fields[name].type is Type.TIME else fields[name].initial() for name in fields}


def created(conn: sa.Connection, values: Mapping[str, Any], found: PortChanges, data: InspectionData) -> Machine:
    """Return the node that discovery would create."""
    uuid = uuidutils.generate_uuid()
    node = {**_initial(NODE), "id": 0, "uuid": uuid, "created_at": clock.now(), **values}
    return Machine(node, ports=found.created, is_new=True, foreign=foreign(conn, data, 0),
                   spent=rule_nodes.spent(conn, uuid))


def foreign(conn: sa.Connection, data: InspectionData, node_id: int) -> frozenset[str]:
    """Return the MAC addresses of the data that are those of other nodes."""
    sent = [address for interface in data.inventory.get("interfaces") or ()
            if (address := mac.of_interface(interface.get("mac_address"), infiniband=True))]
    owners = ports.node_ids_by_addresses(conn, sent)
    return frozenset(address for address, owner in owners.items() if owner != node_id)


@dataclass(slots=True)
class Result:
    """What an inspection would do.

    :ivar outcome: ``finished``, ``failed``, or ``refused`` if the machine's callback would be
    :ivar failure: of the hook or the rule, or why it is refused
    :ivar final: the fields and data that change, as they would be: what two results are compared by
    :ivar original: the fields of the node that change, as they are
    """

    outcome: str
    shown: JSONObject
    final: JSONObject = field(default_factory=dict)
    steps: TrialSteps = field(default_factory=TrialSteps)
    original: JSONObject = field(default_factory=dict)


class DryRun:
    """A dry run of one machine and its data, with any number of rule sets.

    :param db: only read; without one, interfaces are not chosen after a change of the driver
    :param heartbeat_timeout: seconds after which a conductor is not alive
    :param tick: called often; may raise to end the run
    :param cleanup: of legacy rules, see ``[legacy_rules]cleanup``
    """

    def __init__(self, pipeline: Pipeline, db: Database | None = None, heartbeat_timeout: int = 0,
                 tick: Callable[[], None] = lambda: None, cleanup: str = "own") -> None:
        self._pipeline = pipeline
        self._db = db
        self._heartbeat_timeout = heartbeat_timeout
        self._tick = tick
        self._cleanup = cleanup

    def run(self, machine: Machine | LookupFailed, data: InspectionData, rule_set: RuleSet, *,
            sent: Payload | None = None, legacy: LegacyRuleSet | None = None) -> Result:
        """Return what an inspection of the machine would do.

        :param machine: why the callback would be refused, if no early rule refuses it before
        :param sent: what the ramdisk sent, if the data have not passed the early rules yet
        :param legacy: the legacy rules; None: they do not run, and what they own stays
        """
        steps = TrialSteps(self._tick)
        plugin_data = data.plugin_data
        said: list[tuple[str, str]] = []
        if sent is not None:
            facts = Facts(None, data.inventory, dict(plugin_data), dry_run=True, explainer=steps.explainer)
            try:
                rule_set.check("early", None)
                steps.run(rule_set, "early", facts)
            except RuleFailed as exc:
                steps.failed(exc)
                return _refused(steps, failure(exc), facts.messages)
            plugin_data, said = facts.plugin_data, facts.messages
        if isinstance(machine, LookupFailed):
            return _refused(steps, {"reason": machine.reason}, said)
        task = machine.task()
        try:
            outcome = self._pipeline.run(task, data.inventory, plugin_data, rule_set, lambda: machine.spent, steps,
                                         self._legacy(legacy, machine, steps))
            if self._db is not None:
                fitting.fit(self._db, self._heartbeat_timeout, task, sealed=outcome.is_sealed)
        except (HookFailed, RuleFailed, DriverNotFound, InterfaceNotFound) as exc:
            return failed(steps, failure(exc), [*said, *task.messages])
        self._tick()
        return finished(machine, task, steps, data.plugin_data, outcome.plugin_data, [*said, *task.messages])

    def _legacy(self, rules: LegacyRuleSet | None, machine: Machine, steps: TrialSteps) -> LegacyRun | None:
        if rules is None or (not rules and not machine.owned):
            return None
        return lambda task, source: rules.run(
            task, source, machine.owned, self._cleanup, explain=True, explainer=steps.explainer, dry_run=True)


def failure(error: Exception) -> JSONObject:
    """Return which hook or rule has failed, and why."""
    if isinstance(error, RuleFailed):
        found = {"rule": error.facts["rule"], "pointer": error.facts["where"], "reason": str(error.facts["reason"])}
        maintenance = error.facts.get("maintenance")
        return found if maintenance is None else {**found, "maintenance_reason": maintenance}
    if isinstance(error, HookFailed):
        return {"hook": error.facts.get("hook"), "reason": str(error)}
    return {"reason": str(error)}


def _base(outcome: str, steps: TrialSteps, failure: JSONObject | None,
          said: Sequence[tuple[str, str]]) -> JSONObject:
    conceal = steps.conceal
    shown_failure = failure and {name: conceal.hide(value) for name, value in failure.items()}
    return {"outcome": outcome, "admitted": outcome != REFUSED, "failure": shown_failure, "steps": steps.shown(),
            "messages": messages(said, conceal), "would": steps.would()}


def _refused(steps: TrialSteps, failure: JSONObject, said: Sequence[tuple[str, str]]) -> Result:
    return Result(REFUSED, _base(REFUSED, steps, failure, said), steps=steps)


def failed(steps: TrialSteps, why: JSONObject, said: Sequence[tuple[str, str]]) -> Result:
    """Return the result of a run that a hook or a rule has failed."""
    return Result(FAILED, _base(FAILED, steps, why, said), steps=steps)


def finished(machine: Machine, task: Task, steps: TrialSteps, sent: JSONObject, plugin_data: JSONObject,
             said: Sequence[tuple[str, str]]) -> Result:
    """Return the result of a run: the differences of the drafts and of the plug-in data.

    :param machine: as it was before
    :param sent: the plug-in data that those of the run are compared with
    """
    original, final = left(task, plugin_data)
    found = changes(machine, original, final, sent, steps.conceal)
    return Result(FINISHED, _base(FINISHED, steps, None, said) | found, final, steps, original)


def left(task: Task, plugin_data: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Return the fields of the node that change, as they were, and what the run leaves, as ``Result.final``."""
    node = task.node
    changed = node.changes()
    final: JSONObject = {"node": changed, "plugin_data": plugin_data, "traits": sorted(node.read()["traits"]),
                         "ports": {str(port.address): _port(port.read()) for port in task.ports}}
    return {name: node.original(name) for name in changed}, final


def changes(machine: Machine, original: JSONObject, final: JSONObject, sent: JSONObject,
            conceal: Concealment) -> JSONObject:
    """Return the patches that make what a run leaves of what was there before, as they may be shown.

    :param machine: as it was before
    :param original: the fields of the node that change, as they are
    :param final: as in a result
    :param sent: the plug-in data that those of the run are compared with
    :param conceal: what must not be shown
    """
    before = {} if machine.is_new else {str(port["address"]): _port(port) for port in machine.ports}
    patches = {address: difference_of_port(before.get(address), final["ports"].get(address))
               for address in dict.fromkeys((*before, *final["ports"]))}
    found = hide_changes({"node": json_patch.difference(original, final["node"]),
                          "plugin_data": json_patch.difference(sent, final["plugin_data"]),
                          "ports": {address: patch for address, patch in patches.items() if patch}}, conceal)
    old = set(machine.traits)
    shown = {
        "node": {"patch": found["node"]},
        "ports": [{"address": address, "patch": patch} for address, patch in found["ports"].items()
                  if patch[0]["path"] != ""],
        "ports_created": [operation["value"] for patch in found["ports"].values() for operation in patch
                          if operation["path"] == "" and operation["op"] == "add"],
        "ports_removed": [address for address, patch in found["ports"].items()
                          if patch[0]["path"] == "" and patch[0]["op"] == "remove"],
        "traits": {"added": conceal.hide(sorted(set(final["traits"]) - old), ("node", "traits")),
                   "removed": sorted(old - set(final["traits"]))},
        "plugin_data": {"patch": found["plugin_data"]}}
    if machine.is_new:
        shown["new_node"] = conceal.hide(
            {name: value for name, value in machine.node.items() if NODE[name].create and value not in (None, {}, [])})
    return shown


#: Of a port, what an inspection does not decide.
_NOT_OF_PORT = frozenset({"id", "node_id", "created_at", "updated_at", "revision"})


def _port(values: Mapping[str, Any]) -> JSONObject:
    is_new = values.get("id") is None
    return {name: value for name, value in values.items()
            if name not in _NOT_OF_PORT and not (is_new and name == "uuid")}


def difference_of(first: Result, second: Result) -> JSONObject:
    """Return how the second result differs from the first: patches from what the first would leave."""
    found: JSONObject = {}
    for name in ("node", "traits", "ports", "plugin_data"):
        old, new = _left_by(first, name, second), _left_by(second, name, first)
        of_sets = name == "traits" and old is not None and new is not None
        patch = json_patch.difference_of_sets(old, new, ()) if of_sets else json_patch.difference(old, new)
        # Each may hide what the other one shows.
        place = ("node", name) if name == "traits" else (name,)
        found[name] = second.steps.conceal.hide_patch(first.steps.conceal.hide_patch(patch, place), place)
    outcomes = [result.outcome for result in (first, second)]
    return {"outcome": outcomes if outcomes[0] != outcomes[1] else None, **found}


def _left_by(result: Result, name: str, other: Result) -> Any:
    """Return what a result would leave, also where only the other one changes it."""
    left = result.final.get(name)
    return {**other.original, **left} if name == "node" and left is not None else left

