"""How far a node's deployment is, kept in the node: ``deploy_step``, and keys of ``driver_internal_info``. Pure.

``deploy_steps`` is the list of all runs, fixed when the deployment begins; ``deploy_step_index`` the place of the one
that is next or going on; ``deploy_step_state`` is there once that one was begun.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.deploy.steps import ScheduledStep
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.steps import STEP_INTERFACES

STEPS = "deploy_steps"
INDEX = "deploy_step_index"
STATE = "deploy_step_state"
#: What the request wanted on top of the templates.
REQUESTED = "user_deploy_steps"
#: Names of the steps that were asked for with priority 0, such as ``raid.create_configuration``.
LEFT_OUT = "deploy_steps_left_out"
#: Longest list of steps in a text for people.
_NAMED = 50


@dataclass(frozen=True, slots=True)
class Run:
    """The step that is next or going on; ``number`` of ``total``, from 1."""

    step: ScheduledStep
    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.step.name} ({self.number} of {self.total}, {self.step.source})"


def plan(node: NodeDraft, steps: Iterable[ScheduledStep], left_out: Iterable[str] = ()) -> None:
    """Note the runs of a deployment that begins."""
    internal = node.driver_internal_info
    node.deploy_step = {}
    internal[STEPS] = list(map(_noted, steps))
    internal[INDEX] = 0
    internal.pop(STATE, None)
    if names := list(left_out):
        internal[LEFT_OUT] = names


def _noted(step: ScheduledStep) -> dict[str, Any]:
    return {**step.as_dict(), "source": step.source}


def left(node: NodeDraft) -> list[ScheduledStep]:
    """Return the runs after the one that is going on."""
    internal = node.driver_internal_info
    return [ScheduledStep(**step) for step in internal[STEPS][internal[INDEX] + 1:]]


def add(node: NodeDraft, steps: Iterable[ScheduledStep]) -> None:
    """Add runs to those that are left, by their priorities; not those that were asked to be left out."""
    internal = node.driver_internal_info
    named = frozenset(internal.get(LEFT_OUT) or ())
    runs = [*left(node), *(step for step in steps if step.name not in named)]
    runs.sort(key=lambda step: (-step.priority, STEP_INTERFACES.index(step.interface)))
    internal[STEPS][internal[INDEX] + 1:] = map(_noted, runs)


def is_planned(node: NodeDraft) -> bool:
    """Say whether the node's deployment has begun."""
    return STEPS in node.driver_internal_info


def current(node: NodeDraft) -> Run | None:
    """Return the run that is next or going on; None when all are done."""
    internal = node.driver_internal_info
    steps, index = internal[STEPS], internal[INDEX]
    return Run(ScheduledStep(**steps[index]), index + 1, len(steps)) if index < len(steps) else None


def begin(node: NodeDraft, run: Run, lock: str, now: datetime.datetime) -> None:
    """Note that ``run`` is begun.

    :param lock: what tells this conductor's life from that of another one that resumes the work later
    """
    node.deploy_step = run.step.as_dict()
    node.driver_internal_info[STATE] = {"begun_at": now.isoformat(), "lock": lock, "waits": False}


def is_begun(node: NodeDraft) -> bool:
    """Say whether the current run was begun."""
    return STATE in node.driver_internal_info


def is_begun_by(node: NodeDraft, lock: str) -> bool:
    """Say whether the current run was begun under that lock, so that no conductor has died in it."""
    return bool(node.driver_internal_info[STATE]["lock"] == lock)


def is_waiting(node: NodeDraft) -> bool:
    """Say whether the machine goes on with the current run by itself."""
    return bool(node.driver_internal_info[STATE]["waits"])


def wait(node: NodeDraft) -> None:
    """Note that the machine goes on with the current run by itself."""
    node.driver_internal_info[STATE]["waits"] = True


def finish(node: NodeDraft, now: datetime.datetime) -> float:
    """Note that the current run is done; return how long it took, in seconds."""
    state = node.driver_internal_info.pop(STATE)
    node.driver_internal_info[INDEX] += 1
    node.deploy_step = {}
    return max((now - datetime.datetime.fromisoformat(state["begun_at"])).total_seconds(), 0.0)


def forget(node: NodeDraft) -> None:
    """Remove all that a deployment has noted."""
    node.deploy_step = {}
    node.driver_internal_info = without(node.driver_internal_info)


def without(internal: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``driver_internal_info`` without what a deployment notes there."""
    return {key: value for key, value in internal.items() if key not in (STEPS, INDEX, STATE, REQUESTED, LEFT_OUT)}


def names(steps: Iterable[ScheduledStep]) -> str:
    """Return the steps as a text for people, the first fifty by their names."""
    found = [step.name for step in steps]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return (", ".join(found[:_NAMED]) or "none") + more
