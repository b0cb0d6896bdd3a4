from __future__ import annotations

import pytest

from ironic_rules.models import states


def test_every_transition_joins_known_states():
    for (source, _), (state, target) in states.TRANSITIONS.items():
        assert {source, state} <= states.ALL
        assert target is None or target in states.ALL


def test_every_transient_state_can_end_well_and_badly():
    for state in states.TRANSIENT:
        assert states.transition(state, "fail"), state
        assert states.transition(state, "done"), state


def test_a_waiting_state_resumes_to_a_transient_one():
    for state in states.WAITING:
        resumed = states.transition(state, "resume")
        assert resumed is not None and resumed.state in states.TRANSIENT


def test_every_verb_is_possible_somewhere():
    verbs = {event for _, event in states.TRANSITIONS}
    assert {states.VERB_ALIASES.get(verb, verb) for verb in states.VERB_VERSIONS} <= verbs


@pytest.mark.parametrize("verb", [
    "manage", "provide", "inspect", "active", "deleted", "rebuild", "adopt", "clean", "abort", "unhold"])
def test_a_node_in_enroll_takes_only_manage(verb):
    assert (states.transition(states.ENROLL, verb) is not None) == (verb == "manage")


def test_inspection_goes_round():
    state = states.MANAGEABLE
    for event, expected in (("inspect", states.INSPECTING), ("wait", states.INSPECTWAIT), ("resume", states.INSPECTING),
                            ("done", states.MANAGEABLE)):
        state = states.transition(state, event).state
        assert state == expected


def test_the_names_fit_their_column():
    assert all(len(state) <= 15 for state in states.ALL | states.POWER_TARGETS)
