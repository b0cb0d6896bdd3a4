"""Notes about rules that run in a dry run without traces: the requests that they would send."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ironic_rules.models.json_values import JSONObject
from ironic_rules.rules.traces import ActionTrace


@dataclass(slots=True)
class DryNotes:
    """The notes of one inspection.

    :ivar would: what actions did not do: ``rule``, ``pointer`` and ``text``
    """

    would: list[JSONObject] = field(default_factory=list)

    def acted(self, rule: str, actions: Iterable[ActionTrace]) -> None:
        """Note what actions of a rule, given by its UUID, did not do."""
        self.would += [{"rule": rule, "pointer": action.where, "text": note}
                       for action in actions for note in action.notes]
