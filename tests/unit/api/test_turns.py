"""The order in which requests that wait get a thread."""

from __future__ import annotations

from dataclasses import dataclass

from ironic_rules.httpd.probes import Turns


@dataclass(eq=False)
class Waiting:
    """A connection as the queue knows it."""

    remote_addr: str


def drained(turns: Turns) -> list[object]:
    return [turns.get_nowait() for _ in range(turns.qsize())]


def test_addresses_take_turns_and_the_connections_of_each_come_in_their_order():
    turns = Turns()
    many = [Waiting("192.0.2.1") for _ in range(4)]
    few = [Waiting("192.0.2.2") for _ in range(2)]
    for waiting in (*many, *few):
        turns.put(waiting)

    assert drained(turns) == [many[0], few[0], many[1], few[1], many[2], many[3]]


def test_an_address_that_has_just_had_its_turn_is_the_last_one():
    turns = Turns()
    first, second, other = Waiting("192.0.2.1"), Waiting("192.0.2.1"), Waiting("192.0.2.2")
    for waiting in (first, second, other):
        turns.put(waiting)
    assert turns.get_nowait() is first
    turns.put(first)

    assert drained(turns) == [other, second, first]


def test_what_is_no_connection_comes_when_none_waits():
    turns = Turns()
    waiting = [Waiting("192.0.2.1"), Waiting("192.0.2.1")]
    for item in (None, *waiting):
        turns.put(item)

    assert drained(turns) == [*waiting, None]


def test_a_connection_can_be_taken_out_of_its_turn():
    turns = Turns()
    first, second, other = Waiting("192.0.2.1"), Waiting("192.0.2.1"), Waiting("192.0.2.2")
    for waiting in (first, second, other):
        turns.put(waiting)

    assert [turns.withdraw(taken) for taken in (first, first, other, Waiting("192.0.2.9"))] == [
        True, False, True, False]
    assert drained(turns) == [second]
