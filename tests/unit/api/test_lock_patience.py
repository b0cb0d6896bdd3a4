"""Requests for a locked node wait a moment, a few of them at the same time."""

from __future__ import annotations

import pytest

from ironic_rules.api.expose import LockPatience
from ironic_rules.exceptions import NodeLocked
from tests.walking import walking


class Clock:
    def __init__(self):
        self.now = 0.0

    def sleep(self, seconds):
        self.now += seconds


def patience(patience_s=3.0, at_once=1):
    clock = Clock()
    return LockPatience(patience_s, at_once, clock.sleep, lambda: clock.now), clock


def locked_until(when, clock):
    def method():
        if clock.now < when:
            raise NodeLocked(node="n", host="h")
        return "done"
    return method


def test_a_request_is_repeated_until_the_node_is_free():
    patient, clock = patience()

    assert patient.call(locked_until(2.0, clock)) == "done"
    assert 2.0 <= clock.now < 2.5


@walking("patience_s, took_s", [(0.0, 0.0), (3.0, 3.0)])
def test_a_node_that_stays_locked_is_told_in_the_end(patience_s, took_s):
    patient, clock = patience(patience_s)

    with pytest.raises(NodeLocked):
        patient.call(locked_until(100.0, clock))

    assert took_s <= clock.now <= took_s + 0.5


def test_requests_beyond_the_number_that_may_wait_fail_at_once():
    patient, clock = patience()

    def method():
        began = clock.now
        with pytest.raises(NodeLocked):
            patient.call(locked_until(100.0, clock))
        assert clock.now == began or began == 0.0
        raise NodeLocked(node="n", host="h")

    with pytest.raises(NodeLocked):
        patient.call(method)
    with pytest.raises(NodeLocked):  # there is room again
        patient.call(locked_until(100.0, clock))
    assert clock.now >= 6.0
