"""Facts: named values of nodes, which a template of the rule language finds in the data of an inspection.

A fact has a text, a number, true or false, an address, or a list of one of these types on each node, or nothing.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields, field, record

#: Names of facts as a regular expression, and as a text.
NAME = r"[a-z][a-z0-9_]{0,62}"
NAME_CHARACTERS = "a lower-case letter, then up to 62 lower-case letters, digits and '_'"
MAX_UNIT, MAX_COMBINE = 32, 255
#: Maximum number of characters of a text, of values in a list, and the greatest absolute value of a number.
MAX_TEXT = 255
MAX_VALUES = 1000
MAX_NUMBER = 2**53
#: Maximum number of facts: that of the ids, less what could be deleted and created at once.
MAX_FACTS = 10_000

Kind = Literal["text", "address", "mac", "integer", "number", "boolean"]
TEXTS: tuple[Kind, ...] = ("text", "address", "mac")
NUMBERS: tuple[Kind, ...] = ("integer", "number", "boolean")
TYPES = (*TEXTS, *NUMBERS)
Origin = Literal["built-in", "operator"]
BUILT_IN: Origin = "built-in"
OPERATOR: Origin = "operator"

Scalar = str | int | float | bool


@record
class Fact:
    """The definition of a fact, as it is stored.

    ``value`` is a template, a list of templates, or a condition, with the result true or false. With ``loop`` it is
    evaluated for each item; ``conditions`` select items, or nodes if there is no loop. ``combine`` has conversions of
    the list: ``sum|gb``. ``type`` is that of the newest value, ``is_list`` whether any node has had a list. ``id`` is
    0 for a fact that is not stored yet. ``revision`` and ``defined`` are those of the set of facts at the last change,
    and at the last one by which its values may be others.
    """

    id: int = field(shown=False, default=0)
    revision: int = field(shown=False, default=0)
    defined: int = field(shown=False, default=0)

    name: str = field(create=True, summary=True, required=True, default="")
    created_at: datetime.datetime | None = field(default=None)
    updated_at: datetime.datetime | None = field(default=None)
    bundle: str | None = field(patch=True, summary=True, filter=1, min_length=1, default=None)
    description: str | None = field(patch=True, summary=True, default=None)
    unit: str | None = field(patch=True, summary=True, min_length=1, max_length=MAX_UNIT, default=None)
    type: str | None = field(summary=True, filter=1, choices=TYPES, default=None)
    is_list: bool = field(summary=True, default=False)
    watched: bool = field(patch=True, summary=True, filter=1, default=False)
    origin: str = field(summary=True, filter=1, choices=(BUILT_IN, OPERATOR), default=OPERATOR)
    value: Any = field(patch=True, required=True, default="")
    loop: Any = field(patch=True, default=None)
    conditions: list[JSONObject] = field(patch=True, default_factory=list)
    combine: str | None = field(patch=True, min_length=1, default=None)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Fact:
        """Return the fact with these fields; null stands for the default."""
        return cls(**{name: value for name, value in values.items() if value is not None})

    def said(self) -> JSONObject:
        """Return what its values depend on, as a user writes it."""
        return {name: getattr(self, name) for name in DEFINITION}


#: The fields on which the values of a fact depend.
DEFINITION = ("value", "loop", "conditions", "combine")
#: Fields that a user may write.
WRITABLE = ("name", "bundle", "description", "unit", "watched", *DEFINITION)


class FactValue(NamedTuple):
    """The value of a fact on one node.

    :ivar values: one, or those of a list, which is not empty; all of the type
    """

    type: Kind
    values: tuple[Scalar, ...]
    is_list: bool = False

    def plain(self) -> Any:
        """Return it as JSON: a value or a list."""
        return list(self.values) if self.is_list else self.values[0]

    @property
    def is_text(self) -> bool:
        """Whether it is stored as text, else as number."""
        return self.type in TEXTS


@dataclasses.dataclass(slots=True)
class NodeFacts:
    """The facts of one node.

    :ivar values: by names; those that are absent are not here
    :ivar problems: why a fact is absent, or not all of its values are here, by names; no problem quotes a value
    """

    values: dict[str, FactValue] = dataclasses.field(default_factory=dict)
    problems: dict[str, str] = dataclasses.field(default_factory=dict)


def of_stored(type_: str, is_list: bool, stored: Iterable[Any]) -> Any:
    """Return a value, or a list, as JSON, of what the tables have of it in the order of the positions.

    :param type_: the type of the fact
    """
    values = list(stored)
    if type_ == "boolean":
        values = [bool(item) for item in values]
    elif type_ == "integer":
        values = [int(item) if float(item).is_integer() else item for item in values]
    return values if is_list or len(values) > 1 else values[0]


def digest(written: Iterable[tuple[int, int, object]]) -> str:
    """Return the hash by which is known whether the facts of a node have to be written.

    :param written: id and ``defined`` of each fact that has a value or a problem, and that
    """
    return hashlib.blake2b(repr(sorted(written)).encode(), digest_size=8).hexdigest()


FACT = Fields.of(Fact, computed={"links": 1, "problems": 1})
SUMMARY = FACT.summary
