"""Reads again what the API shows of a machine without asking its BMC: BIOS settings, versions of firmware, boot mode.

That a BMC does not report them is no failure of the work during which they are read: what was read before stays.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

from oslo_log import log as logging

from ironic_rules.conductor import state_machine
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.exceptions import UnsupportedDriverExtension
from ironic_rules.hardware.waiting import time_limit
from ironic_rules.models.task import Task

LOG = logging.getLogger(__name__)

BIOS, FIRMWARE, MANAGEMENT = "bios", "firmware", "management"
#: Kinds of interfaces that are read when a node is managed, adopted or inspected.
ALL = (BIOS, FIRMWARE, MANAGEMENT)
#: Seconds for all requests: they hold the node's lock, and a BMC may respond to each one at the last moment.
_TIMEOUT_S = 180.0


def refresh(conductor: Conductor, task: Task, kinds: Collection[str] = ALL) -> None:
    """Read what the interfaces of these ``kinds`` report, and store it with the task's node."""
    with time_limit(_TIMEOUT_S):
        for kind in kinds:
            reason = state_machine.failure_of(functools.partial(_READ[kind], conductor, task), task)
            if reason:
                LOG.warning("Node %s: what its %s interface reports is unknown: %s", task.node.uuid, kind, reason)


def after_step(conductor: Conductor, task: Task, step: Mapping[str, object]) -> None:
    """Read again what a step has changed that has ended; ``step`` is as in ``node.deploy_step``."""
    if step["interface"] in (BIOS, FIRMWARE):
        refresh(conductor, task, (step["interface"],))
    elif step["interface"] == MANAGEMENT and step["step"] == "set_boot_mode":
        refresh(conductor, task, (MANAGEMENT,))


def _read_bios(conductor: Conductor, task: Task) -> None:
    try:
        task.bios_settings = conductor.hardware.interface(task.node, BIOS).read_settings(task)
    except UnsupportedDriverExtension:
        task.bios_settings = ()


def _read_firmware(conductor: Conductor, task: Task) -> None:
    try:
        task.firmware_components = conductor.hardware.interface(task.node, FIRMWARE).read_components(task)
    except UnsupportedDriverExtension:
        task.firmware_components = ()


def _read_management(conductor: Conductor, task: Task) -> None:
    management = conductor.hardware.interface(task.node, MANAGEMENT)
    for name, read in (("boot_mode", management.get_boot_mode), ("secure_boot", management.get_secure_boot)):
        try:
            setattr(task.node, name, read(task))
        except UnsupportedDriverExtension:
            setattr(task.node, name, None)


_READ = {BIOS: _read_bios, FIRMWARE: _read_firmware, MANAGEMENT: _read_management}
