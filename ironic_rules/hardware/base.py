"""The base classes of hardware types and their interfaces; implementations are plug-ins.

A method decorated with ``deploy_step``, ``clean_step`` or ``service_step`` is such a step of every interface that has
it, even if it is overridden.

A task (``models.task.Task``) has drafts: an interface changes them and saves nothing. Operations on external systems
(a BMC, a switch) must be safe to repeat, because another conductor takes over if one fails in between.
"""

from __future__ import annotations

import abc
import contextlib
import datetime
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from oslo_config import cfg

from ironic_rules.db import clock
from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError, Problem, UnsupportedDriverExtension
from ironic_rules.hardware import vendor_methods
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.internal_keys import STEP_POLL
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.kept import ExtensionPoint
from ironic_rules.models.nodes import BIOSSetting, FirmwareComponent
from ironic_rules.models.task import Task
from ironic_rules.steps import declaration as declaration_steps
from ironic_rules.steps import procedures
from ironic_rules.steps.declaration import StepInfo, declaration, deploy_step, requested_step
from ironic_rules.steps.procedures import DEPLOYMENT, Procedure

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
    supported_rescue_interfaces: ClassVar[tuple[str, ...]] = ("no-rescue", "agent")
    supported_storage_interfaces: ClassVar[tuple[str, ...]] = ("noop",)
    supported_vendor_interfaces: ClassVar[tuple[str, ...]] = ("no-vendor",)

    @classmethod
    def supported(cls, kind: str) -> tuple[str, ...]:
        """Return the names of the interfaces of ``kind`` that this type supports, the preferred ones first."""
        names: tuple[str, ...] = getattr(cls, f"supported_{kind}_interfaces")
        return names


class Interface(ExtensionPoint):
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

    @staticmethod
    def at_end(seconds: float) -> None:
        """Leave the hardware when a conductor ends, within so many seconds.

        It is called once for all interfaces that have the same function.
        """

    def validate(self, task: Task) -> None:
        """Check that the node has the properties that this interface requires. Quick: does not access the BMC.

        :raises Invalid: it does not; the text says what is missing or wrong
        """

    def warnings(self, task: Task) -> list[Problem]:
        """Return warnings about properties of the node that :meth:`validate` accepts."""
        return []

    def continue_step(self, task: Task, step: str, args: Mapping[str, Any]) -> str | None:
        """Check the progress of a step that the machine continues, after a heartbeat or a poll. Safe to repeat.

        Here, a step for which :meth:`wait_for` was called ends with the outcome of its poll (and, after
        :meth:`reboot_and_wait`, with a heartbeat of the ramdisk that was booted again), and any other one with the
        heartbeat that it has waited for. Does not access the BMC.

        :returns: None when it is done, else the wait state of the procedure
        :raises IronicRulesError: it failed; the text says why
        """
        internal = task.node.driver_internal_info
        poll = procedures.pending_poll(internal)
        if poll is None:
            internal.pop(STEP_POLL, None)
            return None
        # The token of the ramdisk that ran before the reboot is void, so this is the new one's.
        awaits_ramdisk = poll.awaits_ramdisk and not task.context.agent_token
        if poll.error is None and (not poll.ended or awaits_ramdisk):
            procedures.note_ramdisk(internal, awaited=awaits_ramdisk)
            return wait_state(task)
        internal.pop(STEP_POLL)
        if poll.error is not None:
            raise IronicRulesError(poll.error)
        return None

    def wait_for(self, task: Task, awaited: Mapping[str, object], timeout_s: float, limit: str, *,
                 awaits_ramdisk: bool = False) -> str:
        """Let conductors :meth:`poll` from now on, without a worker and without the node's lock.

        :param awaited: description of the expected state (JSON): stored in the node and handed to :meth:`poll`
        :param limit: the name of the option that has ``timeout_s``, after which the step fails
        :param awaits_ramdisk: wait for a heartbeat of the ramdisk, too
        :returns: what a step that waits returns: the wait state of the procedure that runs
        """
        procedures.begin_poll(task.node.driver_internal_info, self.kind, awaited, clock.now(), timeout_s,
                              f"{timeout_s:g} seconds, {limit}", awaits_ramdisk=awaits_ramdisk)
        return wait_state(task)

    def reboot_and_wait(self, task: Task, awaited: Mapping[str, object], timeout_s: float, limit: str) -> str:
        """Reboot the machine for a step of this interface, and wait as :meth:`wait_for` does.

        If the ramdisk of the procedure runs, it is booted again, and the step also waits for its heartbeat: the
        boot device of the boot before was for that boot only, and what follows may need the ramdisk.
        """
        boots_ramdisk = self.interface_of(task.node, "deploy").prepare_reboot(task)
        self.interface_of(task.node, "power").request_reboot(task)
        return self.wait_for(task, awaited, timeout_s, limit, awaits_ramdisk=boots_ramdisk)

    def poll(self, task: Task, awaited: Mapping[str, object]) -> str | None:
        """Ask the hardware whether it has finished a step, in few and short requests; changes nothing.

        :param awaited: as in :meth:`wait_for`
        :returns: None when it has, else what is missing yet, for the error after the time-out
        :raises HardwareFailed: the hardware reports a failure
        :raises IronicRulesError: it cannot be asked now; that is ignored until the time-out
        """
        raise self.refuse(task, "poll")

    def refuse(self, task: Task, extension: str | None = None) -> UnsupportedDriverExtension:
        """Return the error for something that this interface cannot do."""
        return UnsupportedDriverExtension(driver=task.node.driver, extension=extension or self.kind)


def wait_state(task: Task) -> str:
    """Return the state in which the node waits for the step that it runs."""
    transition = states.transition(task.node.provision_state, "wait")
    if transition is None:
        raise IronicRulesError(f"A node cannot wait for its hardware in state \"{task.node.provision_state}\".")
    return transition.state


class PowerInterface(Interface, abc.ABC):
    """Switches machines on and off.

    A machine with ``disable_power_off`` is never switched off: its BMC could not be reached any more. Requests for that
    are refused (:meth:`refusal`), and where other work would switch a machine off, it is rebooted (:meth:`off`).
    """

    kind = "power"

    @abc.abstractmethod
    def get_power_state(self, task: Task) -> str:
        """Return ``states.POWER_ON`` or ``POWER_OFF``."""

    @abc.abstractmethod
    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        """Bring the node to ``target`` (``states.POWER_TARGETS``) and set ``node.power_state`` to the resulting state.

        With ``disable_power_off``, neither ``states.REBOOT`` nor ``SOFT_REBOOT`` may switch the machine off in between.

        :raises InvalidParameterValue: as :meth:`check_target`
        """

    def check_target(self, node: object, target: str) -> None:
        """Check that the node can be brought to ``target``.

        :raises InvalidParameterValue: no such target, or it is refused
        """
        if target not in states.POWER_TARGETS:
            raise InvalidParameterValue(
                f"Unknown power state '{target}'. Valid: {', '.join(sorted(states.POWER_TARGETS))}.")
        if reason := self.refusal(node, target):
            raise InvalidParameterValue(f"Power state '{target}' {reason}.")

    def refusal(self, node: Any, target: str) -> str | None:
        """Return why the node must not be brought to ``target``; None if it may."""
        if target in states.OFF_TARGETS and node.disable_power_off:
            return "is refused, because the node has disable_power_off; reboot it instead"
        return None

    @contextlib.contextmanager
    def off(self, task: Task) -> Iterator[None]:
        """Switch the machine off before the body, which undoes what it boots; or else reboot it after the body."""
        is_refused = self.refusal(task.node, states.POWER_OFF) is not None
        if not is_refused:
            self.set_power_state(task, states.POWER_OFF)
        yield
        if is_refused:
            self.set_power_state(task, states.REBOOT)

    def refused_steps(self, node: object) -> dict[tuple[str, str], str]:
        """Return why the node must not run a step of this interface, by the keys of such steps."""
        reason = self.refusal(node, states.POWER_OFF)
        return {} if reason is None else {(self.kind, "power_off"): reason}

    def request_reboot(self, task: Task) -> None:
        """Request a reboot from the BMC for a step that polls for its effects; where possible, do not wait for it."""
        self.set_power_state(task, states.REBOOT)

    @requested_step(rerunnable=True, abortable=True)
    def power_on(self, task: Task) -> str | None:
        """Switch the machine on."""
        return self.run_step(task, states.POWER_ON)

    @requested_step(rerunnable=True, abortable=True)
    def power_off(self, task: Task) -> str | None:
        """Switch the machine off."""
        self.check_target(task.node, states.POWER_OFF)
        return self.run_step(task, states.POWER_OFF)

    @requested_step(rerunnable=True, abortable=True)
    def reboot(self, task: Task) -> str | None:
        """Switch the machine off and on, or reset it with ``disable_power_off``; if it is off, only switch it on."""
        return self.run_step(task, states.REBOOT)

    def run_step(self, task: Task, target: str) -> str | None:
        """Bring the node to ``target`` as a step; return as a step does."""
        self.set_power_state(task, target)
        return None


class InspectInterface(Interface, abc.ABC):
    kind = "inspect"

    @abc.abstractmethod
    def inspect_hardware(self, task: Task) -> InspectionData | str | None:
        """Read the machine's data, or boot a ramdisk that sends them.

        :returns: the data, for hooks and rules; None or ``states.INSPECTWAIT`` if they will be sent to
            ``/v1/continue_inspection``, for :meth:`continue_inspection`; ``states.MANAGEABLE`` if it is done and
            hooks and rules must not run
        """

    def continue_inspection(self, task: Task, inventory: JSONObject,
                            plugin_data: JSONObject | None = None) -> InspectionData | str:
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


class RamdiskFiles(NamedTuple):
    """The files that a machine, or its BMC, loads to boot its ramdisk.

    :ivar since: when the files were prepared, before the boot
    :ivar urls: name -> URLs, of which it loads one; no other machine loads those of the first name
    """

    since: datetime.datetime
    urls: Mapping[str, Collection[str]]


class BootInterface(Interface):
    kind = "boot"

    #: true if a ramdisk that it boots may run outside the network from which machines boot, as virtual media allow;
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

    def ramdisk_files(self, task: Task) -> RamdiskFiles | None:
        """Return the files that the machine loads after ``prepare_ramdisk``; None if none are prepared or known.

        :raises IronicRulesError: a property of the node or an option has changed, and is wrong now
        """
        return None

    def validate_instance(self, task: Task) -> None:
        """Check that this interface can boot the ramdisk or ISO image of ``instance_info``, whenever the node boots.

        :raises UnsupportedDriverExtension: it does not support that
        :raises Invalid: a value of the instance or an option is missing or wrong; the text says which
        """
        raise self.refuse(task, "booting the ramdisk of an instance")

    def prepare_instance(self, task: Task) -> None:
        """Make the node boot the ramdisk or ISO image of ``instance_info`` from now on. Safe to repeat.

        :raises IronicRulesError: the BMC or the folder of the web server reports an error
        """
        raise self.refuse(task, "booting the ramdisk of an instance")

    def clean_up_instance(self, task: Task) -> None:
        """Undo ``prepare_instance``. Safe to repeat, even if nothing was prepared."""


def boot_device_args(device: Mapping[str, object] = declaration_steps.TEXT_ARGUMENT) -> dict[str, JSONObject]:
    """Return the ``argsinfo`` of ``set_boot_device``.

    :param device: the JSON schema of the devices that an interface supports
    """
    return {
        "device": {"description": "What to boot from: pxe, disk, cdrom, bios, …", "required": True, "schema": device},
        "persistent": {"description": "Whether it applies to all boots, not only to the next one. Default: false.",
                       "schema": declaration_steps.BOOLEAN_ARGUMENT},
    }


#: Types of an image for a virtual drive.
DEVICE_TYPES = ("cdrom", "disk", "floppy")


class ManagementInterface(Interface, abc.ABC):
    kind = "management"

    @abc.abstractmethod
    def get_supported_boot_devices(self, task: Task) -> list[str]:
        """Return the names that ``set_boot_device`` accepts: ``pxe``, ``disk``, …"""

    @abc.abstractmethod
    def get_boot_device(self, task: Task) -> JSONObject:
        """Return ``{"boot_device": name or None, "persistent": bool or None}``; None means unknown."""

    @requested_step(boot_device_args(), rerunnable=True)
    @abc.abstractmethod
    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        """Make the node boot from ``device`` next time, or always.

        :raises InvalidParameterValue: no such device
        """

    def renew_boot_device(self, task: Task, device: str) -> None:
        """Set the boot device of the next boot again, because the BMC does not keep it. A failure is only logged.

        Here, nothing is done: only an interface that has set such a device has to.
        """

    def machine_ids(self, task: Task) -> set[str]:
        """Return the identifiers of the machine, as ``models.machine_ids`` does; none if the BMC reports none."""
        return set()

    def get_mac_addresses(self, task: Task) -> list[str]:
        """Return the MAC addresses of the machine's enabled network interfaces; none if the BMC does not report them.

        :raises UnsupportedDriverExtension: the interface cannot read them
        """
        raise self.refuse(task, "get_mac_addresses")

    def get_supported_indicators(self, task: Task) -> dict[str, dict[str, JSONObject]]:
        """Return ``{component: {name: {"readonly": bool, "states": [names]}}}`` of the machine's indicators.

        :raises UnsupportedDriverExtension: the interface knows none
        """
        raise self.refuse(task, "get_supported_indicators")

    def get_indicator_state(self, task: Task, component: str, indicator: str) -> str:
        """Return the state of an indicator: ``ON``, ``OFF``, ``BLINKING`` or ``UNKNOWN``.

        :raises InvalidParameterValue: no such indicator;  UnsupportedDriverExtension: the interface knows none
        """
        raise self.refuse(task, "get_indicator_state")

    def set_indicator_state(self, task: Task, component: str, indicator: str, state: str) -> None:
        """Switch an indicator.

        :raises InvalidParameterValue: no such indicator or state
        :raises UnsupportedDriverExtension: the interface can switch none
        """
        raise self.refuse(task, "set_indicator_state")

    def inject_nmi(self, task: Task) -> None:
        """Send a non-maskable interrupt to the machine, whose system then writes a crash dump.

        :raises UnsupportedDriverExtension: the interface does not support that
        """
        raise self.refuse(task, "inject_nmi")

    def get_virtual_media(self, task: Task) -> list[JSONObject]:
        """Return the BMC's virtual drives: ``{"media_types": [names], "inserted": bool, "image": URL or None}`` each.

        :raises UnsupportedDriverExtension: the interface does not support virtual media
        """
        raise self.refuse(task, "get_virtual_media")

    def attach_virtual_media(self, task: Task, device_type: str, image_url: str) -> None:
        """Insert the image at ``image_url`` into a free virtual drive of ``DEVICE_TYPES``, for the BMC to load.

        :raises UnsupportedDriverExtension: the interface does not support virtual media
        """
        raise self.refuse(task, "attach_virtual_media")

    def detach_virtual_media(self, task: Task, device_types: Sequence[str] = ()) -> None:
        """Eject what is in the virtual drives of these ``DEVICE_TYPES``; of none of them: in all drives.

        :raises UnsupportedDriverExtension: the interface does not support virtual media
        """
        raise self.refuse(task, "detach_virtual_media")

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

    def get_secure_boot(self, task: Task) -> bool | None:
        """Return whether the machine boots only what is signed; None means unknown.

        :raises UnsupportedDriverExtension: the interface does not support secure boot
        """
        raise self.refuse(task, "get_secure_boot")

    def set_secure_boot(self, task: Task, is_on: bool) -> None:
        """Switch secure boot on or off, from the next boot on.

        :raises UnsupportedDriverExtension: the interface does not support secure boot
        """
        raise self.refuse(task, "set_secure_boot")


class DeployInterface(Interface, abc.ABC):
    kind = "deploy"

    #: true if the ramdisk has its own deploy steps, which are known only when it runs
    has_in_band_steps: ClassVar[bool] = False
    #: true if its instances are booted from the machine's disk; if not, the boot interface boots them
    boots_from_disk: ClassVar[bool] = True

    def runs_ramdisk(self, procedure: Procedure) -> bool:
        """Return whether a procedure boots a ramdisk with steps of its own: it has a step for that."""
        if procedure is DEPLOYMENT:
            return self.has_in_band_steps
        return declaration(type(self), procedure.boot_step, procedure) is not None

    def validate_ramdisk(self, task: Task) -> None:
        """Check that the ramdisk can be booted for cleaning or servicing. Quick: does not access the BMC.

        :raises Invalid: it cannot; the text says what is missing or wrong
        """

    def prepare_reboot(self, task: Task) -> bool:
        """Before another interface reboots the machine for its step: let that boot the procedure's ramdisk again.

        :returns: whether the ramdisk runs, and will be booted; here, there is none
        """
        return False

    def in_band_steps(self, task: Task, procedure: Procedure = DEPLOYMENT) -> list[StepInfo]:
        """Return the steps that the node's ramdisk offers; none before it has reported them."""
        return []

    def run_in_band(self, task: Task, step: Mapping[str, Any], procedure: Procedure = DEPLOYMENT) -> str | None:
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
    def rescue(self, task: Task) -> str | None:
        """Boot the rescue system. Safe to repeat.

        :returns: None when it runs, ``states.RESCUEWAIT`` when its heartbeat is awaited
        """

    def continue_rescue(self, task: Task) -> str | None:
        """Complete the rescue after a heartbeat. Safe to repeat.

        :returns: None when it is complete, as here; ``states.RESCUEWAIT`` to wait for the next heartbeat
        :raises IronicRulesError: it failed; the text says why
        """
        return None

    @abc.abstractmethod
    def unrescue(self, task: Task) -> None:
        """Boot the instance again."""

    def clean_up(self, task: Task) -> None:
        """After a failure, undo what would boot the rescue system again. Safe to repeat."""


class NetworkInterface(Interface):
    """Connects ports to networks. The API stores the VIF of each port in its ``internal_info``."""

    kind = "network"


class BIOSInterface(Interface):
    kind = "bios"

    def read_settings(self, task: Task) -> list[BIOSSetting]:
        """Return the machine's BIOS settings, as its BMC reports them now.

        :raises UnsupportedDriverExtension: the interface cannot read them
        """
        raise self.refuse(task, "read_settings")


class ConsoleInterface(Interface):
    kind = "console"

    def start_console(self, task: Task) -> None:
        """Give access to the machine's serial console. Safe to repeat.

        :raises UnsupportedDriverExtension: the interface cannot give access
        """
        raise self.refuse(task, "start_console")

    def stop_console(self, task: Task) -> None:
        """End the access to the console. Safe to repeat."""
        raise self.refuse(task, "stop_console")

    def set_console(self, task: Task, enabled: bool) -> None:
        """Start or stop the console, and set ``node.console_enabled``. Nothing is done if it is so already."""
        if enabled != task.node.console_enabled:
            (self.start_console if enabled else self.stop_console)(task)
            task.node.console_enabled = enabled

    def get_console(self, task: Task) -> JSONObject:
        """Return the access of clients to the console, such as ``{"type": "socat", "url": "tcp://…"}``."""
        raise self.refuse(task, "get_console")


class FirmwareInterface(Interface):
    kind = "firmware"

    def read_components(self, task: Task) -> list[FirmwareComponent]:
        """Return the machine's components with firmware and their versions, as its BMC reports them now.

        :raises UnsupportedDriverExtension: the interface cannot read them
        """
        raise self.refuse(task, "read_components")


class RAIDInterface(Interface):
    kind = "raid"

    def set_target_raid_config(self, task: Task, config: JSONObject) -> None:
        """Check a RAID configuration, and keep it as the node's ``target_raid_config``; ``{}`` removes it.

        :raises InvalidParameterValue: it is wrong; the text has the JSON pointers
        :raises UnsupportedDriverExtension: the interface cannot create volumes
        """
        raise self.refuse(task, "set_target_raid_config")

    def logical_disk_properties(self) -> dict[str, str]:
        """Return the properties that a logical disk of ``target_raid_config`` may have, each with a description."""
        return {}


class StorageInterface(Interface):
    kind = "storage"


class VendorInterface(Interface):
    kind = "vendor"

    def vendor_methods(self, task: Task) -> dict[str, JSONObject]:
        """Return the methods that :meth:`call_vendor_method` accepts, by their names, as the API shows them."""
        return {name: method.to_wire() for name, method in vendor_methods.methods_of(type(self)).items()}

    def call_vendor_method(self, task: Task, method: str, http_method: str, args: Mapping[str, Any]) -> Any:
        """Run a method of this class that is declared by ``vendor_methods.vendor_method``.

        :raises InvalidParameterValue: there is no such method, or the arguments are wrong
        """
        vendor_methods.find(type(self), method, http_method, args)
        return getattr(self, method)(task, **args)


KINDS: dict[str, type[Interface]] = {
    cls.kind: cls for cls in (
        BIOSInterface, BootInterface, ConsoleInterface, DeployInterface, FirmwareInterface, InspectInterface,
        ManagementInterface, NetworkInterface, PowerInterface, RAIDInterface, RescueInterface, StorageInterface,
        VendorInterface)
}
