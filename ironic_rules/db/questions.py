"""Questions as conditions of queries for nodes.

The values of facts are in two tables, each with two indexes: by fact and value, which finds the nodes with a value, and
by node and fact, which finds the values of a node.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

from ironic_rules.db.identity import contains
from ironic_rules.db.tables import fact_numbers, fact_texts, node_traits, nodes, ports
from ironic_rules.db.types import UTCDateTime
from ironic_rules.exceptions import Invalid
from ironic_rules.models.facts import Scalar
from ironic_rules.models.questions import MAX_VALUES, All, Place, Question, StoredFact, Test

Condition: TypeAlias = sa.ColumnElement[bool]
#: Number of nodes up to which those of a test are found first; of more, a page is among the first nodes of all.
_FEW = 5000


class Asking:
    """Makes conditions for queries that select nodes, or values of nodes.

    :param facts: by name, of all facts that the questions have
    :param node_id: the column of the query that says which node a row is of
    :param counted: the query counts all of its rows
    """

    def __init__(self, conn: sa.Connection, facts: Mapping[str, StoredFact],
                 node_id: sa.ColumnElement[int] = nodes.c.id, *, counted: bool = False) -> None:
        self._conn = conn
        self._facts = facts
        self._id = node_id
        self._is_of_nodes = node_id is nodes.c.id
        self._counted = counted

    def of_nodes(self, *conditions: Condition) -> Condition:
        """Return the condition that the node of a row fulfils conditions of the table of nodes."""
        if self._is_of_nodes:
            return sa.and_(sa.true(), *conditions)
        if self._counted:
            return self._id.in_(sa.select(nodes.c.id).where(*conditions))
        return sa.exists().where(nodes.c.id == self._id, *conditions)

    def without_parent(self) -> Condition:
        """Return the condition that the node of a row has no parent. Few have one: they are left out."""
        if self._is_of_nodes:
            return nodes.c.parent_node.is_(None)
        # SQLite does not use the index for IS NOT NULL, but for what is greater than an empty text.
        return self._id.not_in(sa.select(nodes.c.id).where(nodes.c.parent_node > ""))

    def condition(self, question: Question) -> Condition:
        """Return the condition that a node fulfils which the question selects.

        :raises Invalid: 400, a function would be called for too many values
        """
        if isinstance(question, Test):
            return self._test(question)
        if isinstance(question, All) and self._is_of_nodes and self._conn.dialect.name == "sqlite":
            return sa.and_(sa.true(), *self._from_the_fewest(question.parts))
        parts = [self.condition(part) for part in question.parts]
        return sa.and_(sa.true(), *parts) if isinstance(question, All) else sa.or_(sa.false(), *parts)

    def _rows(self, place: Place) -> _Rows:
        return _Rows(self._facts, place, in_text=self._conn.dialect.name == "postgresql")

    def _from_the_fewest(self, parts: Sequence[Question]) -> Iterator[Condition]:
        """Yield the conditions of parts that all must hold; if one has few nodes, the others look at these only.

        Else all of them look at one node after the other. Servers find out which one has the fewest; SQLite would find
        the nodes of each.
        """
        tests = {place: (rows, passing) for place, part in enumerate(parts) if isinstance(part, Test)
                 and part.place.kind != "node" and not (part.inverted or part.missing)
                 and (passing := self._passing(part, rows := self._rows(part.place))) is not None}
        counts = {place: self._count(rows, passing) for place, (rows, passing) in tests.items()}
        fewest = min(counts, key=lambda place: counts[place], default=None)
        is_few = fewest is not None and counts[fewest] <= _FEW
        for place, part in enumerate(parts):
            if place not in tests:
                yield self.condition(part)
            elif is_few and place == fewest:
                yield self._found(*tests[place])
            else:
                yield self._exists(*tests[place])

    def _count(self, rows: _Rows, passing: Condition) -> int:
        """Return the number of rows that pass, at most one more than few."""
        some = sa.select(rows.node_id).where(rows.own, passing).limit(_FEW + 1).subquery()
        return int(self._conn.scalar(sa.select(sa.func.count()).select_from(some)) or 0)

    def _test(self, test: Test) -> Condition:
        if test.place.kind == "node":
            return self._of_column(test)
        rows = self._rows(test.place)
        passing = self._passing(test, rows)
        if not test.inverted:
            is_long = self._counted or test.op == "has"
            passes = sa.false() if passing is None else self._found(rows, passing, is_long=is_long)
            return sa.or_(passes, sa.not_(self._exists(rows))) if test.missing else passes
        none_pass = sa.true() if passing is None else sa.not_(self._exists(rows, passing))
        return none_pass if test.missing else sa.and_(self._exists(rows), none_pass)

    def _found(self, rows: _Rows, passing: Condition, *, is_long: bool = False) -> Condition:
        """Return the condition for nodes with a value that passes, by the index of values.

        :param is_long: all rows of the index, or all nodes, are looked at anyway
        """
        query = sa.select(rows.node_id).where(rows.own, passing)
        if is_long and self._conn.dialect.name == "mysql":
            # Without, it looks at the values of one node after the other, in all of the table.
            query = sa.select(query.distinct().subquery().c.node_id)
        return self._id.in_(query)

    def _exists(self, rows: _Rows, *passing: Condition) -> Condition:
        """Return the condition for nodes with a value that passes, by the index of nodes."""
        if self._conn.dialect.name == "sqlite":
            # SQLite has no statistics, and would look at all nodes with such a value for each node.
            passing = tuple(sa.func.coalesce(condition, sa.false()) for condition in passing)
        return sa.exists().where(rows.node_id == self._id, rows.own, *passing)

    def _of_column(self, test: Test) -> Condition:
        column = nodes.c[test.place.name]
        passing = self._passing(test, self._rows(test.place))
        holds = sa.false() if passing is None else passing
        if test.inverted:
            holds = sa.not_(holds)
        if column.nullable:
            holds = sa.or_(column.is_(None), holds) if test.missing else sa.and_(column.is_not(None), holds)
        return self.of_nodes(holds)

    def _passing(self, test: Test, rows: _Rows) -> Condition | None:
        """Return the condition for values that pass; None: no value does."""
        if test.op == "none" or not rows.has_values:
            return None
        if test.op == "any":
            return sa.true()
        if test.op != "fulfils":
            return rows.compared(test.op, test.values)
        assert test.function is not None
        values = self._different(rows)
        passing = [value for value in values if test.function(rows.plain(value))]
        if len(passing) * 2 <= len(values):
            return rows.among(passing) if passing else None
        passed = set(passing)
        return sa.not_(rows.among([value for value in values if value not in passed]))

    def _different(self, rows: _Rows) -> list[Any]:
        """Return the different values of a place."""
        query = sa.select(rows.value).where(rows.own, rows.value.is_not(None)).distinct().limit(MAX_VALUES + 1)
        values = list(self._conn.scalars(query))
        if len(values) > MAX_VALUES:
            raise Invalid(f"{rows.name} has more than {MAX_VALUES} different values, too many for this condition: "
                          "compare it with =, in, <, >, starts, or with contains and a text without operators.")
        return values


class _Rows:
    """The rows that have the values of a place.

    :param in_text: constants are in the text of statements: PostgreSQL plans one that is repeated for any values of its
        parameters, as if each had few nodes, which is far too slow for a page
    """

    def __init__(self, facts: Mapping[str, StoredFact], place: Place, *, in_text: bool) -> None:
        self._in_text = in_text
        self.name = place.name or place.kind
        self._fact = facts[place.name] if place.kind == "fact" else None
        if self._fact is not None:
            table = fact_texts if self._fact.is_text else fact_numbers
            # In the statement, so that servers know how many rows the fact has.
            own = sa.literal(self._fact.id, sa.SmallInteger, literal_execute=True)
            self.own: Condition = table.c.fact_id == own
            self.value: sa.Column[Any] = table.c.value
        else:
            self.value = node_traits.c.trait if place.kind == "traits" else ports.c.address if (
                place.kind == "ports") else nodes.c[place.name]
            table = self.value.table  # type: ignore[attr-defined]
            self.own = sa.true()
        self.node_id: sa.Column[int] = nodes.c.id if table is nodes else table.c.node_id

    @property
    def has_values(self) -> bool:
        """Whether any node may have a value."""
        return self._fact is None or self._fact.type is not None

    def plain(self, value: Any) -> Scalar:
        """Return a value as rules have it."""
        kind = None if self._fact is None else self._fact.type
        if isinstance(value, datetime.datetime):
            return value.isoformat()
        if kind == "boolean":
            return bool(value)
        return int(value) if kind == "integer" and float(value).is_integer() else value

    def compared(self, op: str, constants: Iterable[Scalar]) -> Condition | None:
        """Return the condition for values that pass a comparison with constants; None: no value can."""
        values = [value for value in map(self._stored, constants) if value is not None]
        if not values:
            return None
        value, first = self.value, values[0]
        if op == "one of":
            return value == self._constant(first) if len(values) == 1 else self.among(values)
        if op == "has":
            return contains(value, first)
        if op == "begins":
            return begins(value, first, in_text=self._is_in_text)
        constant = self._constant(first)
        return {"lt": value < constant, "le": value <= constant, "gt": value > constant, "ge": value >= constant}[op]

    def among(self, values: list[Any]) -> Condition:
        """Return the condition for values that are among these."""
        listed = sa.bindparam(None, values, self.value.type, expanding=True, literal_execute=self._is_in_text)
        return self.value.in_(listed)

    def _constant(self, value: Any) -> sa.ColumnElement[Any]:
        return sa.literal(value, self.value.type, literal_execute=self._is_in_text)

    @property
    def _is_in_text(self) -> bool:
        # SQLAlchemy has no text of a time.
        return self._in_text and not isinstance(self.value.type, UTCDateTime)

    def _stored(self, constant: Scalar) -> Any:
        """Return a constant as the column has it; None: no value of the column equals it, is less or is greater."""
        kind = self.value.type
        if isinstance(kind, UTCDateTime):
            return datetime.datetime.fromisoformat(constant) if isinstance(constant, str) else None
        if isinstance(kind, (sa.String, sa.Text)):
            return constant if isinstance(constant, str) else None
        is_boolean = isinstance(kind, sa.Boolean) or (self._fact is not None and self._fact.type == "boolean")
        if isinstance(constant, str) or isinstance(constant, bool) != is_boolean:
            return None
        return constant if isinstance(kind, sa.Boolean) else float(constant)


def begins(column: sa.ColumnElement[Any], text: str, *, in_text: bool = False) -> Condition:
    """Return the condition for texts that begin with ``text``, by an index of the column.

    :param in_text: the constants are in the text of the statement
    """
    end = _after(text)
    first, last = (sa.literal(limit, sa.String(), literal_execute=in_text) for limit in (text, end or ""))
    return column >= first if end is None else sa.and_(column >= first, column < last)


def _after(text: str) -> str | None:
    """Return the first text, in the order of code points, after all that begin with ``text``; None: there is none."""
    while text:
        last = ord(text[-1])
        if last < 0x10FFFF:
            following = 0xE000 if last + 1 == 0xD800 else last + 1
            return text[:-1] + chr(following)
        text = text[:-1]
    return None
