"""``custom-agent`` deploy: a ramdisk with ironic-python-agent, whose own deploy steps deploy the instance.

Like Ironic's interface of that name, it writes no image; that requires an agent with a suitable hardware manager.
"""

from __future__ import annotations

from ironic_rules.hardware.agent import booting
from ironic_rules.hardware.agent.in_band import AgentSteps
from ironic_rules.models.task import Task
from ironic_rules.steps.declaration import deploy_step


class CustomAgentDeploy(AgentSteps):
    """Boots the ramdisk, runs its deploy steps, and boots the instance from disk."""

    @deploy_step(priority=40, core=True, rerunnable=True)
    def tear_down_agent(self, task: Task) -> str | None:
        """Stop the ramdisk; with ``disable_power_off``, it runs until the instance is booted."""
        self.leave_ramdisk(task)
        return None

    @deploy_step(priority=30, core=True, rerunnable=True)
    def switch_to_tenant_network(self, task: Task) -> None:
        """Connect the instance's networks: no network interface requires it."""

    @deploy_step(priority=20, core=True, rerunnable=True)
    def boot_instance(self, task: Task) -> None:
        """Boot the instance from disk, persistently."""
        booting.boot_instance(self, task)
