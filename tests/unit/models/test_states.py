from __future__ import annotations

from ironic_rules.models import states
from tests.walking import walking


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


@walking("verb", [
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


#: Requests for these are no states that a node can be in.
STATES = sorted(states.ALL - {states.DELETED, states.REBUILD})


@walking("state", STATES)
def test_no_state_is_without_a_way_out(state):
    verbs = {event for source, event in states.TRANSITIONS if source == state and event in states.VERB_VERSIONS}
    if state in states.TRANSIENT:
        # A conductor works on the node, and another one takes over when it dies; both can only end there.
        assert states.transition(state, "fail").state not in states.TRANSIENT
    elif state in states.WAITING | states.HOLDING:
        assert verbs & {"abort", "deleted"}, "only the machine could end this state"
    else:
        assert verbs


@walking("state", STATES)
def test_from_every_state_a_person_can_bring_a_node_back_to_manageable(state):
    """Whatever hardware does: each transient state fails."""
    reached, new = {state}, {state}
    while new:
        new = {found.state for (source, event), found in states.TRANSITIONS.items() if source in new and (
            event in states.VERB_VERSIONS or event in ("done", "fail", "manage-done"))} - reached
        reached |= new

    assert states.MANAGEABLE in reached


def test_what_fails_or_is_aborted_can_be_repeated_or_left():
    for state in STATES:
        if state.endswith("failed"):
            events = {event for source, event in states.TRANSITIONS if source == state}
            assert events & {"manage", "deleted"}, state
            assert events & {"active", "clean", "inspect", "adopt", "rescue", "unrescue", "service"}, state
