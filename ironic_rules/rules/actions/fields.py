"""Problems of literal arguments of actions on fields: combinations of path and value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.exceptions import SecretMasked
from ironic_rules.models import draft, pointer, secrets
from ironic_rules.rules import paths


def tokens_of(literals: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a literal path; an empty tuple if the path is only known at run time."""
    return pointer.parse(literals["path"], relative=True) if "path" in literals else ()


def field_problem(fields: type[draft.NodeDraft] | type[draft.PortDraft],
                   literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the problems of a literal value that its field cannot have."""
    tokens = tokens_of(literals)
    yield from _mask_problem(literals, tokens)
    if len(tokens) == 1 and "value" in literals and (reason := fields.value_problem(tokens[0], literals["value"])):
        yield "value", reason


def list_problem(literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the problems of a literal path to a field that is not a list, and of the value to append."""
    yield from _mask_problem(literals, tokens_of(literals))
    if len(tokens_of(literals)) == 1:
        yield "path", "this field is not a list"


def data_problem(literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the problem of a literal value that cannot be stored in the plug-in data."""
    return _mask_problem(literals, paths.parse(literals["path"]) if "path" in literals else ())


def _mask_problem(literals: Mapping[str, Any], tokens: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    try:
        secrets.refuse_masks(literals.get("value"), tokens)
    except SecretMasked as exc:
        yield "value", str(exc)
