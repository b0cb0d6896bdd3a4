"""Attributes that code of a plug-in must not change: what identifies a node, its lock and its state.

Drafts accept any value of any field, because the conductor and its interfaces write most of them. The caller of a hook,
an action or a step compares afterwards, and that only JSON is left, unless the code is of this package
(``ExtensionPoint.is_trusted``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.models import addresses, documents, traits
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.fields import Fields
from ironic_rules.models.nodes import NODE
from ironic_rules.models.ports import PORT
from ironic_rules.models.task import Task
from ironic_rules.text import is_uuid

#: Kind of writer -> the fields of a node and of a port that it may write.
_WRITABLE: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "rules": (NODE.writable_by_rules, PORT.writable_by_rules),
    "hooks": (NODE.writable_by_hooks, PORT.writable_by_hooks),
    "steps": (NODE.writable_by_steps, PORT.writable_by_steps),
    "interfaces": (NODE.writable_by_steps, PORT.writable_by_steps),
}
#: The authors of a port may choose these once.
_OF_NEW_PORTS = frozenset({"uuid", "address"})
_THIS_PACKAGE = __name__.partition(".")[0]


class ExtensionPoint:
    """Base of the classes that other packages extend: hooks, actions of rules, interfaces of hardware."""

    @property
    def is_trusted(self) -> bool:
        """True if the class is of this package, whose code writes only what it may, and waits only where it says so.

        A class of another package is not, even if it extends one that is.
        """
        return type(self).__module__.partition(".")[0] == _THIS_PACKAGE


class Kept:
    """The node and the ports of a task before code of a plug-in runs.

    :param author: ``rules``, ``hooks``, ``steps`` or ``interfaces``
    """

    def __init__(self, task: Task, author: str) -> None:
        self._author = author
        self._task = task
        self._node = task.node
        of_node, self._of_port = _WRITABLE[author]
        self._values = _values(task.node, of_node | {"traits"})
        self._ports = {id(port): (port, _values(port, self._of_port)) for port in task.ports}

    def problem(self) -> str | None:
        """Return the reason why the plug-in's changes cannot be stored; None if they can. Quotes no value."""
        task = self._task
        if task.node is not self._node:
            return "it replaced task.node"
        if name := _changed(task.node, self._values):
            return f"it wrote /{name} of the node, which {self._author} may not write"
        return _unacceptable(task.node, NODE, "the node") or next(filter(None, map(self._problem_of, task.ports)), None)

    def _problem_of(self, port: object) -> str | None:
        if not isinstance(port, PortDraft):
            return "it put something into task.ports that is not a port; use task.add_port"
        if id(port) in self._ports:
            if name := _changed(port, self._ports[id(port)][1]):
                return f"it wrote /{name} of a port, which {self._author} may not write"
        elif problem := self._problem_of_new(port):
            return problem
        address = port._values.get("address")
        if not addresses.is_mac(address):
            return "it left a port whose /address is not a MAC address"
        return _unacceptable(port, PORT, f"port {addresses.normalize_mac(address)}")

    def _problem_of_new(self, port: PortDraft) -> str | None:
        values = port._values
        if values.get("id") is not None:
            return "it put a port into task.ports that is not a new one; use task.add_port"
        if not is_uuid(values.get("uuid")):
            return "it added a port whose /uuid is not a UUID"
        for name in values.keys() & PORT.keys() - self._of_port - _OF_NEW_PORTS:
            # Ironic's plug-ins say of which node it is.
            if values[name] is not None and not (name == "node_id" and values[name] == self._node._values.get("id")):
                return f"it wrote /{name} of a new port, which {self._author} may not write"
        return None


def problem_of_data(data: Mapping[str, JSON]) -> str | None:
    """Return the reason why the plug-in data cannot be stored; None if they can. Quotes no value."""
    problem = documents.unstorable(data)
    return None if problem is None else _text(problem, "the plug-in data")


def _values(draft: NodeDraft | PortDraft, writable: frozenset[str]) -> JSONObject:
    return {name: documents.clone(value) for name, value in draft._values.items() if name not in writable}


def _changed(draft: NodeDraft | PortDraft, before: Mapping[str, Any]) -> str | None:
    values = draft._values
    return next((name for name, value in before.items()
                 if values[name] is not value and not documents.same(values[name], value)), None)


def _unacceptable(draft: NodeDraft | PortDraft, fields: Fields, resource: str) -> str | None:
    """Return the changed value that the field does not accept, or that is not JSON."""
    for name, value in _written(draft).items():
        if unstorable := documents.unstorable(list(value) if isinstance(value, set) else value):
            path, reason = unstorable
            return _text(((name, *path), reason), resource)
        if name == "traits":
            if not all(map(traits.is_trait, value)):
                return f"it left a value that cannot be stored: /traits of {resource} has what is not a trait"
        elif name in draft.writable and name in fields and (problem := draft.value_problem(name, value)):
            return f"it left a value that cannot be stored: /{name} of {resource} {problem}"
    return None


def _written(draft: NodeDraft | PortDraft) -> JSONObject:
    if draft._values.get("id") is None and isinstance(draft, PortDraft):
        return {str(name): value for name, value in draft._values.items() if value is not None}
    changed = {str(name): value for name, value in draft.changes().items()}
    if isinstance(draft, NodeDraft) and draft.trait_changes() is not None:
        changed["traits"] = draft._values["traits"]
    return changed


def _text(problem: tuple[tuple[str, ...], str], resource: str) -> str:
    path, reason = problem
    return f"it left a value that cannot be stored: {documents.format_pointer(path) or '/'} of {resource} {reason}"
