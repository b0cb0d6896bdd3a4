"""The fields of a rule except its conditions and actions: validated, and converted to the form that is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.models import documents
from ironic_rules.models.documents import JSONObject, is_int64
from ironic_rules.models.fields import Type
from ironic_rules.models.rules import MAX_NODES, MAX_PRIORITY, PHASES, RULE, WRITABLE
from ironic_rules.text import is_storable, is_uuid, nearest

MAX_TEXT = 255
#: Reason why a rule of phase early cannot have a scope.
EARLY_SCOPE = "a rule of the early phase runs for every report, before there is a node with a scope; use null"

#: Fields of stored rules only, and why a built-in rule cannot have them.
_STORED_ONLY = {
    "bundle": "a built-in rule has no bundle: it belongs to its file",
    "max_nodes": "the nodes of a built-in rule are not counted: it can be limited by its conditions only",
}


def problems_of_fields(rule: object, *, built_in: bool) -> list[Problem]:
    """Return the problems of a rule's fields; conditions and actions are only checked to be lists."""
    if not isinstance(rule, Mapping):
        return [Problem("", "a rule is an object")]
    problems = []
    for key in rule:
        if key not in WRITABLE:
            near = nearest(str(key), WRITABLE)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(WRITABLE)}"
            problems.append(Problem(documents.format_pointer((str(key),)), f"unknown field; {hint}"))
    checks = {
        "uuid": _uuid(rule.get("uuid")),
        "name": name_problem(rule.get("name")),
        "bundle": name_problem(rule.get("bundle")),
        "description": _text(rule.get("description")),
        "enabled": _flag(rule.get("enabled", True)),
        "scope": _scope(rule),
        "priority": _priority(rule.get("priority", 0), built_in),
        "phase": None if rule.get("phase", "main") in PHASES else f"must be one of {', '.join(PHASES)}",
        "max_nodes": _max_nodes(rule),
        "sensitive": _flag(rule.get("sensitive", False)),
        "conditions": None if isinstance(rule.get("conditions", []), (list, tuple)) else "must be a list",
        "actions": _actions(rule),
    }
    if built_in:
        checks |= {name: reason for name, reason in _STORED_ONLY.items() if rule.get(name) is not None}
    problems.extend(Problem(f"/{name}", reason) for name, reason in checks.items() if reason)
    return problems


def name_problem(value: object) -> str | None:
    """Return why a value cannot be the name of a rule or of a bundle, None if it can."""
    if value is None:
        return None
    if not isinstance(value, str):
        return "must be a string or null"
    if not 0 < len(value) <= MAX_TEXT:
        return f"must have 1 to {MAX_TEXT} characters; null is none"
    if not value.isprintable() or value != value.strip():
        return "must be one line without white space at its ends"
    return None


def _uuid(value: object) -> str | None:
    return None if value is None or is_uuid(value) else "must be a UUID (8-4-4-4-12 hexadecimal digits)"


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return "must be a string or null"
    if len(value) > MAX_TEXT:
        return f"must be at most {MAX_TEXT} characters"
    return None if is_storable(value) else "must not contain NUL and lone surrogate characters"


def _scope(rule: Mapping[str, object]) -> str | None:
    value = rule.get("scope")
    if value == "":
        return "must not be empty; null is no scope"
    return _text(value) or (EARLY_SCOPE if value is not None and rule.get("phase") == "early" else None)


def _priority(value: object, built_in: bool) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return "must be an integer"
    if built_in:
        return None if is_int64(value) else "must be an integer of 64 bits: from -2^63 to 2^64-1"
    if not 0 <= value <= MAX_PRIORITY:
        return f"must be from 0 to {MAX_PRIORITY}; others are reserved for built-in rules"
    return None


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _max_nodes(rule: Mapping[str, object]) -> str | None:
    value = rule.get("max_nodes")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_NODES:
        return f"must be an integer from 1 to {MAX_NODES}, or null for no limit"
    return "a rule of the early phase runs before there is a node to count" if rule.get("phase") == "early" else None


def _actions(rule: Mapping[str, object]) -> str | None:
    if "actions" not in rule:
        return "is required"
    if not isinstance(rule["actions"], (list, tuple)):
        return "must be a list"
    return None if rule["actions"] else "must have at least one action"


_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
#: Words for true and false, in lower case.
BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_INTEGERS = RULE.where(lambda entry: entry.create and entry.type is Type.INTEGER)
_FLAGS = RULE.where(lambda entry: entry.create and entry.type is Type.BOOLEAN)


def from_wire(body: Mapping[str, object], *, default_scope: str | None = None) -> JSONObject:
    """Return the rule with defaults for missing fields, and with the notations of existing clients converted.

    ``openstack baremetal`` sends integers and Booleans as strings and null for conditions that were not given.
    Values that cannot be converted are unchanged, so that ``validate`` refuses them.

    :param default_scope: the scope of a rule that does not set one, except of one of phase early, which can have none
    """
    rule = {**{name: RULE[name].initial() for name in WRITABLE if name not in ("uuid", "actions")}, **body}
    if "scope" not in body and rule["phase"] != "early":
        rule["scope"] = default_scope
    for name in _INTEGERS:
        if isinstance(rule[name], str) and _INTEGER.fullmatch(rule[name]):
            rule[name] = int(rule[name])
    for name in _FLAGS:
        if rule[name] is None:
            rule[name] = RULE[name].default
        elif isinstance(rule[name], str):
            rule[name] = BOOLEANS.get(rule[name].lower(), rule[name])
    if rule["conditions"] is None:
        rule["conditions"] = []
    uuid = rule.get("uuid")
    if isinstance(uuid, str):
        rule["uuid"] = uuid.lower()
    elif uuid is None:
        rule.pop("uuid", None)
    return rule
