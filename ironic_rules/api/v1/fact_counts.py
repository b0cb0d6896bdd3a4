"""``/v1/facts``: values of facts with the numbers of their nodes, and the vocabulary of questions."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import filters, versions
from ironic_rules.api.expose import expose
from ironic_rules.api.filters import QueryValues
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.api.v1 import node_access
from ironic_rules.api.v1.asking import Questions
from ironic_rules.db import fact_values, facts, node_queries
from ironic_rules.db.fact_values import Counts
from ironic_rules.db.questions import Asking, Condition
from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.facts.where import NODE_NAMES, OPERANDS, OPERATORS, WORDS, Name
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.facts import NUMBERS
from ironic_rules.models.nodes import MAX_CLAUSE
from ironic_rules.models.questions import StoredFact
from ironic_rules.policies import rules as policies
from ironic_rules.text import enumeration

#: Number of values that are shown by default, and at most; of rows of a table, and of pairs of values in it.
_FEW, _MOST, _MOST_ROWS, _PAIRS = 20, 1000, 100, 2000
#: Number of ranges of a histogram.
_RANGES = 10


_ONE = filters.Query(where=filters.text_of(MAX_CLAUSE), failure=filters.text, limit=filters.at_most(_MOST))
_SEVERAL = filters.Query(**_ONE.kinds, facts=filters.names, fields=filters.names, by=filters.names)


class _Counting:
    """Counts of one request: among all nodes whose facts the caller may see, or those that a question selects."""

    def __init__(self, request: Request, conn: sa.Connection, query: QueryValues) -> None:
        self.asked = Questions(request, conn)
        self._conn = conn
        self._limit: int = query.get("limit", _FEW)
        filters: JSONObject = {"include_children": False}
        if "failure" in query:
            filters["failure"] = query["failure"]
        node_access.confine(request, filters)
        node_access.resolve(request, conn, filters)
        clause = query.get("where")
        self._listed = self.asked.conditions(filters, None if clause is None else self.asked.read(clause))
        self._narrowed = clause is not None
        self.nodes = fact_values.count_nodes(conn, self.asked.known, self._conditions)

    def _conditions(self, asking: Asking) -> list[Condition]:
        return [*self._listed(asking), *self.asked.visible(asking)]

    def show(self, name: str) -> JSONObject:
        """Return the counts of one fact as JSON."""
        fact = self.asked.facts([name], "fact")[name]
        is_number = fact.type in NUMBERS and fact.type != "boolean"
        counts = fact_values.counts(self._conn, self.asked.known, fact, self._conditions,
                                    None if is_number else self._limit, narrowed=self._narrowed)
        shown = counts.values[:self._limit]
        return {
            "fact": name, "type": fact.type, "unit": fact.unit, "is_list": fact.is_list, "nodes": self.nodes,
            "absent": self.nodes - counts.present,
            "values": [{"value": value, "nodes": count} for value, count in shown],
            "others": None if fact.is_list else counts.present - sum(count for _, count in shown),
            "ranges": _histogram(counts) if is_number else []}

    def show_field(self, name: str) -> JSONObject:
        """Return the counts of a field of nodes, or of traits, as JSON."""
        counts = fact_values.counts_of_field(self._conn, self.asked.known, name, self._conditions, self._limit)
        return {"field": name, "values": [{"value": value, "nodes": count} for value, count in counts]}

    def table(self, names: Sequence[str]) -> JSONObject:
        """Return a table of the values of two facts as JSON."""
        if len(set(names)) != 2:
            raise InvalidParameterValue("by must be the names of two facts, such as vendor,bios_version.")
        first, second = names
        fact, facts, most = self.asked.facts(names, "by")[first], self.asked.known, min(self._limit, _MOST_ROWS)
        counts = fact_values.counts(self._conn, facts, fact, self._conditions, most + 1, narrowed=self._narrowed)
        rows = counts.values[:most]
        pairs = fact_values.pairs(self._conn, facts, first, [value for value, _ in rows], second, self._conditions,
                                  _PAIRS)
        return {"by": list(names), "nodes": self.nodes,
                "complete": len(counts.values) <= most and len(pairs) < _PAIRS,
                "others": None if fact.is_list else counts.present - sum(number for _, number in rows),
                "cells": [{"values": [row, other], "nodes": count} for row, other, count in pairs]}


def _histogram(counts: Counts) -> list[JSONObject]:
    """Return ranges of equal size that begin with round numbers, each with the number of its nodes.

    A value is in a range if it is at least ``from`` and less than ``to``.
    """
    if len(counts.values) < 2:
        return []
    least, most = min(value for value, _ in counts.values), max(value for value, _ in counts.values)
    width = _round_width((most - least) / _RANGES)
    begin = math.floor(least / width)
    numbers = [0] * (math.floor(most / width) - begin + 1)
    for value, count in counts.values:
        numbers[min(math.floor(value / width) - begin, len(numbers) - 1)] += count
    bounds = [round((begin + place) * width, 6) for place in range(len(numbers) + 1)]
    bounds = [int(bound) if bound.is_integer() else bound for bound in bounds]
    return [{"from": bounds[place], "to": bounds[place + 1], "nodes": number} for place, number in enumerate(numbers)]


def _round_width(width: float) -> float:
    """Return the least of 1, 2 and 5 with any power of ten that is not less than ``width``."""
    power: float = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width * (1 - 1e-9))


class FactValuesController(Resource):
    """``/v1/facts/{fact}/values``."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_LIST, query=_ONE)
    def get_all(self, request: Request, fact: str, query: QueryValues) -> JSONObject:
        """Return the values of a fact with the numbers of their nodes, of all nodes or those that ``where`` selects.

        ``failure`` selects those of a group of ``/v1/node_failures``.
        ``values`` are the most frequent ones, ``limit`` of them (20), ``others`` counts the nodes with other values,
        ``absent`` those without a value, and ``ranges`` the nodes by ranges of a number. A node with a list counts for
        each of its values, and ``others`` is null. Nodes with a parent are not counted.

        :raises fact_not_found: 404;  InvalidParameterValue: 400, with the column of each problem
        """
        with request.db.reader() as conn:
            facts.get(conn, fact)
            return _Counting(request, conn, query).show(fact)


class FactsValuesController(Resource):
    """``/v1/facts/values``."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_LIST, query=_SEVERAL)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """Return what ``/v1/facts/{fact}/values`` does of several ``facts``, and the table of the two facts in ``by``.

        ``fields`` of nodes and ``traits`` are counted, too, without nodes that have no value.

        A cell of the table is a pair of values, and the number of nodes with both. The table has the ``limit`` most
        frequent values of the first fact (20, at most 100), and 2,000 cells at most; ``complete`` says whether these
        are all. ``others`` counts the nodes with other values of the first fact, null for a list.

        :raises InvalidParameterValue: 400
        """
        names, fields, by = (query.get(name, ()) for name in ("facts", "fields", "by"))
        if not names and not fields and not by:
            raise InvalidParameterValue("At least one of facts, fields and by is required.")
        filters.check_fields(fields, fact_values.COUNTED_FIELDS)
        with request.db.reader() as conn:
            counting = _Counting(request, conn, query)
            counting.asked.facts(names)
            reply: JSONObject = {"nodes": counting.nodes, "facts": [counting.show(name) for name in names],
                                 "fields": [counting.show_field(name) for name in fields]}
            return {**reply, "table": counting.table(by)} if by else reply


#: Seconds from which on a result is remembered, and how long: a process spends a tenth of its time at most.
_CHEAP_S, _SHARE = 0.05, 9
#: Values of each fact in the vocabulary, and facts that have values there without being named.
_FREQUENT, _MOST_COUNTED = 10, 500


class FrequentValues:
    """The frequent values of facts and fields among all nodes, remembered for a while. One per process; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, list[Any]] = {}
        self._known: frozenset[str] = frozenset()
        self._good_until = 0.0

    def get(self, conn: sa.Connection, facts: Mapping[str, StoredFact]) -> Mapping[str, list[Any]]:
        """Return them by the names of facts, and by ``node[..]`` of fields of nodes and ``node[traits]``."""
        with self._lock:
            began = time.monotonic()
            if began >= self._good_until or facts.keys() != self._known:
                counted = [*itertools.islice(sorted(facts), _MOST_COUNTED), *_COUNTED_FIELDS]
                self._found = _frequent(conn, facts, counted, lambda asking: (), ())
                self._known = frozenset(facts)
                took = time.monotonic() - began
                self._good_until = began + took + (_SHARE * took if took > _CHEAP_S else 0)
            return self._found


def _frequent(conn: sa.Connection, facts: Mapping[str, StoredFact], names: Iterable[str],
              conditions: fact_values.Conditions, own: Sequence[Condition]) -> dict[str, list[Any]]:
    """Return the most frequent values by names: of facts those that several nodes have, of fields all.

    :param conditions: for nodes whose facts the caller may see;  own: for those whose fields it may see
    """
    frequent = {}
    for name in names:
        if name in facts:
            counted = fact_values.counts(conn, facts, facts[name], conditions, _FREQUENT).values
            frequent[name] = [value for value, count in counted if count > 1]
        else:
            of_field = fact_values.counts_of_field(
                conn, facts, _COUNTED_FIELDS[name], lambda asking: [asking.of_nodes(*own)] if own else (), _FREQUENT)
            frequent[name] = [value for value, _ in of_field]
    return frequent


#: Fields of nodes whose frequent values are in the vocabulary, by their exact names.
_COUNTED_FIELDS = {f"node[{name}]": name for name in fact_values.COUNTED_FIELDS}
_VOCABULARY = filters.Query(names=filters.names)


class FactVocabularyController(Resource):
    """``/v1/facts/vocabulary``."""

    @expose(since=versions.INSPECTION_RULES, policy=policies.FACT_LIST, query=_VOCABULARY)
    def get_all(self, request: Request, query: QueryValues) -> JSONObject:
        """Return the names, operators and words of questions, to complete them.

        Each name has its ``type``, whether it ``is_list``, its ``unit`` and ``description``, and ``written``, which is
        exact: ``node[boot_mode]`` if a fact has the same name. ``values`` are the most frequent ones, of a fact those
        that several nodes have, then others that a field can have. With ``names``, which are facts, and ``node[..]`` of
        fields, only these have frequent values; without, the first 500 facts have, and with callers who are confined to
        a project none.

        ``types`` of an operator are those that it compares, ``lists`` says whether it compares lists, and ``operand``
        what follows it: ``one`` value, ``several`` in parentheses, or ``none``.

        :raises InvalidParameterValue: 400, there is no such fact or field
        """
        chosen = query.get("names", ())
        with request.db.reader() as conn:
            questions = Questions(request, conn)
            by_name = questions.known
            filters: JSONObject = {}
            node_access.confine(request, filters)
            own = questions.own_nodes
            _check_fields(name for name in chosen if name.startswith("node["))
            questions.facts([name for name in chosen if not name.startswith("node[")], "names")
            values = (_frequent(conn, by_name, chosen, questions.visible, node_queries.conditions(own))
                      if filters or own or chosen else request.frequent_values.get(conn, by_name))
            described = facts.descriptions(conn)
        names = [{"name": name, "written": name, "of": "fact", "type": fact.type, "is_list": fact.is_list,
                  "unit": fact.unit, "description": described.get(name), "values": values.get(name, [])}
                 for name, fact in sorted(by_name.items())]
        names += [{"name": name, "written": f"node[{name}]" if name in by_name else name, "of": "node",
                   "type": node.type, "is_list": node.many, "unit": None, "description": None,
                   "values": _with_choices(values.get(node.template[1:-1], ()), node)}
                  for name, node in NODE_NAMES.items() if questions.may_ask(name)]
        return {"names": names, "words": list(WORDS), "operators": [
            {"name": name, "types": sorted(types), "lists": lists, "operand": OPERANDS.get(name, "one")}
            for name, (types, lists) in OPERATORS.items()]}


def _check_fields(names: Iterable[str]) -> None:
    unknown = [name for name in names if name not in _COUNTED_FIELDS]
    if unknown:
        raise InvalidParameterValue(problems=[Problem(
            "names", f"no values are counted of {enumeration(unknown, 5)}, but of {', '.join(_COUNTED_FIELDS)}")])


def _with_choices(values: Sequence[Any], node: Name) -> list[Any]:
    """Return frequent values, then the others that a field can have."""
    return [*values, *(choice for choice in node.choices if choice not in values)]
