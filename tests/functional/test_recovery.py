"""Conductors that die: wherever between the acceptance of data and the commit, the next one completes the work."""

from __future__ import annotations

import contextlib
import datetime
import secrets
import threading
from pathlib import Path

import oslo_messaging as messaging
import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules import context, service
from ironic_rules.conductor import acceptance, inspection, provisioning, recovery, state_machine, task_store
from ironic_rules.conductor.endpoint import ConductorEndpoint
from ironic_rules.conductor.service import ConductorService
from ironic_rules.conductor.worker_pool import Slot
from ironic_rules.db import clock, conductors, discovery, inspection_rules, inventory, node_records, nodes, ports
from ironic_rules.db.tables import conductors as conductors_table
from ironic_rules.exceptions import LockLost, Unavailable
from ironic_rules.models.task import Abandoned
from ironic_rules.rpc import transport as rpc_transport
from tests import matrices
from tests.functional.faulty import FaultyInspect
from tests.functional.processes import wait_for
from tests.functional.whole import Records, configuration, make_conductor

ADMIN = context.admin()


class SimulatedCrash(Abandoned):
    """Ends a worker thread as the death of its process would: it is never caught."""


@pytest.fixture(scope="module")
def conf(tmp_path_factory):
    return configuration(tmp_path_factory.mktemp("recovery"))


@pytest.fixture(scope="module")
def db(conf):
    database = service.make_database(conf, upgrade=True)
    yield database
    database.dispose()


@pytest.fixture
def records(db):
    return Records(db)


@pytest.fixture
def group():
    return f"group-{secrets.token_hex(3)}"


@pytest.fixture
def start_conductor(conf, db, group):
    """Create conductors of one group, each a restart of the process with that name."""
    made = []

    def make(host="a", *, registered=True):
        conductor = make_conductor(conf, db, host=f"{host}-{group}", group=group)
        made.append(conductor)
        if registered:
            db.write(lambda conn: conductors.register(conn, conductor.host, group, {}, conductor.instance))
        return conductor

    yield make
    for conductor in made:
        conductor.workers.stop(10)


@pytest.fixture
def waiting(db, group):
    """Create nodes in INSPECT WAIT; return UUID and a ramdisk's inventory."""
    def make(**values):
        mac = f"52:54:00:{secrets.token_hex(1)}:{secrets.token_hex(1)}:{secrets.token_hex(1)}"
        row = db.write(lambda conn: nodes.create(conn, {
            "driver": "faulty-hardware", "provision_state": "inspect wait", "target_provision_state": "manageable",
            "conductor_group": group, "power_state": "power on", **values}))
        return row.uuid, {"cpu": {"architecture": "x86_64"}, "interfaces": [{"name": "eth0", "mac_address": mac}]}

    return make


def accept(conductor, node, data):
    acceptance.accept_report(conductor, ADMIN, node, data, {})


def is_idle(conductor):
    return not conductor.workers._active


def finish(conductor):
    wait_for("the conductor's threads", lambda: is_idle(conductor), interval_s=0.005)


def assert_inspected(records, node, state="manageable"):
    row = records.at_rest(node)
    assert (row.provision_state, row.target_provision_state, row.last_error) == (state, None, None)
    assert row.properties == {"cpu_arch": "x86_64"}
    assert records.inventories(node) == ["processed"]
    with records.db.reader() as conn:
        assert len(ports.for_node(conn, row.id)) == 1


def dies_at(monkeypatch, owner, name, *, afterwards=False):
    """Simulate the death of the process at every call of ``owner.name``, until the patch is undone."""
    original = getattr(owner, name)

    def crash(*arguments, **named):
        if afterwards:
            original(*arguments, **named)
        raise SimulatedCrash

    monkeypatch.setattr(owner, name, crash)


#: Points at which a conductor dies: the function that it calls last.
POINTS = [
    (state_machine, "_step", False), (task_store.NodeRecord, "task", False), (inspection, "process", False),
    (FaultyInspect, "continue_inspection", False), (FaultyInspect, "continue_inspection", True),
    (FaultyInspect, "finish", True), (task_store, "save", False), (nodes, "release", True), (task_store, "save", True),
    (ports, "apply_changes", True), (inventory, "finish", True), (inventory, "prune", True),
    (node_records, "add_history", True),
]


@pytest.mark.parametrize(("point", "successor"), matrices.sampled(len(POINTS), POINTS, ["a", "b"]))
def test_data_are_processed_after_a_death_in_the_middle(
        start_conductor, waiting, records, monkeypatch, point, successor):
    owner, name, afterwards = point
    first = start_conductor("a")
    node, data = waiting()
    with monkeypatch.context() as patch:
        dies_at(patch, owner, name, afterwards=afterwards)
        accept(first, node, data)
        finish(first)
    assert (records.row(node).provision_state, records.row(node).reservation) == ("inspecting", first.host)
    bury(records.db, first)

    second = start_conductor(successor)
    recovery.resume_orphans(second)
    finish(second)

    assert_inspected(records, node)


@pytest.mark.parametrize(("owner", "name", "afterwards"), POINTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_discovered_node_is_processed_after_a_death_in_the_middle(
        start_conductor, waiting, records, monkeypatch, owner, name, afterwards):
    first = start_conductor("a")
    node, data = waiting(provision_state="enroll", target_provision_state=None, auto_discovered=True)
    records.db.write(lambda conn: discovery.begin(conn, nodes.get_id(conn, node), []))
    with monkeypatch.context() as patch:
        dies_at(patch, owner, name, afterwards=afterwards)
        accept(first, node, data)
        finish(first)
    row = records.row(node)
    assert (row.provision_state, row.target_provision_state, row.reservation) == ("inspecting", "enroll", first.host)
    bury(records.db, first)

    second = start_conductor("b")
    recovery.resume_orphans(second)
    finish(second)

    assert_inspected(records, node, "enroll")


def test_a_death_before_the_acceptance_leaves_a_discovered_node_to_be_accepted(
        start_conductor, waiting, records, monkeypatch):
    conductor = start_conductor()
    node, data = waiting(provision_state="enroll", target_provision_state=None, auto_discovered=True)
    records.db.write(lambda conn: discovery.begin(conn, nodes.get_id(conn, node), []))
    with monkeypatch.context() as patch:
        dies_at(patch, inventory, "receive")
        with pytest.raises(SimulatedCrash):
            accept(conductor, node, data)
    row = records.row(node)
    assert (row.provision_state, row.reservation, records.inventories(node)) == ("enroll", None, [])

    accept(conductor, node, data)
    finish(conductor)

    assert_inspected(records, node, "enroll")


def bury(db, conductor):
    """Make the last heartbeat of the conductor expire."""
    long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    with db.writer() as conn:
        conn.execute(sa.update(conductors_table).where(conductors_table.c.hostname == conductor.host).values(
            updated_at=long_ago))


def test_data_are_processed_when_their_thread_never_began(start_conductor, waiting, records, monkeypatch):
    first = start_conductor("a")
    node, data = waiting()
    with monkeypatch.context() as patch:
        patch.setattr(Slot, "run", lambda *arguments: None)
        accept(first, node, data)

    assert recovery.resume_orphans(start_conductor("a")) == 1

    assert_inspected(records, node)


def test_a_conductor_resumes_what_its_own_thread_left(start_conductor, waiting, records, monkeypatch):
    conductor = start_conductor()
    node, data = waiting()
    with monkeypatch.context() as patch:
        dies_at(patch, task_store, "save")
        accept(conductor, node, data)
        finish(conductor)

    assert recovery.resume_orphans(conductor) == 1

    assert_inspected(records, node)


def test_work_that_ends_its_conductor_again_and_again_is_given_up(start_conductor, waiting, records, monkeypatch):
    conductor = start_conductor()
    node, data = waiting()
    with monkeypatch.context() as patch:
        dies_at(patch, conductor.pipeline, "run")
        accept(conductor, node, data)
        for _ in range(recovery.MAX_RESUMPTIONS + 1):
            finish(conductor)
            assert records.row(node).reservation == conductor.host
            assert recovery.resume_orphans(conductor) == 1
        finish(conductor)

    row = records.row(node)
    assert (row.provision_state, row.target_provision_state, row.reservation) == ("inspect failed", "manageable", None)
    assert "begun and not finished 6 times" in row.last_error
    assert records.inventories(node) == ["failed"]
    assert recovery.resume_orphans(conductor) == 0


@contextlib.contextmanager
def unusable_option(conductor):
    """An option with a wrong value: in a process that runs, as none starts with it."""
    file = Path(conductor.conf.config_file[0])
    valid = file.read_text()
    file.write_text(valid + "[inventory]\nmax_versions = 0\n")
    conductor.conf.reload_config_files()
    try:
        yield "Value for option max_versions"
    finally:
        file.write_text(valid)
        conductor.conf.reload_config_files()


@contextlib.contextmanager
def broken_row(conductor):
    """A value of every node that cannot be read: changed by something else than this service."""
    with conductor.db.writer() as conn:
        conn.execute(sa.text("update nodes set properties = '{' where conductor_group = :group"),
                     {"group": conductor.group})
    try:
        yield "JSONDecodeError"
    finally:
        with conductor.db.writer() as conn:
            conn.execute(sa.text("update nodes set properties = '{}' where conductor_group = :group"),
                         {"group": conductor.group})


@pytest.mark.parametrize("obstacle", [unusable_option, broken_row])
def test_what_fails_whenever_it_is_resumed_ends_in_a_failed_state_with_the_reason(
        start_conductor, waiting, records, obstacle):
    conductor = start_conductor()
    node, data = waiting()
    with obstacle(conductor) as reason:
        accept(conductor, node, data)
        for _ in range(recovery.MAX_RESUMPTIONS):
            finish(conductor)
            assert recovery.resume_orphans(conductor) == 1
        finish(conductor)
        assert recovery.resume_orphans(conductor) == 0

    row = records.row(node)
    assert (row.provision_state, row.target_provision_state, row.reservation) == ("inspect failed", "manageable", None)
    assert reason in row.last_error
    assert records.inventories(node) == ["failed"]
    # It is like any other failed inspection.
    provisioning.change_provision_state(conductor, ADMIN, row.id, "inspect", {})
    finish(conductor)
    assert records.row(node).provision_state == "inspect wait"


def test_what_only_waited_for_a_thread_is_not_counted(start_conductor, waiting, records, monkeypatch):
    conductor = start_conductor()
    node, data = waiting()
    with monkeypatch.context() as patch:
        patch.setattr(Slot, "run", lambda slot, *arguments: None)
        accept(conductor, node, data)
    for _ in range(recovery.MAX_RESUMPTIONS + 3):
        with monkeypatch.context() as patch:
            patch.setattr(Slot, "run", lambda slot, *arguments: None)
            assert recovery.resume_orphans(start_conductor()) == 1

    assert recovery.resume_orphans(start_conductor()) == 1
    assert_inspected(records, node)


@pytest.fixture
def gate(monkeypatch):
    """Block the processing of data by the first conductor, until the gate is opened."""
    opened, reached = threading.Event(), threading.Event()

    def hold(conductor):
        run = conductor.pipeline.run

        def wait_and_run(*arguments, **options):
            reached.set()
            assert opened.wait(60)
            return run(*arguments, **options)

        monkeypatch.setattr(conductor.pipeline, "run", wait_and_run)
        return opened, reached

    yield hold
    opened.set()


def test_a_conductor_that_was_thought_dead_writes_nothing(start_conductor, waiting, records, gate):
    first, second = start_conductor("a"), start_conductor("b")
    node, data = waiting()
    opened, reached = gate(first)
    accept(first, node, data)
    assert reached.wait(60)
    bury(records.db, first)

    assert recovery.resume_orphans(second) == 1
    finish(second)
    assert_inspected(records, node)
    before = records.row(node)
    opened.set()
    finish(first)

    assert records.row(node) == before
    assert_inspected(records, node)
    assert len(records.events(node)) == 1


def test_a_living_conductor_keeps_its_nodes(start_conductor, waiting, records, gate):
    first, second = start_conductor("a"), start_conductor("b")
    node, data = waiting()
    opened, reached = gate(first)
    accept(first, node, data)
    assert reached.wait(60)

    assert recovery.resume_orphans(second) == 0
    assert recovery.resume_orphans(first) == 0

    opened.set()
    finish(first)
    assert_inspected(records, node)


def test_a_conductor_that_comes_back_at_that_moment_keeps_its_nodes(
        start_conductor, waiting, records, gate, monkeypatch):
    first, second = start_conductor("a"), start_conductor("b")
    node, data = waiting()
    opened, reached = gate(first)
    accept(first, node, data)
    assert reached.wait(60)
    alive = recovery._alive
    stale = iter([set()])
    monkeypatch.setattr(recovery, "_alive", lambda conn, conductor: next(stale, None) or alive(conn, conductor))

    assert recovery.resume_orphans(second) == 0

    assert records.row(node).reservation == first.host
    opened.set()
    finish(first)
    assert_inspected(records, node)


def test_work_that_ends_at_that_moment_is_not_resumed(start_conductor, waiting, records, monkeypatch, caplog):
    conductor = start_conductor()
    node, data = waiting()
    with monkeypatch.context() as patch:
        patch.setattr(Slot, "run", lambda slot, *arguments: slot._workers._give_back(slot._node_id))
        accept(conductor, node, data)
    with records.db.reader() as conn:
        stale = nodes.locks(conn, conductor.group)
    state_machine.run(conductor, stale[0].lock, ADMIN)
    monkeypatch.setattr(nodes, "locks", lambda conn, group: stale)

    assert recovery.resume_orphans(conductor) == 0

    assert "Resuming" not in caplog.text
    assert_inspected(records, node)


def test_who_has_lost_the_lock_saves_nothing(start_conductor, waiting, records):
    conductor = start_conductor()
    node, _ = waiting()
    lock = conductor.new_lock(records.row(node).id)
    records.db.write(lambda conn: nodes.reserve(conn, conductor.new_lock(lock.node_id), "test"))
    before = records.row(node)
    with records.db.reader() as conn:
        task = task_store.read(conn, before).task(ADMIN)
    task.node.extra["a"] = 1

    with pytest.raises(LockLost), records.db.writer() as conn:
        task_store.save(conn, task, lock, {}, release=True)
    state_machine.run(conductor, lock, ADMIN)

    assert records.row(node) == before


def test_an_orderly_end_loses_no_work(start_conductor, waiting, records, gate, conf, monkeypatch, group):
    monkeypatch.setattr(rpc_transport, "_TOPIC", f"test-{group}")
    transport = rpc_transport.get_transport(conf)
    conductor = start_conductor("a", registered=False)
    first = ConductorService(conductor, transport)
    first.start()
    opened, reached = gate(conductor)
    work_to_do = [waiting() for _ in range(40)]
    for node, data in work_to_do:
        accept(conductor, node, data)
    assert reached.wait(60)

    assert first.stop() is False
    transport.cleanup()

    with records.db.reader() as conn:
        assert not conductors.serves(conn, group, 600)
    second = start_conductor("b")
    monkeypatch.undo()
    assert recovery.resume_orphans(second) == 40
    finish(second)
    opened.set()
    finish(conductor)
    for node, _ in work_to_do:
        assert_inspected(records, node)


def die_while(conductor, monkeypatch, request):
    with monkeypatch.context() as patch:
        patch.setattr(Slot, "run", lambda slot, *arguments: None)
        request()


def test_an_abort_that_was_accepted_is_carried_out(start_conductor, waiting, records, monkeypatch):
    first = start_conductor("a")
    node, _ = waiting()
    die_while(first, monkeypatch, lambda: provisioning.change_provision_state(first, ADMIN, node, "abort", {}))
    assert records.row(node).provision_state == "inspect wait"

    assert recovery.resume_orphans(start_conductor("a")) == 1

    row = records.at_rest(node)
    assert (row.provision_state, row.power_state) == ("inspect failed", "power off")
    assert row.last_error == "Inspection was aborted by request. (IR-2083)"


def test_a_power_change_that_nobody_finished_is_told(start_conductor, waiting, records, monkeypatch):
    first = start_conductor("a")
    node, _ = waiting(provision_state="manageable", target_provision_state=None)
    die_while(first, monkeypatch, lambda: provisioning.change_power_state(first, ADMIN, node, "power off", None))
    assert records.row(node).target_power_state == "power off"

    assert recovery.resume_orphans(start_conductor("a")) == 1

    row = records.at_rest(node)
    assert (row.provision_state, row.power_state, row.target_power_state) == ("manageable", "power on", None)
    assert 'during "power: power off"' in row.last_error


@pytest.mark.parametrize("verb", ["provide", "adopt", "clean", "inspect"])
def test_other_work_is_resumed_too(start_conductor, waiting, records, monkeypatch, verb):
    first = start_conductor("a")
    node, _ = waiting(provision_state="manageable", target_provision_state=None)
    die_while(first, monkeypatch, lambda: provisioning.change_provision_state(first, ADMIN, node, verb, {}))

    assert recovery.resume_orphans(start_conductor("a")) == 1

    ends = {"provide": "available", "adopt": "active", "clean": "manageable", "inspect": "inspect wait"}
    assert records.at_rest(node).provision_state == ends[verb]


@pytest.mark.parametrize(("interval_s", "looks_every_s"), [(10, 2), (1, 1)])
def test_operations_are_looked_for_more_often_than_lost_work(
        start_conductor, conf, monkeypatch, group, request, interval_s, looks_every_s):
    """Someone waits for the first nodes of an operation."""
    monkeypatch.setattr(rpc_transport, "_TOPIC", f"test-{group}")
    conf.set_override("recovery_interval", interval_s, group="conductor")
    request.addfinalizer(lambda: conf.clear_override("recovery_interval", group="conductor"))
    service = ConductorService(start_conductor(), rpc_transport.get_transport(conf))
    assert {loop._name: loop._interval_s for loop in service._loops if loop._name in ("operations", "recovery")} == {
        "operations": looks_every_s, "recovery": interval_s}


def test_conductors_that_are_pinned_to_different_releases_are_named_at_the_start(
        start_conductor, records, conf, monkeypatch, group, caplog):
    monkeypatch.setattr(rpc_transport, "_TOPIC", f"test-{group}")
    transport = rpc_transport.get_transport(conf)
    conductor = start_conductor(registered=False)
    records.db.write(lambda conn: conductors.register(conn, "pinned-host", group, {}, "life", pinned_release="0.1"))
    service = ConductorService(conductor, transport)
    service.start()
    service.stop()
    transport.cleanup()

    warning, = (text for text in caplog.messages if "pin_release_version differs" in text)
    assert f"(0.1: pinned-host; not set: {conductor.host})" in warning  # others registered without saying


def test_a_conductor_whose_name_another_process_takes_ends(start_conductor, records, conf, monkeypatch, group):
    monkeypatch.setattr(rpc_transport, "_TOPIC", f"test-{group}")
    transport = rpc_transport.get_transport(conf)
    conductor = start_conductor(registered=False)
    told = []
    first = ConductorService(conductor, transport, lambda: told.append(first.is_displaced))
    first.start()
    first._heartbeat()
    assert told == []

    records.db.write(lambda conn: conductors.register(conn, conductor.host, group, {}, "another process"))
    first._heartbeat()

    assert told == [True]
    first.stop()
    transport.cleanup()
    with records.db.reader() as conn:
        assert conductors.serves(conn, group, 600)  # the other one's registration remains


def test_a_database_that_is_away_is_no_fault_of_the_caller(start_conductor, waiting, monkeypatch):
    conductor = start_conductor()
    node, data = waiting()

    def away(*arguments):
        raise db_exc.DBConnectionError("gone")

    monkeypatch.setattr(inventory, "receive", away)
    with pytest.raises(messaging.ExpectedException) as caught:
        ConductorEndpoint(conductor).continue_inspection(ADMIN, node, data)
    assert caught.value.exc_info[0] is Unavailable
    assert is_idle(conductor)


@pytest.mark.parametrize(
    ("owner", "name"), [(inventory, "finish"), (inspection_rules, "revision"), (ports, "for_node")])
def test_a_database_that_is_away_for_a_moment_fails_no_inspection(
        start_conductor, waiting, records, monkeypatch, owner, name):
    conductor = start_conductor()
    node, data = waiting()

    def away(*arguments):
        raise db_exc.DBConnectionError("gone")

    with monkeypatch.context() as patch:
        # The work reads the node itself, and nothing of it was read when it was accepted.
        patch.setattr(acceptance, "_record", lambda *_: None)
        patch.setattr(owner, name, away)
        accept(conductor, node, data)
        finish(conductor)
    assert records.row(node).provision_state == "inspecting"

    assert recovery.resume_orphans(conductor) == 1
    assert_inspected(records, node)


def test_slow_machines_of_overdue_nodes_delay_nobody_else(
        start_conductor, waiting, records, monkeypatch, conf, request):
    conductor = start_conductor()
    conf.set_override("recovery_interval", 1, group="conductor")
    request.addfinalizer(lambda: conf.clear_override("recovery_interval", group="conductor"))
    long_ago = clock.now() - datetime.timedelta(hours=2)
    overdue = [waiting(provision_updated_at=long_ago)[0] for _ in range(50)]
    node, data = waiting(provision_updated_at=clock.now())
    replies, slow = threading.Event(), FaultyInspect.abort

    def abort(self, task):
        assert replies.wait(60)
        slow(self, task)

    monkeypatch.setattr(FaultyInspect, "abort", abort)
    recovery.fail_overdue(conductor)
    in_work = [uuid for uuid in overdue if records.row(uuid).reservation]
    assert len(in_work) == 2 * conf.conductor.recovery_workers

    accept(conductor, node, data)
    assert_inspected(records, node)

    replies.set()
    finish(conductor)
    recovery.fail_overdue(conductor)
    finish(conductor)
    assert {records.row(uuid).provision_state for uuid in overdue} == {"inspect failed"}
