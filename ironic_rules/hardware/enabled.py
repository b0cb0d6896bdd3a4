"""The hardware types and interfaces that this process serves, loaded from entry points once."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from oslo_config import cfg
from oslo_log import log

from ironic_rules import entry_points
from ironic_rules.db import clock
from ironic_rules.exceptions import ConfigurationError, DriverNotFound, InterfaceNotFound
from ironic_rules.hardware.base import KINDS, HardwareType, Interface, wait_state
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node
from ironic_rules.models.steps import STEP_INTERFACES as STEP_KINDS
from ironic_rules.models.task import Task
from ironic_rules.steps import procedures
from ironic_rules.steps.declaration import StepInfo, steps_of, with_priorities
from ironic_rules.steps.offers import NODE_COLUMNS, Offer
from ironic_rules.steps.procedures import CLEANING, DEPLOYMENT, SERVICE, Procedure

LOG = log.getLogger(__name__)

TYPES_GROUP = entry_points.HARDWARE_TYPES
INTERFACES_GROUP = entry_points.INTERFACES
#: Returns what a node has chosen of the hardware.
_CHOSEN = operator.attrgetter(*NODE_COLUMNS)


class EnabledHardware:
    """Enabled hardware types and interfaces. One per process; thread-safe.

    :raises ConfigurationError: an enabled name does not exist, or a type has no enabled interface of some kind
    """

    #: the kinds in GET /v1/nodes/{node}/validate; vendor interfaces are validated per method
    VALIDATED_KINDS = tuple(kind for kind in KINDS if kind != "vendor")

    def __init__(self, conf: cfg.ConfigOpts, types: Mapping[str, type[HardwareType]] | None = None,
                 interfaces: Mapping[str, Mapping[str, type[Interface]]] | None = None) -> None:
        """Load the enabled hardware types and interfaces.

        :param types: ``{name: class}``, instead of the entry points of ``enabled_hardware_types``
        :param interfaces: ``{kind: {name: class}}``, instead of those of ``enabled_*_interfaces``
        """
        if types is None:
            types = entry_points.load(TYPES_GROUP, conf.enabled_hardware_types, HardwareType, "enabled_hardware_types")
        if interfaces is None:
            interfaces = {kind: _load_interfaces(conf, kind) for kind in KINDS}
        self._interfaces: dict[str, dict[str, Interface]] = {
            kind: {name: cls(conf, self.interface) for name, cls in interfaces.get(kind, {}).items()} for kind in KINDS
        }
        self._conf = conf
        self._check_priorities()
        problems: list[str] = []
        self._description = {
            driver: {
                kind: self._offer(driver, hardware_type, kind, conf[f"default_{kind}_interface"], problems)
                for kind in KINDS
            }
            for driver, hardware_type in types.items()
        }
        if problems:
            raise ConfigurationError("\n".join(dict.fromkeys(problems)))
        self._kept_offer = functools.cache(self._make_offer)

    def _offer(self, driver: str, hardware_type: type[HardwareType], kind: str, default: str | None,
               problems: list[str]) -> JSONObject:
        """Return the enabled interfaces of a kind and the default one; add to ``problems`` why there are none."""
        loaded = self._interfaces[kind]
        if default is not None and default not in loaded:
            problems.append(f"[DEFAULT]default_{kind}_interface is '{default}', which is not in "
                            f"enabled_{kind}_interfaces ({', '.join(loaded)}).")
        supported = hardware_type.supported(kind)
        enabled = [name for name in supported if name in loaded]
        if not enabled:
            problems.append(f"[DEFAULT]enabled_{kind}_interfaces is {', '.join(loaded) or 'empty'}; hardware type "
                            f"{driver} needs one of {', '.join(supported) or 'none'} there.")
            return {"enabled": [], "default": None}
        # If only another hardware type supports the default, this type is accepted as well.
        return {"enabled": enabled, "default": default if default in enabled else enabled[0]}

    def _check_priorities(self) -> None:
        conf = self._conf
        self._check_priorities_of(DEPLOYMENT, "[deploy]step_priorities", conf.deploy.step_priorities)
        self._check_priorities_of(CLEANING, "[conductor]clean_step_priority_override",
                                  conf.conductor.clean_step_priority_override)

    def _check_priorities_of(self, procedure: Procedure, option: str, priorities: Mapping[str, int]) -> None:
        offered = {info.name: info for loaded in self._interfaces.values() for interface in loaded.values()
                   for info in steps_of(interface, procedure)}
        deploy: Mapping[str, Any] = self._interfaces["deploy"]
        for name, priority in priorities.items():
            kind, _, step = name.partition(".")
            if kind not in STEP_KINDS or not step:
                raise ConfigurationError(f"{option}: '{name}' is not a step: use INTERFACE.STEP, with INTERFACE one of "
                                         f"{', '.join(STEP_KINDS)}.")
            if name not in offered:
                # The steps of ramdisks are known once they run.
                LOG.warning("%s: no interface that is enabled here has the step %s%s", option, name,
                            "; only a ramdisk may have it" if any(
                                implementation.runs_ramdisk(procedure) for implementation in deploy.values()) else "")
            elif offered[name].core and priority:
                raise ConfigurationError(f"{option}: {name} is a core step, whose order cannot be changed; it can be "
                                         "left out with priority 0.")

    def _priorities(self, procedure: Procedure) -> Mapping[str, int]:
        """Return the configured priorities of the steps of a procedure: ``{"bios.apply_configuration": 50, …}``."""
        deploy = self._conf.deploy
        if procedure is DEPLOYMENT:
            return dict(deploy.step_priorities)
        if procedure is SERVICE:
            return {}
        own = {"deploy.erase_devices": deploy.erase_devices_priority,
               "deploy.erase_devices_metadata": deploy.erase_devices_metadata_priority}
        return {**{name: priority for name, priority in own.items() if priority is not None},
                **self._conf.conductor.clean_step_priority_override}

    def end(self, seconds: float) -> None:
        """Let the interfaces leave the hardware, when the process ends; each may take that long."""
        for at_end in {interface.at_end for loaded in self._interfaces.values() for interface in loaded.values()}:
            at_end(seconds)

    def describe(self) -> dict[str, dict[str, JSONObject]]:
        """Return ``{hardware type: {kind: {"enabled": [names, preferred first], "default": name}}}``."""
        return self._description

    def register(self) -> dict[str, JSONObject]:
        """Return the registration of a conductor: ``describe()``, and each type's ``properties`` and steps.

        ``ramdisk_deploy_interfaces`` are those whose ramdisk has its own steps. ``deploy_steps``, ``clean_steps`` and
        ``service_steps`` are ``{kind: {interface name: [StepInfo.to_wire()]}}``, with the configured priorities.
        ``logical_disk_properties`` are, by RAID interface, those of a volume.
        """
        deploy: Mapping[str, Any] = self._interfaces["deploy"]
        raid: Mapping[str, Any] = self._interfaces["raid"]
        return {
            driver: {
                **kinds, "properties": self.properties(driver),
                **{procedure.steps_key: {
                    kind: {name: self._registered_steps(kind, name, procedure) for name in kinds[kind]["enabled"]}
                    for kind in STEP_KINDS} for procedure in procedures.ALL},
                "logical_disk_properties": {name: raid[name].logical_disk_properties()
                                            for name in kinds["raid"]["enabled"]},
                "ramdisk_deploy_interfaces": [name for name in kinds["deploy"]["enabled"]
                                              if deploy[name].has_in_band_steps]}
            for driver, kinds in self._description.items()
        }

    def _registered_steps(self, kind: str, name: str, procedure: Procedure) -> list[JSONObject]:
        offered = steps_of(self._interfaces[kind][name], procedure)
        return [info.to_wire() for info in with_priorities(offered, self._priorities(procedure))]

    def interface(self, node: Node, kind: str) -> Any:
        """Return the interface of ``kind`` that ``node`` uses.

        :param node: anything with ``driver`` and ``<kind>_interface``; None there means the driver's default
        :raises DriverNotFound: the node's driver is not enabled here
        :raises InterfaceNotFound: its interface is not
        """
        return self._interface(node.driver, kind, getattr(node, f"{kind}_interface"))

    def _interface(self, driver: str, kind: str, name: str | None) -> Any:
        try:
            offer = self._description[driver][kind]
        except KeyError:
            raise DriverNotFound(driver=driver) from None
        name = name or offer["default"]
        if name not in offer["enabled"]:
            raise InterfaceNotFound(driver=driver, kind=kind, name=name, valid=", ".join(offer["enabled"]))
        return self._interfaces[kind][name]

    def offer(self, node: Node, procedure: Procedure = DEPLOYMENT) -> Offer:
        """Return the steps that the node offers for a procedure, with the configured priorities.

        :raises DriverNotFound, InterfaceNotFound: as ``interface``
        """
        return self._kept_offer(procedure, tuple(self._priorities(procedure).items()), *_CHOSEN(node))

    def _make_offer(self, procedure: Procedure, priorities: Iterable[tuple[str, int]], driver: str,
                    *names: str | None) -> Offer:
        interfaces = {kind: self._interface(driver, kind, name) for kind, name in zip(STEP_KINDS, names, strict=True)}
        steps = (info for interface in interfaces.values() for info in steps_of(interface, procedure))
        return Offer(tuple(with_priorities(steps, dict(priorities))), interfaces["deploy"].runs_ramdisk(procedure))

    def offer_to(self, task: Task, procedure: Procedure = DEPLOYMENT) -> Offer:
        """Return the offer to check a request against: that of the node, without the steps that it must not run."""
        refused = self.interface(task.node, "power").refused_steps(task.node)
        return self.offer(task.node, procedure).refusing(refused)

    def ramdisk_steps(self, task: Task, procedure: Procedure = DEPLOYMENT) -> list[StepInfo]:
        """Return the steps that the node's ramdisk offers, with the configured priorities; none before it runs.

        :raises IronicRulesError: the ramdisk does not report them
        """
        steps = self.interface(task.node, "deploy").in_band_steps(task, procedure)
        return with_priorities(steps, self._priorities(procedure))

    def pause(self, task: Task, seconds: float) -> str:
        """Let a node wait, as if for hardware; return its wait state."""
        procedures.begin_poll(task.node.driver_internal_info, procedures.POLL_CLOCK, {}, clock.now(), seconds,
                              f"{seconds:g} seconds")
        return wait_state(task)

    def properties(self, driver: str) -> dict[str, str]:
        """Return the ``driver_info`` keys that any enabled interface of ``driver`` reads, each with a description.

        :raises DriverNotFound: the driver is not enabled here
        """
        if driver not in self._description:
            raise DriverNotFound(driver=driver)
        return {
            key: text
            for kind, offer in self._description[driver].items() for name in offer["enabled"]
            for key, text in self._interfaces[kind][name].get_properties().items()}


def _load_interfaces(conf: cfg.ConfigOpts, kind: str) -> dict[str, type[Interface]]:
    option = f"enabled_{kind}_interfaces"
    return entry_points.load(f"{INTERFACES_GROUP}.{kind}", conf[option], KINDS[kind], option)
