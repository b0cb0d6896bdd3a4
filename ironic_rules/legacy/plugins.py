"""Conditions and actions of other packages, written for ironic-inspector: entry points and their signatures.

A condition has ``check(node_info, field, params)``, an action ``apply(node_info, params)`` and optionally
``cleanup(node_info, params)``. Both may have ``validate(params)``, which raises ValueError, the sets
``REQUIRED_PARAMS`` and ``OPTIONAL_PARAMS``, and the list ``FORMATTED_PARAMS``; a condition also ``ALLOW_NONE``.
Methods may accept further keyword arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import Any

from ironic_rules.entry_points import in_group
from ironic_rules.legacy import conditions
from ironic_rules.legacy.actions import ACTIONS as OUR_ACTIONS
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import is_signal
from ironic_rules.text import printable

CONDITIONS = "ironic_inspector.rules.conditions"
ACTIONS = "ironic_inspector.rules.actions"

#: Methods that a plug-in must have, by group.
_METHODS = {CONDITIONS: "check", ACTIONS: "apply"}
#: The package whose own plug-ins are these here.
_THEIRS = "ironic_inspector"

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plug-ins of a process.

    :ivar conditions: objects by name; ``actions`` likewise
    :ivar broken: why others cannot be used, by entry point group and name; rules that use them are disabled
    :ivar warnings: about names that are taken
    """

    conditions: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    actions: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    broken: Mapping[tuple[str, str], str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


NONE = Plugins()


def load(find: Callable[[str], Iterable[EntryPoint]] = in_group) -> Plugins:
    """Return the installed plug-ins; called once, at start. Nothing is raised: see ``Plugins.broken``.

    Where ironic-inspector is installed, its own conditions and actions are replaced by ours, and its example is left
    out.

    :param find: returns the entry points of a group
    """
    loaded: dict[str, JSONObject] = {}
    broken: dict[tuple[str, str], str] = {}
    warnings: list[str] = []
    for group, ours in ((CONDITIONS, conditions.OPERATORS), (ACTIONS, frozenset(OUR_ACTIONS))):
        loaded[group] = {}
        for entry in sorted(find(group), key=lambda entry: (entry.name, entry.value)):
            if entry.value.partition(":")[0].partition(".")[0] == _THEIRS:
                continue
            if warning := _taken(entry, ours, loaded[group]):
                warnings.append(f"[{group}] {warning}")
                continue
            try:
                loaded[group][entry.name] = _made(entry, group)
            except BaseException as exc:  # third-party code can raise anything, SystemExit too
                if is_signal(exc):
                    raise
                broken[group, entry.name] = f"{type(exc).__name__}: {printable(exc)}"
    return Plugins(loaded[CONDITIONS], loaded[ACTIONS], broken, tuple(warnings))


def _taken(entry: EntryPoint, ours: Collection[str], loaded: Mapping[str, object]) -> str | None:
    name = printable(entry.name, 64)
    if entry.name in ours:
        return f"{name} of {printable(entry.value, 128)} is not used: it is a name of ironic-rules"
    if entry.name in loaded:
        return f"{name} of {printable(entry.value, 128)} is not used: another package has this name"
    return None


def _made(entry: EntryPoint, group: str) -> Any:
    plugin = entry.load()()
    if not callable(getattr(plugin, _METHODS[group], None)):
        raise TypeError(f"it has no method {_METHODS[group]}")
    return plugin
