"""Inspection rules -> JSON. Conditions and actions are read as text and copied unchanged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from ironic_rules.api import links
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import Problem
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import RULE, SEALED, Rule
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
    known = problems or {}
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
            reply |= {name: _validity(known[uuid])[name] for name in valid} if uuid in known else valid
        if not shows_sensitive:
            del reply["sensitive"]
        if not shows_uuid:
            del reply["uuid"]
        reply["links"] = fragments.of(uuid)
        yield reply


def warnings(found: Iterable[RuleWarning]) -> list[JSONObject]:
    """Return warnings."""
    return [{"pointer": warning.where, "text": warning.text, "nearest": warning.nearest} for warning in found]


def warned(base: str, found: Rule, about: Sequence[RuleWarning], problems: Sequence[Problem] = ()) -> JSONObject:
    """Return a rule with the warnings about it; without any it has no such field.

    :param problems: why it is invalid
    """
    return rule(base, found, problems=problems) | ({"warnings": warnings(about)} if about else {})


def _values(rule: Rule, names: Collection[str]) -> Sequence[Any]:
    """Return the fields of a rule like a row whose JSON columns are text."""
    return [orjson.dumps(getattr(rule, name)) if name in RULE.json else getattr(rule, name) for name in names]


def rule(base: str, found: Rule, fields: Collection[str] = RULE.shown, problems: Sequence[Problem] = ()) -> JSONObject:
    """Return one rule, stored or built-in.

    :param problems: why it is invalid
    """
    sealed = SEALED if found.sensitive else ()
    shown: JSONObject = {
        name: None if name in sealed else getattr(found, name) for name in RULE.columns if name in fields}
    shown |= {name: value for name, value in _validity(problems).items() if name in fields}
    shown["links"] = links.resource(base, "inspection_rules", found.uuid)
    return shown


def _validity(problems: Sequence[Problem]) -> JSONObject:
    told = [{"pointer": problem.where, "text": problem.text} for problem in problems]
    return {"valid": not told, "problems": told or None}
