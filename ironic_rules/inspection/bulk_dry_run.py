"""Dry runs of many stored nodes: what would change, without traces. What is shown is what an explained run shows.

What is read is read for many nodes at once. Rules that may read any secret, and legacy rules, are explained
nevertheless: their traces tell what is secret.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
import sqlalchemy as sa

from ironic_rules.db import inventory, legacy_values, nodes, portgroups, ports, rule_nodes, traits
from ironic_rules.db.projection import Row
from ironic_rules.db.session import Database
from ironic_rules.exceptions import HookFailed, IronicRulesError, RuleFailed
from ironic_rules.inspection import dry_run, fitting, reapplying
from ironic_rules.inspection.dry_run import FINISHED, Machine
from ironic_rules.inspection.explained_steps import TrialSteps
from ironic_rules.inspection.pipeline import LegacyRun, Pipeline
from ironic_rules.legacy import LegacyRuleSet
from ironic_rules.models import mac
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.fields import values_of
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.nodes import NODE, Node
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.task import PreviousInventory, Task
from ironic_rules.models.watch import Abandoned, Watch
from ironic_rules.rules import RuleSet, SpentRules
from ironic_rules.text import WITHHELD

#: Characters of stored data that are read at once.
_MOST_CHARACTERS = 8 * 1024 * 1024
#: What is kept of a dry run: the steps of one node can be looked at with a dry run of that node.
_KEPT = ("outcome", "failure", "node", "ports", "ports_created", "ports_removed", "traits", "plugin_data", "would")
_NOTHING: JSONObject = {
    "outcome": FINISHED, "failure": None, "node": {"patch": []}, "ports": [], "ports_created": [], "ports_removed": [],
    "traits": {"added": [], "removed": []}, "plugin_data": {"patch": []}, "would": []}


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node and the data of its last inspection, as JSON text: not all nodes that are read at once are parsed at once.

    :ivar text: ``inventory_data``, ``received_plugin_data`` and ``plugin_data``
    """

    row: Node
    machine: Machine
    text: Row
    spent: SpentRules
    previous: PreviousInventory

    def task(self) -> Task:
        """Return new drafts of the node, whose provision state stays as it is."""
        machine = self.machine
        made = Task(NodeDraft(machine.node, machine.traits), map(PortDraft, machine.ports), machine.port_groups)
        made.begin_inspection(machine.foreign, self.previous)
        return made

    def data(self) -> InspectionData:
        """Return what was received."""
        return InspectionData(orjson.loads(self.text.inventory_data),
                              orjson.loads(self.text.received_plugin_data or "{}"))

    def before(self, data: InspectionData) -> JSONObject:
        """Return the plug-in data that those of the run are compared with."""
        if self.text.plugin_data is None:
            return data.plugin_data
        found: JSONObject = orjson.loads(self.text.plugin_data)
        return found


def read(conn: sa.Connection, uuids: Collection[str]) -> list[tuple[Node, int | None, int]]:
    """Return the nodes that exist, each with the id and the characters of the data of its last inspection.

    :returns: the id is None if there are no data
    """
    found = nodes.with_uuids(conn, uuids)
    reports = inventory.newest_reports(conn, [row.id for row in found])
    return [(row, *reports.get(row.id, (None, 0))) for row in found]


def parts(found: Sequence[tuple[Node, int | None, int]]) -> Iterator[list[tuple[Node, int]]]:
    """Yield nodes with the ids of their data, as many as are to be read at once; those without data are left out."""
    part: list[tuple[Node, int]] = []
    size = 0
    for row, report, length in found:
        if report is None:
            continue
        if part and size + length > _MOST_CHARACTERS:
            yield part
            part, size = [], 0
        part.append((row, report))
        size += length
    if part:
        yield part


def stored(conn: sa.Connection, db: Database, part: Sequence[tuple[Node, int]]) -> list[StoredNode]:
    """Return nodes with their data, all that their dry runs need.

    :param db: what few rules need is read from it when the first of them asks, for all of these nodes
    :param part: as :func:`parts` yields it
    """
    rows = [row for row, _ in part]
    ids = [row.id for row in rows]
    of_traits, of_ports = traits.list_for(conn, ids), ports.for_nodes(conn, ids)
    of_groups, owned = portgroups.for_nodes(conn, ids), legacy_values.for_nodes(conn, ids)
    texts = {text.node_id: text for text in inventory.texts(conn, [report for _, report in part])}
    macs = {node_id: _addresses(orjson.loads(text.inventory_data)) for node_id, text in texts.items()}
    owners = ports.node_ids_by_addresses(conn, {address for found in macs.values() for address in found})

    @functools.cache
    def spent() -> dict[str, dict[str, int]]:
        with db.reader() as conn:
            return rule_nodes.spent_for(conn, [row.uuid for row in rows])

    @functools.cache
    def previous() -> dict[int, str]:
        with db.reader() as conn:
            return inventory.inventories_before(conn, {row.id: report for row, report in part})

    return [StoredNode(
        row,
        Machine(values_of(NODE, row), of_traits[row.id], [values_of(PORT, port) for port in of_ports[row.id]],
                [values_of(PORT_GROUP, group) for group in of_groups[row.id]],
                foreign=frozenset(address for address in macs[row.id] if owners.get(address, row.id) != row.id),
                owned=owned.get(row.id, ())),
        texts[row.id], functools.partial(_of, spent, row.uuid), functools.partial(_previous, previous, row.id))
        for row in rows if row.id in texts]


def _addresses(data: JSONObject) -> list[str]:
    found = (interface.get("mac_address") for interface in data.get("interfaces") or ())
    return [known for address in found if (known := mac.of_interface(address, infiniband=True))]


def _of(read: Callable[[], Mapping[str, Mapping[str, int]]], uuid: str) -> Mapping[str, int]:
    return read()[uuid]


def _previous(read: Callable[[], Mapping[int, str]], node_id: int) -> JSONObject | None:
    text = read().get(node_id)
    return None if text is None else orjson.loads(text)


@dataclass(frozen=True, slots=True)
class Tried:
    """What an inspection of a node would do.

    :ivar shown: as a dry run of that node shows it, without steps
    """

    is_changed: bool
    is_failed: bool
    shown: JSONObject


@dataclass(frozen=True, slots=True)
class BulkDryRun:
    """Dry runs with one set of rules.

    :ivar legacy: the legacy rules; None: they do not run, and what they own stays
    :ivar cleanup: of legacy rules, see ``[legacy_rules]cleanup``
    :ivar heartbeat_timeout: seconds after which a conductor is not alive
    """

    pipeline: Pipeline
    db: Database
    rules: RuleSet
    legacy: LegacyRuleSet | None
    cleanup: str
    heartbeat_timeout: int

    def run(self, node: StoredNode, watch: Watch) -> Tried:
        """Return what an inspection of a node would do.

        :param watch: of the thread
        :raises IronicRulesError: hooks and rules cannot run on it
        """
        task = node.task()
        task.watch = watch
        machine, data = node.machine, node.data()
        before = node.before(data)
        is_explained = self.rules.shows_secrets or (self.legacy is not None and bool(self.legacy or machine.owned))
        steps = TrialSteps(traces=is_explained)
        rules_only = reapplying.is_deployed(node.row)
        is_sealed = False
        try:
            outcome = self.pipeline.run(
                task, data.inventory, data.plugin_data, self.rules, node.spent, steps,
                self._legacy(machine, steps), rules_only=rules_only)
            is_sealed = outcome.is_sealed
            fitting.fit(self.db, self.heartbeat_timeout, task, sealed=is_sealed)
            reapplying.check_ports(node.row, task)
        except (HookFailed, RuleFailed) as exc:
            return Tried(False, True, _kept(dry_run.failed(steps, dry_run.failure(exc), ()).shown))
        except Abandoned:
            raise
        except BaseException as exc:  # of a plug-in; its text may quote what a sensitive rule wrote
            if is_sealed:
                raise IronicRulesError(f"{type(exc).__name__}; {WITHHELD}") from None
            raise
        is_changed = reapplying.changes(task) or not reapplying.are_equal(outcome.plugin_data, before)
        if not is_changed and not steps.steps:
            return Tried(False, False, _NOTHING)
        done = dry_run.finished(machine, task, steps, before, outcome.plugin_data, ())
        return Tried(is_changed, False, _kept(done.shown))

    def _legacy(self, machine: Machine, steps: TrialSteps) -> LegacyRun | None:
        rules = self.legacy
        if rules is None or not (rules or machine.owned):
            return None
        return lambda task, source: rules.run(
            task, source, machine.owned, self.cleanup, explain=True, explainer=steps.explainer, dry_run=True)


def _kept(shown: JSONObject) -> JSONObject:
    return {name: shown[name] for name in _KEPT if name in shown}

