"""A strict YAML loader that accepts only the values of JSON.

Harmful features of YAML 1.1 are not supported: duplicate keys, merge keys, tags, dates (they remain text), and numbers
of base 60, which would convert a MAC address such as ``52:54:00:12:34:56`` to an integer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

#: Maximum number of levels of lists and mappings. PyYAML's fast loader crashes the process if there are very many.
MAX_DEPTH = 200
#: Error of libyaml (PyYAML 6.0.4) for a thousand levels: it looks ahead for keys before it yields the first one.
_TOO_DEEP = "exceeded maximum nesting depth"
#: Maximum number of values of a document with its aliases expanded; a few hundred bytes can expand to billions.
MAX_VALUES = 1_000_000

_TAG = "tag:yaml.org,2002:"
_LEFT_OUT = (f"{_TAG}timestamp", f"{_TAG}int", f"{_TAG}float", f"{_TAG}merge", f"{_TAG}value")
_INT = re.compile(r"[-+]?(?:0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
                    r"|\.(?:inf|Inf|INF))\Z|\.(?:nan|NaN|NAN)\Z")


class BadYaml(ValueError):
    """A text is not YAML, or has values that JSON does not. The message has line and column, and quotes no value."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag not in _LEFT_OUT]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a string", key_node.start_mark)
            if key == "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, "merge keys are not supported", key_node.start_mark)
            if key in mapping:
                raise yaml.constructor.ConstructorError(
                    None, None, "duplicate key", key_node.start_mark)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping

    def construct_undefined(self, node: Any) -> None:
        raise yaml.constructor.ConstructorError(
            None, None, "tags are not supported; a text that begins with '!' must be quoted, as in op: \"!eq\"",
            node.start_mark)


_Loader.add_implicit_resolver(f"{_TAG}int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+0123456789."))
# ``None`` is the constructor for all other tags.
_Loader.yaml_constructors = {
    **{tag: constructor for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
       if tag in {f"{_TAG}{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map")}},
    None: _Loader.construct_undefined,
}


def load(text: str) -> Any:
    """Return the one document of ``text``; None if there is none.

    :raises BadYaml: it is malformed, has values that JSON does not, or more than ``MAX_VALUES``
    """
    return _read(text, lambda: yaml.load(text, _Loader))


def load_all(text: str) -> list[Any]:
    """Return all documents of ``text``.

    :raises BadYaml: as for :func:`load`
    """
    documents: list[Any] = _read(text, lambda: list(yaml.load_all(text, _Loader)))
    return documents


def _read(text: str, read: Callable[[], Any]) -> Any:
    try:
        _check_depth(text)
        document = read()
    except yaml.YAMLError as exc:
        raise BadYaml(_reason(exc)) from None
    except BadYaml:
        raise
    except ValueError:
        raise BadYaml("a number cannot be read") from None
    if not _is_small(document):
        raise BadYaml(f"more than {MAX_VALUES} values")
    return document


def _reason(exc: yaml.YAMLError) -> str:
    # Not str(exc): that quotes the line, which may be a secret.
    reason = getattr(exc, "problem", None) or getattr(exc, "reason", None) or "not YAML"
    if reason == _TOO_DEEP:
        return f"nested deeper than {MAX_DEPTH} levels"
    mark = getattr(exc, "problem_mark", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: {reason}" if mark is not None else str(reason)


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise BadYaml(f"nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _is_small(document: object) -> bool:
    remaining, waiting = MAX_VALUES, [document]
    while waiting and remaining > 0:
        remaining -= 1
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return not waiting
