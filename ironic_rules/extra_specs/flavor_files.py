"""Finding extra specs and properties of images in files: what clients print, and what tools read that create them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ironic_rules.extra_specs.values import MAX_LENGTH

#: The keys by which a mapping is recognized as what ``openstack flavor show`` or ``list --long`` print.
_PRINTED = frozenset({"ram", "vcpus"})
#: Fields of every image in the image service, beside its properties, with the names that clients print.
_IMAGE_FIELDS = frozenset({
    "checksum", "container_format", "created_at", "direct_url", "disk_format", "file", "id", "is_hidden",
    "is_protected", "locations", "min_disk", "min_ram", "name", "os_hash_algo", "os_hash_value", "os_hidden", "owner",
    "protected", "schema", "self", "size", "status", "stores", "tags", "updated_at", "virtual_size", "visibility"})
_OWN_PREFIX = "os_glance_"
#: Two of them, and tags, are in every image as the image service replies it.
_REPLIED = frozenset({"id", "status"})
_PAIR = re.compile(r"\s*(?P<key>[^=]+?)\s*=\s*(?P<value>.*)")
#: A part of the text that older clients print for properties: ``hw:cpu_policy='dedicated', hw:numa_nodes='2'``.
_PROPERTY = re.compile(r"(?P<key>[^=,\s][^=]*)='(?P<value>[^']*)'(?:,\s*|\Z)")
#: A value that Ansible or Heat fills in when it runs.
_TEMPLATED = re.compile(r"\{\{|\{%|\$\{")
#: Errors of PyYAML, beside its own, for a value that does not suit its tag.
_OF_TAGS = (LookupError, AttributeError, TypeError, ArithmeticError)


class UnreadableFile(ValueError):
    """A file has no extra specs that can be found; the message is a sentence."""


@dataclass(frozen=True)
class SpecEntry:
    """A key with its value, which is a text as a rule.

    :ivar line: 0 if it is not known
    """

    key: str
    value: Any
    line: int = 0

    @property
    def is_templated(self) -> bool:
        """True if the value is filled in when a tool runs."""
        return isinstance(self.value, str) and _TEMPLATED.search(self.value) is not None


@dataclass(frozen=True)
class FlavorSpecs:
    """The extra specs of one flavor, or properties of one image.

    :ivar name: its name; empty if the file has none
    :ivar pointer: JSON pointer to the extra specs in the file
    :ivar entries: as they stand in the file: a key may come again. Values are as they are sent to the API
    """

    name: str
    pointer: str
    entries: tuple[SpecEntry, ...]


def read(text: str, images: bool = False) -> list[FlavorSpecs]:
    """Return the flavors in a text: JSON, YAML, or lines of ``key=value``, of which those with ``#`` are comments.

    :param images: look for images instead
    :returns: nothing for an empty list of flavors
    :raises UnreadableFile: it is none of them, or there are no extra specs in it
    """
    pairs = _pairs(text)
    if pairs is not None:
        return [FlavorSpecs("", "", pairs)]
    document = _parsed(text)
    flavors = list(_found(document, images))
    if document in ([], {"images" if images else "flavors": []}):
        return []  # what clients print where there are none
    if not flavors and isinstance(document, _Mapping) and document:
        plain = _image("", document) if images else FlavorSpecs("", "", document.entries)
        flavors = [] if any(isinstance(entry.value, dict | list) for entry in plain.entries) else [plain]
    if not flavors:
        raise UnreadableFile(
            "There are no properties of images in it: neither key=value lines, nor an image as a client prints it, nor "
            "an object with 'properties'." if images else
            "There are no extra specs in it: neither key=value lines, nor a flavor as a client prints it, nor an "
            "object with 'extra_specs'.")
    return flavors


def pair(text: str, line: int = 0) -> SpecEntry:
    """Return the key and the value of ``key=value``.

    :raises UnreadableFile: there is no key or no ``=``
    """
    match = _PAIR.fullmatch(text)
    if match is None:
        raise UnreadableFile(f"'{text[:64]}' is neither a file nor key=value.")
    return SpecEntry(match["key"], match["value"], line)


def _pairs(text: str) -> tuple[SpecEntry, ...] | None:
    """Return the pairs of a text that has one in each line; None if it is something else."""
    lines = {number: line.strip() for number, line in enumerate(text.split("\n"), 1)}
    lines = {number: line for number, line in lines.items() if line and not line.startswith("#")}
    if not lines or next(iter(lines.values()))[0] in "{[-" or not all(map(_PAIR.fullmatch, lines.values())):
        return None
    return tuple(pair(line, number) for number, line in lines.items())


class _Mapping(dict[Any, Any]):
    """A mapping of a file, with its keys and values as they stand there: the last of the same ones counts."""

    entries: tuple[SpecEntry, ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, Any]]) -> _Mapping:
        """Return the mapping for an object of JSON."""
        pairs = list(pairs)
        mapping = cls(pairs)
        mapping.entries = tuple(_entry(key, value) for key, value in pairs)
        return mapping


def _entry(key: object, value: object, line: int = 0) -> SpecEntry:
    """Return a key and a value as tools send them: numbers and booleans of YAML as texts."""
    return SpecEntry(str(key), str(value) if isinstance(value, bool | int | float) else value, line)


def _integer(digits: str) -> int | str:
    """Return a number, as a text if it is longer than any extra spec: Python refuses to convert one of any length."""
    return int(digits) if len(digits) <= MAX_LENGTH else digits


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_Mapping.of, parse_int=_integer)
    except (ValueError, RecursionError):
        pass
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError, *_OF_TAGS) as exc:
        reason = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise UnreadableFile(f"It is neither JSON nor YAML: {reason}.") from exc


class _Loader(yaml.SafeLoader):
    """Reads tags of other programs, such as Heat's and Ansible's, as what they stand before."""


def _read_integer(loader: _Loader, node: yaml.ScalarNode) -> Any:
    return loader.construct_yaml_int(node) if len(node.value) <= MAX_LENGTH else node.value


def _read_mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[_Mapping]:
    # First: a mapping that this one is merged into replaces its merge keys by what they stand for.
    own = [pair for pair in node.value if pair[0].tag != "tag:yaml.org,2002:merge"]
    mapping = _Mapping()
    yield mapping
    mapping.update(loader.construct_mapping(node))
    written = [_entry(loader.construct_object(key), loader.construct_object(value), key.start_mark.line + 1)
               for key, value in own]
    # Merged keys give way to those of the mapping itself, as intended.
    keys = {entry.key for entry in written}
    merged = (_entry(key, value) for key, value in mapping.items())
    mapping.entries = (*(entry for entry in merged if entry.key not in keys), *written)


def _ignore_tag(loader: _Loader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _read_mapping(loader, node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node)
    return str(node.value)


_Loader.add_constructor("tag:yaml.org,2002:int", _read_integer)
_Loader.add_constructor("tag:yaml.org,2002:map", _read_mapping)
_Loader.add_multi_constructor("!", _ignore_tag)


def _found(document: object, images: bool) -> Iterator[FlavorSpecs]:
    """Yield the flavors anywhere in a document, in its order. Nothing is visited twice, however often it is aliased."""
    visited: set[int] = set()
    waiting = [("", document)]
    while waiting:
        pointer, item = waiting.pop()
        if not isinstance(item, dict | list) or id(item) in visited:
            continue
        visited.add(id(item))
        if isinstance(item, _Mapping):
            flavor = _printed_image(pointer, item) if images else _flavor(pointer, item)
            if flavor:
                yield flavor
                continue
        children = item.items() if isinstance(item, dict) else enumerate(item)
        waiting += [(f"{pointer}/{_token(key)}", value) for key, value in reversed(list(children))]


def _flavor(pointer: str, item: _Mapping) -> FlavorSpecs | None:
    """Return the flavor that a mapping is, None if it is something else."""
    specs = item.get("extra_specs")
    if isinstance(specs, _Mapping):
        return FlavorSpecs(_name(item), f"{pointer}/extra_specs", specs.entries)
    return _with_properties(pointer, item) if {str(key).lower() for key in item} >= _PRINTED else None


def _printed_image(pointer: str, item: _Mapping) -> FlavorSpecs | None:
    """Return the image that a mapping is, None if it is something else."""
    # Schemas and the resources of templates have a type beside their properties.
    image = None if "type" in item else _with_properties(pointer, item)
    if image:
        return FlavorSpecs(image.name, image.pointer, _properties(image.entries))
    return _image(pointer, item) if isinstance(item.get("tags"), list) and item.keys() >= _REPLIED else None


def _image(pointer: str, item: _Mapping) -> FlavorSpecs:
    return FlavorSpecs(_name(item), pointer, _properties(item.entries))


def _properties(entries: Iterable[SpecEntry]) -> tuple[SpecEntry, ...]:
    """Return the properties among all that an image has."""
    return tuple(entry for entry in entries if entry.key not in _IMAGE_FIELDS and not entry.key.startswith(_OWN_PREFIX))


def _with_properties(pointer: str, item: _Mapping) -> FlavorSpecs | None:
    """Return the flavor or image that a client prints with properties, None if there are none."""
    key = next((key for key in item if str(key).lower() == "properties"), None)
    properties = None if key is None else item[key]
    if isinstance(properties, _Mapping):
        return FlavorSpecs(_name(item), f"{pointer}/{key}", properties.entries)
    if not isinstance(properties, str) or _TEMPLATED.search(properties):
        return None
    return FlavorSpecs(_name(item), f"{pointer}/{key}", _printed(properties))


def _name(item: Mapping[Any, Any]) -> str:
    return str(item.get("name") or item.get("Name") or item.get("flavor_name") or "")


def _printed(text: str) -> tuple[SpecEntry, ...]:
    """Return the properties that a client has printed as text.

    :raises UnreadableFile: it is no such text
    """
    entries = []
    position = 0
    while position < len(text):
        match = _PROPERTY.match(text, position)
        if match is None:
            rest = text[position:position + 32]
            raise UnreadableFile(f"Its properties are not as a client prints them, from '{rest}' on.")
        entries.append(SpecEntry(match["key"], match["value"]))
        position = match.end()
    return tuple(entries)


def _token(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
