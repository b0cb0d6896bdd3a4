"""Rules and their statistics as JSON: inspection rules, and legacy rules as ironic-inspector shows them.

Conditions and actions are read as text and copied unchanged.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ironic_rules.api import links
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import MarkerNotFound, Problem
from ironic_rules.models import rules as rules_models
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import LEGACY_RULE, RULE, SEALED, CountedRule, LegacyRule, Rule
from ironic_rules.rules import RuleWarning

_STORED = RULE.where(lambda entry: entry.shown and entry.column)
_VALIDITY = ("valid", "problems")


def columns(fields: Collection[str]) -> tuple[str, ...]:
    """Return the columns that ``rules`` needs for ``fields``."""
    needed = {"uuid", "sensitive", *fields}
    shown = tuple(name for name in _STORED if name in needed)
    return (*shown, "revision") if show_validity(fields) else shown


def show_validity(fields: Collection[str]) -> bool:
    """Return whether ``fields`` depend on the problems of rules."""
    return not set(_VALIDITY).isdisjoint(fields)


def rules(base: str, rows: Sequence[Row | Rule], fields: Collection[str] = RULE.shown,
          problems: Mapping[str, Sequence[Problem]] | None = None) -> Iterator[JSONObject]:
    """Yield rules in the order of ``rows``; conditions and actions of sensitive rules are never shown.

    :param rows: beginning with ``columns(fields)``, JSON columns as text; or built-in rules, which are not stored
    :param problems: of those that are invalid, by UUID
    """
    names = [name for name in columns(fields) if name != "revision"]
    sealed = [name for name in names if name in SEALED]
    valid = {name: value for name, value in _validity(()).items() if name in fields}
    shows_uuid, shows_sensitive, shows_built_in = (name in fields for name in ("uuid", "sensitive", "built_in"))
    fragments = links.Fragments(base, "inspection_rules")
    invalid = problems or {}
    # A page has a thousand of them: what is the same for all is above.
    for row in rows:
        if isinstance(row, Rule):
            is_built_in, values = True, _values(row, names)
        else:
            is_built_in, values = False, row[:len(names)]
        reply: JSONObject = dict(zip(names, values, strict=True))
        uuid, sensitive = reply["uuid"], reply["sensitive"]
        for name in sealed:
            reply[name] = None if sensitive else orjson.Fragment(reply[name])
        if shows_built_in:
            reply["built_in"] = is_built_in
        if valid:
            reply |= {name: _validity(invalid[uuid])[name] for name in valid} if uuid in invalid else valid
        if not shows_sensitive:
            del reply["sensitive"]
        if not shows_uuid:
            del reply["uuid"]
        reply["links"] = fragments.of(uuid)
        yield reply


def warnings(about: Iterable[RuleWarning]) -> list[JSONObject]:
    """Return warnings."""
    return [{"pointer": warning.where, "text": warning.text, "nearest": warning.nearest} for warning in about]


def warned(base: str, row: Rule, about: Sequence[RuleWarning], problems: Sequence[Problem] = ()) -> JSONObject:
    """Return a rule with the warnings about it; without any it has no such field.

    :param problems: why it is invalid
    """
    return rule(base, row, problems=problems) | ({"warnings": warnings(about)} if about else {})


def _values(rule: Rule, names: Collection[str]) -> Sequence[Any]:
    """Return the fields of a rule like a row whose JSON columns are text."""
    return [orjson.dumps(getattr(rule, name)) if name in RULE.json else getattr(rule, name) for name in names]


def rule(base: str, row: Rule, fields: Collection[str] = RULE.shown, problems: Sequence[Problem] = ()) -> JSONObject:
    """Return one rule, stored or built-in.

    :param problems: why it is invalid
    """
    sealed = SEALED if row.sensitive else ()
    shown: JSONObject = {
        name: None if name in sealed else getattr(row, name) for name in RULE.columns if name in fields}
    shown |= {name: value for name, value in _validity(problems).items() if name in fields}
    shown["links"] = links.resource(base, "inspection_rules", row.uuid)
    return shown


def _validity(problems: Sequence[Problem]) -> JSONObject:
    shown = [{"pointer": problem.where, "text": problem.text} for problem in problems]
    return {"valid": not shown, "problems": shown or None}


_NUMBERS = ("considered", "evaluated", "matched", "failed", "nodes_changed")
#: Numbers that are hidden for a sensitive rule: only whether it matches may be known.
_SEALED = frozenset({"evaluated", "nodes_changed"})
STATISTICS_FIELDS = ("uuid", "name", "phase", "enabled", "built_in", "sensitive", *_NUMBERS, "last_matched_at",
                     "last_node")
STATISTICS_KEYS = ("id", "uuid", "name", "phase", *_NUMBERS, "last_matched_at")


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


def statistics_of_built_in(rules: Iterable[Rule], counted: Mapping[str, object]) -> list[CountedRule]:
    """Return built-in rules with their statistics.

    :param counted: rows by UUID
    """
    counted_rules: list[CountedRule] = []
    for rule in rules:
        row = counted.get(rule.uuid)
        numbers = {} if row is None else {
            name: getattr(row, name) for name in (*_NUMBERS, "last_matched_at", "last_node")}
        counted_rules.append(_BuiltIn(rule.uuid, rule.name, rule.phase, rule.enabled, rule.sensitive, **numbers))
    return counted_rules


def statistics(base: str, row: CountedRule, fields: Sequence[str]) -> JSONObject:
    """Return the statistics of a rule."""
    shown = {name: None if row.sensitive and name in _SEALED else getattr(row, name)
             for name in STATISTICS_FIELDS if name in fields}
    shown["links"] = links.resource(base, "inspection_rules", row.uuid)
    return shown


def statistics_page(rows: Sequence[CountedRule], page: Page) -> list[CountedRule]:
    """Return a page of the statistics of all rules, which are in the order of their creation.

    :raises MarkerNotFound: 404
    """
    ordered = list(rows)
    if page.sort_key != "id":
        ordered.sort(key=lambda row: _order(row, page.sort_key))
    if page.sort_dir == "desc":
        ordered.reverse()
    start = 0
    if page.marker is not None:
        start = next((place for place, row in enumerate(ordered, 1) if row.uuid == page.marker), 0)
        if not start:
            raise MarkerNotFound(marker=page.marker)
    return ordered[start:start + page.limit]


def _order(row: CountedRule, key: str) -> tuple[bool, Any, str]:
    value = None if row.sensitive and key in _SEALED else getattr(row, key)
    return value is not None, 0 if value is None else value, row.uuid


LEGACY_COLLECTION = "rules"


def legacy_columns(fields: Collection[str]) -> tuple[str, ...]:
    """Return the columns that ``rules`` needs for ``fields``."""
    return tuple(name for name in LEGACY_RULE.columns if name == "uuid" or name in fields)


def legacy_rules(base: str, rows: Sequence[Row], fields: Collection[str], *, masked: bool = False) -> list[JSONObject]:
    """Return rules in the order of ``rows``.

    :param rows: with ``columns(fields)``, JSON columns as text
    :param masked: whether secrets in actions are hidden
    """
    names = legacy_columns(fields)
    replies: list[JSONObject] = []
    for row in rows:
        reply = {name: orjson.Fragment(value) if name in LEGACY_RULE.json else value
                 for name, value in zip(names, row, strict=True) if name in fields}
        if masked and "actions" in reply:
            reply["actions"] = rules_models.masked_actions(orjson.loads(row.actions))
        reply["links"] = _legacy_links(base, row.uuid)
        replies.append(reply)
    return replies


def legacy_rule(base: str, row: LegacyRule, fields: Collection[str] = LEGACY_RULE.shown, *,
                masked: bool = False) -> JSONObject:
    """Return one rule.

    :param masked: whether secrets in actions are hidden
    """
    shown: JSONObject = {name: getattr(row, name) for name in LEGACY_RULE.columns if name in fields}
    if masked and "actions" in shown:
        shown["actions"] = rules_models.masked_actions(row.actions)
    return shown | {"links": _legacy_links(base, row.uuid)}


def _legacy_links(base: str, uuid: str) -> list[dict[str, str]]:
    # ironic-inspector has no link but this one.
    return links.resource(base, LEGACY_COLLECTION, uuid)[:1]
