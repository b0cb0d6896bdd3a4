"""The base classes of hardware types and their interfaces; implementations are plug-ins.

A method decorated with ``deploy_step`` is a deploy step of every interface that has it, even if it is overridden.

A task (``models.task.Task``) has drafts: an interface changes them and saves nothing. Operations on external systems
(a BMC, a switch) must be safe to repeat, because another conductor takes over if one fails in between.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from oslo_config import cfg

from ironic_rules.exceptions import UnsupportedDriverExtension
from ironic_rules.models import states
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.task import Task
from ironic_rules.steps import arguments
from ironic_rules.steps.declaration import StepInfo, deploy_step

#: ``(node, kind) -> interface``: how an interface reaches the others of the same node.
InterfaceOf = Callable[[Any, str], Any]


class HardwareType:
    """A family of machines. Each ``supported_*`` lists interface names; the default is the first enabled one."""

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
        """Return the names of the interfaces of ``kind`` that this type supports, the preferred ones first."""
        names: tuple[str, ...] = getattr(cls, f"supported_{kind}_interfaces")
        return names


class Interface:
    """Base of all interfaces: one object serves all nodes and threads, so it has no state of a node."""

    #: one of ``INTERFACES``
    kind: ClassVar[str]
    #: name of a ``driver_info`` key -> its description
    properties: ClassVar[dict[str, str]] = {}

    def __init__(self, conf: cfg.ConfigOpts, interface_of: InterfaceOf) -> None:
        self.conf = conf
        self.interface_of = interface_of

    def get_properties(self) -> dict[str, str]:
        """Return the ``driver_info`` keys that this interface reads, each with a description."""
        return dict(self.properties)

    def validate(self, task: Task) -> None:
        """Check that the node has the properties that this interface requires. Quick: does not access the BMC.

        :raises Invalid: it does not; the text says what is missing or wrong
        """

    def continue_step(self, task: Task, step: str, args: Mapping[str, Any]) -> str | None:
        """Check the progress of a deploy step that the machine continues, after a heartbeat. Safe to repeat.

        :returns: None when it is done, as here, where the step waits only for the heartbeat; else ``states.DEPLOYWAIT``
        :raises IronicRulesError: it failed; the text says why
        """
        return None

    def refuse(self, task: Task, extension: str | None = None) -> UnsupportedDriverExtension:
        """Return the error for something that this interface cannot do."""
        return UnsupportedDriverExtension(driver=task.node.driver, extension=extension or self.kind)


class PowerInterface(Interface, abc.ABC):
    kind = "power"

    @abc.abstractmethod
    def get_power_state(self, task: Task) -> str:
        """Return ``states.POWER_ON`` or ``POWER_OFF``."""

    @abc.abstractmethod
    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        """Bring the node to ``target`` (``states.POWER_TARGETS``) and set ``node.power_state`` to the resulting state.

        :raises InvalidParameterValue: no such target
        """

    @deploy_step(priority=0, rerunnable=True)
    def power_on(self, task: Task) -> None:
        """Switch the machine on."""
        self.set_power_state(task, states.POWER_ON)

    @deploy_step(priority=0, rerunnable=True)
    def power_off(self, task: Task) -> None:
        """Switch the machine off."""
        self.set_power_state(task, states.POWER_OFF)

    @deploy_step(priority=0, rerunnable=True)
    def reboot(self, task: Task) -> None:
        """Switch the machine off and on; if it is off, only on."""
        self.set_power_state(task, states.REBOOT)


class InspectInterface(Interface, abc.ABC):
    kind = "inspect"

    @abc.abstractmethod
    def inspect_hardware(self, task: Task) -> InspectionData | str | None:
        """Read the machine's data, or boot a ramdisk that sends them.

        :returns: the data, for hooks and rules; None or ``states.INSPECTWAIT`` if they will be sent to
            ``/v1/continue_inspection``, for :meth:`continue_inspection`
        """

    def continue_inspection(self, task: Task, inventory: dict[str, Any],
                            plugin_data: dict[str, Any] | None = None) -> InspectionData | str:
        """Accept data that were sent to ``/v1/continue_inspection``. May be called again for the same data.

        :returns: the data, for hooks and rules; or the next state: ``states.INSPECTWAIT`` if the node must wait for
            more data (these are stored, and ``task.received_before()`` returns them next time; what the interface
            changed is saved), ``states.MANAGEABLE`` if the inspection is done and hooks and rules must not run
        :raises UnsupportedDriverExtension: this interface expects no data from a ramdisk
        """
        raise self.refuse(task, "continue_inspection")

    def finish(self, task: Task) -> None:
        """Clean up the machine after hooks and rules have processed its data. Safe to repeat.

        :raises IronicRulesError: it cannot be cleaned up; in that case no changes of hooks and rules are saved
        """

    def abort(self, task: Task) -> None:
        """End an inspection that waits for its ramdisk.

        :raises UnsupportedDriverExtension: it cannot be ended
        """
        raise self.refuse(task, "abort")


class BootInterface(Interface):
    kind = "boot"

    #: whether a ramdisk that it boots may run outside the network from which machines boot, as virtual media allow;
    #: ``[deploy]external_callback_url`` is for these
    is_external: ClassVar[bool] = False

    def validate_inspection(self, task: Task) -> None:
        """Check that this interface can boot the inspection ramdisk on the node. Quick: does not access the BMC.

        :raises UnsupportedDriverExtension: it does not support that; DHCP and TFTP servers outside this service must
        :raises Invalid: a property of the node or an option is missing or wrong; the text says which
        """
        raise self.refuse(task, "managed inspection")

    def prepare_ramdisk(self, task: Task, parameters: Mapping[str, str]) -> None:
        """Make the node boot the ramdisk next time. Safe to repeat.

        :param parameters: kernel parameters, name to value; values have no white space or control characters
        :raises IronicRulesError: the BMC or the folder of the web server reports an error
        """
        raise self.refuse(task, "managed inspection")

    def clean_up_ramdisk(self, task: Task) -> None:
        """Undo ``prepare_ramdisk``. Safe to repeat, even if nothing was prepared."""


def boot_device_args(device: Mapping[str, Any] = arguments.TEXT) -> dict[str, dict[str, Any]]:
    """Return the ``argsinfo`` of ``set_boot_device``.

    :param device: the JSON schema of the devices that an interface supports
    """
    return {
        "device": {"description": "What to boot from: pxe, disk, cdrom, bios, …", "required": True, "schema": device},
        "persistent": {"description": "Whether it applies to all boots, not only to the next one. Default: false.",
                       "schema": arguments.BOOLEAN},
    }


class ManagementInterface(Interface, abc.ABC):
    kind = "management"

    @abc.abstractmethod
    def get_supported_boot_devices(self, task: Task) -> list[str]:
        """Return the names that ``set_boot_device`` accepts: ``pxe``, ``disk``, …"""

    @abc.abstractmethod
    def get_boot_device(self, task: Task) -> dict[str, Any]:
        """Return ``{"boot_device": name or None, "persistent": bool or None}``; None means unknown."""

    @deploy_step(priority=0, argsinfo=boot_device_args(), rerunnable=True)
    @abc.abstractmethod
    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        """Make the node boot from ``device`` next time, or always.

        :raises InvalidParameterValue: no such device
        """

    def machine_ids(self, task: Task) -> set[str]:
        """Return what identifies the machine, as ``models.machine_ids`` does; none if the BMC does not report it."""
        return set()

    def get_mac_addresses(self, task: Task) -> list[str]:
        """Return the MAC addresses of the machine's enabled network interfaces; none if the BMC does not report them.

        :raises UnsupportedDriverExtension: the interface cannot read them
        """
        raise self.refuse(task, "get_mac_addresses")

    def get_supported_boot_modes(self, task: Task) -> list[str]:
        """Return the names that ``set_boot_mode`` accepts: ``uefi``, ``bios``, or none."""
        return []

    def get_boot_mode(self, task: Task) -> str | None:
        """Return ``uefi`` or ``bios``; None means unknown.

        :raises UnsupportedDriverExtension: the interface does not support boot modes
        """
        raise self.refuse(task, "get_boot_mode")

    def set_boot_mode(self, task: Task, mode: str) -> None:
        """Make the node boot in ``mode`` from its next boot on.

        :raises InvalidParameterValue: no such mode
        :raises UnsupportedDriverExtension: the interface does not support boot modes
        """
        raise self.refuse(task, "set_boot_mode")


class DeployInterface(Interface, abc.ABC):
    kind = "deploy"

    #: whether the ramdisk has its own deploy steps, which are known only when it runs
    has_in_band_steps: ClassVar[bool] = False

    def in_band_steps(self, task: Task) -> list[StepInfo]:
        """Return the steps that the node's ramdisk offers; none before it has reported them."""
        return []

    def run_in_band(self, task: Task, step: Mapping[str, Any]) -> str | None:
        """Let the node's ramdisk run one of its steps: start it, or check its progress. Safe to repeat.

        :param step: as in ``node.deploy_step``
        :returns: None when it is done, ``states.DEPLOYWAIT`` while it is not, or while the ramdisk cannot be reached
        :raises IronicRulesError: it failed; the text says why
        """
        raise self.refuse(task, "run_in_band")

    @deploy_step(priority=100, core=True)
    @abc.abstractmethod
    def deploy(self, task: Task) -> str | None:
        """Deploy the instance to the node and start it, or begin the deployment.

        :returns: None when it is done, ``states.DEPLOYWAIT`` when the machine continues it
        """

    @abc.abstractmethod
    def tear_down(self, task: Task) -> None:
        """Stop the instance."""

    def clean_up(self, task: Task) -> None:
        """After a failure, undo what would boot the ramdisk again. Safe to repeat, even if nothing was prepared."""


class RescueInterface(Interface, abc.ABC):
    kind = "rescue"

    @abc.abstractmethod
    def rescue(self, task: Task) -> None:
        """Boot the rescue system."""

    @abc.abstractmethod
    def unrescue(self, task: Task) -> None:
        """Boot the instance again."""


class NetworkInterface(Interface):
    """Connects ports to networks. The API stores the VIF of each port in its ``internal_info``."""

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
