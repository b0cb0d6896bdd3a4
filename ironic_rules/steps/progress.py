"""How far a node's procedure is: kept in the node, so that whoever takes over goes on from there."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.steps import STEP_INTERFACES
from ironic_rules.steps.merge import ScheduledStep, requested_steps
from ironic_rules.steps.procedures import Procedure

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


class Progress:
    """Reads and notes, in a node, how far it is in a procedure; :class:`Procedure` says where that is kept."""

    def __init__(self, procedure: Procedure, node: NodeDraft) -> None:
        self.procedure = procedure
        self._node = node

    @property
    def _internal(self) -> JSONObject:
        return self._node.driver_internal_info

    @property
    def _state(self) -> JSONObject:
        state: JSONObject = self._internal[self.procedure.state_key]
        return state

    def _show(self, step: JSONObject) -> None:
        setattr(self._node, self.procedure.step_field, step)

    def requested(self) -> list[ScheduledStep]:
        """Return the steps of the request itself."""
        return requested_steps(self._internal.get(self.procedure.requested_key) or ())

    def start(self, steps: Iterable[ScheduledStep], left_out: Iterable[str] = ()) -> None:
        """Note the runs of a procedure that begins."""
        self._show({})
        self._internal[self.procedure.steps_key] = list(map(_noted, steps))
        self._internal[self.procedure.index_key] = 0
        self._internal.pop(self.procedure.state_key, None)
        if names := list(left_out):
            self._internal[self.procedure.left_out_key] = names

    @property
    def is_started(self) -> bool:
        """Whether the procedure has begun."""
        return self.procedure.steps_key in self._internal

    def left(self) -> list[ScheduledStep]:
        """Return the runs after the one that is going on."""
        steps, index = self._internal[self.procedure.steps_key], self._internal[self.procedure.index_key]
        return [ScheduledStep(**step) for step in steps[index + 1:]]

    def add(self, steps: Iterable[ScheduledStep]) -> None:
        """Add runs to those that are left, by their priorities; not those that were asked to be left out."""
        left_out = frozenset(self._internal.get(self.procedure.left_out_key) or ())
        runs = [*self.left(), *(step for step in steps if step.name not in left_out)]
        runs.sort(key=lambda step: (-step.priority, STEP_INTERFACES.index(step.interface)))
        index = self._internal[self.procedure.index_key]
        self._internal[self.procedure.steps_key][index + 1:] = map(_noted, runs)

    def current(self) -> Run | None:
        """Return the run that is next or going on; None when all are done."""
        steps, index = self._internal[self.procedure.steps_key], self._internal[self.procedure.index_key]
        return Run(ScheduledStep(**steps[index]), index + 1, len(steps)) if index < len(steps) else None

    def begin(self, run: Run, lock: str, now: datetime.datetime) -> None:
        """Note that ``run`` is begun.

        :param lock: what tells this conductor's life from that of another one that resumes the work later
        """
        self._show(run.step.as_dict())
        self._internal[self.procedure.state_key] = {"begun_at": now.isoformat(), "lock": lock, "waits": False}

    @property
    def is_begun(self) -> bool:
        """Whether the current run was begun."""
        return self.procedure.state_key in self._internal

    def is_begun_by(self, lock: str) -> bool:
        """Say whether the current run was begun under that lock, so that no conductor has died in it."""
        return bool(self._state["lock"] == lock)

    @property
    def is_waiting(self) -> bool:
        """Whether the machine goes on with the current run by itself."""
        return bool(self._state["waits"])

    def wait(self) -> None:
        """Note that the machine goes on with the current run by itself."""
        self._state["waits"] = True

    def finish(self, now: datetime.datetime) -> float:
        """Note that the current run is done; return how long it took, in seconds."""
        state = self._internal.pop(self.procedure.state_key)
        self._internal[self.procedure.index_key] += 1
        self._show({})
        return max((now - datetime.datetime.fromisoformat(state["begun_at"])).total_seconds(), 0.0)

    def forget(self) -> None:
        """Remove all that the procedure has noted."""
        self._show({})
        self._node.driver_internal_info = self.procedure.without_progress(self._internal)


def names_of(steps: Iterable[ScheduledStep]) -> str:
    """Return the steps as a text for people, the first fifty by their names."""
    found = [step.name for step in steps]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return (", ".join(found[:_NAMED]) or "none") + more


def _noted(step: ScheduledStep) -> dict[str, Any]:
    return {**step.as_dict(), "source": step.source}
