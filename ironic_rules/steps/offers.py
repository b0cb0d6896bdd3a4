"""Offers: the steps that nodes can run, by their interfaces, as conductors know or have registered them.

A registration is ``{hardware type: {kind: {"enabled": [names], "default": name}}, "deploy_steps": {kind: {interface
name: [StepInfo.to_wire()]}}, "clean_steps": likewise, "service_steps": likewise, "ramdisk_deploy_interfaces":
[names]}}``. A conductor of an older release registers only the kinds, or no clean and service steps; its steps are not
known.

``hold`` and ``wait`` are steps of every procedure, with the name of any interface, that none has to declare. An
interface that declares a step of its own with such a name keeps it.

The deploy templates of an instance are those that are named after its traits (document 003).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ironic_rules.exceptions import DriverNotFound
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.steps import STEP_INTERFACES, DeployTemplate, Step
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.procedures import ALL, DEPLOYMENT, Procedure
from ironic_rules.text import printable

#: Maximum number of problems reported for one node.
MAX_TRAIT_PROBLEMS = 100


def requested_traits(instance_info: Mapping[str, JSON]) -> list[str]:
    """Return the traits that an instance requests, without duplicates; items that are not strings are left out."""
    traits = instance_info.get("traits")
    return list(dict.fromkeys(item for item in traits if isinstance(item, str))) if isinstance(traits, list) else []


def trait_problems(instance_info: Mapping[str, JSON], traits: Collection[str]) -> list[str]:
    """Return the problems of the traits that an instance requests, for a node that has ``traits``."""
    requested = instance_info.get("traits")
    if requested is None:
        return []
    if not isinstance(requested, list) or not all(isinstance(item, str) for item in requested):
        return ["/instance_info/traits: must be a list of traits"]
    return [f"/instance_info/traits/{index}: the node does not have the trait {printable(trait, 255)}"
            for index, trait in enumerate(requested) if trait not in traits][:MAX_TRAIT_PROBLEMS]


def steps_of_templates(templates: Iterable[DeployTemplate], requested: Iterable[Step] = ()) -> list[Step]:
    """Return all requested steps, those of the request last."""
    return [*(step for template in templates for step in template.steps), *requested]


def left_out(templates: Iterable[DeployTemplate], requested: Iterable[Step]) -> list[str]:
    """Return the names of the steps that are requested with priority 0, such as ``raid.create_configuration``."""
    return sorted({step.name for step in steps_of_templates(templates, requested) if step.priority == 0})


#: Stops the procedure until ``unhold``.
HOLD = "hold"
#: Waits for a time, or for the next heartbeat of the machine.
WAIT = "wait"
#: Maximum time. No worker waits.
MAX_WAIT_S = 86400

_ARGUMENTS: Mapping[str, Mapping[str, Mapping[str, JSON]]] = {
    HOLD: {},
    WAIT: {"seconds": {
        "description": f"How long to wait, 0 to {MAX_WAIT_S}. Default: until the next heartbeat of the machine.",
        "required": False,
        "schema": {"description": f"a number from 0 to {MAX_WAIT_S}, or null", "type": ["number", "null"],
                   "minimum": 0, "maximum": MAX_WAIT_S}}},
}


def find_reserved(step: Step) -> StepInfo | None:
    """Return the declaration of a reserved step; None if the step is not reserved."""
    if step.step not in _ARGUMENTS or step.interface not in STEP_INTERFACES:
        return None
    return StepInfo(step.interface, step.step, 0, _ARGUMENTS[step.step], rerunnable=True, abortable=True)


#: The columns of a node that determine its steps.
NODE_COLUMNS = ("driver", *(f"{kind}_interface" for kind in STEP_INTERFACES))
#: Description of an argument that only the ramdisk knows.
_ANY = {"description": "", "required": False}


@dataclass(frozen=True)
class Offer:
    """The steps that a node offers.

    ``steps`` are those of its interfaces, grouped by kind. ``in_ramdisk`` means that the procedure boots a ramdisk
    with its own steps, which are not known before it runs.
    """

    steps: tuple[StepInfo, ...]
    in_ramdisk: bool = False

    @functools.cached_property
    def _by_key(self) -> Mapping[tuple[str, str], StepInfo]:
        return {info.key: info for info in reversed(self.steps)}

    def declared(self, step: Step) -> StepInfo | None:
        """Return the declaration of the step; None if no interface has it."""
        return self._by_key.get(step.key)

    def find(self, step: Step) -> StepInfo | None:
        """Return the declaration of the step; None if no interface has it and it is not reserved."""
        return self.declared(step) or find_reserved(step)

    @property
    def only_out_of_band(self) -> Offer:
        """The offer while no ramdisk is booted."""
        return replace(self, steps=tuple(info for info in self.steps if not info.core), in_ramdisk=False)

    def refusing(self, refused: Mapping[tuple[str, str], str]) -> Offer:
        """Return the offer to a node that must not run some of the steps.

        :param refused: key of a step -> why
        """
        if not refused:
            return self
        return replace(self, steps=tuple(replace(info, refusal=refused.get(info.key)) for info in self.steps))

    def assumed(self, templates: Iterable[DeployTemplate], requested: Iterable[Step] = ()) -> Offer:
        """Return the offer to check steps against before the ramdisk runs.

        A requested step that no interface has is assumed to be a step of the ramdisk with any arguments.
        """
        if not self.in_ramdisk:
            return self
        offered = {info.key for info in self.steps}
        args: dict[tuple[str, str], JSONObject] = {}
        for step in steps_of_templates(templates, requested):
            if step.key not in offered and find_reserved(step) is None:
                args.setdefault(step.key, {}).update({name: dict(_ANY) for name in step.args})
        return replace(self, steps=(*self.steps, *(StepInfo(*key, 0, argsinfo) for key, argsinfo in args.items())))


class RegisteredSteps:
    """The steps that conductors of one group offer; if two of them differ, the first one takes precedence."""

    def __init__(self, registrations: Iterable[Mapping[str, Any]]) -> None:
        #: procedure -> hardware type -> kind -> interface name -> steps, and the default interface under None
        self._offers: dict[str, dict[str, dict[str, dict[str | None, list[StepInfo]]]]] = {
            procedure.name: {} for procedure in ALL}
        #: (hardware type, deploy interface or None for the default) whose ramdisk has its own steps
        self._ramdisks: set[tuple[str, str | None]] = set()
        for registration in registrations:
            for driver, description in registration.items():
                for name in description.get("ramdisk_deploy_interfaces", ()):
                    self._ramdisks.add((driver, name))
                    if name == description["deploy"]["default"]:
                        self._ramdisks.add((driver, None))
                for procedure in ALL:
                    self._add(procedure, driver, description)

    def _add(self, procedure: Procedure, driver: str, description: Mapping[str, Any]) -> None:
        kinds = self._offers[procedure.name].setdefault(driver, {})
        for kind, interfaces in description.get(procedure.steps_key, {}).items():
            steps_by_interface = kinds.setdefault(kind, {})
            for name, steps in interfaces.items():
                steps_by_interface.setdefault(name, [StepInfo.from_wire(kind, step) for step in steps])
            steps_by_interface.setdefault(None, steps_by_interface.get(description[kind]["default"], []))

    def of_node(self, node: Node, procedure: Procedure = DEPLOYMENT) -> Offer:
        """Return the steps that a node offers for a procedure.

        :param node: anything with ``NODE_COLUMNS``; None as an interface means the driver's default
        :raises DriverNotFound: no conductor offers the driver
        """
        offers = self._offers[procedure.name]
        if node.driver not in offers:
            raise DriverNotFound(driver=node.driver)
        kinds = offers[node.driver]
        steps = tuple(info for kind in STEP_INTERFACES
                      for info in kinds.get(kind, {}).get(getattr(node, f"{kind}_interface"), ()))
        if procedure is DEPLOYMENT:
            return Offer(steps, (node.driver, node.deploy_interface) in self._ramdisks)
        return Offer(steps, any(info.key == ("deploy", procedure.boot_step) for info in steps))

    def names(self, kind: str) -> set[str]:
        """Return the names of the deploy steps that interfaces of a kind have."""
        return {info.step for kinds in self._offers[DEPLOYMENT.name].values()
                for infos in kinds.get(kind, {}).values() for info in infos}

    def declared(self, step: Step) -> list[tuple[str, StepInfo]]:
        """Return name and declaration of every interface that has the deploy step, for each hardware type."""
        offers = self._offers[DEPLOYMENT.name].values()
        return [(name, info) for kinds in offers for name, infos in kinds.get(step.interface, {}).items()
                if name is not None for info in infos if info.key == step.key]
