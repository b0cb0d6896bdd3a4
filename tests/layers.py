"""The layers of the package, and which of its imports do not point downwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.modules import Import, module_name, place

#: From the top down. A module may import its own part and the parts on lower lines; parts on one line are independent.
LAYERS = (
    ("client",),
    ("cmd",),
    ("service",),
    ("importing",),
    ("api", "conductor", "pxe_filter", "simulator", "lab"),
    ("httpd", "ramdisk"),
    ("inspection",),
    ("hardware",),
    ("steps",),
    ("legacy", "facts"),
    ("rules", "extra_specs"),
    ("db", "rpc"),
    ("policy",),
    ("conf", "policies"),
    ("log_lines",),
    ("models", "entry_points", "policy_files"),
    ("metrics",),
    ("certificates", "tracing"),
    ("exceptions", "context", "samples", "text"),
)
RANKS = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

#: Entry modules: other programs start the service by importing them, so they are on the same line as the commands.
ENTRY_MODULES = {"api.wsgi": "cmd"}


def part_of(module: str) -> str:
    """Return the part that a module below ``ironic_rules`` belongs to."""
    return ENTRY_MODULES.get(module) or module.partition(".")[0]


def upward(path: Path, imports: Iterable[Import]) -> Iterator[str]:
    """Yield the imports of a module that do not point downwards."""
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
