"""``fake-hardware`` and the ``fake`` interfaces: for tests, demonstrations, and machines that are not managed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.base import (
    DEVICE_TYPES,
    BootInterface,
    ConsoleInterface,
    DeployInterface,
    FirmwareInterface,
    HardwareType,
    InspectInterface,
    Interface,
    ManagementInterface,
    PowerInterface,
    RescueInterface,
    StorageInterface,
    VendorInterface,
    boot_device_args,
)
from ironic_rules.hardware.declared_steps import BIOSSteps, RAIDSteps
from ironic_rules.hardware.vendor_methods import vendor_method
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.internal_keys import FAKE_BIOS_SETTINGS, FAKE_BOOT_DEVICE, FAKE_MEDIA
from ironic_rules.models.nodes import BIOSSetting, FirmwareComponent, as_text
from ironic_rules.models.task import Task
from ironic_rules.steps import declaration
from ironic_rules.steps.declaration import clean_step, deploy_step, requested_step
from ironic_rules.text import printable

MAX_SECONDS = 3600
_SECONDS = {"description": f"a number from 0 to {MAX_SECONDS}", "type": "number", "minimum": 0, "maximum": MAX_SECONDS}
DEVICES = ("pxe", "disk", "cdrom", "bios", "safe", "wanboot")
_FIRST_BOOT_DEVICE = {"boot_device": "pxe", "persistent": False}
_FIRMWARE = {
    "description": "a list of one or more objects", "type": "array", "minItems": 1,
    "items": {"description": "an object with component and url", "type": "object", "required": ["component", "url"],
              "properties": {"component": declaration.TEXT_ARGUMENT, "url": declaration.TEXT_ARGUMENT}},
}


class FakeHardware(HardwareType):
    """Machines that exist only in the database."""

    supported_bios_interfaces = ("fake", "no-bios")
    supported_boot_interfaces = ("fake",)
    supported_console_interfaces = ("fake", "no-console")
    supported_deploy_interfaces = ("fake", "direct", "custom-agent")
    supported_firmware_interfaces = ("fake", "no-firmware")
    supported_inspect_interfaces = ("agent", "fake", "no-inspect")
    supported_management_interfaces = ("fake", "noop")
    supported_network_interfaces = ("noop",)
    supported_power_interfaces = ("fake",)
    supported_raid_interfaces = ("fake", "no-raid")
    supported_rescue_interfaces = ("fake", "agent", "no-rescue")
    supported_storage_interfaces = ("noop", "fake")
    supported_vendor_interfaces = ("fake", "no-vendor")


class Pretends(Interface):
    """Mix-in: a step that takes some time, fails, or ends only with a heartbeat of the machine."""

    @requested_step({
        "seconds": {"description": f"How long it takes, 0 to {MAX_SECONDS}. Default: 0.", "schema": _SECONDS},
        "error": {"description": "Fail with this text, after that time."},
        "asynchronous": {"description": "End when the ramdisk calls back, not by itself. Default: false.",
                         "schema": declaration.BOOLEAN_ARGUMENT},
    }, rerunnable=True, abortable=True)
    def pretend(self, task: Task, seconds: float = 0, error: object = None, asynchronous: bool = False) -> str | None:
        """Do nothing, with the duration and the result that the arguments specify."""
        time.sleep(seconds)
        if error is not None:
            raise IronicRulesError(f"{self.kind}.pretend fails as requested: {printable(error)}")
        return states.DEPLOYWAIT if asynchronous else None


class FakePower(Pretends, PowerInterface):
    """Changes the power state at once; a node whose power was never changed is off."""

    def get_power_state(self, task: Task) -> str:
        return task.node.power_state or states.POWER_OFF

    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        self.check_target(task.node, target)
        task.node.power_state = states.POWER_OFF if target in states.OFF_TARGETS else states.POWER_ON


#: Component and name -> the states that an indicator may have.
_INDICATORS = {("chassis", "led-0"): ("OFF", "ON"), ("system", "led"): ("BLINKING", "OFF", "ON")}


class FakeManagement(Pretends, ManagementInterface):
    """Keeps the boot device in ``driver_internal_info``; the default is PXE."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(DEVICES)

    def get_boot_device(self, task: Task) -> JSONObject:
        return dict(task.node.driver_internal_info.get(FAKE_BOOT_DEVICE) or _FIRST_BOOT_DEVICE)

    @requested_step(boot_device_args(declaration.one_of(DEVICES)), rerunnable=True)
    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in DEVICES:
            raise InvalidParameterValue(f"Unknown boot device '{device}'. Valid: {', '.join(DEVICES)}.")
        chosen = {"boot_device": device, "persistent": persistent}
        task.node.driver_internal_info.pop(FAKE_BOOT_DEVICE, None)
        if chosen != _FIRST_BOOT_DEVICE:
            task.node.driver_internal_info[FAKE_BOOT_DEVICE] = chosen

    def get_supported_indicators(self, task: Task) -> dict[str, dict[str, JSONObject]]:
        return {component: {name: {"readonly": True, "states": list(states)}}
                for (component, name), states in _INDICATORS.items()}

    def get_indicator_state(self, task: Task, component: str, indicator: str) -> str:
        if (component, indicator) not in _INDICATORS:
            raise InvalidParameterValue(f"There is no indicator {indicator}@{component}.")
        return "ON"

    def inject_nmi(self, task: Task) -> None:
        pass

    def get_virtual_media(self, task: Task) -> list[JSONObject]:
        inserted = task.node.driver_internal_info.get(FAKE_MEDIA) or {}
        return [{"media_types": [kind], "inserted": kind in inserted, "image": inserted.get(kind)}
                for kind in DEVICE_TYPES]

    def attach_virtual_media(self, task: Task, device_type: str, image_url: str) -> None:
        inserted = task.node.driver_internal_info.get(FAKE_MEDIA) or {}
        task.node.driver_internal_info[FAKE_MEDIA] = {**inserted, device_type: image_url}

    def detach_virtual_media(self, task: Task, device_types: Sequence[str] = ()) -> None:
        inserted = task.node.driver_internal_info.pop(FAKE_MEDIA, None) or {}
        remaining = {kind: url for kind, url in inserted.items() if kind not in (device_types or DEVICE_TYPES)}
        if remaining:
            task.node.driver_internal_info[FAKE_MEDIA] = remaining

    def get_supported_boot_modes(self, task: Task) -> list[str]:
        return ["uefi", "bios"]

    def get_boot_mode(self, task: Task) -> str | None:
        return task.node.boot_mode

    def set_boot_mode(self, task: Task, mode: str) -> None:
        if mode not in self.get_supported_boot_modes(task):
            raise InvalidParameterValue(f"Unknown boot mode '{mode}'. Valid: uefi, bios.")
        task.node.boot_mode = mode

    def get_secure_boot(self, task: Task) -> bool | None:
        return task.node.secure_boot

    def set_secure_boot(self, task: Task, is_on: bool) -> None:
        task.node.secure_boot = is_on


class FakeBoot(BootInterface):
    """Does not manage booting: a DHCP and TFTP environment outside this service must boot the ramdisk."""


class FakeDeploy(Pretends, DeployInterface):
    """Switches the node on for its instance and off afterwards, as Nova expects of an active instance.

    Its core steps have the names and the priorities of Ironic's deployments by the ramdisk, so that the order of a
    template's steps among them can be tested.
    """

    @deploy_step(priority=100, core=True, rerunnable=True)
    def deploy(self, task: Task) -> None:
        """Begin the deployment."""

    @deploy_step(priority=80, core=True, rerunnable=True)
    def write_image(self, task: Task) -> None:
        """Write the image: there is no disk."""

    @deploy_step(priority=60, core=True, rerunnable=True)
    def prepare_instance_boot(self, task: Task) -> None:
        """Make the instance bootable: there is no boot loader."""

    @deploy_step(priority=40, core=True, rerunnable=True)
    def tear_down_agent(self, task: Task) -> None:
        """Stop the ramdisk: there is none."""

    @deploy_step(priority=30, core=True, rerunnable=True)
    def switch_to_tenant_network(self, task: Task) -> None:
        """Connect the instance's networks: the ports are connected already."""

    @deploy_step(priority=20, core=True, rerunnable=True)
    def boot_instance(self, task: Task) -> None:
        """Switch the node on."""
        self.interface_of(task.node, "power").set_power_state(task, states.POWER_ON)

    @clean_step(priority=99, rerunnable=True, abortable=True, requires_ramdisk=False)
    def erase_devices_metadata(self, task: Task) -> None:
        """Erase partition tables: there is no disk."""

    @clean_step(priority=10, rerunnable=True, abortable=True, requires_ramdisk=False)
    def erase_devices(self, task: Task) -> None:
        """Erase the disks: there are none."""

    def tear_down(self, task: Task) -> None:
        with self.interface_of(task.node, "power").off(task):
            pass  # the boot is not managed, so there is none to undo


class FakeBIOS(Pretends, BIOSSteps):
    """Keeps settings in ``driver_internal_info``; the factory defaults are empty."""

    def write_settings(self, task: Task, settings: JSONObject) -> None:
        stored = task.node.driver_internal_info.get(FAKE_BIOS_SETTINGS) or {}
        task.node.driver_internal_info[FAKE_BIOS_SETTINGS] = {**stored, **settings}

    def reset_settings(self, task: Task) -> None:
        task.node.driver_internal_info.pop(FAKE_BIOS_SETTINGS, None)

    def read_settings(self, task: Task) -> list[BIOSSetting]:
        stored = task.node.driver_internal_info.get(FAKE_BIOS_SETTINGS) or {}
        return [BIOSSetting(name, as_text(value)) for name, value in stored.items()]


class FakeFirmware(Pretends, FirmwareInterface):
    """Accepts every firmware update without doing anything."""

    @requested_step({
        "settings": {"description": "What to update, a list of objects with component and url.", "required": True,
                     "schema": _FIRMWARE},
    }, rerunnable=True)
    def update(self, task: Task, settings: list[JSONObject]) -> None:
        """Update firmware components."""

    def read_components(self, task: Task) -> list[FirmwareComponent]:
        return [FirmwareComponent(name, "1.0") for name in ("bios", "bmc")]


class FakeRAID(Pretends, RAIDSteps):
    """A controller with any number of disks."""

    def create_volumes(self, task: Task, disks: list[JSONObject]) -> None:
        pass

    def delete_volumes(self, task: Task) -> None:
        pass


class FakeVendor(Pretends, VendorInterface):
    """A vendor whose BMC accepts every command."""

    @vendor_method("POST", description="Send a raw command to the BMC, such as '0x00 0x08'.", schema={
        "type": "object", "additionalProperties": False, "required": ["raw_bytes"],
        "properties": {"raw_bytes": declaration.TEXT_ARGUMENT}})
    @requested_step({
        "raw_bytes": {"description": "The bytes of the command, such as '0x00 0x08'.", "required": True,
                      "schema": declaration.TEXT_ARGUMENT},
    })
    def send_raw(self, task: Task, raw_bytes: str) -> None:
        """Send a raw command to the BMC."""


class FakeInspect(InspectInterface):
    """An inspection that is done at once and finds nothing: there is no machine."""

    def inspect_hardware(self, task: Task) -> str:
        """Return the state after the inspection."""
        return states.MANAGEABLE


class FakeRescue(RescueInterface):
    """A rescue system that is always available."""

    def rescue(self, task: Task) -> None:
        pass

    def unrescue(self, task: Task) -> None:
        pass


class FakeStorage(StorageInterface):
    """Volumes that need no attachment."""


class FakeConsole(ConsoleInterface):
    """A console that can be started and stopped, and has no address."""

    def start_console(self, task: Task) -> None:
        pass

    def stop_console(self, task: Task) -> None:
        pass

    def get_console(self, task: Task) -> JSONObject:
        return {}
