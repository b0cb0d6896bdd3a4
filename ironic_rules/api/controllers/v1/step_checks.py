"""What deploy templates and runbooks check of their steps, beside the schema."""

from __future__ import annotations

from collections.abc import Iterable

from ironic_rules.api.request import Request
from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.models.steps import Step
from ironic_rules.steps import checks
from ironic_rules.text import printable


def check(request: Request, steps: Iterable[Step], more: tuple[checks.StepCheck, ...] = ()) -> None:
    """Check steps that passed the schema, as far as no node is needed.

    :param more: checks in addition to those that need only the configuration
    :raises Invalid: 400, with every problem
    """
    disallowed = frozenset(request.conf.api.disallow_deploy_steps)
    problems = checks.problems(steps, (checks.without(disallowed), checks.real_secrets, *more))
    if problems:
        raise Invalid(problems=[Problem(printable(problem.where, 256), problem.text) for problem in problems])
