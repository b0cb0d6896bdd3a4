"""The work of a conductor in each provision state."""

from __future__ import annotations

from ironic_rules import service
from ironic_rules.conductor.conductor import NO_WORK
from ironic_rules.models import states

WORK = service.conductor_work()


def test_every_transient_state_and_no_other_has_a_handler() -> None:
    assert {state for state, work in WORK.items() if work.handle is not None} == states.TRANSIENT


def test_only_states_in_which_a_node_waits_have_work_besides() -> None:
    assert set(WORK) - states.TRANSIENT == states.WAITING | states.HOLDING


def test_requests_are_finished_only_where_the_state_has_their_verb() -> None:
    assert [(state, verb) for state, work in WORK.items() for verb in work.unfinished
            if states.transition(state, verb) is None] == []
    assert NO_WORK.unfinished == {}
