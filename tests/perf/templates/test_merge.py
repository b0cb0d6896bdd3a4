"""Merging the steps of many templates: ``tox -e perf -- templates`` prints the time."""

from __future__ import annotations

import datetime
import time

from rich.console import Console

from ironic_rules.models.steps import STEP_INTERFACES, DeployTemplate, Step
from ironic_rules.steps import merge
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.offers import Offer

_TEMPLATES, _STEPS, _REPEAT = 50, 10, 50
_NOW = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
#: Maximum time in milliseconds.
_BAR = 2.0


def _templates() -> list[DeployTemplate]:
    return [
        DeployTemplate(
            id=number, revision=1, uuid=str(number), created_at=_NOW, name=f"CUSTOM_{number}",
            steps=tuple(Step(STEP_INTERFACES[step % 7], f"step_{step}", {"number": number, "settings": [{"name": "x"}]},
                             (number * 7 + step * 13) % 100 + 1)
                        for step in range(_STEPS)))
        for number in range(_TEMPLATES)]


def test_merging_fifty_templates_of_ten_steps():
    offered = [StepInfo(STEP_INTERFACES[step % 7], f"step_{step}", step) for step in range(40)]
    templates = _templates()
    steps: list[ScheduledStep] = []
    times = []
    for _ in range(_REPEAT):
        begun = time.perf_counter()
        steps = merge.order(Offer(tuple(offered)), templates)
        times.append(time.perf_counter() - begun)

    assert len(steps) == _TEMPLATES * _STEPS + 30
    assert steps == sorted(steps, key=lambda step: -step.priority)
    Console().print(f"{_TEMPLATES} templates of {_STEPS} steps: {min(times) * 1000:.2f} ms (bar: {_BAR:.0f} ms)")
