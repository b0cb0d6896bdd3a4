"""Inspection rules -> JSON. Conditions and actions come as stored text and go out as they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import orjson

from ironic_rules.api import links
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


def rules(rows: Sequence[Row], fields: Collection[str] = FIELDS) -> list[dict[str, Any]]:
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
        reply: dict[str, Any] = dict(zip(names, row, strict=True))
        for name in secret:
            reply[name] = None if reply["sensitive"] else orjson.Fragment(reply[name])
        if shows_built_in:
            reply["built_in"] = False
        if not shows_sensitive:
            del reply["sensitive"]
        reply["links"] = fragments.of(reply["uuid"] if shows_uuid else reply.pop("uuid"))
        replies.append(reply)
    return replies


def rule(row: Row, fields: Collection[str] = FIELDS) -> dict[str, Any]:
    """Return one rule whose JSON columns are decoded."""
    values = {**row._mapping, "built_in": False, "links": links.resource("inspection_rules", row.uuid)}
    if row.sensitive:
        values |= dict.fromkeys(_HIDDEN_IF_SENSITIVE)
    return {name: values[name] for name in FIELDS if name in fields or name == "links"}
