"""What a deployment would run, and which nodes can run a template, determined from what conductors have registered.

Neither calls a conductor, however many nodes there are, so both work while all conductors are busy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import DriverNotFound
from ironic_rules.models.deploy_templates import DeployTemplate
from ironic_rules.models.nodes import Node
from ironic_rules.steps import checks, merge, templates
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.offers import NODE_COLUMNS, Offer, RegisteredSteps


@dataclass(frozen=True, slots=True)
class Preview:
    """The steps that a deployment would run, in order, and the problems that would prevent it.

    ``templates`` are the names of those that apply; ``complete`` is false if a ramdisk adds its own steps.
    """

    steps: Sequence[ScheduledStep]
    templates: Sequence[str]
    problems: Sequence[str]
    complete: bool


def of_deployment(offer: Offer, enabled: Collection[DeployTemplate], instance_info: Mapping[str, Any],
                  traits: Collection[str], disallowed: Collection[str]) -> Preview:
    """Return what a deployment would run.

    :param enabled: the templates named after the node's traits and after those that its instance requests
    :param traits: those of the node
    :param disallowed: names of steps that must not run
    """
    requested = templates.requested_traits(instance_info)
    # The steps of those that are only enabled do not run, but their problems prevent a deployment as well.
    counting = [template for template in enabled if template.name in requested]
    return Preview(
        merge.order(offer, counting), [template.name for template in counting],
        templates.trait_problems(instance_info, traits) + checks.node_problems(offer, enabled, disallowed=disallowed),
        not offer.in_ramdisk)


class Support:
    """Checks why nodes cannot run a template; nodes with the same interfaces are checked once.

    :param registered: the steps that the conductors of each group offer
    :param disallowed: names of steps that must not run
    """

    def __init__(self, template: DeployTemplate, registered: Mapping[str | None, RegisteredSteps],
                 disallowed: Collection[str]) -> None:
        self._template = template
        self._registered = registered
        self._disallowed = disallowed
        self._known: dict[tuple[Any, ...], list[str]] = {}

    def problems(self, node: Node) -> list[str]:
        """Return why a node (at least ``NODE_COLUMNS`` and ``conductor_group``) cannot run the template."""
        key = (node.conductor_group, *(getattr(node, name) for name in NODE_COLUMNS))
        if key not in self._known:
            self._known[key] = self._judge(node)
        return self._known[key]

    def _judge(self, node: Node) -> list[str]:
        registered = self._registered.get(node.conductor_group)
        if registered is None:
            return ["no conductor of the node's group is alive"]
        try:
            offer = registered.of_node(node)
        except DriverNotFound as error:
            return [str(error)]
        return checks.node_problems(offer, [self._template], disallowed=self._disallowed)
