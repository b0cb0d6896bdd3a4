"""Problems of literal arguments of actions on fields: combinations of path and value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.models import draft, pointer


def tokens_of(literals: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a literal path; an empty tuple if the path is only known at run time."""
    return pointer.parse(literals["path"], relative=True) if "path" in literals else ()


def field_problem(fields: type[draft.NodeDraft] | type[draft.PortDraft],
                   literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the problem of a literal value that its field cannot have."""
    tokens = tokens_of(literals)
    if len(tokens) == 1 and "value" in literals and (reason := fields.value_problem(tokens[0], literals["value"])):
        yield "value", reason


def list_problem(literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the problem of a literal path to a field that is not a list."""
    if len(tokens_of(literals)) == 1:
        yield "path", "this field is not a list"
