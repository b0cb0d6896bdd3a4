"""What can be told about a step from what all hardware says of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ironic_rules.deploy.step_checks import StepCheck, against
from ironic_rules.exceptions import Problem
from ironic_rules.hardware.registered_steps import RegisteredSteps
from ironic_rules.models.steps import Step


def fits(registered: RegisteredSteps) -> StepCheck:
    """Return the check that refuses what none of the interfaces that have the step would take.

    A step that no interface has is fine: its driver may come later. So is one that some interface takes: which nodes
    the template is for, nobody knows yet.
    """
    def check(step: Step) -> Iterator[Problem]:
        offers = [against(info, step) for info in registered.named(step.interface, step.step)]
        if offers and all(offers):
            common = [problem for problem in offers[0] if all(problem in others for others in offers[1:])]
            yield from common or [Problem("/args", "are not what any interface with this step takes; the first one: "
                                          + "; ".join(str(problem) for problem in offers[0]))]
    return check
