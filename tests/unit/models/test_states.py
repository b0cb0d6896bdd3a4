from __future__ import annotations

import pytest

from ironic_rules.models import states


def test_every_transition_joins_known_states():
    joined = [(f"{source} --{event}--> {state} (target {target})", {source, state, target} - {None})
              for (source, event), (state, target) in states.TRANSITIONS.items()]

    assert [transition for transition, found in joined if not found <= states.ALL] == []


def test_every_transient_state_can_end_well_and_badly():
    assert [f"{state}: no {event}" for state in states.TRANSIENT for event in ("done", "fail")
            if not states.transition(state, event)] == []


def test_a_waiting_state_resumes_to_a_transient_one():
    resumed = {state: states.transition(state, "resume") for state in states.WAITING}

    assert [f"{state}: {found}" for state, found in resumed.items()
            if found is None or found.state not in states.TRANSIENT] == []


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
