"""Flavors and their extra specs, as Nova has them; and what extra specs require of a bare-metal node."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ironic_rules.models.documents import JSON

#: Maximum number of characters of a name, an identifier, and of the key and the value of an extra spec.
MAX_LENGTH = 255
MAX_DESCRIPTION = 65535
#: The maximum of an INTEGER in every supported database.
MAX_AMOUNT = 2**31 - 1

#: A field in requests and replies -> the attribute and column, which are also its name in ``sort_key``.
FIELDS = {
    "id": "flavorid", "name": "name", "ram": "memory_mb", "disk": "root_gb", "swap": "swap",
    "OS-FLV-EXT-DATA:ephemeral": "ephemeral_gb", "vcpus": "vcpus", "os-flavor-access:is_public": "is_public",
    "rxtx_factor": "rxtx_factor", "description": "description",
}
#: Keys by which lists can be sorted; ``id`` is the order of creation.
SORT_KEYS = ("id", *FIELDS.values(), "created_at", "updated_at")

_KEY = re.compile(r"[a-zA-Z0-9_:. -]+")
#: Placement's name of a resource class has no other characters.
_NOT_IN_CLASS = re.compile(r"[^A-Z0-9_]")


@dataclass(frozen=True, slots=True)
class Flavor:
    """A stored flavor. ``flavorid`` identifies it in URLs, ``id`` in the database; sizes are in MiB and GiB.

    ``swap`` is in MiB. ``extra_specs`` are sorted by their keys.
    """

    id: int
    flavorid: str
    name: str
    memory_mb: int
    vcpus: int
    root_gb: int
    ephemeral_gb: int
    swap: int
    rxtx_factor: float
    is_public: bool
    description: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    extra_specs: Mapping[str, str] = field(default_factory=dict, kw_only=True)


def wrong_key(key: str) -> str | None:
    """Return why ``key`` cannot be the key of an extra spec, whatever it means; None if it can."""
    if not 0 < len(key) <= MAX_LENGTH:
        return f"The name of an extra spec has 1 to {MAX_LENGTH} characters."
    if not _KEY.fullmatch(key):
        return "The name of an extra spec has letters, digits, '-', '_', ':', '.' and blanks only."
    if key in (".", ".."):
        return "This name cannot stand in a URL."
    return None


def wrong_value(value: JSON) -> str | None:
    """Return why ``value`` cannot be the value of an extra spec, whatever its key means; None if it can."""
    if not isinstance(value, str):
        return "The value must be a text."
    if len(value) > MAX_LENGTH:
        return f"The value has at most {MAX_LENGTH} characters."
    if not value.isprintable():
        return "The value must not contain control characters."
    return None


def resource_class_in_placement(name: str) -> str:
    """Return the name under which Nova reports a node's resource class: ``baremetal.gold`` is CUSTOM_BAREMETAL_GOLD."""
    normal = _NOT_IN_CLASS.sub("_", name.upper())
    return normal if normal.startswith("CUSTOM_") else f"CUSTOM_{normal}"
