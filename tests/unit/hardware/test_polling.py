from __future__ import annotations

import pytest

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware.waiting import wait_for_power
from tests.unit.inspection.tasks import make_task


def test_it_ends_when_the_state_is_reached_with_growing_pauses():
    states = iter(["power off"] * 10 + ["power on"])
    pauses: list[float] = []

    wait_for_power(make_task(), lambda: next(states), "power on", 60, pauses.append)

    assert len(pauses) == 10
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.25, 3.0)


def test_it_gives_up_in_time():
    pauses: list[float] = []

    with pytest.raises(BMCError, match=r"to 'power on', and after 0\.05 seconds the machine is still at 'power off'"):
        wait_for_power(make_task(), lambda: "power off", "power on", 0.05)

    assert pauses == []
