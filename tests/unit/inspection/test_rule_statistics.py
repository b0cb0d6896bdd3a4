"""Statistics of rules in memory: what is counted of lists of rules is the sum of what each of them did."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironic_rules.inspection import rule_statistics
from ironic_rules.inspection.rule_statistics import RuleStatistics
from ironic_rules.rules import RuleRuns, RuleSet
from ironic_rules.rules.phase import Part
from tests.unit.rules import world

NUMBERS = range(6)
UUIDS = [str(uuid.UUID(int=number)) for number in NUMBERS]
#: The rules that were found and those that matched, and those that changed the node.
RUN = st.tuples(st.sets(st.sampled_from(NUMBERS)), st.sets(st.sampled_from(NUMBERS)), st.sets(st.sampled_from(NUMBERS)))


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, 20_000])
@settings(max_examples=60, deadline=None)
@given(runs=st.lists(RUN, max_size=12))
def test_all_runs_are_counted(most: int, runs: list[tuple[set[int], set[int], set[int]]]) -> None:
    phase = RuleSet(
        world.compiled(world.rule(uuid=each, position=number)) for number, each in enumerate(UUIDS))._phases["main"]
    order = sorted(phase.entries)
    db: Any = None  # nothing is written
    counted = RuleStatistics(db, 60)
    counted._stopped = True
    found, matches, changes = Counter[str](), Counter[str](), Counter[str]()
    last = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_statistics, "_MOST_LISTED", most)
        for node, (evaluated, matched, changed) in enumerate(runs):
            evaluated, changed = evaluated | matched, changed & matched
            made = RuleRuns([Part(phase, None, [order[number] for number in sorted(evaluated)])],
                            [UUIDS[number] for number in sorted(matched)])
            counted.add(made, node, f"node {node}", {UUIDS[number] for number in changed})
            found.update(UUIDS[number] for number in evaluated)
            matches.update(UUIDS[number] for number in matched)
            changes.update(UUIDS[number] for number in changed)
            last |= {UUIDS[number]: f"node {node}" for number in matched}
            assert counted._listed <= most
    taken = counted._taken()
    for each in UUIDS:
        counts = taken[each]
        assert (counts.considered, counts.evaluated, counts.matched, len(counts.changed)) == (
            len(runs), found[each], matches[each], changes[each])
        assert (counts.last and counts.last[1]) == last.get(each)
    assert not counted._taken()
