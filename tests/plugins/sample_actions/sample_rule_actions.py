"""An action for inspection rules, in a package that is independent of ironic-rules."""

from __future__ import annotations

from typing import Any

from ironic_rules.rules import ActionError, InspectionRuleActionBase


class Tag(InspectionRuleActionBase):
    """Add a tag to ``extra/tags`` of the node; in the early phase, to ``tags`` of the plugin data.

    :param name: the tag; templates are replaced
    :param note: stored with the tag, unchanged from the rule
    """

    formatted_params = ["name"]
    supports_early = True

    def __call__(self, task: Any, rule: Any, name: str, note: str = "") -> None:
        tags = task.node.extra.setdefault("tags", [])
        tags.append(self._tag(name, note))
        task.node.save()  # as in the interface; the service saves once, when all rules have finished

    def call_early(self, rule: Any, name: str, note: str = "") -> None:
        rule.plugin_data.setdefault("tags", []).append(self._tag(name, note))

    def _tag(self, name: str, note: str) -> str:
        if " " in name:
            raise ActionError("a tag has no spaces")
        return f"{name} ({note})" if note else name
