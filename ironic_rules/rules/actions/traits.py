"""Actions on the traits of the node."""

from __future__ import annotations

from ironic_rules.models.task import Task
from ironic_rules.rules.actions.registry import ACTIONS
from ironic_rules.rules.base import ActiveRule, InspectionRuleActionBase
from ironic_rules.rules.kinds import Trait


@ACTIONS.add("add-trait")
class AddTrait(InspectionRuleActionBase):
    """Add a trait to the node.

    :param name: a standard trait, or ``CUSTOM_`` followed by capital letters, digits and underscores

    .. rule:: {op: add-trait, args: {name: CUSTOM_GPU}}
    """

    formatted_params = ["name"]
    touches = frozenset({"node"})

    def __call__(self, task: Task, rule: ActiveRule, name: Trait) -> None:
        task.node.add_trait(name)


@ACTIONS.add("remove-trait")
class RemoveTrait(InspectionRuleActionBase):
    """Remove a trait from the node. A missing one is not an error.

    :param name: the trait

    .. rule:: {op: remove-trait, args: {name: CUSTOM_GPU}}
    """

    formatted_params = ["name"]
    touches = frozenset({"node"})

    def __call__(self, task: Task, rule: ActiveRule, name: Trait) -> None:
        task.node.traits.discard(name)
