from __future__ import annotations

import threading

import pytest

from ironic_rules.conductor.worker_pool import WorkerPool
from ironic_rules.exceptions import NoFreeWorker


def begin_on(workers: WorkerPool, node: int) -> threading.Event:
    """Begin work on a node, and return the event that ends it."""
    gate, began = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        gate.wait(5)

    with workers.take(node) as slot:
        slot.run(work)
    assert began.wait(5)
    return gate


def test_work_runs_and_the_slot_is_free_again():
    workers, done = WorkerPool(2, 0), threading.Event()
    with workers.take(1) as slot:
        assert workers.is_active(1)
        slot.run(done.set)
    assert done.wait(5)
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
    for node, work in ((1, lambda: gate.wait(5)), (2, second.set)):
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
