"""Facts that are new, or have another definition, are found in what is stored of all nodes, as an operation.

No hook or rule runs. One transaction holds the rows of some nodes, so that no inspection ends before it, reads their
data, and writes the values and the results of the items: whatever dies in between, it is done once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import facts, inventory, node_sets, operations
from ironic_rules.db.facts import Found
from ironic_rules.db.operations import Ended, Item
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import nodes
from ironic_rules.facts import CompiledFact
from ironic_rules.facts.evaluation import FactData
from ironic_rules.inspection.fact_sets import KnownFacts
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.facts import NodeFacts
from ironic_rules.models.fields import values_of
from ironic_rules.models.nodes import NODE, Node
from ironic_rules.models.secrets import Concealment

LOG = logging.getLogger(__name__)

#: Data that are in memory at once: one of the largest has some megabytes.
_READ_AT_ONCE = 25
#: Facts of nodes that one transaction finds: until it ends, a fact cannot be changed or deleted.
_VALUES_AT_ONCE = 10_000
_NO_DATA = Ended(operations.UNCHANGED)


def find(conductor: Conductor, operation: Row, claimed: Sequence[Item]) -> None:
    """Do items of an operation that this process has claimed, and note their results."""
    known_facts = conductor.rules.facts.current()
    conceal = Concealment()
    conceal.add_sources(conductor.rules.current().withheld_places())
    at_once = max(1, _VALUES_AT_ONCE // max(1, len(operation.filters["facts"])))
    for at in range(0, len(claimed), at_once):
        some = claimed[at:at + at_once]

        def write(conn: sa.Connection, some: Sequence[Item] = some) -> None:
            _Batch(conn, conductor, operation, known_facts, conceal).run(some)

        conductor.db.write(write)


@dataclass(slots=True)
class _Batch:
    conn: sa.Connection
    conductor: Conductor
    operation: Row
    known: KnownFacts
    conceal: Concealment

    def run(self, claimed: Sequence[Item]) -> None:
        conn, operation = self.conn, self.operation
        remaining = operations.begin_all(conn, operation.id, claimed, self.conductor.instance)
        if not remaining:
            return
        current = self._wanted()
        if not current:
            LOG.info("Operation %s ends: its facts were deleted or defined again", operation.uuid)
            operations.cancel(conn, operation.id)
            return
        rows = self._hold({item.node_uuid for item in remaining})
        by_node = {row.id: self._found(current, row, data) for row, data in self._data(list(rows.values()), current)}
        new: dict[int, tuple[str, bool]] = {}
        for node_facts in by_node.values():
            new |= self.conductor.rules.facts.note(node_facts, self.known)
        facts.learn_types(conn, new)
        facts.replace_values(conn, {node_id: {
            fact.id: Found(node_facts.values.get(fact.name), node_facts.problems.get(fact.name), fact.defined)
            for fact in current} for node_id, node_facts in by_node.items()})
        operations.end_all(conn, [(item, self._ended(rows.get(item.node_uuid), by_node)) for item in remaining])

    def _wanted(self) -> list[CompiledFact]:
        """Return the facts that are still as they were when the operation was requested."""
        by_name = self.known.fact_set.facts
        same = [fact for entry in self.operation.filters["facts"] if (fact := by_name.get(entry["name"])) is not None
                and (fact.id, fact.defined) == (entry["id"], entry["defined"])]
        current = facts.current(self.conn, [fact.id for fact in same])
        return [fact for fact in same if current.get(fact.id) == fact.defined]

    def _hold(self, uuids: Collection[str]) -> dict[str, Node]:
        query = sa.select(nodes).where(nodes.c.uuid.in_(uuids)).order_by(nodes.c.id).with_for_update()
        return {row.uuid: row for row in self.conn.execute(query).all()}

    def _data(self, rows: Sequence[Node], current: Sequence[CompiledFact]) -> Iterator[tuple[Node, FactData]]:
        """Yield the nodes that have data of an inspection."""
        roots = {path[0] for fact in current for path in fact.reads}
        newest = inventory.newest_processed(self.conn, [row.id for row in rows])
        traits = node_sets.list_traits(self.conn, list(newest)) if "node" in roots else {}
        with_data = [row for row in rows if row.id in newest]
        for at in range(0, len(with_data), _READ_AT_ONCE):
            part = with_data[at:at + _READ_AT_ONCE]
            texts = {text.node_id: text for text in inventory.texts(self.conn, [newest[row.id] for row in part])}
            yield from ((row, _fact_data(row, texts[row.id], roots, traits, self.conceal)) for row in part
                        if row.id in texts)

    def _found(self, current: Sequence[CompiledFact], row: Node, data: FactData) -> NodeFacts:
        node_facts = NodeFacts()
        for fact in current:
            try:
                value, problem = data.value_of(fact)
            except Exception:  # one node must not keep the others from being done
                LOG.exception("The fact %s of node %s cannot be found", fact.name, row.uuid)
                value, problem = None, "an unexpected error occurred; the conductor's log has the details"
            if value is not None:
                node_facts.values[fact.name] = value
            if problem is not None:
                node_facts.problems[fact.name] = problem
        return node_facts

    @staticmethod
    def _ended(row: Node | None, by_node: Mapping[int, NodeFacts]) -> Ended:
        if row is None or row.id not in by_node or not by_node[row.id].values:
            return _NO_DATA
        return Ended(operations.CHANGED)


def _fact_data(row: Node, text: Row, roots: Collection[str], traits: Mapping[int, list[str]],
               conceal: Concealment) -> FactData:
    free = set()
    data: dict[str, JSONObject] = {"inventory": {}, "plugin_data": {}}
    for root, name in (("inventory", "inventory_data"), ("plugin_data", "plugin_data")):
        stored = getattr(text, name)
        if root in roots and stored:
            data[root] = orjson.loads(stored)
            if secrets.json_is_free(stored.encode()):
                free.add(root)
    return FactData(data["inventory"], data["plugin_data"],
                    lambda: {**values_of(NODE, row), "traits": traits.get(row.id, [])}, conceal, frozenset(free))
