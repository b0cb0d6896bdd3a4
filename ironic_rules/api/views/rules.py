"""Legacy rules -> JSON, as ironic-inspector shows them. Lists copy conditions and actions from the stored text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import orjson

from ironic_rules.api import links
from ironic_rules.db.projection import Row
from ironic_rules.models import rules as rules_models
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import LEGACY_RULE, LegacyRule

COLLECTION = "rules"


def columns(fields: Collection[str]) -> tuple[str, ...]:
    """Return the columns that ``rules`` needs for ``fields``."""
    return tuple(name for name in LEGACY_RULE.columns if name == "uuid" or name in fields)


def rules(base: str, rows: Sequence[Row], fields: Collection[str], *, masked: bool = False) -> list[JSONObject]:
    """Return rules in the order of ``rows``.

    :param rows: with ``columns(fields)``, JSON columns as text
    :param masked: whether secrets in actions are hidden
    """
    names = columns(fields)
    replies: list[JSONObject] = []
    for row in rows:
        reply = {name: orjson.Fragment(value) if name in LEGACY_RULE.json else value
                 for name, value in zip(names, row, strict=True) if name in fields}
        if masked and "actions" in reply:
            reply["actions"] = rules_models.masked_actions(orjson.loads(row.actions))
        reply["links"] = _links(base, row.uuid)
        replies.append(reply)
    return replies


def rule(base: str, found: LegacyRule, fields: Collection[str] = LEGACY_RULE.shown, *,
         masked: bool = False) -> JSONObject:
    """Return one rule.

    :param masked: whether secrets in actions are hidden
    """
    shown: JSONObject = {name: getattr(found, name) for name in LEGACY_RULE.columns if name in fields}
    if masked and "actions" in shown:
        shown["actions"] = rules_models.masked_actions(found.actions)
    return shown | {"links": _links(base, found.uuid)}


def _links(base: str, uuid: str) -> list[dict[str, str]]:
    # ironic-inspector has no link but this one.
    return links.resource(base, COLLECTION, uuid)[:1]
