"""Actions of ironic-inspector and of document 002, compiled: what they do if their rule matches, and if it does not."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ironic_rules.exceptions import FieldNotWritable
from ironic_rules.legacy.ownership import MISSING, Ledger
from ironic_rules.legacy.values import LegacyScope, compile_message
from ironic_rules.models import documents, traits
from ironic_rules.models.documents import same
from ironic_rules.models.draft import FieldPath, NodeDraft
from ironic_rules.models.nodes import INTERFACE_FIELDS, NODE
from ironic_rules.rules import actions, capabilities
from ironic_rules.rules.compiled_actions import count_written
from ironic_rules.rules.errors import ActionError, CannotEvaluate
from ironic_rules.rules.getters import View, Views
from ironic_rules.rules.values import Compiled, Const, as_getter, compile_value
from ironic_rules.text import MAX_MESSAGE, printable

#: Fields that a node always has.
_REQUIRED = frozenset((name,) for name in NODE.required)


class Failed(ActionError):
    """The action ``fail``.

    :ivar maintenance: whether it puts the node in maintenance
    """

    def __init__(self, text: str, maintenance: bool) -> None:
        super().__init__(text)
        self.maintenance = maintenance


@dataclass(frozen=True, slots=True)
class Given:
    """The parameters of an action as a user has written them, at ``where`` in the rule.

    :ivar path: the name by which the user wrote ``path``
    """

    where: str
    params: Mapping[str, Any]
    scope: LegacyScope
    path: str = "path"

    def problem(self, name: str, text: str) -> None:
        """Add a problem of a parameter."""
        self.scope.complain(f"{self.where}/{self.path if name == 'path' else name}", text)

    def text(self, name: str) -> str:
        """Return a parameter that must be a text; "" if it is not."""
        value = self.params.get(name)
        if isinstance(value, str):
            return value
        self.problem(name, "must be a string")
        return ""

    def flag(self, name: str, default: bool) -> bool:
        """Return a parameter that must be true or false."""
        value = self.params.get(name, default)
        if not isinstance(value, bool):
            self.problem(name, "must be true or false")
        return bool(value)

    def value(self, name: str) -> Compiled:
        """Return a parameter in which templates are filled in."""
        return compile_value(self.scope, self.params[name], f"{self.where}/{name}")


class LegacyAction(abc.ABC):
    """One action of a rule, at ``where`` in it."""

    __slots__ = ("most", "op", "where", "written")

    #: its parameters, and those that can be left out
    required: ClassVar[frozenset[str]] = frozenset()
    optional: ClassVar[frozenset[str]] = frozenset()
    #: true if it runs code of another package
    is_foreign: ClassVar[bool] = False
    #: the parameters with templates
    _formatted: ClassVar[frozenset[str]] = frozenset({"value", "cleanup", "message"})

    def __init__(self, op: str, arguments: Given) -> None:
        self.op = op
        self.where = arguments.where
        self.most = arguments.scope.limits.written
        #: the parameters as JSON, for explained runs
        self.written = b"{}"

    @abc.abstractmethod
    def apply(self, ledger: Ledger, view: View, views: Views) -> None:
        """Carry out the action of a rule that matches."""

    @property
    def has_cleanup(self) -> bool:
        """Whether the action does more than take back its values when its rule does not match."""
        return False

    @property
    def formatted(self) -> frozenset[str]:
        """The names of the parameters whose templates are filled in."""
        return self._formatted

    def cleanup(self, ledger: Ledger, view: View, views: Views) -> None:  # noqa: B027  (most actions do nothing)
        """Do that."""

    def undo_any(self, ledger: Ledger, view: View, views: Views) -> None:
        """Remove what the action would have written, from any source: the document to the letter."""
        self.cleanup(ledger, view, views)

    def _filled(self, value: Compiled, view: View, views: Views) -> Any:
        filled = value.value if isinstance(value, Const) else as_getter(value)(view)
        count_written(views, filled, self.most)
        return filled


class SetAttribute(LegacyAction):
    """``set-attribute``: set the value at a path of the node; ``cleanup`` is set if the rule does not match."""

    __slots__ = ("_cleanup", "_path", "_resets", "_value")

    required = frozenset({"path", "value"})
    optional = frozenset({"cleanup", "reset_interfaces"})

    def __init__(self, op: str, arguments: Given) -> None:
        super().__init__(op, arguments)
        self._path = _path(arguments)
        self._value = arguments.value("value")
        self._cleanup = arguments.value("cleanup") if "cleanup" in arguments.params else None
        for name, value in (("value", self._value), ("cleanup", self._cleanup)):
            if self._path and isinstance(value, Const):
                for _, text in actions.field_problem(NodeDraft, {"path": self._path, "value": value.value}):
                    arguments.problem(name, text)
        if self._path and arguments.scope.warnings is not None:
            for name, value in (("value", self._value), ("cleanup", self._cleanup)):
                if isinstance(value, Const):
                    arguments.scope.warnings.writes(f"{arguments.where}/{name}", self._path[1:], value.value)
        is_driver = self._path == "/driver"
        if "reset_interfaces" in arguments.params and not is_driver:
            arguments.problem("reset_interfaces", "is for the path /driver only")
        self._resets = arguments.flag("reset_interfaces", is_driver) and is_driver

    def apply(self, ledger: Ledger, view: View, views: Views) -> None:
        self._write(ledger, self._filled(self._value, view, views))

    @property
    def has_cleanup(self) -> bool:
        return self._cleanup is not None

    def cleanup(self, ledger: Ledger, view: View, views: Views) -> None:
        if self._cleanup is not None:
            self._write(ledger, self._filled(self._cleanup, view, views))

    def undo_any(self, ledger: Ledger, view: View, views: Views) -> None:
        if self._cleanup is not None:
            self.cleanup(ledger, view, views)
            return
        tokens = NodeDraft.path_tokens(self._path)
        if tokens in _REQUIRED:
            return
        if tokens[-1] == "-" or isinstance(ledger.read(tokens[:-1]) if len(tokens) > 1 else None, list):
            # An item of a list: only the value says which.
            _remove_items(ledger, tokens[:-1], lambda: self._filled(self._value, view, views))
        else:
            ledger.remove_path(self._path)

    def _write(self, ledger: Ledger, value: object) -> None:
        if self._resets and ledger.task.node.driver != value:
            for name in INTERFACE_FIELDS:
                ledger.set_path(f"/{name}", None)
        ledger.set_path(self._path, value)


class ExtendAttribute(LegacyAction):
    """``append-attribute`` and ``extend-attribute``: append a value to a list of the node, which is made if missing.

    If the rule does not match, ``cleanup`` is appended in its place.
    """

    __slots__ = ("_cleanup", "_tokens", "_unique", "_value")

    required = frozenset({"path", "value"})
    optional = frozenset({"cleanup", "unique"})

    def __init__(self, op: str, arguments: Given) -> None:
        super().__init__(op, arguments)
        path = _path(arguments)
        self._tokens = NodeDraft.path_tokens(path) if path else ()
        if len(self._tokens) == 1:
            arguments.problem("path", "this field is not a list")
        self._value = arguments.value("value")
        self._cleanup = arguments.value("cleanup") if "cleanup" in arguments.params else None
        self._unique = arguments.flag("unique", False)

    def apply(self, ledger: Ledger, view: View, views: Views) -> None:
        ledger.insert(self._tokens, "-", self._filled(self._value, view, views), unique=self._unique)

    @property
    def has_cleanup(self) -> bool:
        return self._cleanup is not None

    def cleanup(self, ledger: Ledger, view: View, views: Views) -> None:
        if self._cleanup is not None:
            ledger.insert(self._tokens, "-", self._filled(self._cleanup, view, views), unique=self._unique)

    def undo_any(self, ledger: Ledger, view: View, views: Views) -> None:
        _remove_items(ledger, self._tokens, lambda: self._filled(self._value, view, views))
        if self._cleanup is not None:
            # Nothing takes it back before the next inspection, which would append it once more.
            ledger.insert(self._tokens, "-", self._filled(self._cleanup, view, views), unique=True)


class SetCapability(LegacyAction):
    """``set-capability``: set one capability and keep the others; without a value, or with null, remove it."""

    __slots__ = ("_name", "_value")

    required = frozenset({"name"})
    optional = frozenset({"value"})

    def __init__(self, op: str, arguments: Given) -> None:
        super().__init__(op, arguments)
        self._name = arguments.text("name")
        if self._name and not capabilities.is_name(self._name):
            arguments.problem("name", "must be without colons, commas and white space")
        elif not self._name and isinstance(arguments.params.get("name"), str):
            arguments.problem("name", "must not be empty")
        self._value = arguments.value("value") if arguments.params.get("value") is not None else Const(None)
        if isinstance(self._value, Const) and self._value.value is not None:
            try:
                capabilities.put(None, "name", self._value.value)
            except ActionError as exc:
                arguments.problem("value", str(exc))

    def apply(self, ledger: Ledger, view: View, views: Views) -> None:
        ledger.set_capability(self._name, self._filled(self._value, view, views))

    def undo_any(self, ledger: Ledger, view: View, views: Views) -> None:
        ledger.set_capability(self._name, None)


class AddTrait(LegacyAction):
    """``add-trait``: add a trait to the node."""

    __slots__ = ("_name",)

    required = frozenset({"name"})

    def __init__(self, op: str, arguments: Given) -> None:
        super().__init__(op, arguments)
        self._name = arguments.text("name")
        if self._name and not traits.is_trait(self._name):
            arguments.problem("name", "must be CUSTOM_ and A-Z, 0-9 and _, or one of os-traits")

    def apply(self, ledger: Ledger, view: View, views: Views) -> None:
        ledger.add_trait(self._name)

    def undo_any(self, ledger: Ledger, view: View, views: Views) -> None:
        ledger.remove_trait(self._name)


class RemoveTrait(AddTrait):
    """``remove-trait``: remove a trait from the node, if it has it."""

    __slots__ = ()

    def apply(self, ledger: Ledger, view: View, views: Views) -> None:
        ledger.remove_trait(self._name)

    def undo_any(self, ledger: Ledger, view: View, views: Views) -> None:
        """Do nothing: the document names no opposite."""


class Fail(LegacyAction):
    """``fail``: fail the inspection with a message; with ``maintenance``, put the node in maintenance."""

    __slots__ = ("_maintenance", "_message")

    required = frozenset({"message"})
    optional = frozenset({"maintenance"})

    def __init__(self, op: str, arguments: Given) -> None:
        super().__init__(op, arguments)
        self._message = compile_message(arguments.scope, arguments.text("message"), f"{arguments.where}/message")
        self._maintenance = arguments.flag("maintenance", False)

    def apply(self, ledger: Ledger, view: View, views: Views) -> None:
        raise Failed(printable(str(as_getter(self._message)(view)), MAX_MESSAGE), self._maintenance)


ACTIONS: Mapping[str, type[LegacyAction]] = {
    "set-attribute": SetAttribute, "append-attribute": ExtendAttribute, "extend-attribute": ExtendAttribute,
    "set-capability": SetCapability, "add-trait": AddTrait, "remove-trait": RemoveTrait, "fail": Fail,
}


def _path(arguments: Given) -> str:
    """Return the parameter ``path``, checked; "" if there is a problem."""
    path = arguments.text("path")
    if not isinstance(arguments.params.get("path"), str):
        return ""
    try:
        tokens = NodeDraft.path_tokens(path)
        if tokens[0] == "traits":
            arguments.problem("path", "traits are written by add-trait and remove-trait")
        else:
            return FieldPath(documents.format_pointer(tokens), NodeDraft)
    except (FieldNotWritable, documents.PointerError) as exc:
        arguments.problem("path", "rules may not write it" if isinstance(exc, FieldNotWritable) else exc.reason)
    return ""


def _remove_items(ledger: Ledger, tokens: tuple[str, ...], fill: Callable[[], Any]) -> None:
    """Remove all items of a list that are equal to a value.

    :param fill: returns the value, if the data have what it is made of
    """
    items = ledger.read(tokens)
    try:
        value = fill()
    except CannotEvaluate:
        return
    if items is MISSING or not isinstance(items, list):
        return
    remaining = [item for item in items if not same(item, value)]
    if len(remaining) < len(items):
        ledger.set_path(documents.format_pointer(tokens), remaining)
