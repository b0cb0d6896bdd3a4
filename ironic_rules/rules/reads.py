"""Paths that the templates of rules read and that actions write, as far as the rules themselves contain them.

A rule that reads a secret, or what a sensitive rule has written, may write it anywhere and in any form: nothing that it
makes is shown then. This follows from the paths that it reads, never from the values that it finds there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

import orjson

from ironic_rules.models import documents, secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import Rule, path_of_action
from ironic_rules.models.secrets import Concealment, Place
from ironic_rules.rules import template
from ironic_rules.rules.compiled import CompiledRule
from ironic_rules.rules.errors import MissingPath
from ironic_rules.rules.getters import FACT, PREVIOUS_FACT, View, path_getter

#: The roots that are no data, but parts of what other templates of the rule have read.
LOCAL = frozenset({"item", template.ROOT_GROUPS})
#: The path of a rule of which is not known what it reads: everything.
_EVERYTHING = frozenset({()})


def is_secretive(rule: CompiledRule, view: View, conceal: Concealment) -> bool:
    """Return whether a rule reads what must not be shown.

    :param view: that of the rule, before it acts
    """
    return any(is_secret(path, view, conceal) for path in _of(rule))


def is_secret(path: Place, view: View, conceal: Concealment) -> bool:
    """Return whether a template with this path reads what must not be shown; of a local root, False."""
    if path and path[0] in LOCAL:
        return False
    if conceal.is_read(path):
        return True
    if view.masked:
        return False
    if not path or any(map(secrets.is_secret_key, path)):
        return True
    try:
        return _has_secret(path_getter(template.Field(path[0], path[1:], "", 0), False)(view))
    except MissingPath:
        # There is no such name.
        return False


def _has_secret(value: object) -> bool:
    """Return whether a value has secrets by their keys, or a URL with a password."""
    if isinstance(value, str):
        return secrets.mask_text(value) != value
    return isinstance(value, (dict, list, tuple)) and not secrets.has_none(value) and secrets.mask(value) != value


def _of(rule: CompiledRule) -> Iterator[Place]:
    for condition in rule.conditions:
        yield from of_text(condition.written)
    for action in rule.actions:
        yield from of_text(action.written)


@functools.lru_cache(maxsize=8192)
def of_text(written: bytes) -> frozenset[Place]:
    """Return the paths that a condition or action reads.

    :param written: as JSON; empty: it is not known
    """
    if not written:
        return _EVERYTHING
    operation = orjson.loads(written)
    return frozenset(_paths([operation.get("args"), operation.get("loop")]))


def _paths(value: object) -> Iterator[Place]:
    if isinstance(value, str):
        # A text may be a regular expression or not: a field that only one reading finds is read by no rule.
        for is_regex in (False, True):
            try:
                parts = template.parse(value, is_regex)
            except template.TemplateError:
                continue
            yield from ((part.root, *part.steps) for part in parts
                        if isinstance(part, template.Field) and part.root not in LOCAL)
    elif isinstance(value, dict):
        yield from _paths(list(value))
        yield from _paths(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item)


def facts_of(rule: Rule) -> frozenset[str]:
    """Return the names of the facts that a rule reads, as it is stored."""
    return frozenset(path[1] for operation in (*rule.conditions, *rule.actions)
                     for path in (*_paths([operation.get("args"), operation.get("loop")]), *_compared(operation))
                     if len(path) > 1 and path[0] in (FACT, PREVIOUS_FACT))


def _compared(operation: JSONObject) -> Iterator[Place]:
    """Yield the fact that the operator ``changed`` names."""
    args = operation.get("args")
    named = args.get("fact") if isinstance(args, dict) else args[0] if isinstance(args, list) and args else None
    if operation.get("op", "").lstrip("! ") == "changed" and isinstance(named, str):
        yield (FACT, named)


def written_by(rule: CompiledRule) -> Iterable[Place]:
    """Return the places that a rule writes, without those of traits: the known part of a path with templates."""
    return (place for action in rule.actions for place in _written(action.written, action.touches))


@functools.lru_cache(maxsize=8192)
def _written(written: bytes, touches: frozenset[str]) -> tuple[Place, ...]:
    path = path_of_action(orjson.loads(written)) if written else None
    if path is None:
        return tuple((root,) for root in touches)
    tokens = documents.parse_pointer(path)
    fixed = tokens[:next((at for at, token in enumerate(tokens) if "{" in token), len(tokens))]
    if fixed[:1] == ("traits",):
        return ()
    if fixed[:1] == ("ports",):
        return (fixed[:1],)
    return (fixed if fixed[:1] == ("plugin_data",) else ("node", *fixed),)
