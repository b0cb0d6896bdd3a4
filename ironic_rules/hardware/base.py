"""What hardware types and their interfaces offer; implementations are plug-ins.

A task (``models.task.Task``) has drafts: an interface changes them and saves nothing. Where it acts on the world (a
BMC, a switch), it must be safe to repeat, because a conductor that dies in between is followed by another one.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

from oslo_config import cfg

from ironic_rules.exceptions import UnsupportedDriverExtension
from ironic_rules.models import states
from ironic_rules.models.task import Task

#: ``(node, kind) -> interface``: how an interface reaches the others of the same node.
InterfaceOf = Callable[[Any, str], Any]


class HardwareType:
    """A family of machines. Each ``supported_*`` lists interface names; the first enabled one is the default."""

    supported_bios_interfaces: ClassVar[tuple[str, ...]] = ("no-bios",)
    supported_boot_interfaces: ClassVar[tuple[str, ...]] = ()
    supported_console_interfaces: ClassVar[tuple[str, ...]] = ("no-console",)
    supported_deploy_interfaces: ClassVar[tuple[str, ...]] = ()
    supported_firmware_interfaces: ClassVar[tuple[str, ...]] = ("no-firmware",)
    supported_inspect_interfaces: ClassVar[tuple[str, ...]] = ("agent", "no-inspect")
    supported_management_interfaces: ClassVar[tuple[str, ...]] = ()
    supported_network_interfaces: ClassVar[tuple[str, ...]] = ("noop",)
    supported_power_interfaces: ClassVar[tuple[str, ...]] = ()
    supported_raid_interfaces: ClassVar[tuple[str, ...]] = ("no-raid",)
    supported_rescue_interfaces: ClassVar[tuple[str, ...]] = ("no-rescue",)
    supported_storage_interfaces: ClassVar[tuple[str, ...]] = ("noop",)
    supported_vendor_interfaces: ClassVar[tuple[str, ...]] = ("no-vendor",)

    @classmethod
    def supported(cls, kind: str) -> tuple[str, ...]:
        """Return the names of the interfaces of ``kind`` that go with this type, best first."""
        names: tuple[str, ...] = getattr(cls, f"supported_{kind}_interfaces")
        return names


class Interface:
    """Base of all interfaces: one object serves all nodes and threads, so it keeps nothing about a node."""

    #: one of ``node_fields.INTERFACES``
    kind: ClassVar[str]
    #: name of a ``driver_info`` key -> what it means
    properties: ClassVar[dict[str, str]] = {}

    def __init__(self, conf: cfg.ConfigOpts, interface_of: InterfaceOf) -> None:
        self.conf = conf
        self.interface_of = interface_of

    def get_properties(self) -> dict[str, str]:
        """Return the ``driver_info`` keys that this interface reads, each with a description."""
        return dict(self.properties)

    def validate(self, task: Task) -> None:
        """Check that the node has what this interface needs. Quick: talks to no BMC.

        :raises Invalid: it has not; the text says what is missing or wrong
        """

    def refuse(self, task: Task, extension: str | None = None) -> UnsupportedDriverExtension:
        """Return the error for something that this interface cannot do."""
        return UnsupportedDriverExtension(driver=task.node.driver, extension=extension or self.kind)


class Absent(Interface):
    """Mix-in of the ``no-*`` interfaces: the node has nothing of this kind, and validation says so."""

    def validate(self, task: Task) -> None:
        raise self.refuse(task, f"{self.kind} (disabled or not implemented)")


class PowerInterface(Interface, abc.ABC):
    kind = "power"

    @abc.abstractmethod
    def get_power_state(self, task: Task) -> str:
        """Return ``states.POWER_ON`` or ``POWER_OFF``."""

    @abc.abstractmethod
    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        """Bring the node to ``target`` (``states.POWER_TARGETS``) and put what it ended in into ``node.power_state``.

        :raises InvalidParameterValue: no such target
        """

    def get_supported_power_states(self) -> list[str]:
        """Return the targets that ``set_power_state`` takes."""
        return sorted(states.POWER_TARGETS)


class InspectInterface(Interface, abc.ABC):
    kind = "inspect"

    @abc.abstractmethod
    def inspect_hardware(self, task: Task) -> str:
        """Start the inspection.

        :returns: ``states.INSPECTWAIT`` when data is to come, ``states.MANAGEABLE`` when all is done
        """

    def continue_inspection(
            self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any] | None = None) -> str:
        """Go on with the data that a ramdisk sent.

        :returns: the next state, as for ``inspect_hardware``
        :raises UnsupportedDriverExtension: this interface expects no data from a ramdisk
        """
        raise self.refuse(task, "continue_inspection")

    def abort(self, task: Task) -> None:
        """End an inspection that waits for its ramdisk.

        :raises UnsupportedDriverExtension: it cannot be ended
        """
        raise self.refuse(task, "abort")


class BootInterface(Interface):
    kind = "boot"
    #: whether it can make the node boot a ramdisk, so that nobody else's DHCP and TFTP servers are needed
    can_boot_ramdisk: ClassVar[bool] = False


class ManagementInterface(Interface, abc.ABC):
    kind = "management"

    @abc.abstractmethod
    def get_supported_boot_devices(self, task: Task) -> list[str]:
        """Return the names that ``set_boot_device`` takes: ``pxe``, ``disk``, …"""

    @abc.abstractmethod
    def get_boot_device(self, task: Task) -> dict[str, Any]:
        """Return ``{"boot_device": name or None, "persistent": bool or None}``; None is unknown."""

    @abc.abstractmethod
    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        """Make the node boot from ``device`` next time, or always.

        :raises InvalidParameterValue: no such device
        """


class DeployInterface(Interface, abc.ABC):
    kind = "deploy"

    @abc.abstractmethod
    def deploy(self, task: Task) -> None:
        """Put the instance onto the node and start it."""

    @abc.abstractmethod
    def tear_down(self, task: Task) -> None:
        """Stop the instance."""


class RescueInterface(Interface, abc.ABC):
    kind = "rescue"

    @abc.abstractmethod
    def rescue(self, task: Task) -> None:
        """Boot the rescue system."""

    @abc.abstractmethod
    def unrescue(self, task: Task) -> None:
        """Boot the instance again."""


class NetworkInterface(Interface):
    """Which port carries which VIF is kept by the API in ``internal_info`` of the ports; an interface connects them."""

    kind = "network"


class BIOSInterface(Interface):
    kind = "bios"


class ConsoleInterface(Interface):
    kind = "console"


class FirmwareInterface(Interface):
    kind = "firmware"


class RAIDInterface(Interface):
    kind = "raid"


class StorageInterface(Interface):
    kind = "storage"


class VendorInterface(Interface):
    kind = "vendor"


KINDS: dict[str, type[Interface]] = {
    cls.kind: cls for cls in (
        BIOSInterface, BootInterface, ConsoleInterface, DeployInterface, FirmwareInterface, InspectInterface,
        ManagementInterface, NetworkInterface, PowerInterface, RAIDInterface, RescueInterface, StorageInterface,
        VendorInterface)
}
