"""Rules as text: JSON and YAML are read, YAML is written.

:func:`documents` reads text of :func:`write` with the same values and types.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import yaml

_Node = TypeVar("_Node", yaml.SequenceNode, yaml.MappingNode)
_TAG = "tag:yaml.org,2002:"
_LEFT_OUT = (f"{_TAG}timestamp", f"{_TAG}int", f"{_TAG}float", f"{_TAG}value")
#: Lines of which none is empty or begins or ends with a space: PyYAML does not read every other text back as it was.
_LITERAL = re.compile(r"(?:\S(?:.*\S)?\n)*\S(?:.*\S)?\n?")
#: A list or object that contains no others stands on one line if its texts have at most this number of characters.
_LINE = 80


# LibYAML, where PyYAML is built with it, reads a file faster.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML limited to the values of JSON.

    A date is a string, and so is what YAML 1.1 reads as a base-60 number, such as the MAC address 52:54:00:12:34:56.
    """

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _LEFT_OUT]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for number, (key, _) in enumerate(node.value):
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in keys[:number]:
                raise yaml.constructor.ConstructorError(None, None, "duplicate key", key.start_mark)
        return super().construct_mapping(node, deep)

    def construct_unknown(self, node: yaml.Node) -> None:
        raise yaml.constructor.ConstructorError(
            None, None, "tags are not supported; a text that begins with '!' must be quoted, as in op: \"!eq\"",
            node.start_mark)


class _Dumper(yaml.SafeDumper):
    """YAML in which a change of one value is a change of one or few lines."""

    # A text is quoted if our loader or that of another program would read it as something else.
    yaml_implicit_resolvers = {first: list(found) for first, found in yaml.SafeDumper.yaml_implicit_resolvers.items()}

    def represent(self, data: object) -> None:
        node = self.represent_data(data)
        for part in (node, *node.value):
            part.flow_style = False
        self.serialize(node)

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:
        return _short_on_one_line(super().represent_sequence(tag, sequence, flow_style))

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        return _short_on_one_line(super().represent_mapping(tag, mapping, flow_style))

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = None
        if not text.replace("\n", "").isprintable():
            style = '"'
        elif "\n" in text:
            style = "|" if _LITERAL.fullmatch(text) else '"'
        return self.represent_scalar(f"{_TAG}str", text, style=style)

    def ignore_aliases(self, data: object) -> bool:
        return True


for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver(f"{_TAG}int", re.compile(
        r"[-+]?(?:0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)\Z"), list("-+0123456789"))
    _kind.add_implicit_resolver(f"{_TAG}float", re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)\Z"),
        list("-+0123456789."))
_Loader.add_constructor(None, _Loader.construct_unknown)
_Dumper.add_representer(str, _Dumper.represent_text)


def documents(text: str, prefer_json: bool = False) -> list[Any]:
    """Return the JSON document, or the YAML documents, in ``text``; ``[None]`` if there is nothing in it.

    :param prefer_json: what is neither is described as invalid JSON
    :raises ValueError: it is neither JSON nor YAML; the text of the error has line and column
    """
    # Not all JSON is valid YAML: it may have tabs, or surrogate pairs in escapes.
    constants: list[str] = []
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_constant=constants.append)
    except json.JSONDecodeError as error:
        no_json = f"line {error.lineno}, column {error.colno}: {error.msg}"
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        no_json = str(error)
    else:
        if constants:
            raise ValueError(f"{constants[0]} is not a value of JSON")
        return [document]
    try:
        # A last line "---" begins an empty document, which is skipped.
        return [document for document in yaml.load_all(text, _Loader) if document is not None] or [None]
    except yaml.MarkedYAMLError as error:
        raise ValueError(no_json if prefer_json else _described(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(no_json if prefer_json else str(error)) from error


def write(rules: Iterable[Mapping[str, Any]]) -> str:
    """Return a YAML list of rules, with the keys in their order and an empty line between two rules."""
    return "\n".join(
        yaml.dump([dict(rule)], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=sys.maxsize)
        for rule in rules) or "[]\n"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("duplicate key")
    return value


def _described(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return place + ", ".join(text for text in (error.context, error.problem) if text)


def _short_on_one_line(node: _Node) -> _Node:
    parts = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
    node.flow_style = (all(not part.value or (isinstance(part, yaml.ScalarNode) and "\n" not in part.value)
                           for part in parts) and sum(len(part.value) + 2 for part in parts) <= _LINE)
    return node
