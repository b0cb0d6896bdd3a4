"""Procedures: operations that run steps one after the other, such as a deployment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.models import states


@dataclass(frozen=True, slots=True)
class Procedure:
    """An operation that runs steps. Its progress is kept in a field of the node and in ``driver_internal_info``.

    :ivar name: the prefix of that field and of the keys, e.g. ``deploy``
    :ivar wait_state: the state of the node while the machine continues a step
    """

    name: str
    wait_state: str

    @property
    def step_field(self) -> str:
        """The node's field with the current step."""
        return f"{self.name}_step"

    @property
    def steps_key(self) -> str:
        """Key of the list of all runs, fixed when the procedure begins."""
        return f"{self.name}_steps"

    @property
    def index_key(self) -> str:
        """Key of the position of the run that is next or in progress."""
        return f"{self.name}_step_index"

    @property
    def state_key(self) -> str:
        """Key that is present once that run has begun."""
        return f"{self.name}_step_state"

    @property
    def requested_key(self) -> str:
        """Key of the steps that were requested in addition to the templates."""
        return f"user_{self.name}_steps"

    @property
    def left_out_key(self) -> str:
        """Key of the names of the steps that were requested with priority 0, such as ``raid.create_configuration``."""
        return f"{self.name}_steps_left_out"

    def columns(self, internal: Mapping[str, Any], requested: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the columns of a node for which the procedure is requested.

        :param internal: its ``driver_internal_info``
        :param requested: the steps of the request
        """
        kept = self.without_progress(internal)
        steps = [dict(step) for step in requested]
        return {self.step_field: {}, "driver_internal_info": {**kept, self.requested_key: steps} if steps else kept}

    def without_progress(self, internal: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``driver_internal_info`` without the keys of the procedure."""
        own = {self.steps_key, self.index_key, self.state_key, self.requested_key, self.left_out_key}
        return {key: value for key, value in internal.items() if key not in own}


DEPLOYMENT = Procedure("deploy", states.DEPLOYWAIT)
