"""The facts of a process, as current as the database, and the work on those of one node during an inspection."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules import facts
from ironic_rules.db import facts as db_facts
from ironic_rules.db import inventory, operations
from ironic_rules.db.facts import Change, Found
from ironic_rules.db.projection import Row
from ironic_rules.db.session import Database
from ironic_rules.db.tables import node_inventory, nodes
from ironic_rules.facts import CompiledFact, FactSet
from ironic_rules.facts.evaluation import FactData, LazyFacts
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.facts import BUILT_IN, Fact, FactValue, NodeFacts
from ironic_rules.models.resources import FIND_FACTS
from ironic_rules.models.task import Task
from ironic_rules.rules import Limits
from ironic_rules.rules.values import FACT, PREVIOUS_FACT

LOG = logging.getLogger(__name__)

#: Maximum number of facts of an event in the history.
_NAMED = 20


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """All facts as of a revision of the set.

    :ivar defined: by their names;  by_id: by their ids
    """

    revision: int = 0
    fact_set: FactSet = field(default_factory=FactSet)
    defined: Mapping[str, Fact] = field(default_factory=dict)
    by_id: Mapping[int, Fact] = field(default_factory=dict)


class FactCache:
    """Keeps the compiled facts, and compiles again only those that have changed. Thread-safe.

    :param limits: of rules, whose language facts have
    """

    def __init__(self, db: Database, limits: Limits) -> None:
        self._db = db
        self._limits = limits
        self._loading = threading.Lock()
        self._known: KnownFacts | None = None
        self._compiled: dict[tuple[int, int], CompiledFact | None] = {}
        #: the types of the newest values by the ids of facts
        self.types: dict[int, tuple[str, bool]] = {}

    def current(self, revision: int | None = None) -> KnownFacts:
        """Return the facts.

        :param revision: that of the set, as just read; None: it is read
        """
        if revision is None:
            with self._db.reader() as conn:
                revision = db_facts.revision(conn)
        current = self._known
        if current is not None and current.revision == revision:
            return current
        with self._loading:
            if self._known is None or self._known.revision != revision:
                self._known = self._load()
            return self._known

    def _load(self) -> KnownFacts:
        with self._db.reader() as conn:
            # The revision first: what changes afterwards is read once more.
            revision = db_facts.revision(conn)
            stored = db_facts.all_facts(conn)
        compiled: dict[tuple[int, int], CompiledFact | None] = {}
        for fact in stored:
            key = fact.id, fact.defined
            compiled[key] = self._compiled[key] if key in self._compiled else self._compile(fact)
        self._compiled = compiled
        self.types = {fact.id: (fact.type, fact.is_list) for fact in stored if fact.type is not None}
        return KnownFacts(revision, FactSet(item for item in compiled.values() if item is not None),
                          {fact.name: fact for fact in stored}, {fact.id: fact for fact in stored})

    def _compile(self, fact: Fact) -> CompiledFact | None:
        compiled = facts.compile_stored(fact, limits=self._limits)
        if compiled is None:
            LOG.error("The fact %s is no longer valid: no node gets a value of it.", fact.name)
        return compiled

    def learn(self, node_facts: NodeFacts, known: KnownFacts) -> None:
        """Store the types of values where they are new, in a transaction of its own."""
        if new := self.note(node_facts, known):
            self._db.write(lambda conn: db_facts.learn_types(conn, new))

    def note(self, node_facts: NodeFacts, known: KnownFacts) -> dict[int, tuple[str, bool]]:
        """Return the types of values where they are new; the caller stores them.

        A value of another type than those before gets a problem.
        """
        new: dict[int, tuple[str, bool]] = {}
        for name, value in node_facts.values.items():
            fact_id = known.defined[name].id
            before = self.types.get(fact_id)
            if before is None:
                new[fact_id] = value.type, value.is_list
                continue
            type_, is_list = before
            if value.type != type_ and (type_, value.type) != ("number", "integer"):
                if (type_, value.type) != ("integer", "number"):
                    node_facts.problems.setdefault(name, f"the type was {type_} until now, and is {value.type}")
                new[fact_id] = value.type, is_list or value.is_list
            elif value.is_list and not is_list:
                new[fact_id] = type_, True
        if new:
            self.types = {**self.types, **new}
        return new


def install_built_in(db: Database) -> None:
    """Let the stored built-in facts be those of this version, and have new ones found in stored inventories."""
    defined = facts.built_in()
    with db.reader() as conn:
        stored = {fact.name: fact for fact in db_facts.all_facts(conn)}
    names = {fact.name for fact in defined}
    surplus = {name for name, fact in stored.items() if fact.origin == BUILT_IN} - names
    if not surplus and all(fact.name in stored and db_facts.is_same(stored[fact.name], fact) for fact in defined):
        return

    def write(conn: sa.Connection) -> None:
        stale = db_facts.install_built_in(conn, defined)
        if stale and inventory.has_processed(conn):
            begin(conn, [fact for fact in db_facts.all_facts(conn) if fact.name in stale], None)

    db.write(write)


def begin(conn: sa.Connection, definitions: Collection[Fact], user: str | None) -> Row:
    """Store an operation that finds facts on all nodes with data of an inspection."""
    has_data = sa.select(node_inventory.c.id).where(
        node_inventory.c.node_id == nodes.c.id, node_inventory.c.status == inventory.PROCESSED).exists()
    filters = {"facts": [{"name": fact.name, "id": fact.id, "defined": fact.defined} for fact in definitions]}
    uuids = sa.select(nodes.c.uuid).where(has_data).order_by(nodes.c.id)
    return operations.create(conn, FIND_FACTS, filters, user, uuids)


@dataclass(slots=True)
class FactWork:
    """The facts of one node during one inspection.

    :param given: the facts, as the cache has them; None: the cache gives them when a rule reads one
    :param previous: returns the values of the inspection before as JSON, by names; None: there was none
    """

    cache: FactCache
    given: KnownFacts | None = None
    previous: Callable[[], JSONObject | None] = lambda: None
    found: NodeFacts | None = None

    @property
    def known(self) -> KnownFacts:
        """All facts."""
        if self.given is None:
            self.given = self.cache.current()
        return self.given

    def sources(self, task: Task, inventory: Mapping[str, Any], plugin_data: JSONObject,
                sent: bytes) -> dict[str, Callable[[], Any]]:
        """Return what templates of rules read.

        :param sent: the inventory as JSON
        """
        return {FACT: lambda: LazyFacts(self.known.fact_set, _data(task, inventory, plugin_data, sent)),
                PREVIOUS_FACT: self.previous}

    def find(self, task: Task, inventory: Mapping[str, Any], plugin_data: JSONObject, sent: bytes) -> None:
        """Find all facts in what an inspection ends with."""
        if not self.known.fact_set.facts:
            self.found = NodeFacts()
            return
        try:
            self.found = self.known.fact_set.find(_data(task, inventory, plugin_data, sent))
        except Exception:  # an inspection does not fail for what only lists show
            LOG.exception("The facts of node %s cannot be found", task.node.uuid)

    def learn(self) -> None:
        """Store the types of what was found, before the transaction that stores the values."""
        if self.found is not None:
            self.cache.learn(self.found, self.known)

    def save(self, conn: sa.Connection, node_id: int, digest: str | None) -> list[Change]:
        """Write what was found, in the transaction that saves the node; return the values that have changed.

        :param digest: of what is stored, as it was read with the node
        """
        if self.found is None:
            return []
        node_facts = self.found
        if digest is None and not (node_facts.values or node_facts.problems):
            return []
        new = self.known.fact_set.digest(node_facts)
        if new == digest:
            return []
        values: Mapping[str, FactValue] = node_facts.values
        return db_facts.save(conn, node_id, {
            fact.id: Found(values.get(name), node_facts.problems.get(name), fact.defined)
            for name, fact in self.known.fact_set.facts.items()}, new, self.known.revision, self.cache.types)

    def told(self, changes: list[Change]) -> list[JSONObject]:
        """Return changes with the names of their facts."""
        return [{"fact": self.known.by_id[change.fact_id].name, "before": change.before, "after": change.after}
                for change in changes]

    def shrunk(self, changes: list[Change]) -> list[str]:
        """Return what has become less of watched facts, in words."""
        return [warning for change in changes if (fact := self.known.by_id[change.fact_id]).watched
                and (warning := _shrinking(fact, change)) is not None]


def previous_of(db: Database | None, node_id: int) -> Callable[[], JSONObject | None]:
    """Return the function that returns the values that a node has, or None if it was never inspected."""

    @functools.cache
    def previous() -> JSONObject | None:
        if db is None or not node_id:
            return None
        with db.reader() as conn:
            return db_facts.of_node(conn, node_id)[0] or None

    return previous


def event_of(shrunk: list[str]) -> str:
    """Return the event of the history about facts that have become less."""
    more = f" and {len(shrunk) - _NAMED} more" if len(shrunk) > _NAMED else ""
    return f"The machine has less than before: {', '.join(shrunk[:_NAMED])}{more}"


def _data(task: Task, inventory: Mapping[str, Any], plugin_data: JSONObject, sent: bytes) -> FactData:
    free = {"inventory"} if secrets.json_is_free(sent) else set()
    if secrets.has_none(plugin_data):
        free.add("plugin_data")
    return FactData(inventory, plugin_data, task.node.read, task.conceal, frozenset(free))


def _shrinking(fact: Fact, change: Change) -> str | None:
    before, after = change.before, change.after
    if before is None:
        return None
    if isinstance(before, list) and isinstance(after, list):
        is_less = len(after) < len(before)
        before, after = f"{len(before)} values", f"{len(after)}"
    elif after is None:
        is_less, after = True, "nothing"
        before = f"{len(before)} values" if isinstance(before, list) else before
    else:
        is_less = _is_number(before) and _is_number(after) and after < before
    unit = f" {fact.unit}" if fact.unit else ""
    return f"{fact.name} {before} → {after}{unit}" if is_less else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
