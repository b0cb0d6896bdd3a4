"""Booting the ramdisk with ironic-python-agent, and stopping it."""

from __future__ import annotations

from ironic_rules.hardware.base import Interface
from ironic_rules.hardware.boot import kernel_parameters
from ironic_rules.hardware.boot.device import boot_from
from ironic_rules.models import states
from ironic_rules.models.internal_keys import AGENT_URL, AGENT_VERIFY_CA
from ironic_rules.models.task import Task


def parameters(interface: Interface, task: Task) -> dict[str, str] | None:
    """Return the kernel parameters of the ramdisk; None if the service does not manage the node's boot.

    :param interface: the one that needs the ramdisk
    :raises InvalidParameterValue: the boot interface cannot boot it, and ``[inspector]require_managed_boot`` is true
    """
    found = kernel_parameters.managed_parameters(interface, task)
    if found is not None:
        # With it, the agent would begin with an inspection.
        found.pop("ipa-inspection-callback-url", None)
    return found


def boot(interface: Interface, task: Task) -> None:
    """Boot the ramdisk. Safe to repeat.

    :raises InvalidParameterValue: as :func:`parameters`
    """
    prepare(interface, task)
    interface.interface_of(task.node, "power").set_power_state(task, states.REBOOT)


def prepare(interface: Interface, task: Task) -> None:
    """Let the next boot of the machine, which the caller begins immediately, be one of the ramdisk. Safe to repeat.

    :raises InvalidParameterValue: as :func:`parameters`
    """
    given = parameters(interface, task)
    if given is None:
        boot_from(interface, task, "pxe")
    else:
        interface.interface_of(task.node, "boot").prepare_ramdisk(task, given)
    # The ramdisk that is booted now may have another address, and another certificate.
    forget_address(task)
    task.expect_ramdisk()


def forget_address(task: Task) -> None:
    """Remove what a heartbeat has stored about how the agent is reached."""
    for key in (AGENT_URL, AGENT_VERIFY_CA):
        task.node.driver_internal_info.pop(key, None)


def stop(interface: Interface, task: Task) -> None:
    """Switch the machine off (with ``disable_power_off``, reboot it), so that the ramdisk ends. Safe to repeat."""
    with interface.interface_of(task.node, "power").off(task):
        interface.interface_of(task.node, "boot").clean_up_ramdisk(task)


def leave(interface: Interface, task: Task) -> None:
    """As :func:`stop`, before something else is booted, which ends the ramdisk with ``disable_power_off``."""
    if task.node.disable_power_off:
        interface.interface_of(task.node, "boot").clean_up_ramdisk(task)
    else:
        stop(interface, task)


def prepare_instance(interface: Interface, task: Task) -> None:
    """Let the machine boot the instance from now on, as its deploy interface does."""
    if interface.interface_of(task.node, "deploy").boots_from_disk:
        boot_from(interface, task, "disk", persistent=True)
    else:
        interface.interface_of(task.node, "boot").prepare_instance(task)


def boot_instance(interface: Interface, task: Task) -> None:
    """Boot the instance, persistently, after :func:`leave`."""
    prepare_instance(interface, task)
    target = states.REBOOT if task.node.disable_power_off else states.POWER_ON
    interface.interface_of(task.node, "power").set_power_state(task, target)
