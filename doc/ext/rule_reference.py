"""``.. rule-reference:: operators``, ``actions`` or ``conversions``: one section per name, from its docstring."""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.operators import OPERATORS
from ironic_rules.rules.template import CONVERSIONS

REGISTRIES = {"operators": OPERATORS, "actions": ACTIONS}
EXAMPLE = re.compile(r"^\.\. (?:rule|conversion):: (.+)$", re.MULTILINE)


def sections() -> dict[str, str]:
    """Return the reStructuredText of each registry."""
    known = {kind: {operation.name: operation.doc for operation in registry} for kind, registry in REGISTRIES.items()}
    known["conversions"] = {name: str(function.__doc__) for name, function in CONVERSIONS.items()}
    return {kind: "\n".join(_section(name, doc) for name, doc in docs.items()) for kind, docs in known.items()}


def _section(name: str, doc: str) -> str:
    title = f"``{name}``"
    body = EXAMPLE.sub(r".. code-block:: yaml\n\n   \1", inspect.cleandoc(doc))
    return f"{title}\n{'-' * len(title)}\n\n{body}\n"


class RuleReference(SphinxDirective):
    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(sections()[self.arguments[0]], allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("rule-reference", RuleReference)
    return {"parallel_read_safe": True}
