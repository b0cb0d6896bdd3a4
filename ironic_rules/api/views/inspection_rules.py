"""Inspection rules -> JSON. Conditions and actions come as stored text and go out as they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from ironic_rules.api import links
from ironic_rules.api.built_in_rules import BuiltIn
from ironic_rules.db.projection import Row

FIELDS = ("uuid", "created_at", "updated_at", "description", "priority", "phase", "scope", "sensitive", "built_in",
          "conditions", "actions", "links")
SUMMARY = ("uuid", "description", "priority", "phase", "scope", "sensitive", "built_in", "links")
_HIDDEN_IF_SENSITIVE = frozenset({"conditions", "actions"})
_COMPUTED = frozenset({"built_in", "links"})


def columns(fields: Collection[str]) -> tuple[str, ...]:
    """Return the columns that ``rules`` needs for ``fields``."""
    needed = {"uuid", "sensitive", *fields} - _COMPUTED
    return tuple(name for name in FIELDS if name in needed)


def rules(rows: Sequence[Row | BuiltIn], fields: Collection[str] = FIELDS) -> list[dict[str, Any]]:
    """Return rules in the order of ``rows``; of sensitive ones neither conditions nor actions, whatever is asked.

    :param rows: with exactly ``columns(fields)``, JSON columns as text
    """
    names = columns(fields)
    secret = [name for name in names if name in _HIDDEN_IF_SENSITIVE]
    shows_sensitive, shows_built_in = "sensitive" in fields, "built_in" in fields
    shows_uuid = "uuid" in fields
    fragments = links.Fragments("inspection_rules")
    replies = []
    for row in rows:
        built_in = isinstance(row, BuiltIn)
        values = (getattr(row, name) for name in names) if built_in else row
        reply: dict[str, Any] = dict(zip(names, values, strict=True))
        for name in secret:
            reply[name] = None if reply["sensitive"] else orjson.Fragment(reply[name])
        if shows_built_in:
            reply["built_in"] = built_in
        if not shows_sensitive:
            del reply["sensitive"]
        reply["links"] = fragments.of(reply["uuid"] if shows_uuid else reply.pop("uuid"))
        replies.append(reply)
    return replies


def built_in_rule(rule: Mapping[str, Any], fields: Collection[str] = FIELDS) -> dict[str, Any]:
    """Return one built-in rule, which no database has."""
    return _one({**rule, "created_at": None, "updated_at": None}, fields)


def rule(row: Row, fields: Collection[str] = FIELDS) -> dict[str, Any]:
    """Return one rule whose JSON columns are decoded."""
    return _one({**row._mapping, "built_in": False}, fields)


def _one(values: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    values["links"] = links.resource("inspection_rules", values["uuid"])
    if values["sensitive"]:
        values |= dict.fromkeys(_HIDDEN_IF_SENSITIVE)
    return {name: values[name] for name in FIELDS if name in fields or name == "links"}
