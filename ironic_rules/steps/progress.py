"""The progress of a node's procedure: kept in the node, so that a conductor that takes over can continue it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.steps import STEP_INTERFACES
from ironic_rules.steps.merge import ScheduledStep, requested_steps
from ironic_rules.steps.procedures import Procedure

#: Key of the shown step, as in Ironic.
ABORT_AFTER = "abort_after"
#: Maximum number of steps named in a human-readable text.
_NAMED = 50


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """The step that is next or in progress; ``number`` of ``total``, counted from 1."""

    step: ScheduledStep
    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.step.name} ({self.number} of {self.total}, {self.step.source})"


class Progress:
    """Reads and writes a node's progress in a procedure; :class:`Procedure` defines where it is kept.

    It is read without a copy of all steps, and written by replacing the object that has it: so a pass copies and
    compares none of the steps that it does not run.
    """

    def __init__(self, procedure: Procedure, node: NodeDraft) -> None:
        self.procedure = procedure
        self._node = node

    @property
    def _internal(self) -> Mapping[str, Any]:
        internal: JSONObject = self._node.current("driver_internal_info")
        return internal

    @property
    def _state(self) -> Mapping[str, Any]:
        state: JSONObject = self._internal[self.procedure.state_key]
        return state

    def _store(self, values: Mapping[str, object], *removed: str) -> None:
        remaining = {key: value for key, value in self._internal.items() if key not in removed}
        self._node.driver_internal_info = {**remaining, **values}

    def _show(self, step: JSONObject) -> None:
        setattr(self._node, self.procedure.step_field, step)

    def requested(self) -> list[ScheduledStep]:
        """Return the steps of the request itself."""
        return requested_steps(self._internal.get(self.procedure.requested_key) or ())

    def start(self, steps: Iterable[ScheduledStep], left_out: Iterable[str] = ()) -> None:
        """Store the runs of a procedure that begins."""
        procedure, names = self.procedure, list(left_out)
        self._show({})
        self._store({procedure.steps_key: list(map(_noted, steps)), procedure.index_key: 0,
                     **({procedure.left_out_key: names} if names else {})}, procedure.state_key)

    def restart(self, steps: Iterable[ScheduledStep]) -> None:
        """Store that the procedure begins again, with these runs."""
        self.start(steps)
        self._store({self.procedure.restarted_key: True})

    @property
    def is_restarted(self) -> bool:
        """True if the procedure has begun again once."""
        return self.procedure.restarted_key in self._internal

    @property
    def is_started(self) -> bool:
        """True if the procedure has begun."""
        return self.procedure.steps_key in self._internal

    def left(self) -> list[ScheduledStep]:
        """Return the runs after the current one."""
        steps, index = self._internal[self.procedure.steps_key], self._internal[self.procedure.index_key]
        return [ScheduledStep(**clone(step)) for step in steps[index + 1:]]

    def add(self, steps: Iterable[ScheduledStep]) -> None:
        """Add runs to the remaining ones, ordered by priority, except those that were requested to be skipped."""
        left_out = frozenset(self._internal.get(self.procedure.left_out_key) or ())
        runs = [*self.left(), *(step for step in steps if step.name not in left_out)]
        runs.sort(key=lambda step: (-step.priority, STEP_INTERFACES.index(step.interface)))
        index = self._internal[self.procedure.index_key]
        begun = self._internal[self.procedure.steps_key][:index + 1]
        self._store({self.procedure.steps_key: [*begun, *map(_noted, runs)]})

    def current(self) -> CurrentStep | None:
        """Return the run that is next or in progress; None when all are done."""
        steps, index = self._internal[self.procedure.steps_key], self._internal[self.procedure.index_key]
        return CurrentStep(ScheduledStep(**clone(steps[index])), index + 1, len(steps)) if index < len(steps) else None

    def begin(self, run: CurrentStep, lock_id: str, now: datetime.datetime) -> None:
        """Store that ``run`` has begun.

        :param lock_id: distinguishes this run of the conductor from that of another one that resumes the work later
        """
        self._show(run.step.as_dict())
        self._store({self.procedure.state_key: {"begun_at": now.isoformat(), "lock": lock_id, "waits": False}})

    @property
    def is_begun(self) -> bool:
        """True if the current run has begun."""
        return self.procedure.state_key in self._internal

    def is_begun_by(self, lock_id: str) -> bool:
        """Return whether the current run has begun under that lock, so that no conductor has failed during it."""
        return bool(self._state["lock"] == lock_id)

    @property
    def is_waiting(self) -> bool:
        """True if the machine continues the current run by itself."""
        return bool(self._state["waits"])

    def wait(self) -> None:
        """Store that the machine continues the current run by itself."""
        self._store({self.procedure.state_key: {**self._state, "waits": True}})

    def finish(self, now: datetime.datetime) -> float:
        """Store that the current run is done; return its duration in seconds."""
        state = self._state
        self._store({self.procedure.index_key: self._internal[self.procedure.index_key] + 1}, self.procedure.state_key)
        self._show({ABORT_AFTER: True} if self.must_abort else {})
        return max((now - datetime.datetime.fromisoformat(state["begun_at"])).total_seconds(), 0.0)

    @property
    def without_ramdisk(self) -> bool:
        """True if the request excludes the ramdisk."""
        return self.procedure.no_ramdisk_key in self._internal

    @property
    def must_abort(self) -> bool:
        """True if the procedure is to be aborted after the current step, or after the one that has ended."""
        return bool(self._node.current(self.procedure.step_field).get(ABORT_AFTER))

    def forget(self) -> None:
        """Remove everything that the procedure has stored."""
        self._show({})
        self._node.driver_internal_info = self.procedure.without_progress(self._internal)


def names_of(steps: Iterable[ScheduledStep]) -> str:
    """Return the steps as a human-readable text, the first fifty by name."""
    names = [step.name for step in steps]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (", ".join(names[:_NAMED]) or "none") + more


def _noted(step: ScheduledStep) -> JSONObject:
    return {**step.as_dict(), "source": step.source}
