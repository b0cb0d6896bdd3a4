"""Validation of the fields of a rule besides its conditions and actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.models import pointer
from ironic_rules.models.inspection_rules import MAX_PRIORITY, PHASES, WRITABLE
from ironic_rules.text import is_storable, is_uuid, nearest

MAX_TEXT = 255


def problems(rule: Any, *, built_in: bool) -> list[Problem]:
    """Return the problems of a rule's fields; conditions and actions are only checked to be lists."""
    if not isinstance(rule, Mapping):
        return [Problem("", "a rule is an object")]
    found = []
    for key in rule:
        if key not in WRITABLE:
            near = nearest(str(key), WRITABLE)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(WRITABLE)}"
            found.append(Problem(pointer.format((str(key),)), f"unknown field; {hint}"))
    checks = {
        "uuid": _uuid(rule.get("uuid")),
        "description": _text(rule.get("description")),
        "scope": "must not be empty; null is no scope" if rule.get("scope") == "" else _text(rule.get("scope")),
        "priority": _priority(rule.get("priority", 0), built_in),
        "phase": None if rule.get("phase", "main") in PHASES else f"must be one of {', '.join(PHASES)}",
        "sensitive": None if isinstance(rule.get("sensitive", False), bool) else "must be true or false",
        "conditions": None if isinstance(rule.get("conditions", []), (list, tuple)) else "must be a list",
        "actions": _actions(rule),
    }
    found.extend(Problem(f"/{name}", reason) for name, reason in checks.items() if reason)
    return found


def _uuid(value: Any) -> str | None:
    return None if value is None or is_uuid(value) else "must be a UUID (8-4-4-4-12 hexadecimal digits)"


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return "must be a string or null"
    if len(value) > MAX_TEXT:
        return f"must be at most {MAX_TEXT} characters"
    return None if is_storable(value) else "must not contain NUL and lone surrogate characters"


def _priority(value: Any, built_in: bool) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return "must be an integer"
    if not built_in and not 0 <= value <= MAX_PRIORITY:
        return f"must be from 0 to {MAX_PRIORITY}; others are reserved for built-in rules"
    return None


def _actions(rule: Mapping[str, Any]) -> str | None:
    if "actions" not in rule:
        return "is required"
    if not isinstance(rule["actions"], (list, tuple)):
        return "must be a list"
    return None if rule["actions"] else "must have at least one action"
