"""The form of legacy rules: the fields of a body, of its conditions and of its actions.

It is the document's and ironic-inspector's: ``net`` and ``in-net`` are one operator, ``append-attribute`` and
``extend-attribute`` one action, ``key`` and ``path`` one parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ironic_rules.legacy.conditions import MULTIPLE
from ironic_rules.models import documents
from ironic_rules.models.rules import LEGACY_WRITABLE
from ironic_rules.rules.limits import Limits
from ironic_rules.text import is_storable, is_uuid, nearest, pointer_token

Complain = Callable[[str, str], None]

#: Maximum number of bytes of a rule as JSON: checking takes time for each of them.
MAX_SIZE = 256 * 1024
MAX_SCOPE = 255
MAX_DESCRIPTION = 65535
#: Fields of replies, which a body that was copied from one has, too.
_REPLIED = frozenset({"links", "created_at", "updated_at"})
_OF_CONDITION = frozenset({"field", "op", "multiple", "invert"})
_OF_ACTION = frozenset({"action"})


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as it is written, with defaults; ``params`` is the rest of it."""

    where: str
    field: str
    op: str
    multiple: str
    invert: bool
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Action:
    """An action as it is written; ``params`` is the rest of it, with ``path`` for ``key``."""

    where: str
    action: str
    params: Mapping[str, Any]


def is_readable(body: Any, complain: Complain) -> bool:
    """Return whether a body is an object of a size that can be checked; complain if it is not."""
    if not isinstance(body, Mapping):
        complain("", "a rule is an object")
        return False
    if (found := documents.unstorable(dict(body))) is not None:
        path, reason = found
        complain("".join(f"/{pointer_token(part)}" for part in path), reason)
        return False
    if len(orjson.dumps(body)) > MAX_SIZE:
        complain("", f"a rule has at most {MAX_SIZE} bytes")
        return False
    return True


def check_fields(body: Mapping[str, Any], complain: Complain) -> None:
    """Complain of the fields of a body besides its conditions and actions."""
    for key in body:
        if key not in LEGACY_WRITABLE and key not in _REPLIED:
            complain(f"/{pointer_token(key)}", _unknown("field", key, LEGACY_WRITABLE))
    uuid = body.get("uuid")
    if uuid is not None and not is_uuid(uuid):
        complain("/uuid", "must be a UUID")
    for name, most in (("description", MAX_DESCRIPTION), ("scope", MAX_SCOPE)):
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            complain(f"/{name}", "must be a string or null")
        elif len(value.encode()) > most:
            complain(f"/{name}", f"must have at most {most} bytes")
        elif not is_storable(value):
            complain(f"/{name}", "must not contain NUL and lone surrogate characters")


def conditions(body: Mapping[str, Any], limits: Limits, complain: Complain) -> Iterator[Condition]:
    """Yield the conditions that are well-formed."""
    for where, item in _items(body.get("conditions"), "/conditions", limits.conditions, complain):
        if not isinstance(item, Mapping):
            complain(where, "must be an object with 'field' and 'op'")
            continue
        is_right = [_is_text(item, name, where, complain) for name in ("field", "op")]
        multiple, invert = item.get("multiple", "any"), item.get("invert", False)
        if multiple not in MULTIPLE:
            complain(f"{where}/multiple", f"must be one of {', '.join(MULTIPLE)}")
            is_right.append(False)
        if not isinstance(invert, bool):
            complain(f"{where}/invert", "must be true or false")
            is_right.append(False)
        if all(is_right):
            yield Condition(where, item["field"], item["op"], multiple, invert,
                            {name: value for name, value in item.items() if name not in _OF_CONDITION})


def actions(body: Mapping[str, Any], limits: Limits, complain: Complain) -> Iterator[Action]:
    """Yield the actions that are well-formed."""
    if not body.get("actions"):
        complain("/actions", "must be a list of at least one action")
        return
    for where, item in _items(body["actions"], "/actions", limits.actions, complain):
        if not isinstance(item, Mapping):
            complain(where, "must be an object with 'action'")
        elif _is_text(item, "action", where, complain):
            params = {name: value for name, value in item.items() if name not in _OF_ACTION}
            yield Action(where, item["action"], params)


def check_names(params: Mapping[str, Any], required: frozenset[str], optional: frozenset[str], where: str,
                complain: Complain) -> bool:
    """Return whether parameters are those that there are; complain of others, and of those that are missing."""
    before = True
    for name in sorted(required - params.keys()):
        complain(f"{where}/{name}", "is required")
        before = False
    for name in params:
        if name not in required and name not in optional:
            complain(f"{where}/{pointer_token(name)}", _unknown("parameter", name, required | optional))
            before = False
    return before


def with_defaults(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a valid body, with ``invert`` and ``multiple`` filled in."""
    return {
        "uuid": body.get("uuid") or "", "description": body.get("description"), "scope": body.get("scope"),
        "conditions": [{**item, "invert": item.get("invert", False), "multiple": item.get("multiple", "any")}
                       for item in body.get("conditions") or ()],
        "actions": [dict(item) for item in body["actions"]],
    }


def _items(items: Any, where: str, most: int, complain: Complain) -> Iterator[tuple[str, Any]]:
    if items is None:
        return
    if not isinstance(items, (list, tuple)):
        complain(where, "must be a list")
    elif len(items) > most:
        complain(where, f"more than {most} items")
    else:
        for index, item in enumerate(items):
            yield f"{where}/{index}", item


def _is_text(item: Mapping[str, Any], name: str, where: str, complain: Complain) -> bool:
    if isinstance(item.get(name), str):
        return True
    complain(f"{where}/{name}", "must be a string" if name in item else "is required")
    return False


def _unknown(what: str, name: str, known: Any) -> str:
    near = nearest(name, known)
    names = ", ".join(sorted(known))
    return f"unknown {what}; did you mean {near!r}?" if near else f"unknown {what}; known: {names or 'none'}"
