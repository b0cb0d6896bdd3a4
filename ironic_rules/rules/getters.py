"""Getters: functions that return what the templates of a rule stand for, of the view of a node."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ironic_rules.models import secrets
from ironic_rules.rules import conversions, groups, template
from ironic_rules.rules.errors import CannotEvaluate, MissingPath, OperandError
from ironic_rules.rules.mask import View

Getter = Callable[[View], Any]

#: Types without parts, in which nothing can be secret. A text may be a URL with a password.
_SCALARS = frozenset({int, float, bool, type(None)})
_LISTS = frozenset({list, tuple})


# Thousands of rules read the same few paths: a shared function for each of them remains in the processor's cache.
@functools.lru_cache(maxsize=4096)
def path_getter(used: template.Field, strict: bool) -> Getter:
    """Return a function that traverses plain mappings and lists; a missing path is None, or MissingPath if strict.

    With a masked view it returns what it would find in a masked copy of the root. Loop items and groups of regular
    expressions are not masked again: they come from the rule itself, or from another getter.
    """
    if used.root in ("item", groups.ROOT):
        return _index_getter(used, strict, _unchanged)
    part = View.shown
    if any(map(secrets.is_secret_key, used.steps)):
        return _secret_getter(used, strict, part)
    is_index = tuple(step.isdecimal() for step in used.steps)
    # Most conditions of rules read one of these two forms: {inventory[cpu][count]}, {inventory[disks][0][name]}.
    if is_index == (False, False):
        return _two_keys_getter(used, strict, part)
    if is_index == (False, True, False):
        return _element_getter(used, strict, part)
    return (_index_getter if any(is_index) else _key_getter)(used, strict, part)


@functools.lru_cache(maxsize=4096)
def typed_getter(used: template.Field, strict: bool, limit: int) -> Getter:
    """Return a function that applies the field's conversions to the value at its path, if there are any.

    A missing value and null are None, or MissingPath if strict. A text has at most ``limit`` characters before and
    after the conversions; another one cannot be evaluated.
    """
    get, text = path_getter(used, strict), used.text
    convert = conversions.chain(used.conversions) if used.conversions else None

    def converted(view: View) -> Any:
        value = get(view)
        if value is None:
            if strict:
                raise MissingPath(text)
            return None
        if convert is None:
            return value
        _check_length(value, limit)
        try:
            value = convert(value)
        except OperandError as exc:
            raise OperandError(f"{text}: the value {exc}") from None
        _check_length(value, limit)
        return value

    return converted


def _check_length(value: Any, limit: int) -> None:
    if value.__class__ is str and len(value) > limit:
        raise CannotEvaluate(f"the text is longer than {limit} characters")


#: Converts the dict, list or URL at the end of a path: (view, root, path, value) -> value
_Part = Callable[[View, str, str, Any], Any]


def _unchanged(view: View, root: str, path: str, value: Any) -> Any:
    return value


def _key_getter(used: template.Field, strict: bool, part: _Part) -> Getter:
    # Without indexes in the path, subscription alone is sufficient: of JSON values, only a dict accepts a string.
    keys, root, text = used.steps, used.root, used.text

    def walk(view: View) -> Any:
        value = view[root]
        try:
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            if strict:
                raise MissingPath(text) from None
            return None
        if value.__class__ is str:
            return value if "://" not in value else part(view, root, text, value)
        return value if value.__class__ in _SCALARS else part(view, root, text, value)

    return walk


def _two_keys_getter(used: template.Field, strict: bool, part: _Part) -> Getter:
    # Without a loop over the keys.
    (first, second), root, text = used.steps, used.root, used.text

    def walk(view: View) -> Any:
        value = view[root]
        try:
            value = value[first][second]
        except (KeyError, TypeError):
            if strict:
                raise MissingPath(text) from None
            return None
        if value.__class__ is str:
            return value if "://" not in value else part(view, root, text, value)
        return value if value.__class__ in _SCALARS else part(view, root, text, value)

    return walk


def _element_getter(used: template.Field, strict: bool, part: _Part) -> Getter:
    # Likewise, for an object in a list.
    ((first, _), (key, index), (last, _)), root, text = _steps(used), used.root, used.text

    def walk(view: View) -> Any:
        value = view[root]
        try:
            value = value[first]
            value = value[key if index is None or value.__class__ not in _LISTS else index][last]
        except (IndexError, KeyError, TypeError):
            if strict:
                raise MissingPath(text) from None
            return None
        if value.__class__ is str:
            return value if "://" not in value else part(view, root, text, value)
        return value if value.__class__ in _SCALARS else part(view, root, text, value)

    return walk


def _steps(used: template.Field) -> tuple[tuple[str, int | None], ...]:
    return tuple((step, int(step) if step.isdecimal() and len(step) < 10 else None) for step in used.steps)


def _index_getter(used: template.Field, strict: bool, part: _Part) -> Getter:
    steps, root, text = _steps(used), used.root, used.text

    def walk(view: View) -> Any:
        value = view[root]
        try:
            for key, index in steps:
                value = value[key if index is None or value.__class__ not in _LISTS else index]
        except (IndexError, KeyError, TypeError):
            if strict:
                raise MissingPath(text) from None
            return None
        if value.__class__ is str:
            return value if "://" not in value else part(view, root, text, value)
        return value if value.__class__ in _SCALARS else part(view, root, text, value)

    return walk


def _secret_getter(used: template.Field, strict: bool, part: _Part) -> Getter:
    steps, root, text = _steps(used), used.root, used.text

    def walk(view: View) -> Any:
        value = view[root]
        try:
            for key, index in steps:
                value = value[key if index is None or value.__class__ not in _LISTS else index]
                # The steps after a secret then find nothing, because a text has no parts.
                if view.masked and value is not None and secrets.is_secret_key(key):
                    value = secrets.MASK
        except (IndexError, KeyError, TypeError):
            if strict:
                raise MissingPath(text) from None
            return None
        if value.__class__ is str:
            return value if "://" not in value else part(view, root, text, value)
        return value if value.__class__ in _SCALARS else part(view, root, text, value)

    return walk


def text_getter(parts: tuple[str | template.Field, ...], limit: int) -> Getter:
    """Return a function that renders a text of at most ``limit`` characters; a missing value or null has none."""
    pieces: list[tuple[str, Getter | None]] = [
        (part, None) if isinstance(part, str) else (part.text, _strict_getter(part, limit)) for part in parts
    ]

    gets = [get for _, get in pieces if get is not None]
    if len(gets) == 1:
        # The most frequent form, in the shortest way.
        return _one_field_getter(pieces, gets[0], limit)

    def render(view: View) -> str:
        out = []
        for text, get in pieces:
            if get is None:
                out.append(text)
                continue
            value = get(view)
            if value is None:
                raise MissingPath(text)
            out.append(value if isinstance(value, str) else str(value))
        result = "".join(out)
        _check_length(result, limit)
        return result

    return render


def _one_field_getter(pieces: list[tuple[str, Getter | None]], get: Getter, limit: int) -> Getter:
    """Return a function that renders a template with a single field."""
    place = next(index for index, piece in enumerate(pieces) if piece[1] is not None)
    before, text, after = ("".join(part for part, _ in some) for some in (
        pieces[:place], pieces[place:place + 1], pieces[place + 1:]))

    def render(view: View) -> str:
        value = get(view)
        if value is None:
            raise MissingPath(text)
        result = f"{before}{value!s}{after}"
        if len(result) > limit:
            _check_length(result, limit)
        return result

    return render


def _strict_getter(used: template.Field, limit: int) -> Getter:
    return typed_getter(used, True, limit) if used.conversions else path_getter(used, strict=True)
