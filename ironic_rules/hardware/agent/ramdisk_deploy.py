"""``ramdisk`` deploy: the instance is a ramdisk or an ISO image, which the machine boots each time; no disk is written.

It is booted by the node's boot interface, from ``instance_info``: ``boot_iso``, or ``kernel``, ``ramdisk`` and
``kernel_append_params``. No agent runs, except to clean and to service the machine.
"""

from __future__ import annotations

from ironic_rules.exceptions import InvalidParameterValue, Problem
from ironic_rules.hardware.agent import booting, image_check, unsupported
from ironic_rules.hardware.agent.in_band import AgentSteps
from ironic_rules.hardware.boot import images
from ironic_rules.hardware.boot.device import PROPERTIES, forced_persistence
from ironic_rules.models import states
from ironic_rules.models.task import Task
from ironic_rules.steps import procedures
from ironic_rules.steps.declaration import deploy_step

_BOOTED = ("boot_iso", "kernel", "ramdisk")
#: Keys of ``instance_info`` that only make sense for an instance on a disk.
_OF_DISKS = {
    "image_source": "is not written by the deploy interface ramdisk; use direct, or boot_iso, or kernel and ramdisk",
    "configdrive": "cannot be passed to a ramdisk",
}


class RamdiskDeploy(AgentSteps):
    """Boots the ramdisk of the instance; cleaning and servicing boot the agent's."""

    properties = PROPERTIES
    has_in_band_steps = False
    boots_from_disk = False

    def validate(self, task: Task) -> None:
        """Check that the node can boot what the instance specifies.

        :raises Invalid: it cannot; the text says why
        """
        info = task.node.instance_info
        if problems := [Problem(f"/instance_info/{key}", text) for key, text in _OF_DISKS.items() if info.get(key)]:
            raise InvalidParameterValue(problems=problems)
        unsupported.check_node(task.node)
        forced_persistence(task)
        self.interface_of(task.node, "boot").validate_instance(task)
        image_check.check_all(
            self.conf, {f"/instance_info/{key}": info[key] for key in _BOOTED if isinstance(info.get(key), str)},
            images.SCHEMES)

    @deploy_step(priority=100, core=True, rerunnable=True)
    def deploy(self, task: Task) -> None:
        """Boot the ramdisk of the instance."""
        self.interface_of(task.node, "boot").prepare_instance(task)
        self.interface_of(task.node, "power").set_power_state(task, states.REBOOT)

    def tear_down(self, task: Task) -> None:
        with self.interface_of(task.node, "power").off(task):
            self.clean_up(task)

    def clean_up(self, task: Task) -> None:
        super().clean_up(task)
        # A failed servicing leaves the instance as it was, and the agent's ramdisk may have been in its place.
        if procedures.of_state(task.node.provision_state) is procedures.SERVICE:
            booting.prepare_instance(self, task)
        else:
            self.interface_of(task.node, "boot").clean_up_instance(task)
