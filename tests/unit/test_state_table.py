"""The table of provision states in the documentation says what the code does."""

from __future__ import annotations

import importlib
import re

from ironic_rules import service
from ironic_rules.models import states
from tests.unit.doc_extensions import extension

TABLE = extension("state_table")


def test_every_transition_stands_in_the_row_of_its_state() -> None:
    assert {(row.state, event): state for row in TABLE.rows() for event, state in row.events.items()} == {
        key: transition.state for key, transition in states.TRANSITIONS.items()}


def test_every_state_has_one_row_with_its_kind() -> None:
    kinds = [(row.state, row.kind) for row in TABLE.rows()]
    assert len(kinds) == len(dict(kinds))
    assert {state for state, kind in kinds if kind == "transient"} == states.TRANSIENT
    assert {state for state, kind in kinds if kind == "waiting"} == states.WAITING
    # Requests for these are no states that a node can be in.
    assert states.ALL - dict(kinds).keys() == {states.DELETED, states.REBUILD}


def test_every_function_that_a_row_names_is_the_one_that_is_called() -> None:
    for row in TABLE.rows():
        work = service.conductor_work().get(row.state)
        called = [] if work is None else [work.handle, work.clean_up, work.on_failure, *work.unfinished.values()]
        named = [re.fullmatch(r"[\w :-]*``(\w+)\.(\w+)``", text) for text in row.work]
        assert [getattr(importlib.import_module(f"ironic_rules.conductor.{found[1]}"), found[2]) for found in named
                if found] == [function for function in called if function is not None]


def test_the_page_shows_every_row() -> None:
    cells = re.findall(r"   \* - (.+)\n     - (.+)\n     -(.*)\n     -(.*)", TABLE.text())
    assert [state for state, *_ in cells[1:]] == [row.state for row in TABLE.rows()]
    assert ("inspect wait", "waiting",
            " clean-up: ``inspection.clean_up``, on failure: ``inspection.failed``, unfinished abort: "
            "``inspection.finish_abort``",
            " abort → inspect failed, resume → inspecting, fail → inspect failed") in cells
