"""Inspection rules -> JSON. Conditions and actions are read as text and copied unchanged."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import orjson

from ironic_rules.api import links
from ironic_rules.db.projection import Row
from ironic_rules.models.inspection_rules import RULE, SEALED, Rule
from ironic_rules.models.json_values import JSONObject

_STORED = RULE.where(lambda entry: entry.shown and entry.column)


def columns(fields: Collection[str]) -> tuple[str, ...]:
    """Return the columns that ``rules`` needs for ``fields``."""
    needed = {"uuid", "sensitive", *fields}
    return tuple(name for name in _STORED if name in needed)


def rules(rows: Sequence[Row | Rule], fields: Collection[str] = RULE.shown) -> list[JSONObject]:
    """Return rules in the order of ``rows``; conditions and actions of sensitive rules are never shown.

    :param rows: with exactly ``columns(fields)``, JSON columns as text; or built-in rules, which are not stored
    """
    names = columns(fields)
    sealed = [name for name in names if name in SEALED]
    shows_sensitive, shows_built_in = "sensitive" in fields, "built_in" in fields
    shows_uuid = "uuid" in fields
    fragments = links.Fragments("inspection_rules")
    replies = []
    for row in rows:
        if isinstance(row, Rule):
            is_built_in, values = True, _values(row, names)
        else:
            is_built_in, values = False, row
        reply: JSONObject = dict(zip(names, values, strict=True))
        for name in sealed:
            reply[name] = None if reply["sensitive"] else orjson.Fragment(reply[name])
        if shows_built_in:
            reply["built_in"] = is_built_in
        if not shows_sensitive:
            del reply["sensitive"]
        reply["links"] = fragments.of(reply["uuid"] if shows_uuid else reply.pop("uuid"))
        replies.append(reply)
    return replies


def _values(rule: Rule, names: Collection[str]) -> Sequence[Any]:
    """Return the fields of a rule like a row whose JSON columns are text."""
    return [orjson.dumps(getattr(rule, name)) if name in RULE.json else getattr(rule, name) for name in names]


def rule(found: Rule, fields: Collection[str] = RULE.shown) -> JSONObject:
    """Return one rule, stored or built-in."""
    sealed = SEALED if found.sensitive else ()
    shown: JSONObject = {
        name: None if name in sealed else getattr(found, name) for name in RULE.columns if name in fields}
    shown["links"] = links.resource("inspection_rules", found.uuid)
    return shown
