"""``.. api-reference::``: the text of :mod:`api_text`."""

from __future__ import annotations

from typing import Any

import api_text
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class ApiReference(SphinxDirective):
    """One section per resource, one below it per route."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(api_text.pages(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("api-reference", ApiReference)
    return {"parallel_read_safe": True}
