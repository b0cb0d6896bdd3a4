"""The inspect interface ``fake``: clients' suites inspect nodes without a machine by it."""

from __future__ import annotations

import pytest

from ironic_rules.models import states
from tests.functional.whole import Whole, running


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("whole")) as service:
        yield service


def test_an_inspection_without_a_machine_is_done_at_once(whole: Whole) -> None:
    node = whole.enroll(states.MANAGEABLE, inspect_interface="fake")
    shown = whole.provision(node, "inspect")

    assert (shown["provision_state"], shown["last_error"], shown["properties"]) == ("manageable", None, {})
    assert (shown["inspection_started_at"], bool(shown["inspection_finished_at"])) == (None, True)
    assert whole.inventories(node) == []
    assert "no hook and no rule has run" in " ".join(event for _, event in whole.events(node))
