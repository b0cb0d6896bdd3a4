"""Finding extra specs in files: what clients print, and what tools that create flavors read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

#: The keys by which a mapping is recognised as what ``openstack flavor show`` or ``list --long`` print.
_PRINTED = frozenset({"ram", "vcpus"})
_PAIR = re.compile(r"\s*(?P<key>[^=]+?)\s*=\s*(?P<value>.*)")
#: A part of the text that older clients print for properties: ``hw:cpu_policy='dedicated', hw:numa_nodes='2'``.
_PROPERTY = re.compile(r"(?P<key>[^=,\s][^=]*)='(?P<value>[^']*)'(?:,\s*|\Z)")
#: A value that Ansible or Heat fills in when it runs.
_TEMPLATED = re.compile(r"\{\{|\{%|\$\{")


class UnreadableFile(ValueError):
    """A file has no extra specs that can be found; the message is a sentence."""


@dataclass(frozen=True)
class Flavor:
    """The extra specs of one flavor, or properties of one image.

    :ivar name: its name; empty if the file has none
    :ivar pointer: JSON pointer to the extra specs in the file
    :ivar specs: values by key, as they are sent to the API; what is filled in later is left out of the check of values
    """

    name: str
    pointer: str
    specs: Mapping[str, Any]

    def is_templated(self, key: str) -> bool:
        """Return whether the value of a key is filled in when a tool runs."""
        value = self.specs.get(key)
        return isinstance(value, str) and _TEMPLATED.search(value) is not None


def read(text: str) -> list[Flavor]:
    """Return the flavors in a text: JSON, YAML, or lines of ``key=value``, of which those with ``#`` are comments.

    :returns: nothing for an empty list of flavors
    :raises UnreadableFile: it is none of them, or there are no extra specs in it
    """
    pairs = _pairs(text)
    if pairs is not None:
        return [Flavor("", "", pairs)]
    document = _parsed(text)
    found = list(_found(document))
    if document in ([], {"flavors": []}):
        return []  # what clients print where there are no flavors
    if not found and isinstance(document, dict) and document and not any(
            isinstance(value, dict | list) for value in document.values()):
        found = [Flavor("", "", _texts(document))]
    if not found:
        raise UnreadableFile("There are no extra specs in it: neither key=value lines, nor a flavor as a client "
                             "prints it, nor an object with 'extra_specs'.")
    return found


def pair(text: str) -> tuple[str, str]:
    """Return the key and the value of ``key=value``.

    :raises UnreadableFile: there is no key or no ``=``
    """
    found = _PAIR.fullmatch(text)
    if found is None:
        raise UnreadableFile(f"'{text[:64]}' is neither a file nor key=value.")
    return found["key"], found["value"]


def _pairs(text: str) -> dict[str, str] | None:
    """Return the pairs of a text that has one in each line; None if it is something else."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    found = [_PAIR.fullmatch(line) for line in lines]
    if not lines or not all(found) or lines[0][0] in "{[-":
        return None
    return {match["key"]: match["value"] for match in found if match}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        reason = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise UnreadableFile(f"It is neither JSON nor YAML: {reason}.") from exc


class _Loader(yaml.SafeLoader):
    """Reads tags of other programs, such as Heat's and Ansible's, as what they stand before."""


def _ignore_tag(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node)
    return str(node.value)


_Loader.add_multi_constructor("!", _ignore_tag)


def _found(document: Any) -> Iterator[Flavor]:
    """Yield the flavors anywhere in a document, in its order. Nothing is visited twice, however often it is aliased."""
    seen: set[int] = set()
    waiting = [("", document)]
    while waiting:
        pointer, item = waiting.pop()
        if not isinstance(item, dict | list) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            flavor = _flavor(pointer, item)
            if flavor:
                yield flavor
                continue
        children = item.items() if isinstance(item, dict) else enumerate(item)
        waiting += [(f"{pointer}/{_token(key)}", value) for key, value in reversed(list(children))]


def _flavor(pointer: str, item: Mapping[Any, Any]) -> Flavor | None:
    """Return the flavor that a mapping is, None if it is something else."""
    name = str(item.get("name") or item.get("Name") or item.get("flavor_name") or "")
    specs = item.get("extra_specs")
    if isinstance(specs, dict):
        return Flavor(name, f"{pointer}/extra_specs", _texts(specs))
    lower = {str(key).lower(): key for key in item}
    if "properties" in lower and lower.keys() >= _PRINTED:
        key = lower["properties"]
        properties = item[key]
        if isinstance(properties, str):
            properties = _printed(properties)
        if isinstance(properties, dict):
            return Flavor(name, f"{pointer}/{key}", _texts(properties))
    return None


def _printed(text: str) -> dict[str, str]:
    """Return the properties that a client has printed as text.

    :raises UnreadableFile: it is no such text
    """
    found = {}
    position = 0
    while position < len(text):
        match = _PROPERTY.match(text, position)
        if match is None:
            rest = text[position:position + 32]
            raise UnreadableFile(f"Its properties are not as a client prints them, from '{rest}' on.")
        found[match["key"]] = match["value"]
        position = match.end()
    return found


def _texts(specs: Mapping[Any, Any]) -> dict[str, Any]:
    """Return extra specs as tools send them: numbers and booleans of YAML as texts."""
    return {str(key): str(value) if isinstance(value, bool | int | float) else value for key, value in specs.items()}


def _token(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
