from __future__ import annotations

import threading

import pytest

from ironic_rules.conductor.worker_pool import Lane, WorkerPool
from ironic_rules.exceptions import NoFreeWorker
from ironic_rules.models.task import ACTION, HOOK, STEP, WORK
from tests.walking import walking


def begin_on(workers: WorkerPool, node: int) -> threading.Event:
    """Begin work on a node, and return the event that ends it."""
    gate, began = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        gate.wait(60)

    with workers.take(node) as slot:
        slot.run(work)
    assert began.wait(60)
    return gate


def test_work_runs_and_the_slot_is_free_again():
    workers, done = WorkerPool(2, 0), threading.Event()
    with workers.take(1) as slot:
        assert workers.is_active(1)
        slot.run(done.set)
    assert done.wait(60)
    assert workers.stop(5)
    assert not workers.is_active(1)


def test_one_node_is_worked_on_once():
    workers = WorkerPool(2, 5)
    with workers.take(1), pytest.raises(NoFreeWorker):
        workers.take(1)


def test_a_slot_that_was_not_used_is_given_back():
    workers = WorkerPool(2, 0)
    with pytest.raises(ZeroDivisionError), workers.take(1):
        raise ZeroDivisionError
    with workers.take(1):
        pass


def test_what_pool_and_queue_do_not_hold_is_refused():
    workers, gate = WorkerPool(1, 1), threading.Event()
    for node in (1, 2):
        with workers.take(node) as slot:
            slot.run(gate.wait, 5)
    with pytest.raises(NoFreeWorker):
        workers.take(3)
    gate.set()
    workers.stop(5)


def test_stop_drops_what_has_not_begun_and_says_so():
    workers, gate, second = WorkerPool(1, 1), threading.Event(), threading.Event()
    for node, work in ((1, lambda: gate.wait(60)), (2, second.set)):
        with workers.take(node) as slot:
            slot.run(work)
    threading.Timer(0.05, gate.set).start()
    assert not workers.stop(5)
    assert not second.is_set()


def test_stop_says_whether_all_is_finished():
    workers = WorkerPool(1, 1)
    gate = begin_on(workers, 1)
    assert not workers.stop(0.01)
    gate.set()


def test_a_failing_piece_of_work_frees_its_slot(caplog):
    workers = WorkerPool(1, 0)
    with workers.take(1) as slot:
        slot.run(lambda: 1 / 0)
    with workers.take(1, 5):
        pass
    workers.stop(5)
    assert not workers.is_active(1)
    assert "will be resumed" in caplog.text


def test_a_patient_caller_gets_the_slot_of_work_that_is_about_to_end():
    workers = WorkerPool(2, 0)
    gate = begin_on(workers, 1)
    with pytest.raises(NoFreeWorker):
        workers.take(1, 0.01)
    threading.Timer(0.05, gate.set).start()
    with workers.take(1, 5):
        pass
    workers.stop(5)


def test_the_end_of_the_process_ends_patience():
    workers = WorkerPool(1, 0)
    with workers.take(1):
        threading.Timer(0.05, workers.stop, (0,)).start()
        with pytest.raises(NoFreeWorker):
            workers.take(1, 60)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def overdue(name: str, reason: str) -> Exception:
    return TimeoutError(f"{name}: {reason}")


def test_a_worker_that_does_the_same_for_too_long_is_replaced(caplog):
    clock, errors, later = Clock(), [], []
    workers = WorkerPool(1, 5, {HOOK: 60, STEP: 0}, clock)
    gate, began = threading.Event(), threading.Event()

    def work() -> None:
        watch = workers.watch()
        watch.on_overdue = errors.append
        watch.begin(HOOK, overdue, "rack")
        began.set()
        gate.wait(60)
        try:
            watch.end()
        finally:
            later.append(watch.is_abandoned)

    with workers.take(1) as slot:
        slot.run(work)
    assert began.wait(60)
    workers.look()
    clock.now += 59.9
    workers.look()
    assert workers.written_off == 0
    clock.now += 0.1
    workers.look()
    assert (workers.written_off, workers.missing) == (1, 1)
    with workers.take(1, 5), workers.take(2, 5) as slot:
        slot.run(later.append, "next")
    with workers.take(2, 5):
        pass
    assert workers.stop(5)
    assert [str(error) for error in errors] == ["rack: it has not ended within 60 seconds ([inspector]hook_timeout)"]
    assert later == ["next"]
    gate.set()
    while workers.missing:
        gate.wait(0.001)
    assert later == ["next", True]
    assert "will be resumed" not in caplog.text


@walking("kind", [HOOK, STEP])
def test_who_begins_something_else_in_time_or_has_no_limit_is_left_alone(kind):
    clock = Clock()
    workers = WorkerPool(1, 0, {ACTION: 60}, clock)
    gate, began = threading.Event(), threading.Event()

    def work() -> None:
        watch = workers.watch()
        watch.on_overdue = lambda error: None
        for _ in range(3):
            watch.begin(ACTION, overdue, "x")
            workers.look()
            clock.now += 50
            workers.look()
        watch.begin(kind, overdue, "x")
        began.set()
        gate.wait(60)
        watch.end()

    with workers.take(1) as slot:
        slot.run(work)
    assert began.wait(60)
    workers.look()
    clock.now += 1e6
    workers.look()
    gate.set()
    with workers.take(1, 5):
        pass
    assert workers.written_off == 0
    workers.stop(5)


def test_work_that_was_written_off_does_not_delay_the_end_of_the_process():
    clock = Clock()
    workers = WorkerPool(1, 0, {HOOK: 60}, clock)
    gate, began = threading.Event(), threading.Event()

    def work() -> None:
        watch = workers.watch()
        watch.on_overdue = lambda error: None
        watch.begin(HOOK, overdue, "x")
        began.set()
        gate.wait(60)

    with workers.take(1) as slot:
        slot.run(work)
    assert began.wait(60)
    workers.look()
    clock.now += 61
    workers.look()
    with workers.take(1, 5):
        pass
    assert workers.stop(5)
    gate.set()


def test_requests_do_not_wait_for_recovery_and_timeouts():
    workers, gate = WorkerPool(1, 0, recovery_size=2), threading.Event()
    for node, lane in enumerate([Lane.RECOVERY] * 2 + [Lane.TIMEOUTS] * 4):
        with workers.take(node, lane=lane) as slot:
            slot.run(gate.wait, 5)
    for lane in (Lane.RECOVERY, Lane.TIMEOUTS):
        assert not workers.wait_for_room(lane, 0)
        with pytest.raises(NoFreeWorker):
            workers.take(100, lane=lane)
    done = threading.Event()
    with workers.take(101) as slot:
        slot.run(done.set)
    assert done.wait(60)
    gate.set()
    assert workers.wait_for_room(Lane.TIMEOUTS, 5)
    while any(map(workers.is_active, range(6))):
        threading.Event().wait(0.001)
    assert workers.stop(5)


def test_who_waits_for_operations_waits_for_all_of_them_and_for_no_other_work():
    workers, begun, gate, done = WorkerPool(1, 0, operation_size=2), threading.Event(), threading.Event(), []

    def hold() -> None:
        begun.set()
        gate.wait(60)

    with workers.take(1) as slot:
        slot.run(hold)
    assert begun.wait(60)
    for node in range(2, 6):
        with workers.take(node, lane=Lane.OPERATIONS) as slot:
            slot.run(done.append, node)
        assert workers.wait_for_room(Lane.OPERATIONS, 5)
    workers.wait_for_end(Lane.OPERATIONS)
    assert sorted(done) == [2, 3, 4, 5]
    assert not gate.is_set()
    gate.set()
    assert workers.stop(5)
    assert workers.is_stopping


def test_lanes_share_the_nodes():
    workers = WorkerPool(2, 0, recovery_size=2)
    with workers.take(1, lane=Lane.RECOVERY), pytest.raises(NoFreeWorker):
        workers.take(1)
    with workers.take(1):
        workers.stop(0)
    assert not workers.wait_for_room(Lane.TIMEOUTS, 5)


def test_a_worker_that_waits_for_too_long_is_replaced_and_its_node_left_to_recovery(caplog):
    clock = Clock()
    workers = WorkerPool(1, 0, {WORK: 60}, clock)
    gate, failed = threading.Event(), []

    def work() -> None:
        workers.watch().on_overdue = failed.append
        gate.wait(60)

    with workers.take(1) as slot:
        slot.run(work)
    while not workers._running:
        gate.wait(0.001)
    clock.now += 59.9
    workers.look()
    assert workers.is_active(1)
    clock.now += 0.1
    workers.look()
    assert not workers.is_active(1)
    done = threading.Event()
    with workers.take(2) as slot:
        slot.run(done.set)
    assert done.wait(60)
    assert workers.stop(5)
    gate.set()
    while workers.missing:
        gate.wait(0.001)
        threading.Event().wait(0.001)
    assert failed == []
    assert "[conductor]work_timeout" in caplog.text
