"""Steps of every procedure that no interface has to declare: ``hold`` and ``wait``, with the name of any interface.

An interface that declares a step of its own with such a name keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ironic_rules.models.documents import JSON
from ironic_rules.models.steps import STEP_INTERFACES, Step
from ironic_rules.steps.declaration import StepInfo

#: Stops the procedure until ``unhold``.
HOLD = "hold"
#: Waits for a time, or for the next heartbeat of the machine.
WAIT = "wait"
#: Maximum time. No worker waits.
MAX_WAIT_S = 86400

_ARGUMENTS: Mapping[str, Mapping[str, Mapping[str, JSON]]] = {
    HOLD: {},
    WAIT: {"seconds": {
        "description": f"How long to wait, 0 to {MAX_WAIT_S}. Default: until the next heartbeat of the machine.",
        "required": False,
        "schema": {"description": f"a number from 0 to {MAX_WAIT_S}, or null", "type": ["number", "null"],
                   "minimum": 0, "maximum": MAX_WAIT_S}}},
}


def find(step: Step) -> StepInfo | None:
    """Return the declaration of a reserved step; None if the step is not reserved."""
    if step.step not in _ARGUMENTS or step.interface not in STEP_INTERFACES:
        return None
    return StepInfo(step.interface, step.step, 0, _ARGUMENTS[step.step], rerunnable=True, abortable=True)
