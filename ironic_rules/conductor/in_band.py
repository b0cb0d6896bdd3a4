"""Deploy steps of a node's ramdisk: not known before it runs, and run by it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ironic_rules.conductor.engine import Engine
from ironic_rules.deploy import plan, progress, ramdisk_steps
from ironic_rules.deploy.steps import CODE, CONFIGURATION, ScheduledStep, TemplateLike
from ironic_rules.exceptions import Invalid
from ironic_rules.hardware.base import DeployInterface
from ironic_rules.hardware.steps import StepInfo, with_priorities
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task

Key = tuple[str, str]


def runner(engine: Engine, node: Node, step: ScheduledStep) -> DeployInterface | None:
    """Return what runs a step in the node's ramdisk; None where an interface of the node has it."""
    deploy: DeployInterface = engine.hardware.interface(node, "deploy")
    return deploy if deploy.has_in_band_steps and _key(step) not in _own(engine, node) else None


def offered(engine: Engine, task: Task, templates: Collection[TemplateLike],
            requested: Collection[ScheduledStep]) -> list[StepInfo]:
    """Return what the node's steps are checked against before its ramdisk runs.

    What no interface has, is then taken for a step of the ramdisk, if the node will have one.
    """
    infos = engine.hardware.deploy_steps(task.node)
    if engine.hardware.interface(task.node, "deploy").has_in_band_steps:
        infos = ramdisk_steps.assumed(infos, templates, requested)
    return with_priorities(infos, engine.conf.deploy.step_priorities)


def order(engine: Engine, node: Node, steps: list[ScheduledStep]) -> list[ScheduledStep]:
    """Return the steps with none of the ramdisk's before the one that boots it."""
    if not engine.hardware.interface(node, "deploy").has_in_band_steps:
        return steps
    return ramdisk_steps.behind_boot(steps, engine.hardware.deploy_steps(node))


def take_in(engine: Engine, task: Task) -> None:
    """Check the steps that are left against what the ramdisk offers, and add those that it runs by default.

    :raises Invalid: with every step that it does not offer, and who asked for it
    """
    node = task.node
    own = _own(engine, node)
    found = [info for info in engine.hardware.interface(node, "deploy").in_band_steps(task) if _key(info) not in own]
    infos = with_priorities([*engine.hardware.deploy_steps(node), *found], engine.conf.deploy.step_priorities)
    asked = progress.left(node)
    if problems := plan.problems_of_runs(infos, [step for step in asked if _key(step) not in own]):
        raise Invalid("; ".join(problems))
    progress.add(node, [
        ScheduledStep(info.interface, info.step, {}, info.priority, CONFIGURATION if info.configured else CODE)
        for info in infos if info.priority > 0 and _key(info) not in own and _key(info) not in map(_key, asked)])


def _own(engine: Engine, node: Node) -> set[Key]:
    return set(map(_key, engine.hardware.deploy_steps(node)))


def _key(step: Any) -> Key:
    return step.interface, step.step


def names_left_out(templates: Iterable[TemplateLike], requested: Iterable[ScheduledStep]) -> list[str]:
    """Return the steps that are asked for with priority 0, as ``raid.create_configuration``."""
    steps = [*(step for template in templates for step in template.steps), *requested]
    return sorted({f"{step.interface}.{step.step}" for step in steps if step.priority == 0})
