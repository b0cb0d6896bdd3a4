"""Deploy steps of a ramdisk, which nobody knows before it runs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ironic_rules.deploy.steps import ScheduledStep, TemplateLike
from ironic_rules.hardware.steps import StepInfo

#: The step that boots the ramdisk.
BOOT = ("deploy", "deploy")
#: What is known of an argument that only the ramdisk knows.
_ANY = {"description": "", "required": False}


def assumed(infos: Iterable[StepInfo], templates: Iterable[TemplateLike],
            requested: Iterable[ScheduledStep] = ()) -> list[StepInfo]:
    """Return ``infos``, and for each step that is asked for and not among them one that takes any argument."""
    found = list(infos)
    known = {(info.interface, info.step) for info in found}
    args: dict[tuple[str, str], dict[str, Any]] = {}
    for step in [*(step for template in templates for step in template.steps), *requested]:
        key = (step.interface, step.step)
        if key not in known:
            args.setdefault(key, {}).update({name: dict(_ANY) for name in step.args})
    return found + [StepInfo(*key, 0, argsinfo) for key, argsinfo in args.items()]


def behind_boot(steps: Sequence[ScheduledStep], infos: Collection[StepInfo]) -> list[ScheduledStep]:
    """Return the steps with none of the ramdisk's (those that are not among ``infos``) before the one that boots it."""
    own = {(info.interface, info.step) for info in infos}
    boot = next((index for index, step in enumerate(steps) if (step.interface, step.step) == BOOT), None)
    if boot is None:
        return list(steps)
    early = [step for step in steps[:boot] if (step.interface, step.step) not in own]
    return [*(step for step in steps[:boot] if step not in early), steps[boot], *early, *steps[boot + 1:]]
