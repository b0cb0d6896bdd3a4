"""What lists of rules are searched for: the operators and actions of a rule, and the paths that its actions write.

Both are stored beside the rule as texts whose lines are the terms, with a line end before and after each. A sensitive
rule has no terms, so that no search reveals its conditions and actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ironic_rules.models import pointer

_END = "\n"


class WriteTarget(NamedTuple):
    """Where an action writes: at ``below`` and its argument ``name``, the one at ``place`` in a list of arguments.

    :ivar name: None: the action always writes at ``below``
    :ivar dotted: the argument may have dots in place of slashes
    """

    below: str
    name: str | None = None
    place: int = 0
    dotted: bool = False


#: Where the built-in actions write. Those of plug-ins are not known.
TARGETS = {
    "set-attribute": WriteTarget("", "path"),
    "extend-attribute": WriteTarget("", "path"),
    "del-attribute": WriteTarget("", "path"),
    "set-capability": WriteTarget("/properties/capabilities"),
    "unset-capability": WriteTarget("/properties/capabilities"),
    "add-trait": WriteTarget("/traits"),
    "remove-trait": WriteTarget("/traits"),
    "set-port-attribute": WriteTarget("/ports", "path", 1),
    "extend-port-attribute": WriteTarget("/ports", "path", 1),
    "del-port-attribute": WriteTarget("/ports", "path", 1),
    "set-plugin-data": WriteTarget("/plugin_data", "path", dotted=True),
    "extend-plugin-data": WriteTarget("/plugin_data", "path", dotted=True),
    "unset-plugin-data": WriteTarget("/plugin_data", "path", dotted=True),
}


def texts(rule: Mapping[str, Any]) -> dict[str, str | None]:
    """Return ``ops`` and ``writes`` of a rule with valid conditions and actions, as they are stored."""
    if rule["sensitive"]:
        return {"ops": None, "writes": None}
    return {"ops": _lines(_ops([*rule["conditions"], *rule["actions"]])), "writes": _lines(_writes(rule["actions"]))}


def of_op(op: str) -> tuple[str, ...]:
    """Return the texts that ``ops`` of a rule contains if it has the operator or action.

    :param op: a name, which includes its inverse; with ``!`` only the inverse
    """
    return (f"{_END}{_normal(op)}{_END}",)


def of_path(path: str) -> tuple[str, ...]:
    """Return the texts of which ``writes`` of a rule contains one if it writes at or below ``path``, a JSON pointer."""
    return (f"{_END}{path}{_END}", f"{_END}{path}/")


def _normal(op: str) -> str:
    return "!" + op[1:].lstrip(" ") if op.startswith("!") else op


def _ops(operations: Iterable[Any]) -> Iterator[str]:
    for operation in operations:
        op = _normal(operation["op"])
        yield op
        yield op.removeprefix("!")


def path_of(action: Mapping[str, Any]) -> str | None:
    """Return where a valid action writes, a JSON pointer that may have templates; None: that is not known."""
    target = TARGETS.get(action["op"])
    if target is None or target.name is None:
        return target and target.below
    arguments = action.get("args", {})
    given = arguments.get(target.name) if isinstance(arguments, Mapping) else (
        arguments[target.place] if target.place < len(arguments) else None)
    tokens = _tokens(given, target.dotted)
    # A path that begins with a template is only known at run time.
    if not tokens or (tokens[0].startswith("{") and not target.below):
        return None
    return target.below + pointer.format(tokens)


def _writes(actions: Iterable[Any]) -> Iterator[str]:
    return (path for path in map(path_of, actions) if path is not None)


def _tokens(path: Any, dotted: bool) -> tuple[str, ...]:
    if not isinstance(path, str):
        return ()
    if dotted and "/" not in path:
        return tuple(path.split("."))
    try:
        return pointer.parse(path, relative=True)
    except pointer.PointerError:
        return ()


def _lines(terms: Iterable[str]) -> str:
    found = dict.fromkeys(term for term in terms if _END not in term)
    return _END + _END.join(found) + _END if found else ""
