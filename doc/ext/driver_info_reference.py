"""``.. driver-info-reference:: <hardware type>``: a table of the ``driver_info`` keys that its interfaces read."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.hardware.base import KINDS
from ironic_rules.hardware.enabled import INTERFACES_GROUP, TYPES_GROUP


def keys(hardware_type: str) -> dict[str, tuple[str, list[str]]]:
    """Return what each key means, and the names of the interfaces that read it, ``<kind>/<name>``."""
    points = metadata.distribution("ironic-rules").entry_points
    cls = points.select(group=TYPES_GROUP)[hardware_type].load()
    found: dict[str, tuple[str, list[str]]] = {}
    for kind in KINDS:
        for name in cls.supported(kind):
            interface = points.select(group=f"{INTERFACES_GROUP}.{kind}")[name].load()
            for key, text in interface.properties.items():
                found.setdefault(key, (text, []))[1].append(f"{kind}/{name}")
    return found


def table(hardware_type: str) -> str:
    """Return the reStructuredText of the table."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 24 52 24", "",
             "   * - Key", "     - Meaning", "     - Read by"]
    for key, (text, readers) in keys(hardware_type).items():
        lines += [f"   * - ``{key}``", f"     - {text}", f"     - {', '.join(readers)}"]
    return "\n".join(lines)


class DriverInfoReference(SphinxDirective):
    """The table."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(table(self.arguments[0]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("driver-info-reference", DriverInfoReference)
    return {"parallel_read_safe": True}
