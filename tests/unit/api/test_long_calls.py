"""Large bodies are parsed one after the other, with a pause in which other threads have their turns."""

from __future__ import annotations

import threading

import pytest

from ironic_rules.api import body


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """Return the pauses that were made, which take no time."""
    made: list[float] = []
    monkeypatch.setattr(body.time, "sleep", made.append)
    return made


def test_a_small_body_waits_for_nothing(pauses):
    with body.turn_of_large_call(body.LARGE_CALL + 1), body.turn_of_large_call(body.LARGE_CALL):
        pass

    assert pauses == [body.PAUSE_S]


def test_large_bodies_are_parsed_one_after_the_other(pauses):
    inside, most = 0, 0
    begin = threading.Barrier(4)

    def parse() -> None:
        nonlocal inside, most
        begin.wait(60)
        with body.turn_of_large_call(body.LARGE_CALL + 1):
            inside += 1
            most = max(most, inside)
            threading.Event().wait(0.01)
            inside -= 1

    threads = [threading.Thread(target=parse) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1
    assert pauses == [body.PAUSE_S] * 4


@pytest.mark.parametrize(("size", "number"), [(body.LARGE_CALL, 0), (body.LARGE_CALL + 1, 1)])
def test_the_body_of_a_request_is_large_by_its_bytes(pauses, size, number):
    assert body.parse(b"[1]".ljust(size), 10) == [1]
    assert len(pauses) == number


def test_the_next_body_has_its_turn_after_one_that_is_malformed(pauses):
    for _ in range(2):
        with pytest.raises(body.Invalid):
            body.parse(b"[1".ljust(body.LARGE_CALL + 1), 10)

    assert len(pauses) == 2
