"""What a BMC's registry of BIOS attributes says about each setting: its type, its bounds, its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ironic_rules.hardware.redfish.inventory import SECRET
from ironic_rules.models.documents import JSON
from ironic_rules.models.nodes import BIOSSetting, as_text
from ironic_rules.text import printable

#: Number of registries that are looked at: BMCs have up to a hundred of them, most of messages.
_MOST_FILES = 4
_LONGEST = 255
_LARGEST = 2**63 - 1

Read = Callable[[str], Any]


def attributes(read: Read, root: Mapping[str, JSON], name: Any) -> dict[str, Mapping[str, Any]]:
    """Return the entries of the registry ``name`` by the names of their attributes; none if the BMC does not have it.

    :param read: returns a JSON document of the BMC
    :param root: the service root
    """
    if not isinstance(name, str) or not name:
        return {}
    collection = _path(root.get("Registries"))
    paths = [] if collection is None else [path for member in _objects(read(collection), "Members")
                                           if (path := _path(member)) is not None]
    exact = [path for path in paths if path.rstrip("/").rpartition("/")[2] == name]
    likely = [path for path in paths if "bios" in path.lower() or "attribute" in path.lower()]
    for path in [*exact, *(path for path in likely if path not in exact)][:_MOST_FILES]:
        file = read(path)
        for place in _objects(file, "Location"):
            if str(place.get("Language", "en")).lower().startswith("en") and isinstance(place.get("Uri"), str):
                document = read(place["Uri"])
                if name in (file.get("Registry"), file.get("Id"), _get(document, "Id")):
                    return {entry["AttributeName"]: entry for entry in _objects(
                        _get(document, "RegistryEntries"), "Attributes") if isinstance(entry.get("AttributeName"), str)}
    return {}


def setting(name: str, value: JSON, entry: Mapping[str, JSON]) -> BIOSSetting | None:
    """Return a setting with what its registry ``entry`` says; a password has no value. None: it cannot be stored."""
    if len(name) > _LONGEST or printable(name) != name:
        return None
    allowed = [str(one["ValueName"]) for one in _objects(entry, "Value") if "ValueName" in one]
    kind = entry.get("Type")
    if kind == "Password" or SECRET.search(name):
        # Neither a password nor its hash is stored.
        value = None
    return BIOSSetting(
        name, as_text(value), attribute_type=kind[:_LONGEST] if isinstance(kind, str) else None,
        allowable_values=tuple(allowed) if allowed else None,
        lower_bound=_number(entry, "LowerBound"), max_length=_number(entry, "MaxLength"),
        min_length=_number(entry, "MinLength"), read_only=_boolean(entry, "ReadOnly"),
        reset_required=_boolean(entry, "ResetRequired"), unique=_boolean(entry, "IsSystemUniqueProperty"),
        upper_bound=_number(entry, "UpperBound"))


def _objects(document: JSON, key: str) -> Iterator[Mapping[str, Any]]:
    found = _get(document, key)
    yield from (entry for entry in found if isinstance(entry, Mapping)) if isinstance(found, list) else ()


def _get(document: JSON, key: str) -> Any:
    return document.get(key) if isinstance(document, Mapping) else None


def _path(reference: Any) -> str | None:
    path = _get(reference, "@odata.id")
    return path if isinstance(path, str) else None


def _number(entry: Mapping[str, JSON], key: str) -> int | None:
    found = entry.get(key)
    # In Python, true is a number.
    if isinstance(found, bool) or not isinstance(found, (int, float)) or found != found:
        return None
    return int(found) if abs(found) <= _LARGEST else None


def _boolean(entry: Mapping[str, JSON], key: str) -> bool | None:
    found = entry.get(key)
    return found if isinstance(found, bool) else None
