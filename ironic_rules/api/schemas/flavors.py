"""Bodies of flavors and their extra specs: Nova's."""

from __future__ import annotations

import math

from ironic_rules.api import schema
from ironic_rules.api.schema import Boolean, Integer, Map, Object, Problems, Schema, Text
from ironic_rules.models.documents import JSON
from ironic_rules.models.flavors import FIELDS, MAX_AMOUNT, MAX_DESCRIPTION, MAX_LENGTH

#: The greatest number that a REAL of every database can hold.
_MAX_FACTOR = 3.4e38


class FlavorId(Text):
    """What identifies a flavor in URLs; an integer is its digits."""

    def __init__(self) -> None:
        super().__init__(MAX_LENGTH, pattern=r"(?! )[a-zA-Z0-9. _-]+(?<! )", nullable=True, expected=(
            "letters, digits, '-', '_', '.' and, between them, blanks are allowed"))

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        if type(value) is int and 0 <= value <= MAX_AMOUNT:
            value = str(value)
        ident = super().convert(value, where, problems)
        if ident in schema.RESERVED_NAMES or not ident.strip(". "):
            raise ValueError("is reserved")
        return ident


class FlavorName(Text):
    """The name of a flavor, as a user sees it."""

    def __init__(self) -> None:
        super().__init__(MAX_LENGTH, min_length=1)

    def convert(self, value: JSON, where: str, problems: Problems) -> str:
        name = super().convert(value, where, problems)
        if "/" in name:
            raise ValueError("must not contain a slash")
        if not name.isprintable() or name != name.strip():
            raise ValueError("must be printable, without blanks at its ends")
        return name


class Factor(Schema):
    """A number above 0, which may be sent as text."""

    def convert(self, value: JSON, where: str, problems: Problems) -> float:
        if isinstance(value, str) and len(value) <= MAX_LENGTH and value.isascii():
            whole, _, part = value.partition(".")
            value = float(value) if whole.isdigit() and (part or "0").isdigit() else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not (
                math.isfinite(value) and 0 < value <= _MAX_FACTOR):
            raise ValueError("must be a number above 0")
        return float(value)


_SHAPES: dict[str, Schema] = {
    "flavorid": FlavorId(), "name": FlavorName(), "memory_mb": Integer(1, MAX_AMOUNT),
    "root_gb": Integer(0, MAX_AMOUNT), "swap": Integer(0, MAX_AMOUNT), "ephemeral_gb": Integer(0, MAX_AMOUNT),
    "vcpus": Integer(1, MAX_AMOUNT), "is_public": Boolean(), "rxtx_factor": Factor(),
    "description": Text(MAX_DESCRIPTION, multiline=True, nullable=True),
}
_REQUIRED = ("name", "ram", "vcpus", "disk")

CREATE = Object({"flavor": Object({name: _SHAPES[column] for name, column in FIELDS.items()}, required=_REQUIRED)},
                required=("flavor",))
#: Below 2.55.
CREATE_WITHOUT_DESCRIPTION = Object(
    {"flavor": Object({name: _SHAPES[column] for name, column in FIELDS.items() if name != "description"},
                      required=_REQUIRED)}, required=("flavor",))
UPDATE = Object({"flavor": Object({"description": _SHAPES["description"]}, required=("description",))},
                required=("flavor",))
#: Keys and values are checked together with what they mean, so that a reply has all problems.
EXTRA_SPECS = Object({"extra_specs": Map()}, required=("extra_specs",))
EXTRA_SPEC = Map()
