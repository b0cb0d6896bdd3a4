"""``.. bmc-changes::`` and ``.. bmc-deviations::``: tables of how BMCs are asked, and what is done about deviations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.hardware.redfish.quirks import CHANGES, DEVIATIONS


def _table(widths: str, *rows: Iterable[str]) -> str:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in rows:
        lines += [f"   {'* -' if not number else '  -'} {cell}" for number, cell in enumerate(row)]
    return "\n".join(lines)


def changes() -> str:
    """Return the reStructuredText of the table of changes."""
    return _table("15 50 35", ("Change", "Requested in this order", "Done when"),
                  *((area.name, area.request, area.completion) for area in CHANGES))


def deviations() -> str:
    """Return the reStructuredText of the table of deviations."""
    rows = (("any change" if one.areas == CHANGES else ", ".join(area.name for area in one.areas), one.vendor,
             f"{one.deviates} (`source <{one.source}>`__)", one.does) for one in DEVIATIONS)
    return _table("14 14 40 32", ("Change", "Seen with", "The BMC", "The service"), *rows)


class Changes(SphinxDirective):
    """The table of changes."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(changes())


class Deviations(SphinxDirective):
    """The table of deviations."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(deviations())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("bmc-changes", Changes)
    app.add_directive("bmc-deviations", Deviations)
    return {"parallel_read_safe": True}
