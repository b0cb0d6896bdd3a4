"""Reading rules from files."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from osc_lib import exceptions

_TAG = "tag:yaml.org,2002:"
_LEFT_OUT = (f"{_TAG}timestamp", f"{_TAG}int", f"{_TAG}float", f"{_TAG}value")


class _Loader(yaml.SafeLoader):
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


_Loader.add_implicit_resolver(f"{_TAG}int", re.compile(
    r"[-+]?(?:0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)\Z"), list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)\Z"),
    list("-+0123456789."))
_Loader.add_constructor(None, _Loader.construct_unknown)


def read(source: str) -> list[Any]:
    """Return the rules of a file, in its order. The service checks whether they are valid.

    :param source: path of a JSON or YAML file (UTF-8) that contains one rule, a list of rules, or several YAML
        documents of these; ``-`` is the standard input
    :raises CommandError: it cannot be read, is neither JSON nor YAML, or contains neither an object nor a list
    """
    name = "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise exceptions.CommandError(f"{name} cannot be read: {error}") from error
    rules: list[Any] = []
    for document in _documents(text, name):
        if not isinstance(document, dict | list):
            raise exceptions.CommandError(f"{name} contains neither a rule nor a list of rules")
        rules += document if isinstance(document, list) else [document]
    return rules


def _documents(text: str, name: str) -> list[Any]:
    # Not all JSON is valid YAML: it may have tabs, or surrogate pairs in escapes.
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    try:
        # A last line "---" begins an empty document, which is skipped.
        return [document for document in yaml.load_all(text, _Loader) if document is not None] or [None]
    except (yaml.YAMLError, ValueError) as error:
        raise exceptions.CommandError(f"{name} is neither JSON nor YAML: {error}") from error
