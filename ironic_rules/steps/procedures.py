"""Procedures: what runs steps one after the other, such as a deployment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.models import states


@dataclass(frozen=True, slots=True)
class Procedure:
    """A way of running steps. Its progress is kept in the node: in a field, and in keys of ``driver_internal_info``.

    :ivar name: what field and keys have in their names, e.g. ``deploy``
    :ivar wait_state: in which the node rests while the machine goes on with a step
    """

    name: str
    wait_state: str

    @property
    def step_field(self) -> str:
        """The node's field with the step that is going on."""
        return f"{self.name}_step"

    @property
    def steps_key(self) -> str:
        """The list of all runs, fixed when the procedure begins."""
        return f"{self.name}_steps"

    @property
    def index_key(self) -> str:
        """The place of the run that is next or going on."""
        return f"{self.name}_step_index"

    @property
    def state_key(self) -> str:
        """There once that run was begun."""
        return f"{self.name}_step_state"

    @property
    def requested_key(self) -> str:
        """What the request wanted on top of the templates."""
        return f"user_{self.name}_steps"

    @property
    def left_out_key(self) -> str:
        """Names of the steps that were asked for with priority 0, such as ``raid.create_configuration``."""
        return f"{self.name}_steps_left_out"

    def columns(self, internal: Mapping[str, Any], requested: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the columns of a node for which the procedure is asked for.

        :param internal: its ``driver_internal_info``
        :param requested: the steps of the request
        """
        kept = self.without_progress(internal)
        steps = [dict(step) for step in requested]
        return {self.step_field: {}, "driver_internal_info": {**kept, self.requested_key: steps} if steps else kept}

    def without_progress(self, internal: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``driver_internal_info`` without what the procedure notes there."""
        own = {self.steps_key, self.index_key, self.state_key, self.requested_key, self.left_out_key}
        return {key: value for key, value in internal.items() if key not in own}


DEPLOYMENT = Procedure("deploy", states.DEPLOYWAIT)
