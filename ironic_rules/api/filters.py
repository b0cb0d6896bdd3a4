"""Query parameters: declared per route and converted; unknown ones are refused by name.

::

    LIST = filters.Listing.of(RULE)
    ONE = filters.Query(fields=filters.names)
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from ironic_rules.api import schema
from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.models import addresses, documents
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields, Filter, Text, Type
from ironic_rules.text import is_uuid, pointer_token

#: Turns the text of a parameter into its value; the text of a ValueError says what is valid.
Kind = Callable[[str], Any]
#: The parameters of a request, with their values as their kinds return them; the route declares which there may be.
QueryValues: TypeAlias = dict[str, Any]
#: Name that openstacksdk sends -> name of the parameter.
ALIASES = {"details": "detail"}
MAX_TEXT = 1024


def text(value: str, longest: int = MAX_TEXT) -> str:
    """Any text without control characters."""
    if len(value) > longest:
        raise ValueError(f"must have at most {longest} characters")
    if not value.isprintable():
        raise ValueError("must not contain control characters")
    return value


def text_of(longest: int) -> Kind:
    """Text of at most so many characters."""
    def convert(value: str) -> str:
        return text(value, longest)

    convert.__name__ = text.__name__
    return convert


def boolean(value: str) -> bool:
    """``true``, ``False``, ``1``, ``no``, …"""
    return schema.as_bool(value)


def integer(value: str) -> int:
    """A decimal number of at most 18 digits."""
    digits = value.removeprefix("-")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 18:
        raise ValueError("must be an integer")
    return int(value)


def positive(value: str) -> int:
    """A number of at least 1."""
    number = integer(value)
    if number < 1:
        raise ValueError("must be positive")
    return number


def at_most(most: int) -> Kind:
    """A number of at least 1."""
    def convert(value: str) -> int:
        if (number := positive(value)) > most:
            raise ValueError(f"must be at most {most}")
        return number

    convert.__name__ = positive.__name__
    return convert


def uuid(value: str) -> str:
    """A UUID, in lower case afterwards."""
    if not is_uuid(value):
        raise ValueError("must be a UUID")
    return value.lower()


def moment(value: str) -> datetime.datetime:
    """A time as in ISO 8601, e.g. ``2026-03-01T12:00:00Z``; without a zone it is UTC."""
    try:
        parsed = datetime.datetime.fromisoformat(text(value))
    except ValueError as error:
        raise ValueError("must be a time like 2026-03-01T12:00:00Z") from error
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=datetime.UTC)


def mac(value: str) -> str:
    """A MAC address, normalized, or an InfiniBand address that it stands for."""
    return addresses.mac_of_infiniband(value) or addresses.check_mac(value)


def json_pointer(value: str) -> str:
    """A JSON pointer, e.g. ``/driver_info``."""
    try:
        return documents.format_pointer(documents.parse_pointer(text(value)))
    except documents.PointerError as error:
        raise ValueError(error.reason) from error


def names(value: str, longest: int = MAX_TEXT) -> tuple[str, ...]:
    """Comma-separated words, e.g. ``uuid,name``; empty ones are dropped."""
    return tuple(word for word in (part.strip() for part in text(value, longest).split(",")) if word)


class OneOf:
    """One of ``values``."""

    def __init__(self, values: tuple[str, ...]) -> None:
        self.values = values

    def __call__(self, value: str) -> str:
        if value not in self.values:
            raise ValueError(f"must be one of {', '.join(self.values)}")
        return value


def one_of(*values: str) -> OneOf:
    """Return the kind of a parameter that has one of ``values``."""
    return OneOf(values)


_SHAPES: dict[Kind, JSONObject] = {
    text: {"type": "string", "maxLength": MAX_TEXT}, boolean: {"type": "boolean"}, integer: {"type": "integer"},
    positive: {"type": "integer", "minimum": 1}, uuid: {"type": "string", "format": "uuid"},
    names: {"type": "string", "maxLength": MAX_TEXT, "description": "names, separated by commas"},
    moment: {"type": "string", "description": "a point in time as in ISO 8601"},
    mac: {"type": "string", "description": "a MAC address"},
    json_pointer: {"type": "string", "description": "a JSON pointer"},
}


def json_schema(kind: Kind) -> JSONObject:
    """Return the JSON schema of the values of a parameter; a kind of a single route is described by its docstring."""
    if isinstance(kind, OneOf):
        return {"type": "string", "enum": list(kind.values)}
    if kind in _SHAPES:
        return _SHAPES[kind]
    return {"type": "string", **({"description": kind.__doc__.strip().rstrip(".")} if kind.__doc__ else {})}


class Query:
    """The parameters that a route takes."""

    def __init__(self, **kinds: Kind) -> None:
        self.kinds = kinds

    def load(self, query_string: str) -> QueryValues:
        """Return the parameters that were given, converted.

        :raises InvalidParameterValue: 400, with the names of unknown parameters, and every invalid value
        """
        if not query_string:
            return self.complete({})
        values: JSONObject = {}
        problems: list[Problem] = []
        unknown: list[str] = []
        for name, value in parse_qsl(query_string, keep_blank_values=True, errors="surrogateescape"):
            current = ALIASES.get(name, name)
            kind = self.kinds.get(current)
            if kind is None:
                unknown.append(pointer_token(name.encode("utf-8", "replace").decode()))
                continue
            try:
                loaded = kind(value)
            except ValueError as error:
                problems.append(Problem(name, str(error)))
                continue
            if current in values:
                if not isinstance(loaded, tuple):
                    # Two values are ambiguous; do not silently use the last one.
                    problems.append(Problem(name, "is given more than once"))
                    continue
                loaded = values[current] + loaded
            values[current] = loaded
        if unknown:
            raise InvalidParameterValue(f"Unexpected query parameters: {', '.join(sorted(set(unknown)))}.")
        if problems:
            raise InvalidParameterValue(problems=problems)
        return self.complete(values)

    def complete(self, values: JSONObject) -> JSONObject:
        """Check what concerns several parameters."""
        return values


class Listing(Query):
    """The parameters of a list: ``limit marker sort_key sort_dir fields detail``, and the filters given here.

    :param sort_keys: the values that ``sort_key`` may have
    :param marker: the type of what identifies a resource in this collection
    :param fields: the names that ``fields`` may have; None: the method checks them itself (``check_fields``)
    """

    def __init__(self, *, sort_keys: Iterable[str], fields: Iterable[str] | None = None, marker: Kind = uuid,
                 **kinds: Kind) -> None:
        self.fields = None if fields is None else frozenset(fields)
        every: dict[str, Kind] = {
            "limit": positive, "marker": marker, "sort_key": one_of(*sort_keys), "sort_dir": one_of("asc", "desc"),
            "fields": names, "detail": boolean}
        super().__init__(**{**every, **kinds})

    @classmethod
    def of(cls, table: Fields, *, checked: bool = True, without: Collection[str] = (),
           sort_keys: Iterable[str] = (), **more: Kind) -> Listing:
        """Return the parameters of a list of a resource, from the table of its fields.

        :param checked: ``fields`` may name the fields of replies, in any version; else the method checks it itself
        :param without: filters that do not apply to this list
        :param sort_keys: in addition to the fields of the table
        :param more: other parameters, or other types of parameters
        """
        kinds = of(table, without)
        return cls(sort_keys=sorted({*table.sort_keys, *sort_keys}), fields=table.shown if checked else None,
                   **{**kinds, **more})

    def complete(self, values: JSONObject) -> JSONObject:
        if values.get("detail") and "fields" in values:
            raise InvalidParameterValue("detail and fields cannot be used in one request.")
        if self.fields is not None and "fields" in values:
            check_fields(values["fields"], self.fields)
        return values


def of(table: Fields, without: Collection[str] = ()) -> dict[str, Kind]:
    """Return the filters of a list of a resource, from the table of its fields."""
    return {name: _kind(entry) for name, entry in table.filters.items() if name not in without}


def _kind(entry: Filter) -> Kind:
    if entry.choices:
        return one_of(*entry.choices)
    if entry.many:
        return names
    if entry.type in (Type.BOOLEAN, Type.INTEGER):
        return boolean if entry.type is Type.BOOLEAN else integer
    if entry.max_length is not None:
        return text_of(entry.max_length)
    return {Text.UUID: uuid, Text.MAC: mac, Text.POINTER: json_pointer}.get(entry.text, text)


def check_fields(requested: Iterable[str], selectable: Iterable[str]) -> None:
    """Check the names in ``fields``.

    :raises InvalidParameterValue: 400, with the names that do not exist
    """
    unknown = sorted(set(requested).difference(selectable))
    if unknown:
        shown = ", ".join(pointer_token(name) for name in unknown)
        raise InvalidParameterValue(f"fields: unknown field(s): {shown}.")
