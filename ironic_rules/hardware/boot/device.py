"""Choice of the boot device by other interfaces, as ``driver_info/force_persistent_boot_device`` wants it.

Boot devices that a BMC does not keep: they are set for one boot, and again before each boot that this service begins.
"""

from __future__ import annotations

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware.base import Interface
from ironic_rules.models.internal_keys import RENEWED_BOOT_DEVICE
from ironic_rules.models.task import Task

KEY = "force_persistent_boot_device"
PROPERTIES = {KEY: "Whether the boot device is always set persistently: Always, Never, or Default (persistently only "
                   "for a deployed instance)."}
_FORCED = {"always": True, "true": True, "never": False, "default": None, "false": None}


def boot_from(interface: Interface, task: Task, device: str, *, persistent: bool = False) -> None:
    """Make the node boot from ``device``, through its management interface.

    :param interface: the one that needs it
    :param persistent: whether for all boots, unless the node's setting is another one
    :raises InvalidParameterValue: its setting is invalid, or there is no such device
    """
    forced = forced_persistence(task)
    interface.interface_of(task.node, "management").set_boot_device(
        task, device, persistent=persistent if forced is None else forced)


def forced_persistence(task: Task) -> bool | None:
    """Return whether the node's boot device is always or never set persistently; None if neither.

    :raises InvalidParameterValue: the setting is invalid
    """
    value = task.node.driver_info.get(KEY)
    word = "default" if value is None else str(value).lower()
    if word not in _FORCED:
        raise InvalidParameterValue(problems=[
            Problem(f"/driver_info/{KEY}", "must be Always, Never or Default")])
    return _FORCED[word]


def renew_before_boots(task: Task, device: str) -> None:
    """Let :func:`renew` set ``device`` before each boot from now on.

    Also before the next one, for which the BMC has it: the machine may reboot by itself until then.
    """
    task.node.driver_internal_info[RENEWED_BOOT_DEVICE] = {"device": device, "is_once": False}


def keep_for_next_boot(task: Task) -> None:
    """Let :func:`renew` leave out the next boot, for which the BMC has another device."""
    if (stored := task.node.driver_internal_info.get(RENEWED_BOOT_DEVICE)) is not None:
        task.node.driver_internal_info[RENEWED_BOOT_DEVICE] = {**stored, "is_once": True}


def stop_renewing(task: Task) -> None:
    """Let :func:`renew` set nothing any more: the BMC keeps the device."""
    task.node.driver_internal_info.pop(RENEWED_BOOT_DEVICE, None)


def renew(interface: Interface, task: Task) -> None:
    """Set the boot device of :func:`renew_before_boots` for the boot that the caller is about to begin.

    :param interface: the power interface
    """
    stored = task.node.driver_internal_info.get(RENEWED_BOOT_DEVICE)
    if stored is None:
        return
    if not stored["is_once"]:
        interface.interface_of(task.node, "management").renew_boot_device(task, stored["device"])
    task.node.driver_internal_info[RENEWED_BOOT_DEVICE] = {**stored, "is_once": False}
