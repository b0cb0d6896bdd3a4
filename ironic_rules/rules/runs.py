"""What statistics need to know of runs, noted once for a run and not once for a rule: nothing is counted in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ironic_rules.exceptions import RuleFailed
from ironic_rules.rules.phase import Phase
from ironic_rules.rules.traces import Trace


@dataclass(slots=True, eq=False)
class Part:
    """A part of a run, in which neither the node's scope nor what the index found has changed.

    :ivar found: the numbers of the rules that the index did not exclude, in order
    :ivar after: the number of the last rule of the part before; None: this is the first one
    :ivar until: the number of its last rule; None: that of the last rule of all
    """

    phase: Phase
    scope: str | None
    found: list[int]
    after: int | None = None
    until: int | None = None

    def evaluated(self) -> list[int]:
        """Return the numbers of the rules that were evaluated."""
        return self.found if self.until is None else [number for number in self.found if number <= self.until]


@dataclass(slots=True)
class RuleRuns:
    """What the runs of an inspection did, of all phases.

    :ivar matched: UUIDs, one for each time that a rule matched
    :ivar failure: the UUID of the rule that failed
    """

    parts: list[Part] = field(default_factory=list)
    matched: list[str] = field(default_factory=list)
    failure: str | None = None

    def ended(self, traces: Iterable[Trace], parts: list[Part]) -> None:
        """Add a run."""
        self.parts += parts
        self.matched += [trace.uuid for trace in traces if trace.matched]

    def failed(self, error: RuleFailed, parts: list[Part]) -> None:
        """Add a run that a rule has ended."""
        self.failure = error.facts["rule"]
        self.ended(error.traces, parts)  # type: ignore[attr-defined]
        if parts:
            last = parts[-1]
            last.until = next((number for number in last.found
                               if last.phase.entries[number].rule.uuid == self.failure), None)


def considered(phase: Phase, scope: str | None, after: int | None, until: int | None) -> Iterator[int]:
    """Yield the numbers of the rules that a part of a run has reached, evaluated or excluded by the index."""
    for number in phase.of_scope(scope):
        if (after is None or number > after) and (until is None or number <= until):
            yield number
