"""Regular expressions of the package repeat single characters possessively, and nothing else.

Before 3.11.5, CPython matches other possessive repeats wrongly (https://github.com/python/cpython/issues/106052): the
position after a failed iteration stays, e.g. ``(?:ab?c)*+`` matches all of ``aca``. The package needs no atomic groups.
"""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]  # the forms of expressions, for this test only
from typing import Any

from tests.modules import MODULES, module_name, place
from tests.walking import walking

#: Every atomic group and possessive repeat has one of these: to parse all texts of the package takes long.
SUSPECT = re.compile(r"[*+?}]\+|\(\?>")
ONE_CHARACTER = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY)


def parts(expression: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the operations of a parsed expression with their arguments, also those inside others."""
    for operation, arguments in expression:
        yield operation, arguments
        for inner in expressions_in(arguments):
            yield from parts(inner)


def expressions_in(arguments: Any) -> Iterator[Any]:
    if isinstance(arguments, _parser.SubPattern):
        yield arguments
    elif isinstance(arguments, tuple | list):
        for item in arguments:
            yield from expressions_in(item)


def is_portable(pattern: str | bytes) -> bool:
    """Say whether all versions match ``pattern`` alike; a text that is no regular expression is portable."""
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    if not SUSPECT.search(text):
        return True
    try:
        with warnings.catch_warnings(action="ignore"):
            expression = _parser.parse(pattern)
    except (re.error, OverflowError):
        return True
    for operation, arguments in parts(expression):
        if operation is _constants.ATOMIC_GROUP:
            return False
        if operation is _constants.POSSESSIVE_REPEAT:
            repeated = arguments[2]
            if len(repeated) != 1 or repeated[0][0] not in ONE_CHARACTER:
                return False
    return True


def written_in(tree: ast.AST) -> Iterator[tuple[int, str | bytes]]:
    """Yield the line and the value of each text in a module, whatever it is for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield node.lineno, node.value


def compiled_in(path: Path, tree: ast.AST) -> Iterator[tuple[int, str | bytes]]:
    """Yield the line and the text of each pattern that a module has put together, e.g. from constants."""
    if not any(isinstance(node, ast.Import) and any(alias.name == "re" for alias in node.names)
               for node in ast.walk(tree)):
        return
    for value in vars(importlib.import_module(f"ironic_rules.{module_name(path)}")).values():
        pattern = getattr(value, "__self__", value)   # of `re.compile(…).fullmatch`
        if isinstance(pattern, re.Pattern):
            yield 1, pattern.pattern


@walking("pattern, expected", [
    ("a++[ab]*+.?+\\d++", True), ("(?:a++,)*", True), ("((a+)b)+", True), (b"[a-z]++:", True), ("(", True),
    ("(?:a++,)*+", False), ("(?:ab?c)++", False), ("(a)?+", False), ("x|(?=(y(?:a+b)*+))", False), ("(?>a+)", False),
    (b"(?:a:\r\n)*+", False)])
def test_what_is_portable(pattern, expected):
    assert is_portable(pattern) is expected


def test_the_package_repeats_only_single_characters_possessively():
    found = [(path, text) for path in MODULES for tree in [ast.parse(path.read_bytes())]
             for text in (*written_in(tree), *compiled_in(path, tree))]

    assert len(found) > 10_000
    assert [f"{place(path, line)}: {text!r}" for path, (line, text) in found if not is_portable(text)] == []
