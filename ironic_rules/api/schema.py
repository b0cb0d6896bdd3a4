"""Schemas of request bodies: declared once at import; errors do not repeat the values that were sent.

::

    CREATE = schema.Object({"address": schema.Mac(), "node_uuid": schema.Uuid(), "extra": schema.Map()},
                           required=("address", "node_uuid"))
    values = CREATE.load(body)      # converted values, or Invalid (400) with every problem and its JSON pointer
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from oslo_utils import uuidutils

from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.models import addresses, fields, urls
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.text import is_uuid, pointer_token

Problems = list[Problem]
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TRUE = frozenset({"true", "yes", "on", "1", "t", "y"})
_FALSE = frozenset({"false", "no", "off", "0", "f", "n"})
#: Words that are routes in place of a name.
RESERVED_NAMES = frozenset({"detail"})


def as_bool(value: object) -> bool:
    """Return ``value`` as a boolean: a boolean, or text such as ``true``, ``Yes``, ``1``.

    :raises ValueError: it is neither
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (word := value.strip().lower()) in _TRUE | _FALSE:
        return word in _TRUE
    raise ValueError("must be true or false")


class Schema:
    """Base of all schemas. With ``nullable``, ``null`` is accepted as None."""

    expected = "a value"

    def __init__(self, *, nullable: bool = False) -> None:
        self.nullable = nullable

    def load(self, value: JSON) -> Any:
        """Return ``value`` converted.

        :raises Invalid: 400 with every problem
        """
        problems: Problems = []
        loaded = self.check(value, "", problems)
        if problems:
            raise Invalid(problems=problems)
        return loaded

    def check(self, value: JSON, where: str, problems: Problems) -> Any:
        """Return ``value`` converted, or add its problems to ``problems``; ``where`` is its JSON pointer."""
        if value is None and self.nullable:
            return None
        try:
            return self.convert(value, where, problems)
        except ValueError as error:
            problems.append(Problem(where, str(error)))
            return None

    def convert(self, value: JSON, where: str, problems: Problems) -> Any:
        """Return a non-null ``value`` converted; the text of a ValueError says what is valid."""
        return value

    def json_schema(self) -> JSONObject:
        """Return the JSON schema of what :meth:`check` accepts; checks that JSON schema does not know are missing."""
        shape = self.non_null()
        return {"anyOf": [shape, {"type": "null"}]} if self.nullable and shape else shape

    def non_null(self) -> JSONObject:
        """Return the JSON schema of the values that :meth:`convert` accepts."""
        return {}


class Anything(Schema):
    """Any JSON value."""


class Text(Schema):
    """A string without control characters (tab, newline and carriage return are allowed if ``multiline``)."""

    def __init__(self, max_length: int = 255, *, min_length: int = 0, pattern: str | None = None,
                 expected: str | None = None, multiline: bool = False, nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.max_length, self.min_length, self.multiline = max_length, min_length, multiline
        self.pattern = re.compile(pattern) if pattern else None
        self.expected = expected or (f"must match {pattern}" if pattern else "must be a string")

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a string")
        if len(value) > self.max_length:
            raise ValueError(f"must have at most {self.max_length} characters")
        if len(value) < self.min_length:
            raise ValueError(f"must have at least {self.min_length} character{'s' * (self.min_length > 1)}")
        if _CONTROL.search(value) or (not self.multiline and any(c in value for c in "\t\n\r")):
            raise ValueError("must not contain control characters")
        if self.pattern and not self.pattern.fullmatch(value):
            raise ValueError(self.expected)
        return value

    def non_null(self) -> JSONObject:
        return {"type": "string", "maxLength": self.max_length,
                **({"minLength": self.min_length} if self.min_length else {}),
                **({"pattern": f"^(?:{self.pattern.pattern})$"} if self.pattern else {})}


class HttpUrl(Text):
    """A URL with http or https, converted to its usual form. Where it leads to is checked by the conductor."""

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        return str(urls.parse(super().convert(value, where, problems)))


class Enum(Schema):
    """One of the given strings."""

    def __init__(self, *values: str, nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.values = values

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        if not isinstance(value, str) or value not in self.values:
            raise ValueError(f"must be one of {', '.join(self.values)}")
        return value

    def non_null(self) -> JSONObject:
        return {"type": "string", "enum": list(self.values)}


class Uuid(Schema):
    """A UUID, converted to lower case."""

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        if not isinstance(value, str) or not is_uuid(value):
            raise ValueError("must be a UUID")
        return value.lower()

    def non_null(self) -> JSONObject:
        return {"type": "string", "format": "uuid"}


class Mac(Schema):
    """A MAC address, converted to lower case with colons. As in Ironic, it may be any.

    An InfiniBand address is left as it is: whether ports may have one is an option (``v1.ports.check_addresses``).
    """

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        return value if isinstance(value, str) and addresses.mac_of_infiniband(value) else addresses.check_mac(value)

    def non_null(self) -> JSONObject:
        return {"type": "string", "description": "a MAC address"}


class Boolean(Schema):
    """A boolean; ``lenient`` also accepts strings such as ``"true"``, which the CLI sends."""

    def __init__(self, *, lenient: bool = True, nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.lenient = lenient

    def convert(self, value: JSON, where: str, problems: Problems) -> bool:
        if not self.lenient and not isinstance(value, bool):
            raise ValueError("must be true or false")
        return as_bool(value)

    def non_null(self) -> JSONObject:
        return {"type": ["boolean", "string"] if self.lenient else "boolean"}


class Integer(Schema):
    """An integer between two bounds, also written as a float (``1.0``).

    ``lenient`` also accepts a string of digits, which the CLI sends.
    """

    def __init__(self, minimum: int, maximum: int, *, lenient: bool = True, nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.minimum, self.maximum, self.lenient = minimum, maximum, lenient

    def convert(self, value: JSON, where: str, problems: Problems) -> int:
        if self.lenient and isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not self.minimum <= value <= self.maximum:
            raise ValueError(f"must be an integer between {self.minimum} and {self.maximum}")
        return value

    def non_null(self) -> JSONObject:
        number: JSONObject = {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}
        return {"anyOf": [number, {"type": "string", "pattern": "^-?[0-9]{1,19}$"}]} if self.lenient else number


class List(Schema):
    """A list whose items all have the schema ``of``."""

    def __init__(self, of: Schema | None = None, *, min_items: int = 0, max_items: int = 10_000,
                 nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.of, self.min_items, self.max_items = of or Anything(nullable=True), min_items, max_items

    def convert(self, value: JSON, where: str, problems: Problems) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError("must be a list")
        if not self.min_items <= len(value) <= self.max_items:
            raise ValueError(f"must have {self.min_items} to {self.max_items} items")
        return [self.of.check(item, f"{where}/{index}", problems) for index, item in enumerate(value)]

    def non_null(self) -> JSONObject:
        return {"type": "array", "items": self.of.json_schema(), "minItems": self.min_items,
                "maxItems": self.max_items}


class Map(Schema):
    """A JSON object with any content."""

    def convert(self, value: JSON, where: str, problems: Problems) -> JSONObject:
        if not isinstance(value, dict):
            raise ValueError("must be an object")
        return value

    def non_null(self) -> JSONObject:
        return {"type": "object"}


class Object(Schema):
    """A JSON object with declared fields; unknown ones are refused unless ``extra`` allows them.

    Fields that were not sent are absent from the result: defaults are set where the object is stored.
    """

    def __init__(self, fields: Mapping[str, Schema], *, required: Iterable[str] = (), extra: bool = False,
                 nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.fields, self.required, self.extra = dict(fields), tuple(required), extra

    def convert(self, value: JSON, where: str, problems: Problems) -> JSONObject:
        if not isinstance(value, dict):
            raise ValueError("must be an object")
        for name in self.required:
            if name not in value:
                problems.append(Problem(f"{where}/{name}", "is required"))
        loaded = {}
        for name, item in value.items():
            shape = self.fields.get(name)
            if shape is not None:
                loaded[name] = shape.check(item, f"{where}/{name}", problems)
            elif self.extra:
                loaded[name] = item
            else:
                problems.append(Problem(f"{where}/{pointer_token(name)}", "is not a known field"))
        return loaded

    def non_null(self) -> JSONObject:
        return {"type": "object", "properties": {name: shape.json_schema() for name, shape in self.fields.items()},
                "required": list(self.required), "additionalProperties": self.extra}


#: RFC 3986's unreserved characters: what is in a URL as it is.
UNRESERVED = r"[A-Za-z0-9\-._~]+"


class Name(Text):
    """A name that can be used in a URL in place of a UUID: RFC 3986's unreserved characters, and not a UUID itself."""

    def __init__(self, reserved: Collection[str] = RESERVED_NAMES) -> None:
        super().__init__(255, min_length=1, pattern=UNRESERVED, nullable=True, expected=(
            "is an invalid name: letters, digits, '-', '.', '_' and '~' are allowed"))
        self.reserved = reserved

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        name = super().convert(value, where, problems)
        if uuidutils.is_uuid_like(name):
            raise ValueError("is an invalid name: a name must not look like a UUID")
        if name in self.reserved:
            raise ValueError(f"is an invalid name: reserved words are {', '.join(sorted(self.reserved))}")
        return name


def of(table: fields.Fields, names: Iterable[str], special: Mapping[str, Schema] | None = None) -> dict[str, Schema]:
    """Return the schemas of fields of a resource, from the table of its fields.

    ``null`` means the default of a field, so all fields accept it but those that cannot be removed.

    :param special: schemas of fields that the table does not describe completely
    """
    return {name: (special or {}).get(name) or _shape(table[name]) for name in table if name in names}


def _shape(entry: fields.Field) -> Schema:
    nullable = not entry.required or entry.default is not None
    match entry.type, entry.text:
        case fields.Type.OBJECT, _:
            return Map(nullable=nullable)
        case fields.Type.BOOLEAN, _:
            return Boolean(nullable=nullable)
        case _, fields.Text.NAME:
            return Name()
        case _, fields.Text.UUID:
            return Uuid(nullable=nullable)
        case _, fields.Text.MAC:
            return Mac(nullable=nullable)
        case _, fields.Text.GROUP:
            return Text(entry.max_length, pattern=fields.GROUP_NAME, nullable=nullable,
                        expected=fields.GROUP_CHARACTERS)
    return Text(entry.max_length, min_length=entry.min_length, multiline=entry.text is fields.Text.LINES,
                nullable=nullable)
