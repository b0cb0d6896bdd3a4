"""The machines of trials: stored nodes with their data, one or many, imagined ones, and those to be discovered.

Nothing is locked: other requests may change the data while they are read.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock, inventory, legacy_values, node_sets, nodes, portgroups, ports, rule_records
from ironic_rules.db.projection import Row
from ironic_rules.db.session import Database
from ironic_rules.exceptions import NodeNotFound, NotFound, inventory_not_found
from ironic_rules.inspection import reapplying
from ironic_rules.models import addresses, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.fields import Fields, Type, values_of
from ironic_rules.models.inventories import UNSHARED, InspectionData, Sharing
from ironic_rules.models.nodes import NODE, Node
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.rules import OwnedValue
from ironic_rules.models.task import PortChanges, PreviousInventory, Task
from ironic_rules.rules import SpentRules

#: Characters of stored data that are read at once.
_MOST_CHARACTERS = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as an inspection begins with it.

    :ivar node: values of its fields
    :ivar is_new: discovery would create it
    :ivar foreign: MAC addresses of the data that belong to other nodes;  ``sharing``: those that identify no machine
    :ivar spent: returns the rules that may not run on it, and on how many others each has
    :ivar previous: returns the inventory of the last successful inspection before this one
    :ivar owned: what legacy rules own on it
    :ivar rules_only: it has an instance, and is not inspected: only rules change it, without adding or removing ports
    """

    node: JSONObject
    traits: Sequence[str] = ()
    ports: Sequence[JSONObject] = ()
    port_groups: Sequence[JSONObject] = ()
    is_new: bool = False
    foreign: frozenset[str] = frozenset()
    sharing: Sharing = UNSHARED
    spent: SpentRules = dict
    previous: PreviousInventory = lambda: None
    owned: Sequence[OwnedValue] = ()
    rules_only: bool = False

    def inspected(self) -> Machine:
        """Return it as it is while it is inspected; hooks may change it then, too."""
        return replace(self, node={**self.node, "provision_state": states.INSPECTING}, rules_only=False)

    def task(self) -> Task:
        """Return new drafts of it."""
        task = Task(NodeDraft(self.node, self.traits), map(PortDraft, self.ports), self.port_groups)
        task.begin_inspection(self.foreign, self.previous, self.sharing)
        return task


class Known(NamedTuple):
    """A node of the database, and data to try rules on.

    :ivar addresses: MAC addresses of the data
    :ivar version: of the data, if they are stored: those of inspections before it are the previous ones
    """

    row: Node
    addresses: Collection[str]
    version: int | None


def stored_machines(conn: sa.Connection, db: Database, reports: Sequence[Known]) -> list[Machine]:
    """Return nodes of the database, with all that their trials need.

    :param db: what few rules need is read from it when the first of them asks, for all of these nodes
    """
    rows = [report.row for report in reports]
    ids = [row.id for row in rows]
    of_traits, of_ports = node_sets.list_traits(conn, ids), ports.for_nodes(conn, ids)
    of_groups, owned = portgroups.for_nodes(conn, ids), legacy_values.for_nodes(conn, ids)
    of_all = {address for report in reports for address in report.addresses}
    owners, reporters = ports.node_ids_by_addresses(conn, of_all), node_sets.reporters(conn, of_all)

    @functools.cache
    def spent() -> dict[str, dict[str, int]]:
        with db.reader() as conn:
            return rule_records.spent_for(conn, [row.uuid for row in rows])

    @functools.cache
    def previous() -> dict[int, str]:
        with db.reader() as conn:
            return inventory.inventories_before(conn, {report.row.id: report.version for report in reports})

    return [Machine(
        values_of(NODE, row), of_traits[row.id], [values_of(PORT, port) for port in of_ports[row.id]],
        [values_of(PORT_GROUP, group) for group in of_groups[row.id]],
        foreign=frozenset(address for address in addresses if owners.get(address, row.id) != row.id),
        sharing=_sharing(reporters, addresses, row.id),
        spent=functools.partial(lambda uuid: spent()[uuid], row.uuid),
        previous=functools.partial(lambda node_id: _parsed(previous().get(node_id)), row.id),
        owned=owned.get(row.id, ()), rules_only=reapplying.is_deployed(row)) for row, addresses, _ in reports]


def _sharing(reporters: Mapping[str, set[int]], addresses: Iterable[str], node_id: int) -> Sharing:
    return Sharing(frozenset(address for address in addresses if reporters.get(address, set()) - {node_id}))


def _parsed(text: str | None) -> JSONObject | None:
    return None if text is None else orjson.loads(text)


def stored_machine(conn: sa.Connection, db: Database, row: Node, data: InspectionData,
                   version: int | None = None) -> Machine:
    """Return a node of the database, as it is when it is inspected with these data.

    :param version: as in :class:`Known`
    """
    return stored_machines(conn, db, [Known(row, addresses.of_inventory(data.inventory), version)])[0].inspected()


def imagined_machine(node: Mapping[str, Any], traits: Sequence[str] = (), ports: Sequence[Mapping[str, Any]] = (),
                     previous: JSONObject | None = None) -> Machine:
    """Return a node that no database has, with defaults for the fields that are not given."""
    port_rows = [{**_initial(PORT), "id": number, "uuid": uuidutils.generate_uuid(), **port}
                 for number, port in enumerate(ports, start=1)]
    values = {**_initial(NODE), "id": 1, "uuid": uuidutils.generate_uuid(), **node}
    return Machine(values, traits, port_rows, previous=lambda: previous).inspected()


def _initial(fields: Fields) -> JSONObject:
    return {name: None if fields[name].type is Type.TIME else fields[name].initial() for name in fields}


def created_machine(conn: sa.Connection, values: Mapping[str, object], changes: PortChanges,
                    data: InspectionData) -> Machine:
    """Return the node that discovery would create."""
    uuid = uuidutils.generate_uuid()
    node = {**_initial(NODE), "id": 0, "uuid": uuid, "created_at": clock.now(), **values}
    macs = addresses.of_inventory(data.inventory)
    foreign, sharing = frozenset(ports.node_ids_by_addresses(conn, macs)), node_sets.sharing(conn, 0, macs)
    spent = rule_records.spent_for(conn, [uuid])[uuid]
    return Machine(node, ports=changes.created, is_new=True, foreign=foreign, sharing=sharing,
                   spent=lambda: spent).inspected()


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node and the data of its last inspection, as JSON text: not all nodes that are read at once are parsed at once.

    :ivar text: ``inventory_data``, ``received_plugin_data`` and ``plugin_data``
    """

    machine: Machine
    text: Row

    def data(self) -> InspectionData:
        """Return what was received."""
        return InspectionData(orjson.loads(self.text.inventory_data),
                              orjson.loads(self.text.received_plugin_data or "{}"))

    def plugin_data(self) -> JSONObject | None:
        """Return the plug-in data that the inspection has left; None if it has not ended."""
        return _parsed(self.text.plugin_data)


def stored_nodes(db: Database, uuids: Collection[str]) -> Iterator[tuple[str, StoredNode | NotFound]]:
    """Yield each of these nodes as it is, with the data of its last inspection, or why it cannot be tried.

    Data are read for as many nodes at once as fit into the memory that they may take.
    """
    with db.reader() as conn:
        rows = nodes.with_uuids(conn, uuids)
        reports = inventory.newest_reports(conn, [row.id for row in rows])
    yield from ((uuid, NodeNotFound(node=uuid)) for uuid in set(uuids).difference(row.uuid for row in rows))
    yield from ((row.uuid, inventory_not_found(node=row.uuid)) for row in rows if row.id not in reports)
    for part in _in_parts([(row, *reports[row.id]) for row in rows if row.id in reports]):
        with db.reader() as conn:
            with_data = _with_data(conn, db, part)
        for row, _ in part:
            # Its data may have been removed since.
            yield row.uuid, with_data.get(row.uuid) or inventory_not_found(node=row.uuid)


def _in_parts(nodes: Iterable[tuple[Node, int, int]]) -> Iterator[list[tuple[Node, int]]]:
    """Yield nodes with the ids of their data, as many as are to be read at once.

    :param nodes: with the characters of the data, too
    """
    part: list[tuple[Node, int]] = []
    size = 0
    for row, report, length in nodes:
        if part and size + length > _MOST_CHARACTERS:
            yield part
            part, size = [], 0
        part.append((row, report))
        size += length
    if part:
        yield part


def _with_data(conn: sa.Connection, db: Database, part: Sequence[tuple[Node, int]]) -> dict[str, StoredNode]:
    texts = {text.node_id: text for text in inventory.texts(conn, [report for _, report in part])}
    reports = [Known(row, addresses.of_inventory(orjson.loads(texts[row.id].inventory_data)), report)
               for row, report in part if row.id in texts]
    return {known.row.uuid: StoredNode(machine, texts[known.row.id])
            for known, machine in zip(reports, stored_machines(conn, db, reports), strict=True)}
