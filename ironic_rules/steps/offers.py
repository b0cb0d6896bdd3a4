"""The steps that nodes offer by their interfaces, as their conductor knows them, or as it has registered them.

A registration is ``{hardware type: {kind: {"enabled": [names], "default": name}}, "deploy_steps": {kind: {interface
name: [StepInfo.to_wire()]}}, "ramdisk_deploy_interfaces": [names]}}``. A conductor of an older release registers only
the kinds; its steps are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ironic_rules.exceptions import DriverNotFound
from ironic_rules.models.deploy_templates import DeployTemplate
from ironic_rules.models.nodes import Node
from ironic_rules.models.steps import STEP_INTERFACES, Step
from ironic_rules.steps import templates as asked
from ironic_rules.steps.declaration import StepInfo

#: The columns of a node that determine its steps.
NODE_COLUMNS = ("driver", *(f"{kind}_interface" for kind in STEP_INTERFACES))
#: What is assumed of an argument that only the ramdisk knows.
_ANY = {"description": "", "required": False}


@dataclass(frozen=True, slots=True)
class Offer:
    """The steps that a node offers.

    ``steps`` are those of its interfaces, grouped by kind. ``in_ramdisk`` means that its deployment boots a ramdisk
    with its own steps, which are not known before it runs.
    """

    steps: tuple[StepInfo, ...]
    in_ramdisk: bool = False

    def find(self, step: Step) -> StepInfo | None:
        """Return how the step is declared by the interface that has it; None if no interface has it."""
        return next((info for info in self.steps if info.key == step.key), None)

    def assumed(self, templates: Iterable[DeployTemplate], requested: Iterable[Step] = ()) -> Offer:
        """Return the offer to check steps against before the ramdisk runs.

        A requested step that no interface has is assumed to be a step of the ramdisk with any arguments.
        """
        if not self.in_ramdisk:
            return self
        known = {info.key for info in self.steps}
        args: dict[tuple[str, str], dict[str, Any]] = {}
        for step in asked.steps_of(templates, requested):
            if step.key not in known:
                args.setdefault(step.key, {}).update({name: dict(_ANY) for name in step.args})
        return replace(self, steps=(*self.steps, *(StepInfo(*key, 0, argsinfo) for key, argsinfo in args.items())))


class RegisteredSteps:
    """The steps that conductors of one group offer; if two of them differ, the first one takes precedence."""

    def __init__(self, registrations: Iterable[Mapping[str, Any]]) -> None:
        #: hardware type -> kind -> interface name -> steps, and the default interface under None
        self._offers: dict[str, dict[str, dict[str | None, list[StepInfo]]]] = {}
        #: (hardware type, deploy interface or None for the default) whose ramdisk has its own steps
        self._ramdisks: set[tuple[str, str | None]] = set()
        for registration in registrations:
            for driver, description in registration.items():
                kinds = self._offers.setdefault(driver, {})
                for name in description.get("ramdisk_deploy_interfaces", ()):
                    self._ramdisks.add((driver, name))
                    if name == description["deploy"]["default"]:
                        self._ramdisks.add((driver, None))
                for kind, interfaces in description.get("deploy_steps", {}).items():
                    known = kinds.setdefault(kind, {})
                    for name, steps in interfaces.items():
                        known.setdefault(name, [StepInfo.from_wire(kind, step) for step in steps])
                    known.setdefault(None, known.get(description[kind]["default"], []))

    def of_node(self, node: Node) -> Offer:
        """Return the steps that a node offers.

        :param node: anything with ``NODE_COLUMNS``; None as an interface means the driver's default
        :raises DriverNotFound: no conductor offers the driver
        """
        if node.driver not in self._offers:
            raise DriverNotFound(driver=node.driver)
        kinds = self._offers[node.driver]
        steps = (info for kind in STEP_INTERFACES
                 for info in kinds.get(kind, {}).get(getattr(node, f"{kind}_interface"), ()))
        return Offer(tuple(steps), (node.driver, node.deploy_interface) in self._ramdisks)

    def named(self, step: Step) -> list[StepInfo]:
        """Return the declaration of the step by every interface that has it."""
        return [info for kinds in self._offers.values() for infos in kinds.get(step.interface, {}).values()
                for info in infos if info.key == step.key]
