"""Statistics of rules as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.api import links
from ironic_rules.db.paging import Page
from ironic_rules.exceptions import MarkerNotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import CountedRule, Rule

_NUMBERS = ("considered", "evaluated", "matched", "failed", "nodes_changed")
#: Of a sensitive rule only whether it matches may be known.
_SEALED = frozenset({"evaluated", "nodes_changed"})
FIELDS = ("uuid", "name", "phase", "enabled", "built_in", "sensitive", *_NUMBERS, "last_matched_at", "last_node")
SORT_KEYS = ("id", "uuid", "name", "phase", *_NUMBERS, "last_matched_at")


@dataclass(slots=True)
class _BuiltIn:
    uuid: str
    name: str | None
    phase: str
    enabled: bool
    sensitive: bool
    considered: int = 0
    evaluated: int = 0
    matched: int = 0
    failed: int = 0
    last_matched_at: datetime.datetime | None = None
    last_node: str | None = None
    nodes_changed: int = 0
    built_in: bool = True


def of_built_in(rules: Iterable[Rule], counted: Mapping[str, Any]) -> list[CountedRule]:
    """Return built-in rules with their statistics.

    :param counted: rows by UUID
    """
    found: list[CountedRule] = []
    for rule in rules:
        row = counted.get(rule.uuid)
        numbers = {} if row is None else {
            name: getattr(row, name) for name in (*_NUMBERS, "last_matched_at", "last_node")}
        found.append(_BuiltIn(rule.uuid, rule.name, rule.phase, rule.enabled, rule.sensitive, **numbers))
    return found


def statistics(base: str, row: CountedRule, fields: Sequence[str]) -> JSONObject:
    """Return the statistics of a rule."""
    shown = {name: None if row.sensitive and name in _SEALED else getattr(row, name)
             for name in FIELDS if name in fields}
    shown["links"] = links.resource(base, "inspection_rules", row.uuid)
    return shown


def page(rows: Sequence[CountedRule], asked: Page) -> list[CountedRule]:
    """Return a page of the statistics of all rules, which are in the order of their creation.

    :raises MarkerNotFound: 404
    """
    ordered = list(rows)
    if asked.sort_key != "id":
        ordered.sort(key=lambda row: _order(row, asked.sort_key))
    if asked.sort_dir == "desc":
        ordered.reverse()
    start = 0
    if asked.marker is not None:
        start = next((place for place, row in enumerate(ordered, 1) if row.uuid == asked.marker), 0)
        if not start:
            raise MarkerNotFound(marker=asked.marker)
    return ordered[start:start + asked.limit]


def _order(row: CountedRule, key: str) -> tuple[bool, Any, str]:
    value = None if row.sensitive and key in _SEALED else getattr(row, key)
    return value is not None, 0 if value is None else value, row.uuid
