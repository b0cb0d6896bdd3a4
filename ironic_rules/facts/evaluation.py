"""Evaluation of facts over the data of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ironic_rules.facts.definitions import CompiledFact
from ironic_rules.models import facts, secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.facts import MAX_NUMBER, MAX_TEXT, MAX_VALUES, FactValue, Kind, NodeFacts, Scalar
from ironic_rules.models.secrets import Concealment
from ironic_rules.rules.errors import CannotEvaluate, MissingPath, OperandError
from ironic_rules.rules.getters import View
from ironic_rules.text import is_storable

#: Maximum number of items that the loops of all facts have together, on one node.
MAX_ITEMS = 200_000
#: Characters of a problem: those of the column.
MAX_PROBLEM = 255
_NUMERIC = frozenset({"integer", "number"})
_TOO_MANY = f"more than {MAX_VALUES} values; the others are left out"
_TOO_LONG = f"a text is longer than {MAX_TEXT} characters"
_TOO_GREAT = "a number is not between -2^53 and 2^53"
_UNSTORABLE = "a text has NUL or a lone surrogate character"
_NO_SCALAR = "a value is neither text nor a number, true or false"
_MIXED = "the values have several types: {}"


class FactSet:
    """All facts. Immutable, shared by threads.

    :param compiled: with a name each
    """

    def __init__(self, compiled: Iterable[CompiledFact] = ()) -> None:
        self.facts: Mapping[str, CompiledFact] = {fact.name: fact for fact in compiled}

    def find(self, data: FactData) -> NodeFacts:
        """Return the facts of a node."""
        node_facts = NodeFacts()
        for name, fact in self.facts.items():
            value, problem = data.value_of(fact)
            if value is not None:
                node_facts.values[name] = value
            if problem is not None:
                node_facts.problems[name] = problem
        return node_facts

    def digest(self, node_facts: NodeFacts) -> str:
        """Return the hash of the facts of a node; see ``models.facts.digest``."""
        values, problems = node_facts.values, node_facts.problems
        return facts.digest((self.facts[name].id, self.facts[name].defined, (values.get(name), problems.get(name)))
                            for name in {*values, *problems})


class LazyFacts(dict[str, Any]):
    """The facts of a node by names, as JSON; each is found when it is read."""

    __slots__ = ("_data", "_facts")

    def __init__(self, fact_set: FactSet, data: FactData) -> None:
        super().__init__()
        self._facts = fact_set.facts
        self._data = data

    def __missing__(self, name: str) -> Any:
        value, _ = self._data.value_of(self._facts[name])
        if value is None:
            raise KeyError(name)
        plain = self[name] = value.plain()
        return plain


class _View(View):
    """The data of one node without secrets.

    :param free: roots that have none, so that nothing of them is copied
    """

    __slots__ = ("free",)

    def __init__(self, sources: Mapping[str, Callable[[], Any]], free: frozenset[str]) -> None:
        super().__init__(sources, True, set())
        self.free = free

    def shown(self, root: str, path: str, value: Any) -> Any:
        return value if root in self.free else super().shown(root, path, value)


class FactData:
    """The data in which the facts of one node are found. Evaluation changes none of them.

    :param node: returns the fields of the node, when a fact reads them
    :param conceal: the places that must not be shown: facts that read them are absent
    :param free: the roots that are known to have no secrets, which is faster
    """

    __slots__ = ("_conceal", "_left", "_lists", "_view")

    def __init__(self, inventory: Mapping[str, Any], plugin_data: Mapping[str, Any], node: Callable[[], JSONObject],
                 conceal: Concealment | None = None, free: frozenset[str] = frozenset()) -> None:
        self._view = _View({"inventory": lambda: inventory, "plugin_data": lambda: plugin_data, "node": node}, free)
        self._conceal = conceal if conceal is not None and conceal.has_sources else None
        self._left = MAX_ITEMS
        self._lists: dict[str, tuple[list[Any], str | None]] = {}

    def value_of(self, fact: CompiledFact) -> tuple[FactValue | None, str | None]:
        """Return the value of a fact, if there is one, and the reason why it is absent or incomplete."""
        if self._conceal is not None and any(map(self._conceal.is_read, fact.reads)):
            return None, None
        try:
            if fact.items is None and not fact.many:
                return self._single(fact)
            return self._list(fact)
        except MissingPath:
            return None, None
        except CannotEvaluate as exc:
            return None, str(exc)[:MAX_PROBLEM]
        except RecursionError:
            return None, _NO_SCALAR

    def _single(self, fact: CompiledFact) -> tuple[FactValue | None, str | None]:
        view = self._view
        for condition in fact.conditions:
            if not _holds(condition.call, view):
                return None, None
        (get, kind), = fact.parts
        result = get(view)
        if result.__class__ is list:
            return _of_list(result, kind)
        kind, value = _scalar(result, kind)
        return (None, None) if kind is None else (FactValue(kind, (value,)), None)

    def _list(self, fact: CompiledFact) -> tuple[FactValue | None, str | None]:
        # Number, sum and maximum of the same items read these once.
        if fact.source not in self._lists:
            self._lists[fact.source] = self._items(fact)
        items, problem = self._lists[fact.source]
        if fact.combine is None:
            value, wrong = _of_list(items, fact.kind)
        else:
            value, wrong = _combined(fact, items)
        return value, wrong or problem

    def _items(self, fact: CompiledFact) -> tuple[list[Any], str | None]:
        """Return the values to combine, and the problem of one of them."""
        view = self._view
        problem: str | None = None
        values: list[Any] = []
        if fact.items is None:
            if all(_holds(condition.call, view) for condition in fact.conditions):
                problem = self._add(fact, values)
        else:
            items = fact.items(view)
            if len(items) > self._left:
                problem = f"the loops of all facts have more than {MAX_ITEMS} items"
                items = items[:self._left]
            self._left -= len(items)
            calls = [condition.call for condition in fact.conditions]
            for item in items:
                view["item"] = item
                try:
                    for call in calls:
                        if not call(view):
                            break
                        view["item"] = item  # that of its own loop
                    else:
                        problem = self._add(fact, values) or problem
                except CannotEvaluate:  # a condition
                    pass
        return values, problem

    def _add(self, fact: CompiledFact, values: list[Any]) -> str | None:
        """Add the values of an item; return the problem of one."""
        problem = None
        for get, _ in fact.parts:
            try:
                value = get(self._view)
                if value.__class__ is int:
                    values.append(value)
                elif value.__class__ is list:
                    values += [item for item in map(_plain, value) if item is not None]
                elif (value := _plain(value)) is not None:
                    values.append(value)
            except MissingPath:
                pass
            except CannotEvaluate as exc:
                problem = str(exc)[:MAX_PROBLEM]
        return problem


def _holds(call: Callable[[View], bool], view: View) -> bool:
    try:
        return call(view)
    except CannotEvaluate:
        return False


def _combined(fact: CompiledFact, values: list[Any]) -> tuple[FactValue | None, str | None]:
    if not values and not fact.counts:
        return None, None
    assert fact.combine is not None
    result = fact.combine(values)
    if isinstance(result, list):
        return _of_list(result, fact.kind)
    kind, value = _scalar(result, fact.kind)
    return (None, None) if kind is None else (FactValue(kind, (value,)), None)


def _of_list(items: list[Any], kind: Kind | None) -> tuple[FactValue | None, str | None]:
    problem = None
    if len(items) > MAX_VALUES:
        problem, items = _TOO_MANY, items[:MAX_VALUES]
    scalars: list[Scalar] = []
    kinds: set[Kind] = set()
    for item in items:
        try:
            item_kind, value = _scalar(item, kind)
        except CannotEvaluate as exc:
            problem = str(exc)
            continue
        if item_kind is not None:
            kinds.add(item_kind)
            scalars.append(value)
    if not scalars:
        return None, problem
    if len(kinds) > 1:
        if kinds != _NUMERIC:
            return None, _MIXED.format(", ".join(sorted(kinds)))
        kinds = {"number"}
    return FactValue(kinds.pop(), tuple(scalars), True), problem


def _plain(value: Any) -> Any:
    """Return a value as it is compared and combined: None stands for what has none."""
    if value.__class__ is str:
        value = value.strip()
        return None if not value or secrets.MASK in value else value
    return value


def _scalar(value: Any, kind: Kind | None) -> tuple[Kind | None, Scalar]:
    """Return the type and the value of one; the type is None if there is none.

    :param kind: the type that texts have
    :raises OperandError: it cannot be stored
    """
    value = _plain(value)
    if value is None:
        return None, ""
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise OperandError(_TOO_LONG)
        if not (value.isprintable() or is_storable(value)):
            raise OperandError(_UNSTORABLE)
        return kind or "text", value
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, (int, float)):
        if not -MAX_NUMBER <= value <= MAX_NUMBER:  # nor is NaN
            raise OperandError(_TOO_GREAT)
        return ("integer", int(value)) if isinstance(value, int) else ("number", value)
    raise OperandError(_NO_SCALAR)
