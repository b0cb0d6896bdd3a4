"""Write each imported object, and each node with all that belongs to it, in one transaction.

So an import that is interrupted anywhere leaves whole objects, and the next one continues with those that are missing.
Nothing is sent to a machine, and no conductor is told: a node appears in the state that it has in the other cloud.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa

from ironic_rules.db import (
    collection,
    deploy_templates,
    inspection_rules,
    inventory,
    node_records,
    node_sets,
    nodes,
    outbox,
    portgroups,
    ports,
)
from ironic_rules.db import facts as db_facts
from ironic_rules.db.allocations import ALLOCATIONS
from ironic_rules.db.rule_revisions import Author
from ironic_rules.db.session import Database
from ironic_rules.importing.plan import Item
from ironic_rules.inspection import fact_sets, known_bmcs
from ironic_rules.models import documents
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import INTERFACE_FIELDS
from ironic_rules.models.steps import Step

#: Type of the entry in the history of each imported node.
EVENT = "import"


class Writer:
    """Writes the objects of a plan in their order.

    :param origin: name of the other cloud, for the history of nodes
    :param inventories: returns the inventory of a node, None if it has none
    :param author: of the revisions of the set of rules
    """

    def __init__(self, db: Database, origin: str, inventories: Callable[[str], JSONObject | None],
                 author: Author) -> None:
        self._db, self._origin, self._inventories, self._author = db, origin, inventories, author

    def write(self, item: Item) -> None:
        """Write an object.

        :raises IronicRulesError: another process has just written one that excludes it
        :raises ConfigurationError: the inventory of a node cannot be read from the other cloud
        """
        if item.kind == "node":
            # Not in the transaction: the other cloud may be slow.
            node_inventory = self._inventories(item.uuid)
            self._db.write(lambda conn: self._write_node(conn, item, node_inventory))
        else:
            self._db.write(lambda conn: _WRITERS[item.kind](conn, item.values, self._author))

    def finish(self) -> None:
        """Have the conductors find the facts of imported inventories, also of an import that was interrupted."""
        with self._db.reader() as conn:
            missing = db_facts.all_facts(conn) if db_facts.are_missing(conn) else []
        if missing:
            self._db.write(lambda conn: fact_sets.begin(conn, missing, None))

    def _write_node(self, conn: sa.Connection, item: Item, inventory_found: JSONObject | None) -> None:
        row = nodes.create(conn, {**dict.fromkeys(INTERFACE_FIELDS), **item.values})
        known_bmcs.follow(conn, row.id, {}, row.driver_info)
        if item.traits:
            node_sets.set_traits(conn, row.id, item.traits)
        groups = {}
        for values in item.parts.get("portgroup", ()):
            group_row = portgroups.create(conn, _of_node(values, row.id))
            groups[values["uuid"]] = group_row.id
            outbox.note(conn, "port group", "create", group_row)
        for values in item.parts.get("port", ()):
            group = values.get("portgroup_uuid")
            outbox.note(conn, "port", "create", ports.create(
                conn, {**_of_node(values, row.id), **({"portgroup_id": groups[group]} if group else {})}))
        for values in item.parts.get("volume_connector", ()):
            collection.CONNECTORS.create(conn, _of_node(values, row.id))
        for values in item.parts.get("volume_target", ()):
            collection.TARGETS.create(conn, _of_node(values, row.id))
        if inventory_found is not None:
            _write_inventory(conn, row.id, inventory_found)
        node_records.add_history(conn, row.id, EVENT, f"Imported from {self._origin} in state {row.provision_state}.",
                                 "INFO", None)


def _of_node(values: Mapping[str, object], node_id: int) -> JSONObject:
    fields = {name: value for name, value in values.items() if name not in ("node_uuid", "portgroup_uuid")}
    return {**fields, "node_id": node_id}


def _write_inventory(conn: sa.Connection, node_id: int, node_data: JSONObject) -> None:
    sent, plugin_data = node_data.get("inventory"), node_data.get("plugin_data")
    if not isinstance(sent, dict) or documents.unstorable(node_data) is not None:
        return
    stored_data = plugin_data if isinstance(plugin_data, dict) else {}
    number = inventory.receive(conn, node_id, sent, stored_data, None)
    inventory.finish(conn, number, stored_data, inventory.PROCESSED)


def _write_template(conn: sa.Connection, values: JSONObject, author: Author) -> None:
    steps = [Step(**step) for step in values["steps"]]
    own = {name: value for name, value in values.items() if name != "steps"}
    outbox.note(conn, "deploy template", "create", deploy_templates.create(conn, own, steps))


def _write_allocation(conn: sa.Connection, values: JSONObject, author: Author) -> None:
    own = {name: value for name, value in values.items() if name != "node_uuid"}
    node = nodes.get(conn, values["node_uuid"], for_update=True) if values.get("node_uuid") else None
    ALLOCATIONS.create(conn, {**own, "node_id": None if node is None else node.id})
    if node is not None:
        nodes.update(conn, node.id, {"allocation_uuid": values["uuid"]})


_WRITERS: Mapping[str, Callable[[sa.Connection, JSONObject, Author], object]] = {
    "chassis": lambda conn, values, author: collection.CHASSIS.create(conn, values),
    "runbook": lambda conn, values, author: collection.RUNBOOKS.create(conn, values),
    "deploy_template": _write_template, "allocation": _write_allocation,
    "inspection_rule": lambda conn, values, author: inspection_rules.create(conn, values, author=author)}
