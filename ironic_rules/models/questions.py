"""Questions about nodes: tests of values that the database has of a node, joined by "and" and "or".

A test says what a condition of a rule says (``facts.questions`` makes one of the other), in a form that databases can
answer: constants that are compared, or a function, which is called with each different value that any node has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ironic_rules.models.facts import TEXTS, Scalar

#: Number of different values of a place that are tested one by one. More take long, and are too many for a statement.
MAX_VALUES = 10_000


class StoredFact(NamedTuple):
    """The columns of a fact that questions need.

    :ivar type: that of its values; None: no node has one
    :ivar is_list: whether a node has a list of them
    """

    id: int
    type: str | None
    is_list: bool = False
    unit: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether its values are stored as texts."""
        return self.type in TEXTS


class Place(NamedTuple):
    """Where a node has a value, or several.

    :ivar kind: ``fact``, ``node`` (a field), ``traits`` or ``ports`` (their MAC addresses)
    :ivar name: that of the fact or field
    """

    kind: Literal["fact", "node", "traits", "ports"]
    name: str = ""


#: Comparisons of a value; ``fulfils`` calls the function of the test. The constants of ``has`` and ``begins`` are parts
#: of a text; any value passes ``any``, and none ``none``.
Op = Literal["one of", "lt", "le", "gt", "ge", "has", "begins", "any", "none", "fulfils"]


@dataclass(frozen=True, slots=True)
class Test:
    """A test of one place: whether a value of it passes.

    :ivar values: constants of the comparison
    :ivar inverted: a node passes if none of its values does
    :ivar missing: whether a node without a value passes
    """

    place: Place
    op: Op
    values: tuple[Scalar, ...] = ()
    inverted: bool = False
    missing: bool = False
    function: Callable[[Scalar], bool] | None = None


@dataclass(frozen=True, slots=True)
class All:
    """All parts hold; without any, this is true of each node."""

    parts: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the parts holds; without any, this is true of no node."""

    parts: tuple[Question, ...]


Question: TypeAlias = "All | AnyOf | Test"
EVERYTHING, NOTHING = All(()), AnyOf(())
