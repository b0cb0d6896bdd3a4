"""``.. ironic-support::``: effects of the fields, settings and verbs of Ironic's API, from ``ironic-support.yaml``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FILE = Path(__file__).resolve().parents[1] / "source" / "admin" / "ironic-support.yaml"
TYPES = ("fake-hardware", "ipmi", "redfish")
PLACES = {
    "node": "fields of nodes", "driver_info": "settings in ``driver_info``", "instance_info": (
        "settings in ``instance_info``, with the deploy interface ``direct``"), "properties": "``properties`` of nodes",
    "port": "fields of ports", "portgroup": "fields of port groups", "provision": "targets of ``states/provision``",
    "requests": "operations of a node's machine",
}
HEAD = """\
.. list-table:: {title}
   :header-rows: 1
   :widths: 26 11 11 11 41

   * - Name
     - fake-hardware
     - ipmi
     - redfish
     - Effect"""


def tables() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each place and its entries."""
    for table in yaml.safe_load(FILE.read_text(encoding="utf-8")):
        yield table["place"], table["entries"]


def outcome(entry: dict[str, Any], hardware_type: str) -> str:
    """Return what happens to an entry with nodes of that type."""
    return str(entry.get(hardware_type, entry.get("all")))


def text() -> str:
    """Return the reStructuredText of the tables."""
    lines = []
    for place, entries in tables():
        title = PLACES[place]
        lines += [HEAD.format(title=title[0].upper() + title[1:])]
        for entry in entries:
            lines.append("\n     - ".join([f"   * - ``{entry['name']}``", *(outcome(entry, kind) for kind in TYPES),
                                           entry["does"]]))
        lines.append("")
    return "\n".join(lines)


class IronicSupport(SphinxDirective):
    """The tables."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(FILE))
        return self.parse_text_to_nodes(text())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("ironic-support", IronicSupport)
    return {"parallel_read_safe": True}
