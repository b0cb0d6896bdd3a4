"""Actions on the capabilities of the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities
from ironic_rules.rules.actions.registry import ACTIONS
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.errors import ActionError
from ironic_rules.rules.kinds import Capability


@ACTIONS.add("set-capability")
class SetCapability(InspectionRuleActionBase):
    """Set one capability in ``properties/capabilities``, replacing its old value.

    :param name: the capability
    :param value: its value; must not contain a comma

    .. rule:: {op: set-capability, args: {name: boot_mode, value: "{inventory[boot][current_boot_mode]}"}}
    """

    formatted_params = ["name", "value"]
    touches = frozenset({"node"})

    def __call__(self, task: Task, rule: ActiveRule, name: Capability, value: Any) -> None:
        found = task.node.properties.get("capabilities")
        task.node.write("/properties/capabilities", capabilities.put(found, name, value))

    def problems(self, literals: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        if "value" in literals:
            try:
                capabilities.put(None, "", literals["value"])
            except ActionError as exc:
                yield "value", str(exc)


@ACTIONS.add("unset-capability")
class UnsetCapability(InspectionRuleActionBase):
    """Remove one capability from ``properties/capabilities``. A missing one is not an error.

    :param name: the capability

    .. rule:: {op: unset-capability, args: {name: boot_mode}}
    """

    formatted_params = ["name"]
    touches = frozenset({"node"})

    def __call__(self, task: Task, rule: ActiveRule, name: Capability) -> None:
        found = task.node.properties.get("capabilities")
        if found is not None:
            task.node.write("/properties/capabilities", capabilities.remove(found, name))
