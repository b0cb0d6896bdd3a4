"""``.. message-reference::``: each message of an error with its id, status, text, and what to do, by id."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.api.message_page import messages


def page() -> str:
    """Return the reStructuredText of all messages."""
    lines = []
    for message_id, message in messages().items():
        literal = message.text.replace("`", "'")
        status = "" if message.status is None else f"HTTP status {message.status}: "
        lines += [f".. _{message_id}:", "", f"{message_id}", f"   {status}``{literal}``", ""]
        if message.remedy:
            lines += [f"   {message.remedy}", ""]
    return "\n".join(lines)


class MessageReference(SphinxDirective):
    """The messages."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(page())


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("message-reference", MessageReference)
    return {"parallel_read_safe": True}
