"""The filters of a list of rules, and the order in which rules run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ironic_rules.db.tables import inspection_rules
from ironic_rules.db.texts import contains, contains_without_case
from ironic_rules.models import rules
from ironic_rules.models.rules import PHASES, RULE, Rule

Condition = sa.ColumnElement[bool]

#: Priorities of stored rules have 32 bits, and so have positions; those of built-in rules can be beyond.
_LIMIT = 2**31 - 1
# Rules from before the phase had a default have none.
_PHASE = sa.case({name: number for number, name in enumerate(PHASES)}, value=inspection_rules.c.phase,
                 else_=PHASES.index("main"))


class RulePlace(NamedTuple):
    """The place of a rule in the order in which rules run."""

    phase: int
    priority: int
    position: int


def _any_of(column: sa.Column[Any], texts: Iterable[str]) -> Condition:
    return sa.or_(*(contains(column, text) for text in texts))


def _among(uuids: Iterable[str]) -> Condition:
    # As literals: there may be more than a statement can have parameters.
    return inspection_rules.c.uuid.in_(sa.bindparam(None, sorted(uuids), expanding=True, literal_execute=True))


_CONDITIONS: dict[str, Callable[[Any], Condition]] = {
    # Case-insensitive on every database, as matches() is.
    "description": lambda text: contains_without_case(inspection_rules.c.description, text),
    # PostgreSQL refuses a number that the type of the column cannot have.
    "priority": lambda number: inspection_rules.c.priority == sa.literal(number, sa.BigInteger),
    "op": lambda op: _any_of(inspection_rules.c.ops, rules.terms_of_op(op)),
    "writes": lambda path: _any_of(inspection_rules.c.writes, rules.terms_of_path(path)),
    "uuid_in": _among,
    "uuid_not_in": lambda uuids: sa.not_(_among(uuids)),
}


def conditions(filters: Mapping[str, Any]) -> list[Condition]:
    """Return the WHERE conditions for filters of ``RULE`` on what is stored, and ``uuid_in`` and ``uuid_not_in``.

    :raises ValueError: a filter that does not exist (an error of the caller: the API checks those of users)
    """
    unknown = filters.keys() - {*_CONDITIONS, *RULE.where(lambda entry: entry.filter is not None)}
    if unknown:
        raise ValueError(f"no such filter: {', '.join(sorted(unknown))}")
    return [_CONDITIONS[name](value) if name in _CONDITIONS else inspection_rules.c[name] == value
            for name, value in filters.items()]


def place_of(rule: Any) -> RulePlace:
    """Return the place of a rule or row, which has ``phase``, ``priority`` and ``position``."""
    return RulePlace(PHASES.index(rule.phase or "main"), -rule.priority, rule.position)


def in_order(query: sa.Select[Any], after: RulePlace | None, *, ascending: bool) -> sa.Select[Any]:
    """Return ``query`` in the order in which rules run: phase, priority descending, creation.

    :param after: continue after this place, which need not be that of a stored rule
    """
    parts = _PHASE, -inspection_rules.c.priority, inspection_rules.c.position
    if after is not None:
        bounds = [sa.literal(max(-_LIMIT, min(_LIMIT, value)), sa.Integer) for value in after]
        beyond: Condition = sa.false()
        for part, bound in zip(reversed(parts), reversed(bounds), strict=True):
            farther = part > bound if ascending else part < bound
            beyond = sa.or_(farther, sa.and_(part == bound, beyond))
        query = query.where(beyond)
    return query.order_by(*(part.asc() if ascending else part.desc() for part in parts))


def matches(rule: Rule, filters: Mapping[str, Any]) -> bool:
    """Return whether a rule that is not stored matches the same filters."""
    found = rules.search_texts({name: getattr(rule, name) for name in RULE})
    tests: dict[str, Callable[[Any], bool]] = {
        "description": lambda text: text.lower() in (rule.description or "").lower(),
        "op": lambda op: any(text in (found["ops"] or "") for text in rules.terms_of_op(op)),
        "writes": lambda path: any(text in (found["writes"] or "") for text in rules.terms_of_path(path)),
        "uuid_in": lambda uuids: rule.uuid in uuids,
        "uuid_not_in": lambda uuids: rule.uuid not in uuids,
    }
    return all(tests[name](value) if name in tests else getattr(rule, name) == value
               for name, value in filters.items())
