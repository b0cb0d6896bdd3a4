"""The single table of a resource's fields: declared with their types, read by every module that handles fields.

A resource is a class whose annotations are its fields. Further properties of a field are declared beside its type::

    @form
    class Node(Protocol):
        name: str | None = field(since=5, patch=True, rules=True, summary=True, text=Text.NAME)

    NODE = Fields.of(Node)

The type checker reads the annotation; the API (versions, views, sort keys, filters, bodies), drafts and rules read
``NODE``. Columns and migrations stay in ``db``, and a test compares the two.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, dataclass_transform

from ironic_rules.models.documents import JSONObject

Cls = TypeVar("Cls", bound=type)

#: Maximum number of characters of a text for which the table declares no other limit.
MAX_LENGTH = 255
#: Name of a conductor group, as a regular expression and as a text; case does not matter.
GROUP_NAME = r"[A-Za-z0-9_\-.]*"
GROUP_CHARACTERS = "letters, digits, '-', '_' and '.' are allowed"
_METADATA = "ironic_rules"


class Type(enum.Enum):
    """The JSON type of a field's values; times are transmitted as ISO 8601 text."""

    STRING = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    TIME = "time"
    OBJECT = "object"
    LIST = "list"
    ANY = "any JSON value"


class Text(enum.Enum):
    """The format of a text that a user writes."""

    LINE = "one line"
    LINES = "several lines"
    NAME = "a name that can stand in a URL"
    GROUP = "the name of a conductor group"
    UUID = "a UUID"
    MAC = "a MAC address"
    POINTER = "a JSON pointer"


_TYPES: dict[Any, Type] = {
    str: Type.STRING, int: Type.INTEGER, bool: Type.BOOLEAN, datetime.datetime: Type.TIME, dict: Type.OBJECT,
    list: Type.LIST, tuple: Type.LIST, Any: Type.ANY,
}
_EMPTY: dict[Type, Callable[[], Any]] = {
    Type.STRING: str, Type.INTEGER: int, Type.BOOLEAN: bool, Type.OBJECT: dict, Type.LIST: list}


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a list.

    :ivar since: first minor version of the API that supports it
    :ivar many: it accepts several values, separated by commas
    :ivar choices: the values that it accepts; empty: any
    :ivar max_length: maximum number of characters; None: that of all texts
    """

    name: str
    type: Type = Type.STRING
    since: int = 1
    text: Text = Text.LINE
    many: bool = False
    choices: tuple[str, ...] = ()
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a resource; :func:`field` documents each attribute."""

    name: str
    type: Type
    nullable: bool
    since: int = 1
    shown: bool = True
    column: bool = True
    create: bool = False
    patch: bool = False
    required: bool = False
    rules: bool = False
    hooks: bool = False
    steps: bool = False
    secret: bool = False
    summary: bool = False
    state: bool = False
    filter: int | None = None
    choices: tuple[str, ...] = ()
    text: Text = Text.LINE
    max_length: int = MAX_LENGTH
    min_length: int = 0
    default: Any = None

    def empty(self) -> Any:
        """Return the value after a rule has deleted it: null, or the empty value of the type (false for a Boolean)."""
        return None if self.nullable else _EMPTY.get(self.type, type(None))()

    def initial(self) -> Any:
        """Return the value if a request gives none or removes it: the default, else as :meth:`empty`."""
        return self.empty() if self.default is None else self.default


def field(*, since: int = 1, shown: bool = True, column: bool = True, create: bool | None = None, patch: bool = False,
          required: bool = False, rules: bool = False, hooks: bool = False, steps: bool = False, secret: bool = False,
          summary: bool = False, state: bool = False, filter: int | None = None, choices: Iterable[str] = (),
          text: Text = Text.LINE, max_length: int = MAX_LENGTH, min_length: int = 0,
          default: Any = dataclasses.MISSING, default_factory: Any = dataclasses.MISSING) -> Any:
    """Declare the properties of a field, except for its type.

    :param since: first minor version of the API that supports it
    :param shown: replies contain it; only the service itself reads the others
    :param column: a column of the resource's own table; others come from the tables that a query joins
    :param create: a request may set it when the resource is created; as ``patch`` by default
    :param patch: PATCH may write it
    :param required: it cannot be removed; a request that creates the resource must have it, unless it has a default
    :param rules: inspection rules may write it, and so may hooks and steps
    :param hooks: inspection hooks may write it, and so may steps
    :param steps: steps may write it
    :param secret: secrets in it are shown as ``******`` in replies
    :param summary: lists show it without ``detail`` and ``fields``
    :param state: a part of ``/states`` of a node
    :param filter: first minor version whose lists can be filtered by it; None: they cannot
    :param choices: the values that it can have: others are refused by the filter, these are offered in questions
    :param text: the format of a text; max_length, min_length: its number of characters
    :param default: its value if none is given; without a default null, or the empty value of its type
    """
    static = None if default is dataclasses.MISSING else default
    properties = {
        "since": since, "shown": shown, "column": column, "create": patch if create is None else create, "patch": patch,
        "required": required, "rules": rules, "hooks": hooks, "steps": steps, "secret": secret, "summary": summary,
        "state": state, "filter": filter, "choices": tuple(choices), "text": text, "max_length": max_length,
        "min_length": min_length, "default": static}
    declared: Any = dataclasses.field(default=default, default_factory=default_factory,
                                      metadata={_METADATA: properties})
    return declared


def form(cls: Cls) -> Cls:
    """Make a protocol of a class whose fields are declared with :func:`field`: rows and drafts satisfy it.

    The declarations are removed from the class, because a draft that is derived from it has its own attributes.
    """
    declared = {name: value for name, value in vars(cls).items() if isinstance(value, dataclasses.Field)}
    for name in declared:
        delattr(cls, name)
    cls.__form_fields__ = declared  # type: ignore[attr-defined]
    return cls


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: Cls) -> Cls:
    """Make an immutable dataclass of a class whose fields are declared with :func:`field`."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)  # type: ignore[return-value]


class Fields(Mapping[str, Field]):
    """The fields of a resource by name, in the order of replies."""

    def __init__(self, fields: Iterable[Field], computed: Mapping[str, int], inputs: Mapping[str, int],
                 filters: Iterable[Filter]) -> None:
        """Prefer :meth:`of`, which reads a class.

        :param computed: fields of replies that are not in the rows, with the first minor version that has them
        :param inputs: fields of requests that replies do not have, with the first minor version that has them
        :param filters: filters of lists in addition to those by the value of a field
        """
        self._fields = {entry.name: entry for entry in fields}
        #: all fields of replies
        self.shown = frozenset({*self.columns, *computed})
        self._since = {name: self._fields[name].since for name in self.columns} | dict(computed) | dict(inputs)
        self._hidden = {minor: frozenset(name for name, since in self._since.items() if minor < since)
                        for minor in range(max(self._since.values()) + 1)}
        by_value = (Filter(entry.name, entry.type, entry.filter, entry.text, choices=entry.choices)
                    for entry in self._fields.values() if entry.filter is not None)
        self.filters = {declared.name: declared for declared in (*by_value, *filters)}

    @classmethod
    def of(cls, resource: type, *, computed: Mapping[str, int] | None = None, inputs: Mapping[str, int] | None = None,
           filters: Iterable[Filter] = ()) -> Fields:
        """Return the fields of a class that :func:`form` or :func:`record` made."""
        hints = typing.get_type_hints(resource)
        declared: Mapping[str, Any] = getattr(resource, "__form_fields__", None) or {
            entry.name: entry for entry in dataclasses.fields(resource)}
        fields = (_field(name, hints[name], entry.metadata[_METADATA]) for name, entry in declared.items())
        return cls(fields, computed or {}, inputs or {}, filters)

    def __getitem__(self, name: str) -> Field:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def where(self, condition: Callable[[Field], bool]) -> tuple[str, ...]:
        """Return the names of the fields for which ``condition`` holds, in order."""
        return tuple(name for name, entry in self._fields.items() if condition(entry))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Fields of replies that are in the rows."""
        return self.where(lambda entry: entry.shown)

    @cached_property
    def json(self) -> frozenset[str]:
        """Fields whose columns hold JSON."""
        return frozenset(self.where(lambda entry: entry.type in (Type.OBJECT, Type.LIST, Type.ANY)))

    @cached_property
    def secret(self) -> frozenset[str]:
        """Fields whose secrets replies hide."""
        return frozenset(self.where(lambda entry: entry.secret))

    @cached_property
    def summary(self) -> tuple[str, ...]:
        """Fields of a list without ``detail`` and ``fields``."""
        return self.where(lambda entry: entry.summary)

    @cached_property
    def sort_keys(self) -> frozenset[str]:
        """Fields that lists can be sorted by: ``id`` is the order of creation."""
        return frozenset(self.where(lambda entry: entry.shown and entry.column)) - self.json | {"id"}

    @cached_property
    def patchable(self) -> frozenset[str]:
        """Fields that a PATCH may write."""
        return frozenset(self.where(lambda entry: entry.patch))

    @cached_property
    def writable_by_rules(self) -> frozenset[str]:
        """Fields that inspection rules may write."""
        return frozenset(self.where(lambda entry: entry.rules))

    @cached_property
    def writable_by_hooks(self) -> frozenset[str]:
        """Fields that inspection hooks may write."""
        return self.writable_by_rules.union(self.where(lambda entry: entry.hooks))

    @cached_property
    def writable_by_steps(self) -> frozenset[str]:
        """Fields that steps may write."""
        return self.writable_by_hooks.union(self.where(lambda entry: entry.steps))

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Fields that cannot be removed."""
        return self.where(lambda entry: entry.required)

    def defaults(self) -> JSONObject:
        """Return the defaults of the fields that PATCH may write, where removing the field does not set it to null."""
        values = {name: self._fields[name].initial() for name in self._fields if self._fields[name].patch}
        return {name: value for name, value in values.items() if value is not None and name not in self.required}

    def since(self, name: str) -> int:
        """Return the first minor version that supports a field."""
        return self._since[name]

    def hidden(self, minor: int) -> frozenset[str]:
        """Return the fields that version ``minor`` does not support yet."""
        return self._hidden.get(minor, frozenset())


def values_of(fields: Fields, thing: object) -> JSONObject:
    """Return the fields of a row or record by name, of those that are columns."""
    return {name: getattr(thing, name) for name in fields}


def _field(name: str, hint: Any, properties: Mapping[str, Any]) -> Field:
    options = set(typing.get_args(hint)) if isinstance(hint, types.UnionType) else {hint}
    kind, = options - {type(None)}
    return Field(name, _TYPES[typing.get_origin(kind) or kind], type(None) in options, **properties)
