"""Questions about nodes in requests: whom they may be asked, facts as columns of nodes, and the order of a fact."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.api import authorization, versions
from ironic_rules.api.request import Request
from ironic_rules.db import fact_values, node_queries
from ironic_rules.db.paging import Page
from ironic_rules.db.questions import Asking, Condition
from ironic_rules.db.tables import nodes
from ironic_rules.exceptions import Forbidden, Invalid, InvalidParameterValue, Problem
from ironic_rules.facts import questions, where
from ironic_rules.facts.where import WhereError
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.questions import All, Question, StoredFact, Test
from ironic_rules.policies import nodes as nodes_policies
from ironic_rules.policies import rules as policies
from ironic_rules.text import nearest, pointer_token

#: The begin of a sort key that is a fact.
SORTED = "fact:"
#: Maximum number of facts in one request.
MAX_COLUMNS = 50
#: Fields of nodes of which callers who are confined to their project may not see all values.
_HIDDEN = frozenset({*nodes_policies.GET_FIELD, "maintenance_reason"})


class Questions:
    """The questions of one request, and the facts that they and the request have.

    Callers who are confined to a project see the facts of nodes that it owns, as they see their inventories.
    """

    def __init__(self, request: Request, conn: sa.Connection) -> None:
        self._request = request
        self._conn = conn

    @functools.cached_property
    def known(self) -> Mapping[str, StoredFact]:
        """All facts by their names."""
        return fact_values.stored_facts(self._conn)

    def read(self, clause: str | None, conditions: Sequence[object] | None = None) -> Question:
        """Return the question of a request.

        :param clause: in the short form;  conditions: of a rule
        :raises Invalid: 400, with every problem;  Forbidden: 403
        """
        parts: list[Question] = []
        limits = self._request.rules.limits
        if clause is not None:
            with _named():
                parts.append(questions.of_clause(clause, self.known, limits=limits))
        if conditions is not None:
            parts.append(questions.of_conditions(conditions, self.known, limits=limits))
        question = parts[0] if len(parts) == 1 else All(tuple(parts))
        self._check(question)
        return question

    def conditions_of_rule(self, clause: str) -> list[JSONObject]:
        """Return the conditions of a rule that matches what a clause selects.

        :raises InvalidParameterValue: 400, with the column of each problem
        """
        with _named():
            return where.conditions_of(where.parse(clause, questions.names(self.known)))

    def condition(self, question: Question, asking: Asking) -> Condition:
        """Return the condition for the nodes that a question selects, of those whose facts the caller may see."""
        holds = asking.condition(question)
        if not any(test.place.kind == "fact" for test in _tests(question)):
            return holds
        return sa.and_(*self.visible(asking), holds)

    def visible(self, asking: Asking) -> list[Condition]:
        """Return the conditions for nodes whose facts the caller may see.

        :raises Forbidden: 403
        """
        confined = authorization.of_request(self._request.conf, policies.FACT_LIST, self._request.context)
        return [] if confined is None else [asking.of_nodes(nodes.c.owner == confined.project)]

    def conditions(self, filters: Mapping[str, Any], question: Question | None) -> fact_values.Conditions:
        """Return what makes the conditions for nodes that pass the filters of a list and a question."""
        rest = {name: value for name, value in filters.items() if name not in ("include_children", "where")}

        def made(asking: Asking) -> list[Condition]:
            conditions = [asking.without_parent()] if filters.get("include_children") is False else []
            if rest:
                conditions.append(asking.of_nodes(*node_queries.conditions(rest)))
            return conditions if question is None else [*conditions, self.condition(question, asking)]

        return made

    def facts(self, names: Collection[str], parameter: str = "facts") -> dict[str, StoredFact]:
        """Return facts by the names that a request has.

        :raises InvalidParameterValue: 400, with the most similar names;  Forbidden: 403
        """
        if len(names) > MAX_COLUMNS:
            raise InvalidParameterValue(f"{parameter}: more than {MAX_COLUMNS} facts.")
        problems = []
        for name in names:
            if name not in self.known:
                near = nearest(name, self.known)
                hint = f"; did you mean {near!r}?" if near else "."
                problems.append(Problem(parameter, f"there is no fact {pointer_token(name)}{hint}"))
        if problems:
            raise InvalidParameterValue(problems=problems)
        self.visible(Asking(self._conn, {}))
        return {name: self.known[name] for name in names}

    def page(self, fact: StoredFact, page: Page, conditions: fact_values.Conditions,
             among: Sequence[Condition]) -> list[int]:
        """Return the ids of the nodes of a page in the order of a fact."""
        def seen(asking: Asking) -> Sequence[Condition]:
            return [*conditions(asking), *self.visible(asking)]

        return fact_values.sorted_nodes(self._conn, self.known, fact, page, seen, among)

    def add_columns(self, names: Collection[str], rows: Sequence[Any], shown: Iterator[JSONObject],
                    ) -> Iterator[JSONObject]:
        """Yield nodes with their facts: null for what a node does not have, or the caller may not see.

        :param rows: of the nodes, with ``id``;  shown: the nodes as JSON
        """
        facts = self.facts(names)
        visible = self._conn.scalars(sa.select(nodes.c.id).where(
            nodes.c.id.in_([row.id for row in rows]), *self.visible(Asking(self._conn, {}))))
        values = fact_values.of_nodes(self._conn, facts, list(visible))
        nothing = dict.fromkeys(facts)
        for row, node in zip(rows, shown, strict=True):
            yield {**node, "facts": values.get(row.id, nothing)}

    @functools.cached_property
    def own_nodes(self) -> JSONObject:
        """The filters of lists of nodes for those that the caller may list, whatever it may see of facts.

        :raises Forbidden: 403, it may list none
        """
        confined = authorization.of_request(self._request.conf, nodes_policies.LIST, self._request.context)
        return {} if confined is None else {"project": confined.project}

    def may_ask(self, field: str) -> bool:
        """Return whether the caller may ask about a field of nodes."""
        try:
            return field not in _HIDDEN or not self.own_nodes
        except Forbidden:
            return False

    def _check(self, question: Question) -> None:
        for test in _tests(question):
            if test.place.kind == "node" and not self.may_ask(test.place.name):
                raise Invalid(f"{test.place.name} cannot be asked by callers who are confined to their project.")


@contextlib.contextmanager
def _named() -> Iterator[None]:
    """Name the parameter in the problems of a clause."""
    try:
        yield
    except WhereError as error:
        problems = [Problem("where", problem.text) for problem in error.problems] or [Problem("where", str(error))]
        raise InvalidParameterValue(problems=problems) from None


def _tests(question: Question) -> Iterator[Test]:
    if isinstance(question, Test):
        yield question
    else:
        for part in question.parts:
            yield from _tests(part)


def check_version(request: Request, names: Collection[str]) -> None:
    """Check that the version of a request has facts, if it names any.

    :raises NotAcceptable: 406
    """
    if names and request.version < versions.INSPECTION_RULES:
        raise versions.too_new("facts", versions.INSPECTION_RULES)
