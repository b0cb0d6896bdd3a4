"""Compiled rules: conditions and actions that are ready to be evaluated for a node."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ironic_rules.exceptions import Problem, RuleFailed
from ironic_rules.models.task import Task
from ironic_rules.rules.base import ActiveRule
from ironic_rules.rules.getters import View, Views
from ironic_rules.rules.index import Lookup
from ironic_rules.rules.signatures import Operation

INVALID = "it is no longer valid"
_NO_KEYS: frozenset[str] = frozenset()


class Loop(NamedTuple):
    """The loop of a condition: ``call`` is the condition for the item in the view."""

    multiple: str
    items: Callable[[View], list[Any]]
    call: Callable[[View], bool]


@dataclass(slots=True, eq=False, weakref_slot=True)
class Condition:
    """A condition; rules in which it is written alike share it. Immutable, but for ``is_shared``.

    :ivar op: as in the rule
    :ivar call: returns whether it holds; raises CannotEvaluate if it cannot be evaluated for the data
    :ivar stable: whether it depends on nothing that rules can change
    :ivar lookup: the lookup that is equivalent to ``call``, if there is one
    :ivar groups: names of the groups that its regular expression can provide to the rule's actions
    :ivar captures: ``call`` also stores groups in the view that it gets. It must be called for its rule, with the view
        of the actions and before them: neither an index nor the outcome for another rule can replace it
    :ivar reads_previous: whether it reads the inventory of the inspection before
    :ivar written: as JSON, for explained runs; empty if it cannot be written so
    :ivar loop: what ``call`` consists of, of an inspection rule with a loop
    :ivar is_shared: whether several rules have had it: then it is evaluated once for all of them
    """

    op: str
    call: Callable[[View], bool]
    stable: bool
    lookup: Lookup | None = field(default=None, repr=False)
    groups: tuple[str, ...] = ()
    captures: bool = False
    reads_previous: bool = False
    written: bytes = field(default=b"", repr=False)
    loop: Loop | None = field(default=None, repr=False)
    is_shared: bool = False


class CompiledAction(abc.ABC):
    """One action of a rule, at ``where`` in it."""

    __slots__ = ("data_keys", "is_foreign", "most", "moves", "op", "operation", "reads_previous", "touches", "waits",
                 "where", "written")

    def __init__(self, where: str, operation: Operation, most: int) -> None:
        self.where = where
        self.operation = operation
        self.op = operation.name
        #: true if it is of another package
        self.is_foreign = not operation.call.is_trusted
        #: true if it may never end
        self.waits = self.is_foreign or operation.call.waits
        self.touches: frozenset[str] = operation.call.touches
        #: the first keys of the plugin data that it changes; None if these are only known when it runs
        self.data_keys: frozenset[str] | None = _NO_KEYS if "plugin_data" not in self.touches else None
        #: true if it may change the node's scope
        self.moves = "node" in self.touches
        #: maximum size of what all actions together may write for a node
        self.most = most
        #: the action as JSON, for explained runs; empty if it cannot be written so
        self.written = b""
        #: true if it reads the inventory of the inspection before
        self.reads_previous = False

    @abc.abstractmethod
    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        """Run the action and return how often it ran; raises what the plug-in raises."""

    def run_noted(self, task: Task | None, rule: ActiveRule, view: View, views: Views,
                  note: Callable[[View], None]) -> int:
        """Run the action as :meth:`run` does, and call ``note`` immediately before each of its runs."""
        note(view)
        return self.run(task, rule, view, views)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CompiledRule:
    """A rule ready to be evaluated; immutable, shared by threads and rule sets.

    :ivar max_nodes: on how many nodes it runs; None: no limit
    :ivar touches: which of node, ports, port_groups and plugin_data its actions change
    :ivar writes: the first keys of the plugin data that they change; None if these are only known when they run
    :ivar reads_previous: whether its conditions or actions read the inventory of the inspection before
    :ivar problems: why a stored rule could not be stored now, although it runs
    :ivar called: its name, else its description, as errors have it
    """

    uuid: str
    description: str | None
    priority: int
    phase: str
    scope: str | None
    max_nodes: int | None
    sensitive: bool
    position: int
    conditions: tuple[Condition, ...]
    actions: tuple[CompiledAction, ...]
    touches: frozenset[str]
    writes: frozenset[str] | None
    reads_previous: bool = False
    problems: tuple[Problem, ...] = ()
    called: str = ""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class BrokenRule:
    """A rule that cannot be compiled: it would be wrong to inspect a node to which it applies without it.

    :ivar problems: all of them; those of a sensitive rule are not shown
    :ivar called: its name, else its description, as errors have it
    """

    uuid: str
    phase: str
    scope: str | None
    sensitive: bool
    problems: tuple[Problem, ...]
    called: str = ""

    def failure(self) -> RuleFailed:
        """Return the error that an inspection ends with."""
        first = self.problems[0]
        if self.sensitive:
            return RuleFailed(rule=self.uuid, called=self.called, where="/", reason=INVALID)
        return RuleFailed(rule=self.uuid, called=self.called, where=first.where or "/",
                          reason=f"{INVALID}: {first.text}")


def condition_pointer(place: int) -> str:
    """Return the JSON pointer of a condition by its place in its rule."""
    return f"/conditions/{place}"
