"""``.. ironic-values::``: the values of Ironic that this service does not offer, with what to set instead."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.conf.ironic_values import VALUES

HEAD = """\
.. list-table::
   :header-rows: 1
   :widths: 34 26 40

   * - Option
     - Value
     - Instead"""


def rows() -> list[tuple[str, list[str], str]]:
    """Return option, values and advice: one row for the values of an option that have the same advice."""
    found: list[tuple[str, list[str], str]] = []
    for (group, name), advice in VALUES.items():
        for text in dict.fromkeys(advice.values()):
            found.append((f"[{group}]{name}", [value for value, said in advice.items() if said == text], text))
    return found


def text() -> str:
    """Return the reStructuredText of the table."""
    return "\n".join([HEAD, *(_cells(*row) for row in rows())])


def _cells(option: str, values: list[str], advice: str) -> str:
    return f"   * - ``{option}``\n     - {', '.join(f'``{value}``' for value in values)}\n     - {advice}"


class IronicValues(SphinxDirective):
    """The table."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(text())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("ironic-values", IronicValues)
    return {"parallel_read_safe": True}
