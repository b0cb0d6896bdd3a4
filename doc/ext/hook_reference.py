"""``.. hook-reference::``: a table of the inspection hooks, then a section for each, from their docstrings."""

from __future__ import annotations

import inspect
from importlib import metadata
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.conf.inspector import OPTS
from ironic_rules.inspection.hooks import loader

DEFAULT = loader.parse(next(option.default for option in OPTS if option.name == "default_hooks"))


def hooks() -> dict[str, Any]:
    """Return the hook classes by name: those that run by default, in their order, then the others by name."""
    points = metadata.distribution("ironic-rules").entry_points.select(group=loader.GROUP)
    order = [*DEFAULT, *sorted({point.name for point in points} - set(DEFAULT))]
    return {name: points[name].load() for name in order}


def page() -> str:
    """Return the reStructuredText of the table and all sections."""
    classes = hooks()
    rows = [line for name, cls in classes.items() for line in _row(name, cls)]
    table = [".. list-table::", "   :header-rows: 1", "   :widths: 22 56 22", "",
             *_cells("Hook", "Work", "Needs")]
    return "\n".join([*table, *rows, "", *(_section(name, cls) for name, cls in classes.items())])


def _row(name: str, cls: Any) -> list[str]:
    summary = " ".join(inspect.cleandoc(cls.__doc__).split("\n\n")[0].split())
    by_default = " (default)" if name in DEFAULT else ""
    return _cells(f"`{name}`_{by_default}", summary.removesuffix(":"), _needs(cls))


def _cells(*texts: str) -> list[str]:
    return [f"   {'*' if number == 0 else ' '} - {text}" for number, text in enumerate(texts)]


def _needs(cls: Any) -> str:
    return ", ".join(f"``{name}``" for name in cls.dependencies)


def _section(name: str, cls: Any) -> str:
    return f"{name}\n{'-' * len(name)}\n\n{inspect.cleandoc(cls.__doc__)}\n"


class HookReference(SphinxDirective):
    """The table and the sections."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(page(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("hook-reference", HookReference)
    return {"parallel_read_safe": True}
