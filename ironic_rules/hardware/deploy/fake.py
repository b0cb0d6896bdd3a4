"""``fake`` deploy: there is nothing to write, the instance only gets its power."""

from __future__ import annotations

from ironic_rules.hardware.base import DeployInterface
from ironic_rules.models import states
from ironic_rules.models.task import Task


class FakeDeploy(DeployInterface):
    """Switches the node on for its instance and off afterwards, as Nova expects of an active instance."""

    def deploy(self, task: Task) -> None:
        self.interface_of(task.node, "power").set_power_state(task, states.POWER_ON)

    def tear_down(self, task: Task) -> None:
        self.interface_of(task.node, "power").set_power_state(task, states.POWER_OFF)
