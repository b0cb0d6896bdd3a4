"""``fake`` power: the database is the power supply."""

from __future__ import annotations

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import PowerInterface
from ironic_rules.hardware.pretending import Pretends
from ironic_rules.models import states
from ironic_rules.models.task import Task

_RESULTS = {
    states.POWER_ON: states.POWER_ON, states.REBOOT: states.POWER_ON, states.SOFT_REBOOT: states.POWER_ON,
    states.POWER_OFF: states.POWER_OFF, states.SOFT_POWER_OFF: states.POWER_OFF,
}


class FakePower(Pretends, PowerInterface):
    """Does at once what it is told; a node that was never switched is off."""

    def get_power_state(self, task: Task) -> str:
        return task.node.power_state or states.POWER_OFF

    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        if target not in _RESULTS:
            raise InvalidParameterValue(f"Unknown power state '{target}'. Valid: {', '.join(sorted(_RESULTS))}.")
        task.node.power_state = _RESULTS[target]
