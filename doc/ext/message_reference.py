"""``.. message-reference::``: each message of an error with its id, status, text, and what to do, by id.

``reference/messages.yaml`` has what to do, for messages whose text does not say it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules import exceptions

REMEDIES = Path(__file__).resolve().parents[1] / "source" / "reference" / "messages.yaml"


def messages() -> dict[str, tuple[str, int, str]]:
    """Return the name, HTTP status and text of each message by its id, in the order of the ids."""
    found = {error.message_id: (name, error.code, error.message) for name, error in exceptions.http_errors().items()}
    found |= {item.message_id: (name, item.error.code, item.text) for name, item in vars(exceptions).items()
              if isinstance(item, exceptions.Wording)}
    return dict(sorted(found.items()))


def page() -> str:
    """Return the reStructuredText of all messages."""
    remedies = yaml.safe_load(REMEDIES.read_text(encoding="utf-8"))
    lines = []
    for message_id, (_, status, text) in messages().items():
        literal = text.replace("`", "'").strip()
        lines += [f".. _{message_id}:", "", f"{message_id}", f"   HTTP status {status}: ``{literal}``", ""]
        if message_id in remedies:
            lines += [f"   {remedies[message_id]}", ""]
    return "\n".join(lines)


class MessageReference(SphinxDirective):
    """The messages."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(page())


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("message-reference", MessageReference)
    return {"parallel_read_safe": True}
