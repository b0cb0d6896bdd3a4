"""The modules of the package, for tests that read all of them. Each one is read and parsed once."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

import ironic_rules

PACKAGE = Path(ironic_rules.__file__).parent
MODULES = tuple(sorted(PACKAGE.rglob("*.py")))

#: line and dotted name
Import = tuple[int, str]


def place(path: Path, line: int) -> str:
    """Return the place of a line, as editors accept it, e.g. ``ironic_rules/api/app.py:12``."""
    return f"{path.relative_to(PACKAGE.parent)}:{line}"


def module_name(path: Path) -> str:
    """Return the name below ``ironic_rules``, e.g. ``api.wsgi``; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_in(path: Path, source: str) -> Iterator[Import]:
    """Yield every import of ``source``, also those inside functions, as if it were the text of ``path``."""
    return _imports(path, _statements(ast.parse(source, str(path))))


@functools.lru_cache(1024)
def first_imports_in(path: Path, source: str) -> tuple[Import, ...]:
    """Return the imports that are made when ``source`` is imported: none in functions, none for type checks only."""
    return tuple(_imports(path, _executed(ast.parse(source, str(path)))))


def _imports(path: Path, nodes: Iterable[ast.AST]) -> Iterator[Import]:
    package = ["ironic_rules", *path.relative_to(PACKAGE).parts[:-1]]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(filter(None, (base, node.module)))
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, in any depth; expressions, which are most of a tree, import nothing."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from _statements(child)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node, but none that waits for a call or a type checker."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            child = ast.Module(child.orelse, [])
        yield child
        yield from _executed(child)


# The trees themselves are not kept: they are large, and nothing else is read from them.
@functools.cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Return every import of a module, also those inside functions."""
    return tuple(imports_in(path, path.read_text(encoding="utf-8")))
