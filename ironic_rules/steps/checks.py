"""Problems of requested steps: of a template, without a node; and of a node, according to what it offers.

A check of a template is a function from a step to its problems; the caller chooses the checks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from ironic_rules.exceptions import Problem
from ironic_rules.models import documents, secrets
from ironic_rules.models.steps import DeployTemplate, Step
from ironic_rules.steps import offers
from ironic_rules.steps.declaration import StepInfo, wrong_arguments
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.offers import MAX_TRAIT_PROBLEMS, Offer
from ironic_rules.steps.procedures import Procedure
from ironic_rules.text import printable

#: ``where`` of the problems is a JSON pointer below the step, e.g. ``/args/size_gb``.
StepCheck = Callable[[Step], Iterable[Problem]]
#: The option that lists the steps that are not allowed.
DISALLOWED = "[api]disallow_deploy_steps"


def problems(steps: Iterable[Step], checks: Collection[StepCheck], where: str = "/steps") -> list[Problem]:
    """Return all problems that ``checks`` find in ``steps``, whose list is at the pointer ``where``."""
    return [Problem(f"{where}/{index}{problem.where}", problem.text)
            for index, step in enumerate(steps) for check in checks for problem in check(step)]


def without(disallowed: Collection[str]) -> StepCheck:
    """Return the check that refuses the steps with these names, e.g. ``vendor.send_raw``."""
    def check(step: Step) -> Iterator[Problem]:
        if step.name in disallowed:
            # The name is one of those in the operator's option, so it is safe to show.
            yield Problem("/step", f"the step {step.name} is not allowed ({DISALLOWED})")
    return check


def real_secrets(step: Step) -> Iterator[Problem]:
    """Refuse ``******`` in place of a secret.

    Replies mask secrets in this way. A client that returns such a reply would overwrite the masked secret.
    """
    for where in secrets.new_masks(step.args, path=("args",)):
        yield Problem(where, "is a secret that a reply has hidden; send the secret itself")


def node_problems(offer: Offer, templates: Collection[DeployTemplate], requested: Collection[Step] = (),
                  disallowed: Collection[str] = ()) -> list[str]:
    """Return why a node cannot run the requested steps; at most ``MAX_PROBLEMS``.

    A step that the node's ramdisk may offer is accepted.

    :param disallowed: names of steps that must not run, even if their templates are older than this setting
    """
    return _problems(offer.assumed(templates, requested), _asked(templates, requested), disallowed)


def cleaning_problems(offer: Offer) -> list[str]:
    """Return why automated cleaning can run nothing on a node that offers this; nothing if it can."""
    # An operator who has set priorities knows what runs, even if nothing does.
    if offer.in_ramdisk or any(info.priority > 0 or info.configured for info in offer.steps):
        return []
    return ["automated cleaning is on, but no interface of the node has a clean step that runs by default, and its "
            "deploy interface boots no ramdisk that could. Set automated_clean of the node to false, or use another "
            "deploy interface"]


def request_problems(offer: Offer, procedure: Procedure, requested: Collection[Step], *, ramdisk: bool,
                     disallowed: Collection[str] = ()) -> list[str]:
    """Return why a node cannot run the steps of a request for cleaning or servicing; at most ``MAX_PROBLEMS``.

    Each text begins with the JSON pointer of the place in the request.

    :param ramdisk: false with ``disable_ramdisk``; otherwise a step that the node's ramdisk may offer is accepted
    """
    assumed = offer.assumed((), requested) if ramdisk else replace(offer, in_ramdisk=False)
    wrong = ((f"/{procedure.request_field}/{index}", step, problem) for index, step in enumerate(requested)
             for problem in (*_wrong(assumed.find(step), step, disallowed), *_without_ramdisk(assumed, step, ramdisk)))
    texts = (f"{where}{problem}" if problem.startswith("/") else f"{where} ({step.interface}."
             f"{printable(step.step, 255)}): {problem}" for where, step, problem in wrong)
    return list(itertools.islice(texts, MAX_TRAIT_PROBLEMS))


def _without_ramdisk(offer: Offer, step: Step, ramdisk: bool) -> Iterator[str]:
    info = None if ramdisk else offer.find(step)
    if info is not None and info.requires_ramdisk:
        yield "the step requires the ramdisk, which disable_ramdisk excludes"


def run_problems(offer: Offer, runs: Iterable[ScheduledStep]) -> list[str]:
    """As :func:`node_problems`, for steps in the order in which they run; each text names the step's source."""
    return _problems(offer, ((f"the {step.source}", step) for step in runs))


def _asked(templates: Iterable[DeployTemplate], requested: Iterable[Step]) -> Iterator[tuple[str, Step]]:
    """Yield each requested step, preceded by the place that requests it."""
    for template in templates:
        for position, step in enumerate(template.steps):
            yield f"deploy template {template.name}, /steps/{position}", step
    for position, step in enumerate(requested):
        yield f"the request, /steps/{position}", step


def _problems(offer: Offer, steps: Iterable[tuple[str, Step]], disallowed: Collection[str] = ()) -> list[str]:
    infos = {info.key: info for info in offer.steps}
    texts = (f"{where} ({step.interface}.{printable(step.step, 255)}): {text}" for where, step in steps
             for text in _wrong(infos.get(step.key) or offers.find_reserved(step), step, disallowed))
    return list(itertools.islice(texts, MAX_TRAIT_PROBLEMS))


def _wrong(info: StepInfo | None, step: Step, disallowed: Collection[str]) -> Iterator[str]:
    # A step that is skipped does no harm.
    if step.priority and step.name in disallowed:
        yield f"the step is not allowed ({DISALLOWED})"
    elif info is None:
        yield f"the {step.interface} interface of the node does not offer this step"
    else:
        for problem in against(info, step):
            yield f"{printable(problem.where, 128)}: {problem.text}"


def against(info: StepInfo, step: Step) -> list[Problem]:
    """Return why an interface that declares the step as ``info`` does not accept it; nothing if it is skipped."""
    if not step.priority:
        return []
    problems = [Problem("/priority", "must be 0: a core step can only be left out")] if info.core else []
    if info.refusal is not None:
        problems.append(Problem("/step", info.refusal))
    return problems + [Problem(documents.format_pointer(("args", *place)), text)
                       for place, text in wrong_arguments(info.argsinfo, step.args)]
