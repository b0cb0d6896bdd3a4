"""The conductor that runs a periodic task, on every database."""

from __future__ import annotations

import datetime
import functools
import secrets

import pytest

from ironic_rules.db import clock, conductors
from tests.functional.db.concurrency import at_once


@pytest.fixture
def name():
    return f"task-{secrets.token_hex(4)}"


def later(seconds):
    return clock.now() + datetime.timedelta(seconds=seconds)


def winners(db, name, now):
    """Let eight conductors claim a task of ten seconds at once; return how many got it."""
    claims = [functools.partial(conductors.claim_periodic_task, db, name, f"host-{number}", 10, now=now)
              for number in range(8)]
    answers = at_once(claims)
    assert all(isinstance(answer, bool) for answer in answers), answers
    return sum(answers)


def test_one_of_many_runs_a_task_once_per_interval(db, name):
    assert winners(db, name, clock.now()) == 1
    assert not conductors.claim_periodic_task(db, name, "late", 10, now=later(9))
    assert winners(db, name, later(11)) == 1


def test_tasks_of_different_names_do_not_disturb_each_other(db, name):
    assert conductors.claim_periodic_task(db, name, "a", 10)
    assert conductors.claim_periodic_task(db, name + "-2", "a", 10)


def test_a_clock_that_was_ahead_does_not_stop_a_task(db, name):
    assert conductors.claim_periodic_task(db, name, "ahead", 10, now=later(100_000))
    assert conductors.claim_periodic_task(db, name, "right", 10)
