"""``.. extra-specs:: hw``: the extra specs of a namespace, and ``.. image-properties:: hw_``: those of images.

Without an argument, extra specs are those without a namespace, and image properties those with none of the prefixes.
Beside pages in HTML stand the metadata definitions for the image service, in ``metadefs``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.extra_specs import installed, output
from ironic_rules.extra_specs.registry import Registered


class ExtraSpecs(SphinxDirective):
    """The extra specs of one namespace."""

    optional_arguments = 1

    def items(self, name: str) -> list[Registered]:
        """Return what is shown."""
        # What is installed where the pages are built must not show on them.
        return installed.built_in().namespaces().get(name, [])

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0] if self.arguments else ""
        items = self.items(name)
        if not items:
            raise self.error(f"nothing has the name {name!r}")
        return self.parse_text_to_nodes(output.rst_page(items))


class ImageProperties(ExtraSpecs):
    """The properties of images with one prefix."""

    def items(self, name: str) -> list[Registered]:
        """Return what is shown."""
        return [item for item in installed.image_properties() if output.prefix_of(item) == name]


def write_metadefs(app: Sphinx, error: Exception | None) -> None:
    """Write the metadata definitions beside the pages."""
    if error is None and app.builder.format == "html":
        found = output.namespaces(installed.built_in(), installed.image_properties())
        output.write_metadefs(Path(app.outdir) / "metadefs", found)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("extra-specs", ExtraSpecs)
    app.add_directive("image-properties", ImageProperties)
    app.connect("build-finished", write_metadefs)
    return {"parallel_read_safe": True}
