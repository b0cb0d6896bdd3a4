"""Imports point downwards only, and eventlet is imported nowhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ironic_rules

PACKAGE = Path(ironic_rules.__file__).parent
PAGE = PACKAGE.parent / "doc" / "source" / "contributor" / "layers.rst"

#: From the top down. A module may import its own part and the parts on lower lines; parts on one line are strangers.
LAYERS = (
    ("client",),
    ("cmd",),
    ("service",),
    ("api", "conductor", "pxe_filter", "simulator"),
    ("inspection",),
    ("deploy",),
    ("hardware",),
    ("rules", "legacy", "extra_specs"),
    ("db", "rpc"),
    ("policy",),
    ("conf", "policies"),
    ("models", "plugins"),
    ("exceptions", "context", "samples", "text"),
)
RANKS = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

#: Entry modules: other programs start the service by importing them, so they stand where the commands do.
ENTRY_MODULES = {"api.wsgi": "cmd"}

#: Parts that are values in, values out.
PURE_PARTS = ("rules", "models", "legacy", "extra_specs")
IMPURE_LIBRARIES = ("oslo_config", "oslo_db", "oslo_messaging", "pecan", "sqlalchemy", "socket", "time")


def module_name(path: Path) -> str:
    """Return the name below ``ironic_rules``, e.g. ``api.wsgi``; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, source: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield ``(line, dotted name)`` of every import, also inside functions. ``source`` stands in for the file."""
    package = ["ironic_rules", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8") if source is None else source, str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(filter(None, (base, node.module)))
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def part_of(module: str) -> str:
    """Return the part that a module below ``ironic_rules`` belongs to."""
    return ENTRY_MODULES.get(module) or module.partition(".")[0]


def violations(path: Path, source: str | None = None) -> Iterator[str]:
    """Yield one line of text per import of ``path`` that does not point downwards."""
    importer = part_of(module_name(path))
    if not importer:
        return
    for line, name in imported(path, source):
        root, _, module = name.partition(".")
        part = part_of(module)
        if root != "ironic_rules" or part not in RANKS or part == importer:
            continue
        if RANKS[part] <= RANKS[importer]:
            yield f"{path.relative_to(PACKAGE.parent)}:{line}: {importer} must not import {name}"


MODULES = sorted(PACKAGE.rglob("*.py"))
in_every_module = pytest.mark.parametrize("path", MODULES, ids=lambda path: module_name(path) or "ironic_rules")


@in_every_module
def test_imports_point_downwards(path):
    assert list(violations(path)) == []


@in_every_module
def test_no_module_imports_eventlet(path):
    assert [name for _, name in imported(path) if name.partition(".")[0] in ("eventlet", "greenlet")] == []


@in_every_module
def test_every_module_belongs_to_a_layer(path):
    name = module_name(path)
    assert not name or part_of(name) in RANKS


@pytest.mark.parametrize(
    "path", [path for path in MODULES if part_of(module_name(path)) in PURE_PARTS], ids=module_name)
def test_pure_parts_import_nothing_that_touches_the_world(path):
    assert [name for _, name in imported(path) if name.partition(".")[0] in IMPURE_LIBRARIES] == []


def test_the_documentation_draws_these_layers():
    block = re.search(r"^::\n\n((?:   .*\n)+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert block is not None
    drawn = [re.split(r" {2,}", line.strip(), maxsplit=1)[0].split(" | ") for line in block[1].splitlines()]
    assert drawn == [list(parts) for parts in LAYERS]


def test_an_upward_import_is_found():
    source = "from ironic_rules.db import nodes\nfrom ..api import app\nimport ironic_rules.exceptions\n"

    found = list(violations(PACKAGE / "models" / "example.py", source))

    assert [line.partition(": ")[2] for line in found] == [
        "models must not import ironic_rules.db.nodes",
        "models must not import ironic_rules.api.app",
    ]


@in_every_module
def test_no_module_is_longer_than_four_hundred_lines(path):
    assert "versions" in path.parts or len(path.read_text(encoding="utf-8").splitlines()) <= 400
