"""Imports point downwards only, and eventlet is imported nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.modules import MODULES, PACKAGE, Import, imports_in, imports_of, module_name, place

PAGE = PACKAGE.parent / "doc" / "source" / "contributor" / "layers.rst"

#: From the top down. A module may import its own part and the parts on lower lines; parts on one line are strangers.
LAYERS = (
    ("client",),
    ("cmd",),
    ("service",),
    ("api", "conductor", "pxe_filter", "simulator"),
    ("inspection",),
    ("hardware",),
    ("steps",),
    ("rules", "legacy", "extra_specs"),
    ("db", "rpc"),
    ("policy",),
    ("conf", "policies"),
    ("models", "entry_points"),
    ("exceptions", "context", "samples", "text"),
)
RANKS = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

#: Entry modules: other programs start the service by importing them, so they stand where the commands do.
ENTRY_MODULES = {"api.wsgi": "cmd"}

#: Parts that are values in, values out.
PURE_PARTS = ("rules", "steps", "models", "legacy", "extra_specs")
IMPURE_LIBRARIES = ("oslo_config", "oslo_db", "oslo_messaging", "pecan", "sqlalchemy", "socket", "time")
GREEN_LIBRARIES = ("eventlet", "greenlet")

MOST_LINES = 400


def part_of(module: str) -> str:
    """Return the part that a module below ``ironic_rules`` belongs to."""
    return ENTRY_MODULES.get(module) or module.partition(".")[0]


def upward(path: Path, imports: Iterable[Import]) -> Iterator[str]:
    """Say which imports of a module do not point downwards."""
    importer = part_of(module_name(path))
    if not importer:
        return
    for line, name in imports:
        root, _, module = name.partition(".")
        part = part_of(module)
        if root != "ironic_rules" or part not in RANKS or part == importer:
            continue
        if RANKS[part] <= RANKS[importer]:
            yield f"{place(path, line)}: {importer} must not import {name}"


def imported(path: Path, imports: Iterable[Import], libraries: Iterable[str]) -> Iterator[str]:
    """Say which imports of a module are of ``libraries``."""
    yield from (f"{place(path, line)}: imports {name}" for line, name in imports if name.partition(".")[0] in libraries)


def too_long(path: Path, source: str) -> Iterator[str]:
    """Say that a module has too many lines."""
    lines = len(source.splitlines())
    if lines > MOST_LINES and "versions" not in path.parts:
        yield f"{place(path, MOST_LINES + 1)}: {lines} lines"


def test_imports_point_downwards():
    assert [found for path in MODULES for found in upward(path, imports_of(path))] == []


def test_no_module_imports_eventlet():
    assert [found for path in MODULES for found in imported(path, imports_of(path), GREEN_LIBRARIES)] == []


def test_every_module_belongs_to_a_layer():
    names = filter(None, map(module_name, MODULES))

    assert [name for name in names if part_of(name) not in RANKS] == []


def test_every_layer_has_modules():
    met = {part_of(module_name(path)) for path in MODULES}

    assert [parts for parts in LAYERS if met.isdisjoint(parts)] == []


def test_pure_parts_import_nothing_that_touches_the_world():
    pure = [path for path in MODULES if part_of(module_name(path)) in PURE_PARTS]

    assert [found for path in pure for found in imported(path, imports_of(path), IMPURE_LIBRARIES)] == []


def test_no_module_is_longer_than_four_hundred_lines():
    assert [found for path in MODULES for found in too_long(path, path.read_text(encoding="utf-8"))] == []


def test_the_documentation_draws_these_layers():
    block = re.search(r"^::\n\n((?:   .*\n)+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert block is not None
    drawn = [re.split(r" {2,}", line.strip(), maxsplit=1)[0].split(" | ") for line in block[1].splitlines()]
    assert drawn == [list(parts) for parts in LAYERS]


EXAMPLE = PACKAGE / "models" / "example.py"


def test_an_upward_import_is_found():
    source = "from ironic_rules.db import nodes\nfrom ..api import app\nimport ironic_rules.exceptions\n"

    assert list(upward(EXAMPLE, imports_in(EXAMPLE, source))) == [
        "ironic_rules/models/example.py:1: models must not import ironic_rules.db.nodes",
        "ironic_rules/models/example.py:2: models must not import ironic_rules.api.app",
    ]


def test_an_import_of_a_library_is_found_inside_a_function():
    source = "import timeit\n\ndef f():\n    from time import sleep\n"

    assert list(imported(EXAMPLE, imports_in(EXAMPLE, source), IMPURE_LIBRARIES)) == [
        "ironic_rules/models/example.py:4: imports time.sleep"]


def test_a_module_that_is_too_long_is_found():
    assert list(too_long(EXAMPLE, "x\n" * 400)) == []
    assert list(too_long(EXAMPLE, "x\n" * 401)) == ["ironic_rules/models/example.py:401: 401 lines"]
