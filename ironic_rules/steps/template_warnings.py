"""Warnings about a deploy template that is accepted, and that some or all nodes cannot run. No side effects."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from ironic_rules.exceptions import Problem
from ironic_rules.models.steps import Step
from ironic_rules.steps import checks
from ironic_rules.steps.offers import RegisteredSteps
from ironic_rules.steps.warnings import MAX_WARNINGS, StepWarning
from ironic_rules.text import printable


def of_template(registered: RegisteredSteps, steps: Iterable[Step]) -> Sequence[StepWarning]:
    """Return the warnings about the steps of a template that was accepted: what some interfaces do not accept.

    :param registered: what live conductors offer
    """
    found = (warning for index, step in enumerate(steps) for warning in _of_step(registered, step, f"/steps/{index}"))
    return list(itertools.islice(found, MAX_WARNINGS))


def _of_step(registered: RegisteredSteps, step: Step, where: str) -> Iterator[StepWarning]:
    refused: dict[Problem, set[str]] = {}
    for name, info in registered.declared(step):
        for problem in checks.against(info, step):
            refused.setdefault(problem, set()).add(name)
    for problem, names in refused.items():
        yield StepWarning("arguments", f"{where}{printable(problem.where, 256)}", (
            f"{problem.text}; nodes with the {step.interface} interface {' or '.join(sorted(names))} fail validation "
            "and are not deployed"))
