"""``.. rule-reference:: operators`` or ``actions``: one section per registered name, from its docstring."""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.operators import OPERATORS

REGISTRIES = {"operators": OPERATORS, "actions": ACTIONS}
EXAMPLE = re.compile(r"^\.\. rule:: (.+)$", re.MULTILINE)


def sections() -> dict[str, str]:
    """Return the reStructuredText of each registry."""
    return {kind: "\n".join(_section(registry.get(name)) for name in registry.names())
            for kind, registry in REGISTRIES.items()}


def _section(operation: Any) -> str:
    title = f"``{operation.name}``"
    body = EXAMPLE.sub(r".. code-block:: yaml\n\n   \1", inspect.cleandoc(operation.doc))
    return f"{title}\n{'-' * len(title)}\n\n{body}\n"


class RuleReference(SphinxDirective):
    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(sections()[self.arguments[0]], allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("rule-reference", RuleReference)
    return {"parallel_read_safe": True}
