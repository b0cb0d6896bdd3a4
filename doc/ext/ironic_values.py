"""``.. ironic-values::`` and ``.. ironic-protections::``: what this service does not offer of Ironic's configuration.

The first one has values with what to set instead, the second one the options about security that nothing reads.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.conf.ironic import PROTECTIONS, VALUES

HEAD = """\
.. list-table::
   :header-rows: 1
   :widths: 34 26 40

   * - Option
     - Value
     - Instead"""

PROTECTIONS_HEAD = """\
.. list-table::
   :header-rows: 1
   :widths: 40 60

   * - Options
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


def protection_rows() -> list[tuple[list[str], str]]:
    """Return options and advice: one row for the options that have the same advice."""
    found: dict[str, list[str]] = {}
    for (group, name), protection in PROTECTIONS.items():
        found.setdefault(protection.instead, []).append(f"[{group}]{name}")
    return [(options, advice) for advice, options in found.items()]


def protections_text() -> str:
    """Return the reStructuredText of the table of protections."""
    return "\n".join([PROTECTIONS_HEAD, *(f"   * - {', '.join(f'``{option}``' for option in options)}\n     - {advice}"
                                          for options, advice in protection_rows())])


def _cells(option: str, values: list[str], advice: str) -> str:
    return f"   * - ``{option}``\n     - {', '.join(f'``{value}``' for value in values)}\n     - {advice}"


class IronicValues(SphinxDirective):
    """The table of values."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(text())


class IronicProtections(SphinxDirective):
    """The table of protections."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(protections_text())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("ironic-values", IronicValues)
    app.add_directive("ironic-protections", IronicProtections)
    return {"parallel_read_safe": True}
