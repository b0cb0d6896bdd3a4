"""Files of rules -> rules."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from osc_lib import exceptions


class _Loader(yaml.SafeLoader):
    """YAML with the values that JSON has: a date is a text."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def read(source: str) -> list[Any]:
    """Return the rules of a file, in its order. Whether each one is a rule is for the service to say.

    :param source: path of a JSON or YAML file (UTF-8) that holds one rule, a list of rules, or several YAML documents
        of these; ``-`` is the standard input
    :raises CommandError: it cannot be read, is neither JSON nor YAML, or holds neither an object nor a list
    """
    name = "standard input" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise exceptions.CommandError(f"{name} cannot be read: {error}") from error
    rules: list[Any] = []
    for document in _documents(text, name):
        if not isinstance(document, dict | list):
            raise exceptions.CommandError(f"{name} holds neither a rule nor a list of rules")
        rules += document if isinstance(document, list) else [document]
    return rules


def _documents(text: str, name: str) -> list[Any]:
    # Not all JSON is YAML: there may be tabs, or surrogate pairs in escapes.
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    try:
        return list(yaml.load_all(text, _Loader)) or [None]
    except yaml.YAMLError as error:
        raise exceptions.CommandError(f"{name} is neither JSON nor YAML: {error}") from error
