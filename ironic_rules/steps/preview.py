"""What a deployment would run, and which nodes can run a template, determined from what conductors have registered.

Neither calls a conductor, however many nodes there are, so both work while all conductors are busy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import DriverNotFound
from ironic_rules.models.documents import JSON
from ironic_rules.models.nodes import Node
from ironic_rules.models.steps import DeployTemplate
from ironic_rules.steps import checks, merge, templates, warnings
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.offers import NODE_COLUMNS, Offer, RegisteredSteps
from ironic_rules.steps.procedures import CLEANING
from ironic_rules.steps.warnings import StepWarning


@dataclass(frozen=True, slots=True)
class Preview:
    """The steps that a deployment would run, in order, the problems that would prevent it, and warnings about it.

    ``templates`` are the names of those that apply; ``complete`` is false if a ramdisk adds its own steps.
    """

    steps: Sequence[ScheduledStep]
    templates: Sequence[str]
    problems: Sequence[str]
    warnings: Sequence[StepWarning]
    complete: bool


def of_deployment(offer: Offer, enabled: Collection[DeployTemplate], instance_info: Mapping[str, JSON],
                  traits: Collection[str], disallowed: Collection[str]) -> Preview:
    """Return what a deployment would run.

    :param enabled: the templates named after the node's traits and after those that its instance requests
    :param traits: those of the node
    :param disallowed: names of steps that must not run
    """
    requested = templates.requested_traits(instance_info)
    # The steps of those that are only enabled do not run, but their problems prevent a deployment as well.
    counting = [template for template in enabled if template.name in requested]
    runs = merge.order(offer, counting)
    return Preview(
        runs, [template.name for template in counting],
        templates.trait_problems(instance_info, traits) + checks.node_problems(offer, enabled, disallowed=disallowed),
        warnings.of_deployment(offer, runs), not offer.in_ramdisk)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Why a node cannot run a template, and warnings about a deployment by it."""

    problems: Sequence[str]
    warnings: Sequence[StepWarning] = ()


def of_cleaning(offer: Offer) -> Preview:
    """Return what automated cleaning would run.

    :param offer: the node's for cleaning
    """
    return Preview(merge.in_order(offer, CLEANING), (), checks.cleaning_problems(offer), (), not offer.in_ramdisk)


class Support:
    """Checks whether nodes can run a template; nodes with the same interfaces are checked once.

    :param registered: the steps that the conductors of each group offer
    :param disallowed: names of steps that must not run
    """

    def __init__(self, template: DeployTemplate, registered: Mapping[str | None, RegisteredSteps],
                 disallowed: Collection[str]) -> None:
        self._template = template
        self._registered = registered
        self._disallowed = disallowed
        self._known: dict[tuple[Any, ...], Judgement] = {}

    def judge(self, node: Node) -> Judgement:
        """Return what a deployment of a node (at least ``NODE_COLUMNS`` and ``conductor_group``) by the template says.

        Other templates of the node are not considered.
        """
        key = (node.conductor_group, *(getattr(node, name) for name in NODE_COLUMNS))
        if key not in self._known:
            self._known[key] = self._judge(node)
        return self._known[key]

    def _judge(self, node: Node) -> Judgement:
        registered = self._registered.get(node.conductor_group)
        if registered is None:
            return Judgement(["no conductor of the node's group is alive"])
        try:
            offer = registered.of_node(node)
        except DriverNotFound as error:
            return Judgement([str(error)])
        if problems := checks.node_problems(offer, [self._template], disallowed=self._disallowed):
            return Judgement(problems)
        return Judgement([], warnings.of_deployment(offer, merge.order(offer, [self._template])))
