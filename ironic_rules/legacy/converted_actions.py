"""Actions of legacy rules as actions of inspection rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ironic_rules.legacy import actions, counterparts
from ironic_rules.legacy.converted_conditions import literal
from ironic_rules.legacy.counterparts import Counterpart, Kind, NoCounterpart
from ironic_rules.legacy.paths import field_text
from ironic_rules.legacy.values import message_parts
from ironic_rules.models.documents import JSONObject
from ironic_rules.rules import template

Note = Callable[[str], None]

CLEANUP = "cleanup is left out: inspection rules do nothing if they do not match."
APPENDED = "Each inspection appends the value once more; a legacy rule takes its own value back before. See unique."
APPENDED_BY_PATH = "Each inspection appends the value once more; a legacy rule takes its own value back before."
INSERTED = "The item of a list at this index is replaced; ironic-inspector inserted the value before it."
DRIVER = ("Interfaces of the node that the new driver offers, too, are kept, and the others get its defaults; legacy "
          "rules and ironic-inspector reset all of them.")
TYPE_KEPT = "A number, true and false keep their type; ironic-inspector wrote text."
NULLABLE = ("Where the field is null, ironic-inspector wrote the text None, or failed; here null is written, or the "
            "inspection fails.")

#: The pointer of the parameter that gives the path, by its two names.
_PATHS = ("path", "key")


def convert(action: Mapping[str, Any], note: Note) -> JSONObject:
    """Return the equivalent of a valid action without a plug-in.

    :param note: called with each sentence on what differs
    :raises NoCounterpart: there is none; the text says why
    """
    name = action["action"]
    made = _MADE.get(name)
    if made is None:
        raise NoCounterpart(f"the action {name} is a plug-in: write one for inspection rules "
                            "(entry point group ironic.inspection_rules.actions)" if name not in actions.ACTIONS
                            else f"the action {name} has no counterpart")
    return made(action, note)


def _set_attribute(action: Mapping[str, Any], note: Note) -> JSONObject:
    if "cleanup" in action:
        note(CLEANUP)
    path = _path(action)
    if path == "/driver":
        note(DRIVER)
    if path.endswith("/-"):
        note(APPENDED_BY_PATH)
    elif path.rpartition("/")[2].isdecimal():
        note(INSERTED)
    return {"op": "set-attribute", "args": {"path": path, "value": _value(action["value"], note)}}


def _extend_attribute(action: Mapping[str, Any], note: Note) -> JSONObject:
    if "cleanup" in action:
        note(CLEANUP)
    unique = action.get("unique", False)
    if not unique:
        note(APPENDED)
    return {"op": "extend-attribute", "args": {
        "path": _path(action), "value": _value(action["value"], note), **({"unique": True} if unique else {})}}


def _set_capability(action: Mapping[str, Any], note: Note) -> JSONObject:
    name, value = literal(action["name"]), action.get("value")
    if value is None:
        return {"op": "unset-capability", "args": {"name": name}}
    return {"op": "set-capability", "args": {"name": name, "value": _value(value, note, as_text=True)}}


def _fail(action: Mapping[str, Any], note: Note) -> JSONObject:
    if action.get("maintenance"):
        raise NoCounterpart("inspection rules cannot put a node in maintenance and fail its inspection")
    return {"op": "fail", "args": {"msg": _text(message_parts(action["message"]), note, as_text=True)}}


def _trait(action: Mapping[str, Any], note: Note) -> JSONObject:
    return {"op": action["action"], "args": {"name": literal(action["name"])}}


_MADE: Mapping[str, Callable[[Mapping[str, Any], Note], JSONObject]] = {
    "set-attribute": _set_attribute, "append-attribute": _extend_attribute, "extend-attribute": _extend_attribute,
    "set-capability": _set_capability, "fail": _fail, "add-trait": _trait, "remove-trait": _trait,
}


def _path(action: Mapping[str, Any]) -> str:
    path = next(action[name] for name in _PATHS if name in action)
    return str(literal("/" + path.strip("/")))


def _value(value: Any, note: Note, *, as_text: bool = False) -> Any:
    """Return a value with the templates of inspection rules.

    :param as_text: whether the action makes a text of it anyway
    """
    if isinstance(value, str):
        return _text(template.parse(value), note, as_text)
    if isinstance(value, list):
        return [_value(item, note) for item in value]
    if isinstance(value, dict):
        return {_key(key): _value(item, note) for key, item in value.items()}
    return value


def _key(key: str) -> str:
    parts = template.parse(key) if "{" in key or "}" in key else (key,)
    if any(isinstance(part, template.Field) for part in parts):
        raise NoCounterpart("the keys of an object cannot be templates")
    return "".join(part for part in parts if isinstance(part, str))


def _text(parts: Sequence[str | template.Field], note: Note, as_text: bool) -> str:
    fields = [part for part in parts if isinstance(part, template.Field)]
    found = [counterparts.of("data", part.steps) for part in fields]
    for each in found:
        for sentence in each.notes:
            note(sentence)
    is_whole = len(parts) == 1 and bool(found)
    # Where null is missing, both rules fail, unless null itself is written.
    if any(not each.null_is_missing or (is_whole and not as_text and each.kind is not Kind.WHOLE) for each in found):
        note(NULLABLE)
    if is_whole:
        return _whole(found[0], note, as_text)
    read = iter(found)
    return "".join(literal(part) if isinstance(part, str) else _template(next(read)) for part in parts)


def _template(found: Counterpart) -> str:
    return field_text(found.root, found.steps)


def _whole(found: Counterpart, note: Note, as_text: bool) -> str:
    """Return a template that is the whole value."""
    if as_text or found.kind in (Kind.TEXT, Kind.LIST, Kind.OBJECT):
        return _template(found)
    if found.kind is Kind.WHOLE:
        # Of a number, this makes the text that ironic-inspector wrote.
        return f"{_template(found)[:-1]}|lower}}"
    note(TYPE_KEPT)
    return _template(found)
