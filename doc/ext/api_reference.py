"""``.. api-reference::``: the text of :mod:`api_text`."""

from __future__ import annotations

from typing import Any

import api_text
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.nodes import nested_parse_with_titles


class ApiReference(Directive):
    """One section per resource, one below it per route."""

    def run(self) -> list[nodes.Node]:
        parent = nodes.section()
        parent.document = self.state.document
        lines = StringList(api_text.pages().splitlines(), source="api-reference")
        nested_parse_with_titles(self.state, lines, parent, self.content_offset)
        return list(parent.children)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("api-reference", ApiReference)
    return {"parallel_read_safe": True}
