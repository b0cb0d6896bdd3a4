"""Compare another cloud with the database: what an import creates, what is here already, and what it cannot import.

Nothing is written. An object that exists here is never changed: it is the same, or it is refused with what differs.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ironic_rules import rules
from ironic_rules.api import schemas
from ironic_rules.db import deploy_templates, inspection_rules, node_sets
from ironic_rules.db import nodes as db_nodes
from ironic_rules.db.session import Database
from ironic_rules.db.tables import (
    allocations,
    chassis,
    nodes,
    portgroups,
    ports,
    runbooks,
    volume_connectors,
    volume_targets,
)
from ironic_rules.db.tables import deploy_templates as templates_table
from ironic_rules.exceptions import DriverNotFound, IronicRulesError, NotFound, Problem
from ironic_rules.hardware import selection
from ironic_rules.importing import hidden, kinds
from ironic_rules.importing.hidden import Secrets
from ironic_rules.importing.kinds import EMPTY, KINDS, OF_NODE, Kind
from ironic_rules.importing.sources import Source, in_parts
from ironic_rules.models import addresses, documents, secrets, states
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import FAILED_STATES, INTERFACE_FIELDS, INTERFACES
from ironic_rules.models.resources import ACTIVE, ALLOCATING
from ironic_rules.models.steps import Step
from ironic_rules.rules import Limits
from ironic_rules.steps import checks
from ironic_rules.text import enumeration, printable

#: The tables of the kinds whose rows have the fields of the API.
TABLES: Mapping[str, sa.Table] = {
    "chassis": chassis, "runbook": runbooks, "node": nodes, "portgroup": portgroups, "port": ports,
    "volume_connector": volume_connectors, "volume_target": volume_targets, "allocation": allocations,
    "deploy_template": templates_table}
#: Fields whose values no two objects of a kind have.
_UNIQUE: Mapping[str, Sequence[str]] = {
    "node": ("name", "instance_uuid"), "port": ("address", "name"), "portgroup": ("address", "name"),
    "runbook": ("name",), "deploy_template": ("name",), "allocation": ("name",)}
_MOST_DIFFERENCES = 20
HIDDEN = "is hidden by the other cloud"


class Action(enum.Enum):
    """The decision about an object."""

    CREATE = "create"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(slots=True)
class Item:
    """An object of the other cloud.

    :ivar values: its fields as they are stored
    :ivar parts: of a node: its ports and others, by kind; ``traits``
    """

    kind: str
    uuid: str
    name: str | None
    values: JSONObject
    problems: list[Problem] = field(default_factory=list)
    parts: dict[str, list[JSONObject]] = field(default_factory=dict)
    traits: list[str] = field(default_factory=list)
    exists: bool = False

    @property
    def action(self) -> Action:
        """The decision about it."""
        if self.problems:
            return Action.REFUSED
        return Action.UNCHANGED if self.exists else Action.CREATE

    def __str__(self) -> str:
        shown = self.kind.replace("_", " ")
        return f"{shown} {self.uuid}" + (f" ({printable(self.name, 64)})" if self.name else "")


@dataclass(slots=True)
class Loss:
    """A field that some objects have and that is not imported: of how many, and of which first."""

    reason: str
    example: str
    count: int = 0


@dataclass(slots=True)
class Plan:
    """All objects of a cloud in the order in which they are written, and what would be lost."""

    items: list[Item] = field(default_factory=list)
    losses: dict[tuple[str, str], Loss] = field(default_factory=dict)

    def lose(self, item: Item, name: str, reason: str, kind: str = "") -> None:
        """Note that a field of an object is not imported."""
        loss = self.losses.setdefault((kind or item.kind, name), Loss(reason, str(item)))
        loss.count += 1

    def refused(self) -> list[Item]:
        """Return the objects that cannot be imported."""
        return [item for item in self.items if item.problems]

    def count(self, kind: str, action: Action) -> int:
        """Return the number of objects with a decision."""
        return sum(item.kind == kind and item.action is action for item in self.items)


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of an import, without the two clouds.

    :ivar secrets: places of secrets, in the order in which they are asked
    :ivar left_out: paths of hidden values that are left out where no place has them
    :ivar replaced: values of fields of nodes, by field and value in the other cloud
    :ivar offered: by conductor group, what the conductors that are alive offer
    :ivar default_scope: of inspection rules that have none
    """

    secrets: Sequence[Secrets] = ()
    left_out: Collection[tuple[str, ...]] = ()
    replaced: Mapping[tuple[str, str], str] = field(default_factory=dict)
    offered: Mapping[str | None, selection.Description] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    default_scope: str | None = None
    disallowed_steps: Collection[str] = ()
    infiniband: bool = False


def make(db: Database, source: Source, settings: Settings) -> Plan:
    """Return the plan of an import of ``source``.

    :raises ConfigurationError: the cloud or a place of secrets cannot be read
    """
    planner = _Planner(db, source, settings)
    for kind in ("chassis", "deploy_template", "runbook", "inspection_rule"):
        planner.add(kind)
    planner.add_nodes()
    planner.add_allocations()
    return planner.plan


class _Planner:
    def __init__(self, db: Database, source: Source, settings: Settings) -> None:
        self._db, self._source, self._settings = db, source, settings
        self.plan = Plan()
        self._items: dict[tuple[str, str], Item] = {}

    def add(self, kind: str) -> None:
        """Add all objects of a kind that belongs to no node."""
        for part in in_parts(self._source.objects(kind)):
            with self._db.reader() as conn:
                stored = _STORED[kind](conn, [document["uuid"] for document in part])
            items = [self._item(KINDS[kind], document, stored.get(document["uuid"].lower())) for document in part]
            for item in items:
                _CHECKS.get(kind, _nothing)(self, item)
            with self._db.reader() as conn:
                self._check_unique(conn, kind, [(item, item.uuid, item.values) for item in items if not item.exists])

    def add_nodes(self) -> None:
        """Add all nodes, with what belongs to each."""
        parts: dict[str, dict[str, list[JSONObject]]] = {kind: {} for kind in OF_NODE}
        for kind in OF_NODE:
            for document in self._source.objects(kind):
                parts[kind].setdefault(str(document.get("node_uuid")).lower(), []).append(document)
        for page in in_parts(self._source.objects("node")):
            uuids = [document["uuid"].lower() for document in page]
            with self._db.reader() as conn:
                stored = _stored_rows(conn, "node", uuids)
                stored_parts = {kind: _stored_parts(conn, kind, stored) for kind in OF_NODE}
                ids = {row["uuid"]: row["id"] for row in stored.values()}
                traits = node_sets.list_traits(conn, ids.values())
            items = [self._node(document, stored.get(document["uuid"].lower())) for document in page]
            for item in items:
                for kind in OF_NODE:
                    stored_of_node = stored_parts[kind].get(item.uuid, {})
                    item.parts[kind] = [self._part(item, kind, document, stored_of_node.get(document["uuid"].lower()))
                                        for document in parts[kind].pop(item.uuid, [])]
                    more = stored_of_node.keys() - {document["uuid"] for document in item.parts[kind]}
                    if item.exists and more:
                        item.problems.append(Problem(f"/{kind}s", f"here it also has {enumeration(sorted(more))}"))
                if item.exists and sorted(item.traits) != sorted(traits[ids[item.uuid]]):
                    item.problems.append(Problem("/traits", "here they differ: "
                                                 f"{enumeration(sorted(traits[ids[item.uuid]]))}"))
                self._check_groups(item)
            with self._db.reader() as conn:
                new = [item for item in items if not item.exists]
                self._check_unique(conn, "node", [(item, item.uuid, item.values) for item in new])
                for kind in OF_NODE:
                    self._check_unique(conn, kind, [(item, document["uuid"], document) for item in new
                                                    for document in item.parts[kind]])
        self._check_references()
        for kind, orphaned in parts.items():
            for node, orphans in orphaned.items():
                problem = Problem("/node_uuid", f"the other cloud does not list the node {printable(node, 64)}")
                self.plan.items.append(Item(kind, orphans[0]["uuid"], None, {}, [problem]))

    def add_allocations(self) -> None:
        """Add all allocations; their nodes come before."""
        self.add("allocation")

    def _node(self, document: JSONObject, stored: JSONObject | None) -> Item:
        document = {**document}
        for name in ("driver", "conductor_group", "resource_class", "owner", "lessee", *INTERFACE_FIELDS):
            value = document.get(name)
            document[name] = self._settings.replaced.get((name, str(value)), value)
        if document.get("target_provision_state") and document.get("provision_state") not in FAILED_STATES:
            document["target_provision_state"] = None
        item = self._item(kinds.NODE_KIND, document, stored)
        loaded = schemas.TRAITS.check({"traits": document.get("traits") or []}, "", item.problems)
        item.traits = list(loaded["traits"])
        if stored is None:
            item.problems += [*_state_problems(document), *self._interface_problems(item.values)]
            item.values["conductor_group"] = str(item.values.get("conductor_group", "")).lower()
        return item

    def _item(self, kind: Kind, document: JSONObject, stored: JSONObject | None) -> Item:
        item = Item(kind.name, document["uuid"].lower(), document.get("name"), {})
        item.exists = stored is not None
        item.values = self._values(item, kind, document, stored, "")
        self.plan.items.append(item)
        self._items[kind.name, item.uuid] = item
        return item

    def _part(self, item: Item, kind: str, document: JSONObject, stored: JSONObject | None) -> JSONObject:
        where = f"/{kind}s/{printable(document.get('address') or document['uuid'], 64)}"
        if item.exists and stored is None:
            item.problems.append(Problem(where, "the node here does not have it"))
        values = self._values(item, KINDS[kind], document, stored, where)
        if kind == "port" and (mac := addresses.mac_of_infiniband(values.get("address"))) is not None:
            if not self._settings.infiniband:
                item.problems.append(Problem(where, "is an address of InfiniBand: infiniband_addresses is off here"))
            values["address"] = mac
        return {**values, "uuid": document["uuid"].lower()}

    def _values(self, item: Item, kind: Kind, document: JSONObject, stored: JSONObject | None,
                where: str) -> JSONObject:
        """Return the fields of an object as they are stored; note what is lost, hidden, wrong or different."""
        imported, lost = kind.split(document)
        for name, reason in lost.items():
            self.plan.lose(item, f"/{name}", reason, kind.name)
        self._reveal(item, kind, imported, stored, where)
        problems: list[Problem] = []
        values = kind.load(imported, problems)
        if stored is not None and not problems:
            problems += _differences(kind, imported, values, stored)
        item.problems += [Problem(f"{where}{problem.where}", problem.text) for problem in problems]
        return values

    def _reveal(self, item: Item, kind: Kind, imported: JSONObject, stored: JSONObject | None, where: str) -> None:
        """Replace values that the other cloud hides: by the values here, else by those of a place of secrets."""
        hidden_paths = list(hidden.places(imported))
        if kind.name == "inspection_rule" and imported.get("sensitive") is True:
            hidden_paths += [(name,) for name in ("conditions", "actions") if imported.get(name) is None]
        for path in hidden_paths:
            value = hidden.at(stored, path)
            for place in self._settings.secrets if value is None else ():
                value = place.value(kind.name, str(imported["uuid"]).lower(), imported.get("name"), path)
                if value is not None:
                    break
            pointer = documents.format_pointer(path)
            if value is not None:
                hidden.put(imported, path, value)
            elif path in self._settings.left_out:
                hidden.remove(imported, path)
                self.plan.lose(item, pointer, "hidden, and left out as requested", kind.name)
            else:
                item.problems.append(Problem(where + pointer, HIDDEN))

    def _interface_problems(self, values: JSONObject) -> Iterator[Problem]:
        group, driver = str(values.get("conductor_group", "")).lower(), str(values.get("driver"))
        try:
            offered = selection.of_group(self._settings.offered, group, driver)
        except DriverNotFound as exc:
            yield Problem("/driver", f"{exc} --replace can give the node another one.")
            return
        for kind in INTERFACES:
            name, enabled = values.get(f"{kind}_interface"), offered[driver][kind]["enabled"]
            if name is not None and name not in enabled:
                yield Problem(f"/{kind}_interface", (
                    f"is {printable(name, 64)}, and enabled here for {driver} are {enumeration(enabled)}: enable it, "
                    f"or use --replace {kind}_interface:{printable(name, 64)}=NAME"))
        if all(values.get(name) is None or name in INTERFACE_FIELDS for name in INTERFACE_FIELDS):
            for name in INTERFACE_FIELDS:
                values.setdefault(name, offered[driver][name.removesuffix("_interface")]["default"])

    def _check_groups(self, item: Item) -> None:
        uuids = {group["uuid"] for group in item.parts["portgroup"]}
        for port in item.parts["port"]:
            if port.get("portgroup_uuid") not in (None, *uuids):
                item.problems.append(Problem(f"/ports/{port.get('address')}/portgroup_uuid",
                                             "is not a port group of the node"))

    def _check_references(self) -> None:
        """Check that what nodes refer to is here, or imported."""
        named = {"chassis_uuid": ("chassis", chassis), "parent_node": ("node", nodes)}
        for name, (kind, table) in named.items():
            referenced = {item.values[name] for item in self.plan.items
                          if item.kind == "node" and not item.exists and item.values.get(name)}
            with self._db.reader() as conn:
                present = _uuids(conn, table, referenced)
            for item in self.plan.items:
                if item.kind != "node" or item.exists or (uuid := item.values.get(name)) in (None, *present):
                    continue
                other = self._items.get((kind, str(uuid)))
                if other is None or other.problems:
                    item.problems.append(Problem(f"/{name}", f"{kind} {uuid} is not here, and cannot be imported"))

    def check_allocation(self, item: Item) -> None:
        """Check that an allocation has ended, and that its node is here or imported."""
        if item.values.get("state") == ALLOCATING:
            item.problems.append(Problem("/state", f"is {ALLOCATING}: wait until the other cloud has found a node"))
        node = item.values.get("node_uuid")
        if (node is None) is (item.values.get("state") == ACTIVE):
            item.problems.append(Problem("/node_uuid", "an allocation has a node exactly if it is active"))
        if node is None or item.exists:
            return
        owner = self._items.get(("node", str(node)))
        if owner is None or owner.problems:
            item.problems.append(Problem("/node_uuid", f"node {printable(node, 64)} cannot be imported"))

    def check_rule(self, item: Item) -> None:
        """Check a rule as a request to create it."""
        # One that is here was checked when it was created.
        if not item.exists and not item.problems:
            item.values = rules.from_wire(item.values, default_scope=self._settings.default_scope)
            item.problems += rules.check(item.values, limits=self._settings.limits).problems

    def check_template(self, item: Item) -> None:
        """Check the steps of a deploy template as a request to create it."""
        if not item.exists and not item.problems:
            steps = [Step(**step) for step in item.values["steps"]]
            item.problems += checks.problems(steps, [checks.without(self._settings.disallowed_steps)])

    def check_runbook(self, item: Item) -> None:
        """Check the steps of a runbook in the same way."""
        if not item.exists and not item.problems:
            steps = [Step(step["interface"], step["step"], step["args"], 1) for step in item.values["steps"]]
            item.problems += checks.problems(steps, [checks.without(self._settings.disallowed_steps)])

    def _check_unique(self, conn: sa.Connection, kind: str,
                      candidates: Sequence[tuple[Item, str, JSONObject]]) -> None:
        """Check that no object here has a value that only one may have."""
        if (table := TABLES.get(kind)) is None:
            return
        for name in _UNIQUE.get(kind, ()):
            unique = {values[name] for _, _, values in candidates if values.get(name)}
            query = sa.select(table.c[name], table.c.uuid).where(table.c[name].in_(unique))
            owners = {row[0]: row.uuid for row in conn.execute(query)} if unique else {}
            for item, uuid, values in candidates:
                owner = owners.get(values.get(name))
                if owner not in (None, uuid):
                    item.problems.append(Problem("" if kind == item.kind else f"/{kind}s", (
                        f"{name} {printable(values[name], 64)} is that of the {kind.replace('_', ' ')} {owner} here")))
        foreign = _uuids(conn, table, [uuid for item, uuid, _ in candidates if kind != item.kind])
        for item, uuid, _ in candidates:
            if uuid in foreign:
                item.problems.append(Problem(f"/{kind}s", f"{uuid} exists here, and belongs to another node"))


def problems_of(error: IronicRulesError) -> list[Problem]:
    """Return an error as the problem of an object."""
    return [Problem("", str(error))]


def _nothing(planner: _Planner, item: Item) -> None:
    """Check nothing else."""


_CHECKS: Mapping[str, Callable[[_Planner, Item], None]] = {
    "inspection_rule": _Planner.check_rule, "deploy_template": _Planner.check_template,
    "runbook": _Planner.check_runbook, "allocation": _Planner.check_allocation}


def _state_problems(document: Mapping[str, JSON]) -> Iterator[Problem]:
    """Yield why a node cannot be taken over now: something works on it."""
    state = document.get("provision_state")
    if state not in states.ALL:
        yield Problem("/provision_state", f"is {printable(state, 64)}, which this version does not have")
    elif state not in kinds.STABLE:
        yield Problem("/provision_state", f"is {state}: wait until the other cloud has ended this, or abort it there")
    if holder := document.get("reservation"):
        yield Problem("/reservation", f"the node is locked by {printable(holder, 64)} in the other cloud: wait for it")
    if target := document.get("target_power_state"):
        yield Problem("/target_power_state", f"is {printable(target, 64)}: wait until the other cloud has reached it")


def _differences(kind: Kind, imported: JSONObject, values: JSONObject, stored: JSONObject) -> list[Problem]:
    """Return the differences between an object of the other cloud and the one with its UUID here."""
    names = [name for name in imported if name not in kind.volatile | {"created_at", "uuid", "node_uuid"}]
    new, old = {}, {}
    for name in names:
        value, here = values.get(name), stored.get(name)
        if value not in EMPTY or here not in EMPTY:
            new[name], old[name] = value, here
    places = [str(operation["path"]) for operation in documents.difference(old, new)]
    shown = [Problem(place, _difference(old, new, place)) for place in places[:_MOST_DIFFERENCES]]
    if rest := len(places) - len(shown):
        shown.append(Problem("", f"{rest} more values differ here"))
    return shown


def _difference(old: JSONObject, new: JSONObject, pointer: str) -> str:
    if secrets.is_secret_path(pointer):
        return "is another secret here"
    path = documents.parse_pointer(pointer)
    return f"is {_shown(hidden.at(new, path))}, and here {_shown(hidden.at(old, path))}"


def _shown(value: JSON) -> str:
    return printable(json.dumps(secrets.mask(value)), 64)


def _uuids(conn: sa.Connection, table: sa.Table, uuids: Collection[str]) -> set[str]:
    return set(conn.scalars(sa.select(table.c.uuid).where(table.c.uuid.in_(uuids)))) if uuids else set()


def _stored_rows(conn: sa.Connection, kind: str, uuids: Sequence[str]) -> dict[str, JSONObject]:
    """Return the rows with these UUIDs as objects."""
    if kind == "node":
        return {row.uuid: row._asdict() for row in db_nodes.with_uuids(conn, uuids)}  # type: ignore[attr-defined]
    table = TABLES[kind]
    query = sa.select(table).where(table.c.uuid.in_([uuid.lower() for uuid in uuids]))
    if kind == "allocation":
        query = sa.select(table, nodes.c.uuid.label("node_uuid")).outerjoin(nodes, nodes.c.id == table.c.node_id).where(
            table.c.uuid.in_([uuid.lower() for uuid in uuids]))
    return {row.uuid: row._asdict() for row in conn.execute(query)}


def _stored_parts(conn: sa.Connection, kind: str, owners: Mapping[str, JSONObject]) -> dict[str, dict[str, JSONObject]]:
    """Return the rows of a kind that belong to nodes, by the UUID of the node and by their own."""
    table = TABLES[kind]
    by_id = {row["id"]: uuid for uuid, row in owners.items()}
    query: sa.Select[Any] = sa.select(table)
    if kind == "port":
        query = sa.select(table, portgroups.c.uuid.label("portgroup_uuid")).outerjoin(
            portgroups, portgroups.c.id == table.c.portgroup_id)
    by_node: dict[str, dict[str, JSONObject]] = {}
    for row in conn.execute(query.where(table.c.node_id.in_(by_id))) if by_id else ():
        by_node.setdefault(by_id[row.node_id], {})[row.uuid] = row._asdict()
    return by_node


def _stored_templates(conn: sa.Connection, uuids: Iterable[str]) -> dict[str, JSONObject]:
    templates = {}
    for uuid in uuids:
        try:
            row = deploy_templates.get(conn, uuid)
        except NotFound:
            continue
        templates[row.uuid] = {"name": row.name, "description": row.description, "extra": row.extra,
                               "steps": [step.to_wire() for step in row.steps]}
    return templates


def _stored_rules(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, JSONObject]:
    return {rule.uuid: {name: getattr(rule, name) for name in kinds.RULE_KIND.imported}
            for rule in inspection_rules.some_rules(conn, [uuid.lower() for uuid in uuids])}


_STORED: Mapping[str, Callable[[sa.Connection, Sequence[str]], dict[str, JSONObject]]] = {
    "chassis": lambda conn, uuids: _stored_rows(conn, "chassis", uuids),
    "runbook": lambda conn, uuids: _stored_rows(conn, "runbook", uuids),
    "allocation": lambda conn, uuids: _stored_rows(conn, "allocation", uuids),
    "deploy_template": _stored_templates, "inspection_rule": _stored_rules}
