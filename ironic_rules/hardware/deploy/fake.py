"""``fake`` deploy: there is nothing to write, the instance only gets its power.

Its core steps have the names and the priorities of Ironic's deployments by the ramdisk, so that a template can be tried
out for its place among them.
"""

from __future__ import annotations

from ironic_rules.hardware.base import DeployInterface
from ironic_rules.hardware.pretending import Pretends
from ironic_rules.models import states
from ironic_rules.models.task import Task
from ironic_rules.steps.declaration import deploy_step


class FakeDeploy(Pretends, DeployInterface):
    """Switches the node on for its instance and off afterwards, as Nova expects of an active instance."""

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

    def tear_down(self, task: Task) -> None:
        self.interface_of(task.node, "power").set_power_state(task, states.POWER_OFF)
