"""The deploy steps that conductors have registered. Pure: for processes that have no hardware of their own.

A registration is ``{hardware type: {kind: {"enabled": [names], "default": name}, "deploy_steps": {kind: {interface
name: [StepInfo.to_wire()]}}, "ramdisk_deploy_interfaces": [names]}}``. A conductor of an older release registers the
kinds only: no steps are known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.exceptions import DriverNotFound
from ironic_rules.hardware.steps import StepInfo
from ironic_rules.models.nodes import Node
from ironic_rules.models.steps import STEP_INTERFACES

#: The columns of a node that tell its steps.
NODE_COLUMNS = ("driver", *(f"{kind}_interface" for kind in STEP_INTERFACES))


class RegisteredSteps:
    """What conductors that share their nodes offer; where two of them differ, the first one counts."""

    def __init__(self, registrations: Iterable[Mapping[str, Any]]) -> None:
        #: hardware type -> kind -> interface name -> steps, and the default interface under None
        self._offers: dict[str, dict[str, dict[str | None, list[StepInfo]]]] = {}
        #: (hardware type, deploy interface or None for the default) whose ramdisk has steps of its own
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

    def of_node(self, node: Node) -> list[StepInfo]:
        """Return the steps of a node's interfaces.

        :param node: anything with ``NODE_COLUMNS``; None as an interface means the driver's default
        :raises DriverNotFound: no conductor offers the driver
        """
        if node.driver not in self._offers:
            raise DriverNotFound(driver=node.driver)
        kinds = self._offers[node.driver]
        return [info for kind in STEP_INTERFACES
                for info in kinds.get(kind, {}).get(getattr(node, f"{kind}_interface"), ())]

    def has_ramdisk(self, node: Node) -> bool:
        """Say whether the node's deployment boots a ramdisk that has steps of its own."""
        return (node.driver, node.deploy_interface) in self._ramdisks

    def named(self, interface: str, step: str) -> list[StepInfo]:
        """Return what every interface that has the step says of it."""
        return [info for kinds in self._offers.values() for infos in kinds.get(interface, {}).values()
                for info in infos if info.step == step]
