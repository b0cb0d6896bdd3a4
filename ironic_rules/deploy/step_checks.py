"""What can be told about deploy steps without a node. Pure.

A check is a function from a step to its problems; whoever checks a template chooses which. What knows more, such as the
arguments that the steps of all drivers take, is one more of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from ironic_rules.deploy.steps import StepLike
from ironic_rules.exceptions import Problem
from ironic_rules.hardware.steps import StepInfo, wrong_arguments
from ironic_rules.models import pointer, secrets
from ironic_rules.models.steps import Step

#: ``where`` of the problems is a JSON pointer below the step, e.g. ``/args/size_gb``.
StepCheck = Callable[[Step], Iterable[Problem]]
#: The option with the steps that are not allowed.
DISALLOWED = "[api]disallow_deploy_steps"


def problems(steps: Iterable[Step], checks: Collection[StepCheck], where: str = "/steps") -> list[Problem]:
    """Return everything that ``checks`` find wrong with ``steps``, whose list is at the pointer ``where``."""
    return [Problem(f"{where}/{index}{problem.where}", problem.text)
            for index, step in enumerate(steps) for check in checks for problem in check(step)]


def without(disallowed: Collection[str]) -> StepCheck:
    """Return the check that refuses the steps with these names, e.g. ``vendor.send_raw``."""
    def check(step: Step) -> Iterator[Problem]:
        if step.name in disallowed:
            # The step is one of the operator's option, so that its name is safe to show.
            yield Problem("/step", f"the step {step.name} is not allowed ({DISALLOWED})")
    return check


def against(info: StepInfo, step: StepLike) -> list[Problem]:
    """Return why an interface that says ``info`` of the step does not take it; nothing if it is left out."""
    if not step.priority:
        return []
    found = [Problem("/priority", "must be 0: a core step can only be left out")] if info.core else []
    return found + [Problem(pointer.format(("args", *place)), text)
                    for place, text in wrong_arguments(info.argsinfo, step.args)]


def real_secrets(step: Step) -> Iterator[Problem]:
    """Refuse ``******`` in place of a secret.

    Replies show secrets so. Who sends such a reply back would overwrite the secret that it hides.
    """
    for tokens in _masked(step.args, ("args",)):
        yield Problem(pointer.format(tokens), "is a secret that a reply has hidden; send the secret itself")


def _masked(value: Any, tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the path of each mask that stands where replies put one."""
    if isinstance(value, dict):
        for key, item in value.items():
            if item == secrets.MASK and secrets.is_secret_key(key):
                yield *tokens, key
            else:
                yield from _masked(item, (*tokens, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _masked(item, (*tokens, str(index)))
